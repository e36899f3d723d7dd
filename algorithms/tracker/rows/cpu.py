"""Changed edges merged into simple rows on the CPU, by lpma/cpu/merged.py."""

from __future__ import annotations

import numpy as np

from lpma.cpu.jit import compiled
from lpma.cpu.merged import effects, merge
from lpma.pma.keys import HALF, LOW
from lpma.results import TouchedEdges

from ...arrays import Array
from ..types import Change, Memory, TrackedRows, extended

SPARE = 8  # new memory has room for an eighth more than is needed


def changed(rows: TrackedRows, touched: TouchedEdges, spare: Memory | None) -> Change:
    """How the touched edges change the rows. spare: the memory of rows that are not read again."""
    n = touched.num_rows
    changes = effects(rows.indptr, rows.indices, *_both_ways(touched))
    edges, comes = changes.keys, changes.comes
    inserted, deleted = edges[comes], edges[~comes]
    alone, noted = _alone(rows, touched, n)
    if not len(edges) and n == rows.num_rows:
        after = rows
        if len(noted):
            present = _present(rows, rows.indptr, alone, noted, edges)
            after = TrackedRows(rows.indptr, rows.indices, alone, present, rows.memory)
        return Change(rows, after, inserted, deleted)
    indptr, indices, memory = merge(
        rows.indptr, rows.indices, changes, n, lambda *lengths: _room(spare, *lengths)
    )
    present = _present(rows, indptr, alone, noted, edges)
    after = TrackedRows(indptr, indices, alone, present, memory)
    return Change(rows, after, inserted, deleted)


def _room(memory: Memory | None, starts: int, entries: int) -> Memory:
    """Arrays of at least these lengths: those given, if they are long enough. New memory is slower
    to write, since the system clears it first."""
    if memory is not None and len(memory[0]) >= starts and len(memory[1]) >= entries:
        return memory
    starts, entries = (length + length // SPARE for length in (starts, entries))
    return np.empty(starts, np.int64), np.empty(entries, np.uint32)


def _alone(rows: TrackedRows, touched: TouchedEdges, n: int) -> tuple[Array, Array]:
    """`TrackedRows.alone` after the change, and the rows whose loops or markers were touched."""
    u, v = touched.keys >> HALF, touched.keys & LOW
    is_loop, is_marker = (u == v) & (u < n), (v == LOW) & (u < n)
    noted = u[is_loop | is_marker]
    if n == rows.num_rows and not len(noted):
        return rows.alone, noted
    alone = extended(rows.alone, n)
    for flags, is_touched in zip(alone, (is_loop, is_marker), strict=True):
        flags[u[is_touched]] = touched.there[is_touched]
    return alone, noted


def _present(rows: TrackedRows, indptr: Array, alone: Array, noted: Array, edges: Array) -> Array:
    """`TrackedRows.present` after the change, which may differ at the rows `noted` and at the
    sources of changed edges."""
    present = extended(rows.present, len(indptr) - 1)
    _look_at(noted << HALF, indptr, alone, present)
    _look_at(edges, indptr, alone, present)
    return present


@compiled
def _look_at(edges: Array, indptr: Array, alone: Array, present: Array) -> None:
    for edge in edges:
        u = np.int64(edge >> HALF)
        if u < len(present):
            present[u] = indptr[u + 1] > indptr[u] or alone[0, u] or alone[1, u]


def _both_ways(touched: TouchedEdges) -> tuple[Array, Array]:
    """source << 32 | target, rising, in both directions of every touched key that can be an edge of
    the view, and whether the edge exists now. Keys may repeat."""
    u, v = touched.keys >> HALF, touched.keys & LOW
    edge = (u != v) & (v != LOW)
    u, v, there = u[edge], v[edge], touched.there[edge].astype(np.uint64)
    one = np.uint64(1)
    # The last bit says whether the edge exists: a snapshot's rows are below 2^31.
    both = np.concatenate([a << np.uint64(33) | b << one | there for a, b in ((u, v), (v, u))])
    both.sort()
    return both >> np.uint64(33) << HALF | both >> one & LOW, both & one != np.uint64(0)
