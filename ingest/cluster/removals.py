"""Removals of vertices at a shard that reads several partitions: each at its own place, exactly.

REMOVE_VERTEX stands in every partition, since edges into the vertex may lie in any. A shard reads
its partitions in no order to each other. So a removal that it reads from partition p is to touch
what partition p has written, and nothing else: the edges (u, v) of the vertices u that p owns, and,
if p owns the vertex v itself, its row. The rest goes when the other partitions' copies are read.

Idea: which edges those are, the store knows when the batch is applied. So the batch's removals are
replaced there by the deletions that they amount to: those of `lpma.engine.removal`, which are every
edge from or to the vertex, kept where p owns the source. All of a row belongs to one partition, so
the graph is the same, whatever the order in which the partitions are read.

Each partition whose removals a batch has costs one pass over the store, as any removal does. What
is deleted in vain is counted as deletions of absent edges are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import lpma
from lpma.arrays import to_host
from lpma.batch.builder import Batch
from lpma.batch.columns import Columns, Kind
from lpma.engine.admission import validated
from lpma.engine.answers import Answers
from lpma.engine.removal import incident_deletions
from lpma.names import UNKNOWN
from lpma.pma.keys import LOW

from ..types import Array
from .expiries import by_edges
from .owners import OwnersOfIds

_NEUTRAL = int(Kind.VERTEX)  # a kind that neither removes nor appends


class SharedGraph(lpma.Graph):
    """The graph of a shard that reads several of `partitions` partitions.

    A removal or an expiry in a batch says in `dst` from which of them it was read (`ownership.py`).
    REQUIRES: the graph is directed, and of a class that `of` made."""

    partitions: int
    _owners: OwnersOfIds | None = None  # from the first removal on

    @classmethod
    def of(cls, partitions: int) -> type[SharedGraph]:
        """The class of these graphs where there are so many partitions."""
        return type(cls.__name__, (cls,), {"partitions": partitions})

    def apply(self, batch: Batch | Columns) -> Answers:
        """See `lpma.Graph.apply`."""
        if isinstance(batch, Columns) and not batch.edges_only:
            if not batch.checked:  # before rows are made of it that no caller may give
                batch = validated(batch)
            batch = self._without_removals(batch)
            if batch.expires:
                batch = by_edges(batch, self._older, self._owned_by)
        return super().apply(batch)

    def _without_removals(self, columns: Columns) -> Columns:
        """The batch with deletions in place of its removals."""
        removes = columns.kind == Kind.REMOVE_VERTEX
        if not removes.any():
            return columns
        places = [np.flatnonzero(~removes)]
        src, dst = [columns.src[places[0]]], [columns.dst[places[0]]]
        for number in np.unique(columns.dst[removes]).tolist():
            for ends_src, ends_dst, place in self._removed_from(number, columns, removes):
                src.append(ends_src)
                dst.append(ends_dst)
                places.append(place)
        place = np.concatenate(places)
        order = np.argsort(place, kind="stable")
        place = place[order]
        kind = columns.kind[place]
        kind[kind == Kind.REMOVE_VERTEX] = Kind.DELETE
        ends = {"src": np.concatenate(src)[order], "dst": np.concatenate(dst)[order]}
        return columns.take(place).replace(kind=kind, **ends)

    def _removed_from(self, number: int, columns: Columns, removes: Array) -> Any:
        """(src, dst, place) of what the removals that were read from that partition delete: edges,
        and the markers of vertices that were added by themselves."""
        own = removes & (columns.dst == number)
        known = columns.src != UNKNOWN if self.names is not None else np.True_
        kind = np.where(removes & ~(own & known), np.uint8(_NEUTRAL), columns.kind)
        found = self._lock.read(self._incident, columns.replace(kind=kind))
        if found is not None:
            src, dst, place = found
            kept = self._owned_by(number, src)
            yield src[kept], dst[kept], place[kept]
        rows = np.flatnonzero(own & known)
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
