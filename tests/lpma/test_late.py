"""Columns of snapshots that are copied late: they are those of the moment, whatever comes after."""

from __future__ import annotations

import copy
import gc
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import lpma
from lpma import late
from lpma.backend.numba import csr
from lpma.backend.numba.csr import CsrReads
from lpma.cpu import pieces
from tests.support.compiled import compile_kernels

Array = npt.NDArray[Any]

batches = st.lists(
    st.tuples(
        st.sampled_from(["insert", "delete", "add", "one"]),
        st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12),
        st.integers(0, 2),  # snapshots taken after it
        st.booleans(),  # whether the first of them is read at once
    ),
    max_size=12,
)


@pytest.fixture(autouse=True)
def compiled() -> None:
    """Columns are late where compiled kernels keep the store."""
    compile_kernels()


def edges_of(model: dict[tuple[int, int], tuple[float, int]]) -> tuple[Array, Array]:
    values = [model[edge] for edge in sorted(model)]
    return np.array([w for w, _ in values], np.float32), np.array([t for _, t in values], np.int64)


@given(steps=batches, few=st.sampled_from([0, pieces.FEW]))
def test_columns_are_those_of_the_moment(steps: Any, few: int) -> None:
    graph, time = lpma.Graph(device="cpu"), 0
    model: dict[tuple[int, int], tuple[float, int]] = {}
    taken: list[tuple[Any, Any]] = []
    with patch.object(pieces, "FEW", few):
        for kind, edges, snapshots, at_once in steps:
            time += 1
            src, dst = np.array(edges).T
            weight = src * 10.0 + dst + time
            if kind == "insert":
                graph.insert(src, dst, weight=weight, time=time)
            elif kind == "delete":
                graph.delete(src, dst)
            elif kind == "add":
                graph.add_vertices(src)
            else:
                graph.insert(int(src[0]), int(dst[0]), weight=float(weight[0]), time=time)
                edges = edges[:1]
            for i, edge in enumerate(edges):
                if kind in ("insert", "one"):
                    model[edge] = model.get(edge, (0.0, 0))[0] + float(weight[i]), time
                elif kind == "delete":
                    model.pop(edge, None)
            for i in range(snapshots):
                taken.append((graph.snapshot(), edges_of(model)))
                if at_once and i == 0:
                    assert len(taken[-1][0].weights) == len(model)
    for s, (weights, times) in taken:
        assert (s.weights.dtype, s.times.dtype) == (np.float32, np.int64)
        assert s.weights.tolist() == weights.tolist()
        assert s.times.tolist() == times.tolist()


@given(
    edges=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 60)), max_size=300, unique=True),
    added=st.lists(st.integers(0, 9), max_size=6),
    backwards=st.booleans(),
)
@example(edges=[(u // 20, u) for u in range(60)], added=[], backwards=True)
@example(edges=[(u, u + 1) for u in range(60)], added=list(range(60)), backwards=True)
def test_parts_are_written_in_any_order(edges: Any, added: list[int], backwards: bool) -> None:
    """Rows that go on from part to part, and parts that end with a marker: whichever thread comes
    last, the rows are the same."""

    def in_turn(kernel: Any, calls: Any) -> list[Any]:
        answers = [kernel(*call) for call in (calls[::-1] if backwards else calls)]
        return answers[::-1] if backwards else answers

    graph = lpma.Graph(device="cpu", segment_size=8)
    graph.insert(*np.array(edges, np.int64).reshape(-1, 2).T)
    graph.add_vertices(np.array(added, np.int64))
    with (
        patch.object(pieces, "FEW", 0),
        patch.object(csr, "SEGMENTS_PER_TASK", 1),
        patch.object(csr, "cuts", lambda n, smallest, per_thread: [(i, i + 1) for i in range(n)]),
        patch.object(csr, "run_all", in_turn),
    ):
        s: Any = graph.snapshot()
        # Not the snapshot itself, which cannot be printed where it is wrong.
        indptr, indices, weights = s.indptr.tolist(), s.indices.tolist(), s.weights.tolist()
    rows = max([u for u, _ in edges] + [v for _, v in edges] + added, default=-1) + 1
    assert indptr == [sum(u < row for u, _ in edges) for row in range(rows + 1)]
    assert indices == [v for _, v in sorted(edges)]
    assert weights == [1.0] * len(edges)


def late_graph(**options: Any) -> lpma.Graph:
    graph = lpma.Graph(device="cpu", **options)
    graph.insert([0, 1, 2], [1, 2, 0], weight=[1.0, 2.0, 3.0], time=5)
    return graph


def copies(graph: lpma.Graph) -> Any:
    return patch.object(CsrReads, "csr_columns", autospec=True, side_effect=CsrReads.csr_columns)


def test_they_are_copied_once_and_only_if_needed() -> None:
    graph = late_graph()
    with copies(graph) as copied:
        graph.snapshot()
        graph.insert(3, 4)  # nobody has the snapshot any more
        assert copied.call_count == 0
        first: Any = graph.snapshot()
        second: Any = graph.snapshot()
        assert len(first.weights) == len(second.times) == 4
        assert copied.call_count == 1
        graph.insert(4, 5)
        assert copied.call_count == 1
        third: Any = graph.snapshot()
        graph.insert(5, 6)
        graph.insert(6, 7)
        assert copied.call_count == 2
        assert len(third.weights) == 5
        assert copied.call_count == 2


@pytest.mark.parametrize("weight, times", [(None, True), ("float64", False), (None, False)])
def test_absent_columns_are_none(weight: str | None, times: bool) -> None:
    graph = lpma.Graph(device="cpu", weight=weight, times=times)
    graph.insert([0, 1], [1, 0])
    s = graph.snapshot()
    graph.insert(2, 3)
    assert (s.weights is None) == (weight is None)
    assert (s.times is None) == (not times)


@pytest.mark.parametrize(
    "form",
    [copy.copy, copy.deepcopy, replace, lambda s: pickle.loads(pickle.dumps(s))],  # noqa: S301
)
def test_copies_of_a_snapshot_have_them(form: Any) -> None:
    graph = late_graph()
    made = form(graph.snapshot())
    graph.insert(0, 1, weight=9.0)
    assert made.weights.tolist() == [1, 2, 3]
    assert late.KEY not in vars(made)


def test_they_outlive_the_graph_and_do_not_keep_its_store() -> None:
    graph = late_graph()
    s: Any = graph.snapshot()
    waiting = vars(s)[late.KEY]
    del graph
    gc.collect()
    assert waiting._copy is None
    assert waiting._read is None
    assert s.weights.tolist() == [1, 2, 3]


def test_without_memory_for_them_a_batch_is_refused() -> None:
    graph = late_graph()
    s: Any = graph.snapshot()
    with patch.object(vars(s)[late.KEY], "_copy", side_effect=MemoryError("no")):
        with pytest.raises(lpma.OutOfMemory):
            graph.insert(0, 1, weight=9.0)
        with pytest.raises(lpma.OutOfMemory):
            _ = s.weights
    assert graph.version == 1
    graph.insert(0, 1, weight=9.0)
    assert s.weights.tolist() == [1, 2, 3]
    later: Any = graph.snapshot()
    assert later.weights.tolist() == [10, 2, 3]


def test_readers_beside_a_writer() -> None:
    """Every batch adds 1 to every weight, so that no snapshot has two different ones."""
    n = 3000
    graph = lpma.Graph(device="cpu")
    src, dst = np.arange(n), np.arange(n) + 1
    graph.insert(src, dst)

    def read(_: int) -> None:
        s: Any = graph.snapshot()
        assert len(s.weights) == len(s.times) == n
        assert (s.weights == s.version).all()

    with ThreadPoolExecutor(3) as pool:
        reading = [pool.submit(read, i) for i in range(200)]
        for _ in range(60):
            graph.insert(src, dst)
        for one in reading:
            one.result()


def test_other_names_are_missing_as_ever() -> None:
    s: Any = late_graph().snapshot()
    with pytest.raises(AttributeError, match="no 'weight'"):
        _ = s.weight
    assert not hasattr(lpma.Snapshot.__new__(lpma.Snapshot), "weights")
