"""What is short keeps the interpreter's lock on a device, so that a thread that computes in Python
does not make it a hundred times longer (lpma/cuda/driver.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import algorithms
import lpma
from tests.support.counting import counted, counting

pytestmark = pytest.mark.gpu

LONG_S = 0.5  # whoever lets go of the lock waits so long for it
VERTICES, LOADED, SIZE = 1 << 16, 500_000, 10_000


class Given(NamedTuple):
    """The same edges, from everywhere."""

    host: tuple[Any, Any]
    device: tuple[Any, Any]
    pinned: lpma.Columns


def fresh(g: lpma.Graph) -> lpma.Snapshot:
    g.insert(1, 2)
    return g.snapshot()


CALLS: dict[str, Callable[[lpma.Graph, Given], Any]] = {
    "insert one": lambda g, given: g.insert(1, 2),
    "insert, NumPy": lambda g, given: g.insert(*given.host),
    "insert, pinned": lambda g, given: g.apply(given.pinned),
    "insert, device": lambda g, given: g.insert(*given.device),
    "delete": lambda g, given: g.delete(*given.host),
    "edges": lambda g, given: g.edges(*given.host),
    "edges, device": lambda g, given: g.edges(*given.device),
    "successors": lambda g, given: g.successors(given.host[0]),
    "degree, device": lambda g, given: g.degree(given.device[0]),
    "snapshot": lambda g, given: fresh(g),
    "core numbers": lambda g, given: algorithms.core_numbers(fresh(g)),
}


@pytest.fixture(scope="module")
def graph() -> lpma.Graph:
    from lpma.cuda import driver  # which needs CuPy

    src, dst = np.random.default_rng(0).integers(0, VERTICES, (2, LOADED))
    g = lpma.Graph(device="cuda")
    g.insert(src, dst)
    driver.compiled.get_ready()
    return g


@pytest.mark.parametrize("name", CALLS)
def test_a_short_call_keeps_the_lock(graph: lpma.Graph, cupy: Any, name: str) -> None:
    src, dst = np.random.default_rng(1).integers(0, VERTICES, (2, SIZE)).astype(np.uint32)
    pinned = lpma.pinned_batch(SIZE)
    pinned.src[:], pinned.dst[:] = src, dst
    given = Given((src, dst), (cupy.asarray(src), cupy.asarray(dst)), pinned)
    for _ in range(3):  # memory is had, and kernels are loaded
        CALLS[name](graph, given)
    cupy.cuda.get_current_stream().synchronize()
    with counting() as other:
        assert counted(other, lambda: CALLS[name](graph, given), LONG_S) == 0
