"""Incremental snapshots (lpma/snapshot/row_versions.py): the same rows as made anew."""

from __future__ import annotations

import gc
import pickle
import weakref
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma.backend.numba import snapshot_memory
from lpma.backend.values import SlotArrays
from lpma.cpu import merged, pieces
from lpma.snapshot import capture
from lpma.snapshot import row_versions as forms
from lpma.snapshot.row_versions import Delta, Memory, ScatteredRows, lineage_of, scattered
from tests.support.changes import change
from tests.support.compiled import compile_kernels

edges = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=10)
steps = st.lists(
    st.tuples(
        st.sampled_from(["insert", "set", "delete", "add", "remove", "expire", "one", "nothing"]),
        edges,
    ),
    max_size=10,
)


@pytest.fixture(autouse=True)
def compiled() -> None:
    """Rows are kept where compiled kernels keep the store."""
    compile_kernels()


def anew(graph: lpma.Graph) -> lpma.Snapshot:
    """A snapshot that follows none."""
    with patch.object(graph._stores, "last", None):
        return graph.snapshot()


def loose(s: lpma.Snapshot) -> ScatteredRows:
    link = lineage_of(s)
    assert link is not None
    return link.state.rows.scattered()


def listed(rows: ScatteredRows) -> list[list[int]]:
    """The entries of each row."""
    return [
        rows.entries[start:end].tolist() for start, end in zip(rows.starts, rows.ends, strict=True)
    ]


def split(s: lpma.Snapshot) -> list[list[int]]:
    """The entries of each row of a snapshot."""
    return [row.tolist() for row in np.split(s.indices, s.indptr[1:-1])][: s.num_rows]


@given(
    steps=steps, directed=st.booleans(), few=st.sampled_from([0, pieces.FEW]),
    reads=st.lists(st.sampled_from(["loose", "packed", "both", "none"]), min_size=20, max_size=20),
    share=st.sampled_from([0, forms.SHARE]),
)  # fmt: skip
def test_rows_are_those_made_anew(
    steps: Any, directed: bool, few: int, reads: list[str], share: int
) -> None:
    """Whatever was read of the versions before, and in which form."""
    graph = lpma.Graph(directed, device="cpu")
    held = []
    with patch.object(pieces, "FEW", few), patch.object(forms, "SHARE", share):
        for step, before, after in zip(steps, reads, reads[10:], strict=False):
            read(graph.snapshot(), before)
            change(graph, step)
            s, right = graph.snapshot(), anew(graph)
            assert lineage_of(s) is not None
            assert s.num_rows == right.num_rows
            read(s, after)
            held.append((s, split(right)))
            if after == "none":
                continue
            assert listed(loose(s)) == split(right)
            np.testing.assert_array_equal(s.indptr, right.indptr)
            np.testing.assert_array_equal(s.indices, right.indices)
            np.testing.assert_array_equal(s.weights, right.weights)
            np.testing.assert_array_equal(s.times, right.times)
            np.testing.assert_array_equal(s.present, right.present)
        for s, entries in held:  # invariant 1 of rows.py: what came later changed none of them
            assert listed(loose(s)) == entries
            assert split(s) == entries


def read(s: lpma.Snapshot, form: str) -> None:
    if form in ("loose", "both"):
        loose(s)
    if form in ("packed", "both"):
        assert len(s.indptr) == s.num_rows + 1


keys = st.dictionaries(st.tuples(st.integers(0, 5), st.integers(0, 5)), st.booleans(), max_size=12)


@given(
    rows=st.sets(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=14),
    changes=keys, n=st.integers(0, 6), known=st.integers(5, 6), repeated=st.booleans(),
    few=st.sampled_from([0, pieces.FEW]),
)  # fmt: skip
def test_merged_rows_are_those_of_a_set(
    rows: set[Any], changes: dict[Any, bool], n: int, known: int, repeated: bool, few: int
) -> None:
    changes |= {edge: False for edge in rows if edge[0] >= n}
    changes = {edge: there and edge[0] < n for edge, there in changes.items()}
    after = (rows - changes.keys()) | {edge for edge, there in changes.items() if there}
    touched = sorted([*changes, *(changes if repeated else ())])
    with patch.object(pieces, "FEW", few):
        found = merged.with_changes(
            *as_rows(rows, known), np.array([u << 32 | v for u, v in touched], np.uint64),
            np.array([changes[edge] for edge in touched], np.bool_), n,
            lambda starts, entries: (np.full(starts, 9, np.int64), np.full(entries, 9, np.uint32)),
        )  # fmt: skip
    for array, right in zip(found, as_rows(after, n), strict=True):
        np.testing.assert_array_equal(array, right)


@given(
    rows=st.sets(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=14),
    changes=keys, n=st.integers(0, 6), known=st.integers(5, 6), free=st.integers(14, 16),
)  # fmt: skip
def test_changed_rows_are_written_behind_the_others(
    rows: set[Any], changes: dict[Any, bool], n: int, known: int, free: int
) -> None:
    changes |= {edge: False for edge in rows if edge[0] >= n}
    changes = {edge: there and edge[0] < n for edge, there in changes.items()}
    after = (rows - changes.keys()) | {edge for edge, there in changes.items() if there}
    indptr, indices = as_rows(rows, known)
    memory = np.full(60, 9, np.uint32)
    memory[: len(indices)] = indices
    before = scattered(indptr, indices, memory)
    touched = sorted(changes)
    given_keys = np.array([u << 32 | v for u, v in touched], np.uint64)
    there = np.array([changes[edge] for edge in touched], np.bool_)
    room = merged.room_for(given_keys, before.starts, before.ends)
    starts, ends = np.full(n, 9, np.int64), np.full(n, 9, np.int64)
    merged.write_changed(given_keys, there, *before[:3], free, starts, ends)
    found = listed(ScatteredRows(starts, ends, memory, len(after)))
    assert found == [sorted(v for u, v in after if u == row) for row in range(n)]
    np.testing.assert_array_equal(memory[:free], [*indices, *[9] * (free - len(indices))])
    assert (memory[free + room :] == 9).all()


def test_memory_is_taken_once_and_to_its_end() -> None:
    memory = Memory(np.empty(10, np.uint32), 4)
    assert [memory.take(entries) for entries in (5, 2, 0, 1, 1)] == [4, -1, 9, 9, -1]


def test_rows_are_loose_until_their_memory_is_full_and_then_packed_anew() -> None:
    graph = lpma.Graph(device="cpu")
    many(graph)
    memories, rows = [], []
    with patch.object(forms, "SHARE", 0):
        for i in range(40):
            graph.insert(i % 10, 20 + i)
            rows.append(loose(graph.snapshot()))
            memories.append(id(rows[-1].entries))
    assert len(set(memories[:3])) == 2, "rows made from the store have no room behind them"
    assert memories[1] == memories[2]
    assert 3 <= len(set(memories)) <= 8, "rows of some twelve entries, in room for a hundred"


def test_rows_that_nobody_reads_are_not_made() -> None:
    graph = lpma.Graph(device="cpu")
    many(graph)
    assert graph.snapshot().num_vertices == 10
    for i in range(10):
        graph.insert(i, 20)
        s = graph.snapshot()
        assert s.num_rows == 21
        assert "_indices" not in vars(s)
    with (
        patch.object(snapshot_memory, "arrays", side_effect=MemoryError),
        pytest.raises(lpma.OutOfMemory),
    ):
        assert len(s.indices)
    assert s.indices.tolist().count(20) == 10


def test_keys_since_packed_rows_are_few() -> None:
    """Invariant 2 of rows.py."""
    graph = lpma.Graph(device="cpu")
    many(graph)
    for i in range(50):
        graph.insert(i % 10, 20 + i)
        link = lineage_of(graph.snapshot())
        assert link is not None
        earlier = link.state.rows._earlier
        if earlier is not None:
            assert sum(len(keys) for keys, _ in earlier[1]) * forms.SHARE <= 100 + i + 1


def as_rows(edges: set[Any], n: int) -> tuple[Any, Any]:
    lengths = np.bincount([u for u, _ in edges], minlength=n) if edges else np.zeros(n, np.int64)
    return np.append(0, np.cumsum(lengths)), np.array([v for _, v in sorted(edges)], np.uint32)


def since_of(s: lpma.Snapshot) -> Delta | None:
    link = lineage_of(s)
    assert link is not None
    return link.since


def many(graph: lpma.Graph) -> None:
    graph.insert(np.arange(100) % 10, np.arange(100) // 10)


def test_a_small_batch_is_followed_and_a_large_one_is_not() -> None:
    graph = lpma.Graph(device="cpu")
    many(graph)
    first = graph.snapshot()
    graph.insert([1, 2], [20, 21])
    second = graph.snapshot()
    since = since_of(second)
    assert since is not None
    assert since.before.rows.contiguous().indices is first._indices
    assert len(since.changes[0]) == 2
    graph.insert(np.arange(7), 22)
    assert since_of(graph.snapshot()) is None


def test_snapshots_of_a_version_share_their_rows() -> None:
    graph = lpma.Graph(device="cpu")
    many(graph)
    assert graph.snapshot()._indices is graph.snapshot()._indices


def test_what_the_history_forgot_is_not_followed() -> None:
    graph = lpma.Graph(device="cpu")
    many(graph)
    graph.snapshot()
    graph.insert(1, 20)
    graph._stores.history.forget(graph._stores.version)
    assert since_of(graph.snapshot()) is None


def test_contents_that_are_replaced_are_not_followed(tmp_path: Path) -> None:
    graph = lpma.Graph(device="cpu")
    many(graph)
    graph.snapshot()
    other = lpma.Graph(device="cpu")
    other.insert(3, 4)
    stores, slots = graph._stores, other._stores.out.backend.slots(other._stores.out.segments)
    stores.fill(SlotArrays(*slots))
    assert graph.snapshot().indices.tolist() == [4]


def test_large_rows_are_not_kept() -> None:
    graph = lpma.Graph(device="cpu")
    many(graph)
    with patch.object(capture, "KEPT_BYTES", 100):
        graph.snapshot()
    assert graph._stores.last is None


def test_no_chain_of_states_is_kept() -> None:
    """Invariant 2."""
    graph = lpma.Graph(device="cpu")
    many(graph)
    kept, states = None, []
    for i in range(5):
        graph.insert(i, 30)
        kept = graph.snapshot()
        link = lineage_of(kept)
        assert link is not None
        states.append(weakref.ref(link.state))
        del link
    gc.collect()
    assert [state() is not None for state in states] == [False, False, False, True, True]
    del kept
    gc.collect()
    assert [state() is not None for state in states] == [False, False, False, False, True]


def test_a_pickled_snapshot_follows_none() -> None:
    graph = lpma.Graph(device="cpu")
    many(graph)
    s = graph.snapshot()
    assert lineage_of(pickle.loads(pickle.dumps(s))) is None  # noqa: S301
    assert lineage_of(s) is not None
