"""Graph.changes: the net edges inserted and removed since a version."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma import Changes
from lpma.backend.values import Unread
from lpma.engine import stores
from lpma.store.history import History
from tests.support.oracles import assert_same, host
from tests.support.strategies import Config, batches, configs


def rows(changes: Changes | None) -> list[tuple[int, int, bool]]:
    assert changes is not None
    columns = (changes.src, changes.dst, changes.inserted)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@given(data=st.data(), config=configs(), number=st.integers(1, 6))
def test_changes_are_net(device: str, data: st.DataObject, config: Config, number: int) -> None:
    g, model = config.graph(device), config.model()
    for _ in range(number):
        columns = data.draw(batches(config.queries, max_size=25))
        g.apply(columns)
        model.apply(columns)
    for since in range(number + 1):
        assert_same(g.changes(since), model.changes(since), f"since {since}")


@given(data=st.data(), config=configs(), number=st.integers(1, 4))
def test_touched_edges_are_named_as_they_are_now(
    device: str, data: st.DataObject, config: Config, number: int
) -> None:
    g, model = config.graph(device), config.model()
    for _ in range(number):
        columns = data.draw(batches(config.queries, max_size=25))
        g.apply(columns)
        model.apply(columns)
    now = set(model.state)
    for since in range(number + 1):
        touched = g.touched(since)
        assert touched is not None
        assert (touched.version, touched.num_rows) == (model.version, model.num_rows)
        keys, there = host(touched.keys).tolist(), host(touched.there).tolist()
        named = {
            (key >> 32, key & 0xFFFFFFFF): is_there
            for key, is_there in zip(keys, there, strict=True)
        }
        for (u, v), is_there in named.items():
            if v != 0xFFFFFFFF:
                assert is_there == ((u, v) in now or (v, u) in now)
        net = model.changes(since)
        assert net is not None
        assert {(u, v) for u, v, _ in rows(net)} <= set(named)


@given(data=st.data(), config=configs(), number=st.integers(1, 6))
def test_who_follows_is_told_how_many_vertices_there_are(
    device: str, data: st.DataObject, config: Config, number: int
) -> None:
    g, model = config.graph(device), config.model()
    for since in range(number):
        columns = data.draw(batches(config.queries, max_size=25))
        g.apply(columns)
        model.apply(columns)
        touched = g.touched(since)
        assert touched is not None
        assert touched.num_rows == model.num_rows


def test_the_largest_vertex_is_looked_for_only_if_it_lost_an_edge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    g = lpma.Graph(device="cpu")
    g.insert([1, 2, 3, 9], [2, 3, 1, 1])
    g.add_vertices(8)
    monkeypatch.setattr(stores, "FEW", 0)
    backend, scans = g._stores.out.backend, []
    scan = backend.largest_vertex

    def counted(segments: Any) -> int:
        scans.append(segments)
        return scan(segments)

    monkeypatch.setattr(backend, "largest_vertex", counted)
    counts = []

    def follow() -> None:
        touched = g.touched(g.version - 1)
        assert touched is not None
        counts.append(touched.num_rows)

    follow()
    g.delete(1, 2)
    follow()
    g.apply(lpma.Batch.from_columns(*map(np.array, ([0, 1], [4, 2], [12, 3]))))
    follow()
    assert not scans
    g.delete(4, 12)
    follow()
    assert len(scans) == 1
    g.delete(9, 1)
    follow()
    g.remove_vertices(8)
    follow()
    assert len(scans) == 3
    assert counts == [10, 10, 13, 10, 9, 4]


def test_touched_edges_that_are_forgotten(device: str) -> None:
    g = lpma.Graph(device=device)
    g.insert([1, 2], [2, 3])
    g._stores.history.forget(1)
    assert g.touched(0) is None
    assert g.touched(1) is not None


def test_by_hand(device: str) -> None:
    g = lpma.Graph(device=device)
    g.insert([1, 2], [2, 3])
    g.insert([1, 5], [2, 6])
    g.delete([2, 5], [3, 6])
    g.insert(5, 6)
    g.insert(5, 6, -9.0)
    assert rows(g.changes(5)) == []
    assert rows(g.changes(4)) == [(5, 6, False)]
    assert rows(g.changes(3)) == []
    assert rows(g.changes(2)) == [(2, 3, False), (5, 6, False)]
    assert rows(g.changes(1)) == [(2, 3, False)]
    assert rows(g.changes(0)) == [(1, 2, True)]


def test_markers_and_weights_are_no_changes(device: str) -> None:
    g = lpma.Graph(device=device)
    g.insert([1, 2], [2, 1])
    g.add_vertices([1, 9])
    g.insert([1, 2], [2, 1], 3.0)
    assert rows(g.changes(1)) == []
    g.remove_vertices([1, 9])
    assert rows(g.changes(1)) == [(1, 2, False), (2, 1, False)]


def test_an_undirected_edge_is_named_once(device: str) -> None:
    g = lpma.Graph(device=device, directed=False)
    g.insert([7, 3, 4], [3, 7, 4])
    assert rows(g.changes(0)) == [(3, 7, True), (4, 4, True)]
    g.delete([7, 4], [3, 4])
    assert rows(g.changes(1)) == [(3, 7, False), (4, 4, False)]
    assert rows(g.changes(0)) == []


def test_the_history_is_bounded_and_says_so(device: str) -> None:
    """A graph that has changed by many edges must let go, and never answers wrongly."""
    g = lpma.Graph(device=device, weight_dtype=None, times=False)
    n = 1_500_000
    src, dst = np.divmod(np.arange(n, dtype=np.uint32), np.uint32(2000))
    for part in np.array_split(np.arange(n), 6):
        g.insert(src[part], dst[part])
    assert g.changes(0) is None
    last = g.changes(5)
    assert last is not None
    assert_same((last.src, last.dst), (src[part], dst[part]))
    assert last.inserted.all()
    g.delete(0, 0)
    assert rows(g.changes(6)) == [(0, 0, False)]


def test_to_read_the_history_drops_nothing_of_it() -> None:
    """Single keys that are not an entry yet may be more than there is room for."""
    history = History(max_keys=4)
    history.add(1, (np.arange(3, dtype=np.uint64), np.ones(3, np.bool_)))
    history.add_one(2, 7, True)
    history.add_one(3, 8, False)
    for _ in range(2):
        found = history.since(0)
        assert found is not None
        assert [keys.tolist() for keys, _ in found] == [[0, 1, 2], [7, 8]]
    history.add(4, (np.arange(1, dtype=np.uint64), np.ones(1, np.bool_)))
    assert history.since(0) is None


def test_changes_are_read_when_asked_for() -> None:
    asked = []

    def read(n: int) -> tuple[Any, Any]:
        asked.append(n)
        return np.arange(n, dtype=np.uint64), np.ones(n, np.bool_)

    history = History()
    for version, n in ((1, 2), (2, 0), (3, 4)):
        history.add(version, Unread(number=n, read=read))
    assert (history.nbytes, asked) == (9 * 6, [])
    found = history.since(1)
    assert found is not None
    assert [keys.tolist() for keys, _ in found] == [[0, 1, 2, 3]]
    assert asked == [4]
