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
from lpma.backend.numba import export
from lpma.cpu import pieces
from lpma.snapshot import deferred
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
def test_columns_are_those_of_the_moment(device: str, steps: Any, few: int) -> None:
    graph, time = lpma.Graph(device=device), 0
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


@pytest.mark.gpu
@given(steps=batches, directed=st.booleans(), weight=st.sampled_from(["float32", "float64", None]))
def test_both_devices_agree_through_all_that_changes_a_graph(
    cupy: Any, steps: Any, directed: bool, weight: str | None
) -> None:
    """With edges that expire, vertices that go, an in-neighbour store, levels that come, and
    contents that are replaced."""
    taken = []
    for device in ("cpu", "cuda"):
        graph = lpma.Graph(
            directed, device=device, predecessors=directed, segment_size=4, weight_dtype=weight
        )
        found: list[Any] = []
        for time, (kind, edges, snapshots, at_once) in enumerate(steps):
            src, dst = np.array(edges).T
            if kind == "insert":
                graph.insert(src, dst, time=time)
                graph.insert(src * 7000, dst, time=time)  # gaps that are written in pieces
            elif kind == "delete":
                graph.delete(src, dst)
                graph.expire(time - 3)
            elif kind == "add":
                graph.add_vertices(src)
                graph.remove_vertices(dst[:1])
            else:
                graph.insert(int(src[0]), int(dst[0]), time=time)
            found += [graph.snapshot() for _ in range(snapshots)]
            if at_once and snapshots:
                _ = found[-1].times
        taken.append(found)
    for here, there in zip(*taken, strict=True):
        assert here.num_edges == there.num_edges
        for name in ("indptr", "indices", "weights", "times", "added"):
            right, array = getattr(here, name), getattr(there, name)
            assert (array is None) == (right is None)
            if right is not None:
                np.testing.assert_array_equal(cupy.asnumpy(array), right, name)


@pytest.mark.gpu
def test_columns_go_to_the_stream_that_was_current(cupy: Any) -> None:
    """Two snapshots of one version, taken on two streams, share nothing; whoever reads has its own
    stream wait."""
    graph = late_graph("cuda")
    stream = cupy.cuda.Stream(non_blocking=True)
    first: Any = graph.snapshot()
    with stream:
        second: Any = graph.snapshot()
        weights = second.weights + 1
    third: Any = graph.snapshot()
    graph.insert(3, 4)  # copies what is not copied yet
    assert vars(first)[deferred.KEY]._copy is None
    assert vars(third)[deferred.KEY]._copy is None
    with stream:
        assert first.weights.tolist() == third.weights.tolist() == [1, 2, 3]
        assert weights.tolist() == [2, 3, 4]
    assert first.weights.data.ptr != second.weights.data.ptr


@pytest.mark.gpu
def test_a_thread_s_own_stream_is_not_left_waiting(cupy: Any) -> None:
    """No other thread can name it: so columns are copied at once."""
    graph = late_graph("cuda")
    with cupy.cuda.Stream(ptds=True):
        s: Any = graph.snapshot()
        assert vars(s)[deferred.KEY]._copy is None
        assert s.weights.tolist() == [1, 2, 3]


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
        patch.object(export, "SEGMENTS_PER_TASK", 1),
        patch.object(
            export, "cuts", lambda n, smallest, per_thread: [(i, i + 1) for i in range(n)]
        ),
        patch.object(export, "run_all", in_turn),
    ):
        s: Any = graph.snapshot()
        # Not the snapshot itself, which cannot be printed where it is wrong.
        indptr, indices, weights = s.indptr.tolist(), s.indices.tolist(), s.weights.tolist()
    rows = max([u for u, _ in edges] + [v for _, v in edges] + added, default=-1) + 1
    assert indptr == [sum(u < row for u, _ in edges) for row in range(rows + 1)]
    assert indices == [v for _, v in sorted(edges)]
    assert weights == [1.0] * len(edges)


def late_graph(device: str) -> lpma.Graph:
    graph = lpma.Graph(device=device)
    graph.insert([0, 1, 2], [1, 2, 0], weight=[1.0, 2.0, 3.0], time=5)
    return graph


def copies(graph: lpma.Graph) -> Any:
    """Patches what copies columns."""
    backend: Any = graph._stores.out.backend
    return patch.object(backend, "csr_columns", side_effect=backend.csr_columns)


def test_they_are_copied_once_and_only_if_needed(device: str) -> None:
    graph = late_graph(device)
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
def test_absent_columns_are_none(device: str, weight: str | None, times: bool) -> None:
    graph = lpma.Graph(device=device, weight_dtype=weight, times=times)
    graph.insert([0, 1], [1, 0])
    s = graph.snapshot()
    graph.insert(2, 3)
    assert (s.weights is None) == (weight is None)
    assert (s.times is None) == (not times)


@pytest.mark.parametrize(
    "form",
    [copy.copy, copy.deepcopy, replace, lambda s: pickle.loads(pickle.dumps(s))],  # noqa: S301
)
def test_copies_of_a_snapshot_have_them(device: str, form: Any) -> None:
    graph = late_graph(device)
    made = form(graph.snapshot())
    graph.insert(0, 1, weight=9.0)
    assert made.weights.tolist() == [1, 2, 3]
    assert deferred.KEY not in vars(made)


def test_they_outlive_the_graph_and_do_not_keep_its_store(device: str) -> None:
    graph = late_graph(device)
    s: Any = graph.snapshot()
    waiting = vars(s)[deferred.KEY]
    del graph
    gc.collect()
    assert waiting._copy is None
    assert waiting._read is None
    assert s.weights.tolist() == [1, 2, 3]


def test_without_memory_for_them_a_batch_is_refused(device: str) -> None:
    graph = late_graph(device)
    s: Any = graph.snapshot()
    with patch.object(vars(s)[deferred.KEY], "_copy", side_effect=MemoryError("no")):
        with pytest.raises(lpma.OutOfMemory):
            graph.insert(0, 1, weight=9.0)
        with pytest.raises(lpma.OutOfMemory):
            _ = s.weights
    assert graph.version == 1
    graph.insert(0, 1, weight=9.0)
    assert s.weights.tolist() == [1, 2, 3]
    later: Any = graph.snapshot()
    assert later.weights.tolist() == [10, 2, 3]


def test_readers_beside_a_writer(device: str) -> None:
    """Every batch adds 1 to every weight, so that no snapshot has two different ones."""
    n = 3000
    graph = lpma.Graph(device=device)
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
    s: Any = late_graph("cpu").snapshot()
    with pytest.raises(AttributeError, match="no attribute 'weight'"):
        _ = s.weight
    assert not hasattr(lpma.Snapshot.__new__(lpma.Snapshot), "weights")
