"""Removals of vertices and expiries at a shard that reads several partitions: each at its own
place, exactly.

REMOVE_VERTEX and EXPIRE stand in every partition, since edges into the vertex, and old ones, may
lie in any. A shard reads its partitions in no order to each other. So what it reads from partition
p is to touch what partition p has written, and nothing else: the edges (u, v) of the vertices u
that p owns, and, if p owns the vertex v itself, its row. The rest goes when the other partitions'
copies are read. All of a row belongs to one partition, so the graph is the same, whatever the order
in which the partitions are read.

Idea: which edges those are, the store knows when the batch is applied. So they are replaced there:

    a removal   by the deletions that it amounts to (`lpma.engine.removal`): every edge from or to
                the vertex, kept where p owns the source
    an expiry   by a row for each edge that it may let go, which the store looks at when it comes to
                it (`Columns.expiry_expanded`): it knows the time that the edge has there. Such an
                edge is stored and older than the expiry's time, or was appended or set before it
                in the batch with such a time

Each partition whose removals a batch has costs one pass over the store, as any removal does, and so
do all expiries of a batch. What is deleted in vain is counted as deletions of absent edges are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import lpma
from lpma.arrays import to_host
from lpma.batch.builder import Batch
from lpma.batch.columns import Columns, Kind, weighted_rows
from lpma.engine.admission import validated
from lpma.engine.answers import Answers
from lpma.engine.net import Watch
from lpma.engine.removal import incident_deletions
from lpma.names import UNKNOWN
from lpma.pma.keys import LOW, ends_of, keys_of

from ..types import Array
from .owners import OwnersOfIds

Rows = tuple[Array, Array, Array]  # sources, targets, and the row of the batch that each replaces

_NEUTRAL = int(Kind.VERTEX)  # a kind that neither removes nor appends


class SharedGraph(lpma.Graph):
    """The graph of a shard that reads several of `partitions` partitions.

    A removal or an expiry in a batch says in `dst` from which of them it was read (`Ownership`).
    REQUIRES: the graph is directed, and of a class that `of` made."""

    partitions: int
    _owners: OwnersOfIds | None = None  # from the first removal on

    @classmethod
    def of(cls, partitions: int) -> type[SharedGraph]:
        """The class of these graphs where there are so many partitions."""
        return type(cls.__name__, (cls,), {"partitions": partitions})

    def apply(self, batch: Batch | Columns, watch: Watch | None = None) -> Answers:
        if isinstance(batch, Columns) and not batch.edges_only:
            if not batch.checked:  # before rows are made of it that no caller may give
                batch = validated(batch)
            removes = batch.kind == Kind.REMOVE_VERTEX
            if removes.any():
                deletions = self._deletions(batch, removes)
                kind = np.where(removes, np.uint8(Kind.DELETE), batch.kind)
                batch = _replaced(batch.replace(kind=kind), removes, deletions)
            if batch.expires:
                batch = by_edges(batch, self._older, self._owned_by)
        return super().apply(batch, watch)

    def _deletions(self, columns: Columns, removes: Array) -> Iterator[Rows]:
        """What the removals delete: edges, and the markers of vertices that were added by
        themselves."""
        known = columns.src != UNKNOWN if self.names is not None else np.True_
        for number in np.unique(columns.dst[removes]).tolist():
            own = removes & (columns.dst == number) & known
            kind = np.where(removes & ~own, np.uint8(_NEUTRAL), columns.kind)
            found = self._lock.read(self._incident, columns.replace(kind=kind))
            if found is not None:
                (src, dst), place = ends_of(found[0]), found[1]
                kept = self._owned_by(number, src)
                yield src[kept], dst[kept], place[kept]
            rows = np.flatnonzero(own)
            rows = rows[self._owned_by(number, columns.src[rows])]
            yield columns.src[rows], np.full(len(rows), LOW, np.uint32), rows

    def _incident(self, columns: Columns) -> Any:
        return incident_deletions(columns, self._stores.out, None, True)

    def _older(self, before: int) -> tuple[Array, Array]:
        """(keys, times), on the host, of the stored edges whose time is less than `before`."""
        out = self._stores.out
        keys, times = self._lock.read(lambda: out.backend.older(out.segments, before))
        return to_host(keys), to_host(times)

    def _owned_by(self, number: int, ids: Array) -> Array:
        """bool[n]: which of these vertices that partition owns."""
        if self._owners is None:
            self._owners = OwnersOfIds(self.partitions)
        owned: Array = self._owners.of(ids, self.names) == number
        return owned


def by_edges(
    columns: Columns,
    older: Callable[[int], tuple[Array, Array]],
    owned_by: Callable[[int, Array], Array],
) -> Columns:
    """The batch with expiries of one edge each in place of its own. older: the stored keys and
    times below a time. owned_by: bool[n], which of these vertices a partition owns. REQUIRES:
    columns.expires, on the host."""
    assert columns.time is not None
    expires = columns.kind == Kind.EXPIRE
    stored, times = older(int(columns.time[expires].max()))
    makes = np.flatnonzero(weighted_rows(columns.kind))
    made = keys_of(columns.src[makes], columns.dst[makes])
    parts = []
    for row in np.flatnonzero(expires).tolist():
        before, n = columns.time[row], int(np.searchsorted(makes, row))
        lately = made[:n][columns.time[makes[:n]] < before]
        u, v = ends_of(np.unique(np.concatenate([stored[times < before], lately])))
        owned = owned_by(int(columns.dst[row]), u)
        parts.append((u[owned], v[owned], np.full(np.count_nonzero(owned), row)))
    return _replaced(columns, expires, parts).replace(expiry_expanded=True)


def _replaced(columns: Columns, gone: Array, rows: Iterable[Rows]) -> Columns:
    """The batch with `rows` in place of those that are `gone`, which they are like but for their
    ends."""
    kept = np.flatnonzero(~gone)
    parts = zip((columns.src[kept], columns.dst[kept], kept), *rows, strict=True)
    src, dst, place = map(np.concatenate, parts)
    order = np.argsort(place, kind="stable")
    return columns.take(place[order]).replace(src=src[order], dst=dst[order])
