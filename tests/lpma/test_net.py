"""What a batch changed, against the states of a graph before and after it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma import Change
from lpma.arrays import to_host
from tests.lpma.conftest import every_backend

VERTEX = st.integers(0, 5)
ROW = st.tuples(
    st.sampled_from(["insert"] * 4 + ["set", "set", "delete", "add", "remove", "expire", "query"]),
    VERTEX, VERTEX, st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0]), st.integers(0, 9),
)  # fmt: skip
BATCHES = st.lists(st.lists(ROW, max_size=12), min_size=1, max_size=6)


def batch_of(rows: Any, times: bool) -> lpma.Batch:
    batch = lpma.Batch()
    for what, u, v, weight, time in rows:
        if what == "insert":
            batch.insert(u, v, weight, time)
        elif what == "set":
            batch.set(u, v, weight, time)
        elif what == "delete":
            batch.delete(u, v, time)
        elif what == "add":
            batch.add_vertex(u, time)
        elif what == "remove":
            batch.remove_vertex(u, time)
        elif what == "expire" and times:
            batch.expire(time)
        else:
            batch.degree(u)
    return batch


def contents(g: lpma.Graph) -> tuple[dict[tuple[int, int], Any], set[int]]:
    """Edges with weight and time; vertices that were added by themselves, as a saved store has
    them."""
    s = g.snapshot()
    rows = np.repeat(np.arange(s.num_rows), np.diff(to_host(s.indptr))).tolist()
    columns = [[None] * len(rows) if c is None else c.tolist() for c in (s.weights, s.times)]
    edges = {}
    for u, v, *value in zip(rows, s.indices.tolist(), *columns, strict=True):
        if g.directed or u <= v:
            edges[u, v] = tuple(value)
    keys, _, _ = g.image().slots.read(0, g.image().slots.total)
    markers = {int(key) >> 32 for key in to_host(keys) if int(key) & 0xFFFFFFFF == 0xFFFFFFFF}
    return edges, markers


def expected(before: Any, after: Any) -> set[Any]:
    (edges, markers), (new_edges, new_markers) = before, after
    gone = markers - new_markers
    found: set[Any] = {(Change.VERTEX_REMOVED, v) for v in gone}
    found |= {(Change.VERTEX_ADDED, v) for v in new_markers - markers}
    found |= {(Change.REMOVED, u, v) for u, v in edges.keys() - new_edges.keys()}
    for (u, v), value in new_edges.items():
        if (u, v) not in edges:
            found.add((Change.INSERTED, u, v, *value))
        elif edges[u, v] != value or u in gone or v in gone:
            found.add((Change.CHANGED, u, v, *value))
    return found


def listed(changes: lpma.NetChanges) -> list[Any]:
    rows: list[Any] = []
    for i, change in enumerate(map(Change, changes.change.tolist())):
        u, v = int(changes.src[i]), int(changes.dst[i])
        if change in (Change.VERTEX_ADDED, Change.VERTEX_REMOVED):
            rows.append((change, u))
        elif change is Change.REMOVED:
            rows.append((change, u, v))
        else:
            columns = changes.weights, changes.times
            rows.append((change, u, v, *(None if c is None else c[i].item() for c in columns)))
    return rows


@every_backend
@pytest.mark.parametrize("weights", ["float32", None])
@pytest.mark.parametrize("directed", [True, False])
@given(batches=BATCHES, times=st.booleans(), predecessors=st.booleans())
def test_what_is_listed_is_what_differs(
    device: str,
    weights: str | None,
    directed: bool,
    batches: Any,
    times: bool,
    predecessors: bool,
) -> None:
    g = lpma.Graph(
        directed,
        weight_dtype=weights,
        times=times,
        device=device,
        predecessors=predecessors,
    )
    for rows in batches:
        before, watch = contents(g), lpma.Watch()
        g.apply(batch_of(rows, times), watch)
        changes = watch.changes
        found = listed(changes)
        assert len(found) == len(set(found))
        assert set(found) == expected(before, contents(g))
        kinds = [row[0] is not Change.VERTEX_REMOVED for row in found]
        assert kinds == sorted(kinds)
        assert (changes.version, changes.time, changes.num_edges) == (
            g.version,
            g.time,
            g.num_edges,
        )
        assert not g.has_edge(changes.absent, changes.absent)


def test_a_batch_that_changes_more_than_the_history_keeps_is_listed_whole(device: str) -> None:
    n = 600_000
    g = lpma.Graph(device=device)
    for time in (1, 2):
        watch = lpma.Watch()
        src = np.arange(n // 2, dtype=np.uint32)
        columns = lpma.Batch.from_columns(lpma.Kind.INSERT, src, src + time, time=time)
        g.apply(columns, watch)
        assert len(watch.changes) == n // 2
    g.insert(7, np.arange(1000, 1000 + n, dtype=np.uint32), time=2)
    removal, watch = lpma.Batch(), lpma.Watch()
    removal.remove_vertex(7)
    g.apply(removal, watch)
    assert len(watch.changes) == n + 4
    expiry, watch = lpma.Batch(), lpma.Watch()
    expiry.expire(3)
    g.apply(expiry, watch)
    assert len(watch.changes) == n - 4
    assert g.num_edges == 0


def test_the_absent_loop_is_absent(device: str) -> None:
    g, watch = lpma.Graph(device=device), lpma.Watch()
    most = 2**32 - 2
    g.insert(most, most)
    g.apply(lpma.Batch.from_columns(lpma.Kind.INSERT, [1], [2]), watch)
    assert watch.changes.absent == most - 1
