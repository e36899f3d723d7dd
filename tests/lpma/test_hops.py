"""Hops: breadth-first search from many vertices at once, outside a batch, in each way that a device
has for it."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma.arrays import to_host
from tests.conftest import missing
from tests.support.strategies import edge_lists


def within(edges: list[tuple[int, int]], start: int, steps: int) -> list[int]:
    """By the definition, a level at a time."""
    targets = defaultdict(set)
    for u, v in edges:
        targets[u].add(v)
    reached: set[int] = set()
    frontier = {start}
    for _ in range(steps):
        frontier = {v for u in frontier for v in targets[u]}
        reached |= frontier
    return sorted(reached)


def answered(g: lpma.Graph, starts: list[int], steps: int) -> list[list[int]]:
    found = g.hops(np.array(starts, np.uint32), steps)
    indptr, ids = to_host(found.indptr), to_host(found.ids)
    return [ids[lo:hi].tolist() for lo, hi in pairwise(indptr)]


@given(
    drawn=edge_lists(20), steps=st.integers(1, 6), directed=st.booleans(),
    starts=st.lists(st.integers(0, 25), max_size=6),
)  # fmt: skip
def test_small_graphs(
    device: str, drawn: tuple[int, Any, Any], steps: int, directed: bool, starts: list[int]
) -> None:
    _, src, dst = drawn
    g = lpma.Graph(device=device, directed=directed, segment_size=4)
    g.insert(src, dst)
    edges = list(zip(src.tolist(), dst.tolist(), strict=True))
    edges += [] if directed else [(v, u) for u, v in edges]
    assert answered(g, starts, steps) == [within(edges, u, steps) for u in starts]


@pytest.mark.parametrize("most_bytes", [1 << 28, 400, 0])
def test_ways_on_a_device(device: str, most_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bits for all queries, for some at a time, and for none: then pairs are sorted."""
    if device != "cuda":
        pytest.skip("the CPU has one way")
    from lpma.backend.cuda import reach

    monkeypatch.setattr(reach, "MOST_BYTES", most_bytes)
    rng = np.random.default_rng(4)
    n, m = 700, 2500
    src, dst = rng.integers(0, n, m), np.minimum(rng.integers(0, n, m), rng.integers(0, n, m))
    g = lpma.Graph(device=device, segment_size=8)
    g.insert(src, dst)
    edges = list(zip(src.tolist(), dst.tolist(), strict=True))
    starts = rng.integers(0, n + 9, 40).tolist()
    for steps in (1, 2, 4):
        assert answered(g, starts, steps) == [within(edges, u, steps) for u in starts]


@pytest.mark.gpu
def test_of_each_of_many_steps() -> None:
    """Queries with steps of their own, in one batch without updates; a path, whose frontier is one
    vertex for 255 rounds; ids near the largest, for which there are no bits."""
    for shift in (0, 2**32 - 400):
        try:
            g = lpma.Graph(device="cuda")
        except lpma.DeviceError as error:
            missing("gpu", str(error))
        g.insert(np.arange(300) + shift, np.arange(1, 301) + shift)
        batch = lpma.Batch()
        for k in (1, 255, 17, 2):
            batch.hops(shift, k)
        answers: Any = g.apply(batch)
        for number, k in enumerate((1, 255, 17, 2)):
            assert to_host(answers[number].ids).tolist() == [shift + i for i in range(1, k + 1)]
