"""A graph that begins on the NumPy backend, and moves to the compiled one between two calls."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma.backend import use_kernels
from lpma.backend.numba.backend import NumbaBackend
from lpma.backend.numpy.backend import NumpyBackend
from lpma.batch.columns import OF_EDGES
from lpma.cpu import ready
from tests.support.kernel_workload import OPTIONS

CALLS = 6


class Readiness:
    """Stands in for what `ready` knows of the kernels."""

    def __init__(self) -> None:
        self.ready = False

    def __call__(self) -> bool:
        return self.ready


@pytest.fixture
def readiness(monkeypatch: pytest.MonkeyPatch) -> Readiness:
    stub = Readiness()
    monkeypatch.setattr(ready, "get_ready", stub)
    monkeypatch.setattr(ready, "are_ready", stub)
    return stub


def backend_of(g: lpma.Graph) -> type:
    (kind,) = {type(store.backend) for store, _ in g._stores.all}
    return kind


def batch(rng: np.random.Generator, g: lpma.Graph) -> lpma.Columns:
    n = int(rng.integers(1, 120))
    served = {lpma.Kind.PREDECESSORS: g.has_predecessors, lpma.Kind.EXPIRE: g.has_times}
    kinds = [kind for kind in lpma.Kind if served.get(kind, True)]
    weights = [6 if kind in OF_EDGES else 1 for kind in kinds]
    kind = rng.choice(kinds, n, p=np.array(weights) / sum(weights)).astype(np.uint8)
    src, dst = rng.integers(0, 20, (2, n))
    dst[kind == lpma.Kind.HOPS] = 2
    return lpma.Batch.from_columns(kind, src, dst, rng.integers(-4, 20, n) / 4, np.arange(n))


def state(g: lpma.Graph) -> dict[str, Any]:
    """What is the same whichever backend keeps a graph."""
    s, changes = g.snapshot(compact=True), g.changes(0)
    assert changes is not None
    return {
        **s.to_numpy(), "version": g.version, "edges": g.num_edges, "vertices": g.num_rows,
        "unchanged": str(g.unchanged), "expired": g.expired, "operations": g.stats().operations,
        "src": changes.src, "dst": changes.dst, "inserted": changes.inserted,
    }  # fmt: skip


@given(st.sampled_from(OPTIONS), st.integers(0, CALLS), st.integers(0, 2**32), st.booleans())
def test_nothing_changes_but_who_keeps_the_graph(
    options: dict[str, Any], at: int, seed: int, by_reading: bool
) -> None:
    stub = Readiness()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ready, "get_ready", stub)
        patch.setattr(ready, "are_ready", stub)
        g = lpma.Graph(device="cpu", **options)
        use_kernels(True)
        rng = np.random.default_rng(seed)
        batches = [batch(rng, g) for _ in range(CALLS)]
        answers = []
        for number, columns in enumerate(batches):
            assert backend_of(g) is (NumpyBackend if number <= at else NumbaBackend)
            if number == at:
                stub.ready = True
                if by_reading:
                    g.degree(0)
                    assert backend_of(g) is NumbaBackend
            answers.append(g.apply(columns))
            g.check()
        stub.ready = True
        always = lpma.Graph(device="cpu", **options)
    assert backend_of(always) is NumbaBackend
    for columns, answer in zip(batches, answers, strict=True):
        expected = always.apply(columns)
        for query in range(columns.num_queries):
            np.testing.assert_equal(vars_of(answer[query]), vars_of(expected[query]))
    np.testing.assert_equal(state(g), state(always))


def vars_of(answer: Any) -> Any:
    return answer if isinstance(answer, np.ndarray) else vars(answer)


def test_a_batch_that_is_refused_leaves_a_graph_that_has_moved_on_as_it_was(
    readiness: Readiness,
) -> None:
    g = lpma.Graph(device="cpu", predecessors=True)
    g.insert([1, 2], [2, 3])
    readiness.ready = True
    with pytest.raises(lpma.BatchError):
        g.insert(-1, 2)
    g.insert(3, 4)
    assert backend_of(g) is NumbaBackend
    assert (g.num_edges, g.version) == (3, 2)


def test_if_memory_does_not_suffice_the_graph_stays_where_it_is(
    readiness: Readiness, monkeypatch: pytest.MonkeyPatch
) -> None:
    g = lpma.Graph(device="cpu", predecessors=True)
    g.insert([1, 2], [2, 3])
    readiness.ready = True

    def fail(*_: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(NumbaBackend, "build", fail)
        g.insert(3, 4)
        assert backend_of(g) is NumpyBackend
    g.insert(4, 5)
    assert backend_of(g) is NumbaBackend
    g.check()
    assert g.num_edges == 4


PROGRAM = """
import sys, time
import lpma
g = lpma.Graph(device="cpu")
end = time.monotonic() + float(sys.argv[1])
while g._stores.is_provisional and time.monotonic() < end:
    g.insert([1, 2], [2, 3])
    time.sleep(0.01)
print(g._stores.out.backend.name, "numba" in sys.modules, g.num_edges)
"""


def run(cache: Any, seconds: int, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(seconds)], capture_output=True, text=True, timeout=3600,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache), **environment}, check=True,
    )  # fmt: skip


def test_a_process_that_ends_before_the_kernels_are_there_does_not_wait_for_them(
    tmp_path: Any,
) -> None:
    done = run(tmp_path, 0)
    assert done.stdout.split() == ["numpy", "False", "0"]
    assert done.stderr == ""


@pytest.mark.integration
@pytest.mark.all_cores
def test_a_process_that_goes_on_gets_the_kernels_and_compiles_nothing_itself(
    tmp_path: Any,
) -> None:
    done = run(tmp_path, 3000)
    assert done.stdout.split() == ["cpu", "True", "2"]
    assert done.stderr == ""  # where a line would tell of a kernel compiled here
    done = run(tmp_path, 0, LPMA_COMPILE="ahead")
    assert done.stdout.split() == ["cpu", "True", "0"]
    assert done.stderr == ""  # all are there, so that nothing has to be told
