"""Rows go to the partitions of their owners: one stable pass over columns.

Idea: a row belongs to the partition of its source, so that partition's rows are the out-rows of the
vertices it owns. An edge of an undirected graph belongs to both ends, and is written as two rows,
(u, v) for u and (v, u) for v; a loop as one. Read together, the rows of all partitions are then the
edges of the symmetric graph, each once. Turned round, for those who ask for predecessors, an edge
belongs to its target alone.

Tricks: one stable sort of the owners, by counting, brings the rows together by partition. Where an
edge is written for both ends, *entries* are sorted: 2·i + s is row i seen from its source (s = 0)
or its target (s = 1).

Invariants:
    1. The rows of a partition stand in the order in which they came.
    2. An edge lies once in the partition of each end that it is written for, and nowhere else.
    3. ADD_VERTEX lies in its vertex's partition, REMOVE_VERTEX in all of them: an edge into the
       vertex may lie in any.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

import numpy as np

from lpma.batch import FIRST_OTHER, Columns, Kind

from ..types import Array
from .owners import owners_in, sorted_by_owner


class Way(Enum):
    """From which ends edges are written."""

    OUT = "by source"
    IN = "turned round, by target"
    BOTH = "by source, and turned round by target; loops once"


class Part(NamedTuple):
    """The rows of one partition. Their ends are ids, or names: integers of any type, or objects."""

    number: int
    src: Array
    dst: Array
    kind: Array | None  # None: all append
    weight: Array | None
    time: Array | None

    def rows(self, start: int, stop: int) -> Part:
        """Rows start … stop − 1, sharing memory."""
        columns = [None if column is None else column[start:stop] for column in self[3:]]
        return Part(self.number, self.src[start:stop], self.dst[start:stop], *columns)


def split(columns: Columns, src: Array, dst: Array, partitions: int, way: Way) -> Iterator[Part]:
    """The rows of `columns` by partition, without the partitions that get none. src, dst: the ends,
    of one type.

    REQUIRES: updates, on the host. ENSURES: invariants 1 to 3."""
    if way is Way.BOTH:
        owners = _owners_of_both(columns, src, dst, partitions)
        entries, bounds = _sorted(owners, columns, 2, partitions)
        ends = np.empty(2 * len(src), src.dtype)
        ends[::2], ends[1::2] = src, dst
        rows, sources, targets = entries >> 1, ends[entries], ends[entries ^ 1]
    else:
        if way is Way.IN:
            src, dst = _turned_round(columns, src, dst)
        owners = owners_in(src, partitions)
        rows, bounds = _sorted(owners, columns, 1, partitions)
        sources, targets = src[rows], dst[rows]
    kind = None if columns.one_kind == Kind.APPEND else columns.kind[rows]
    weight = None if columns.weight is None else columns.weight[rows]
    time = None if columns.time is None else columns.time[rows]
    whole = Part(0, sources, targets, kind, weight, time)
    for number in range(partitions):
        start, stop = int(bounds[number]), int(bounds[number + 1])
        if start < stop:
            yield whole.rows(start, stop)._replace(number=number)


def _turned_round(columns: Columns, src: Array, dst: Array) -> tuple[Array, Array]:
    """The ends of edges the other way round. An operation on a vertex has it in src."""
    if columns.edges_only:
        return dst, src
    alone = columns.kind >= FIRST_OTHER
    return np.where(alone, src, dst), np.where(alone, dst, src)


def _owners_of_both(columns: Columns, src: Array, dst: Array, partitions: int) -> Array:
    """The partition of each entry, `partitions` of those that are not written."""
    owners = np.empty(2 * len(src), np.uint32)
    owners[::2] = owners_in(src, partitions)
    from_target = owners[1::2]
    from_target[:] = owners_in(dst, partitions)
    from_target[src == dst] = partitions
    if not columns.edges_only:
        from_target[columns.kind >= FIRST_OTHER] = partitions
    return owners


def _sorted(
    owners: Array, columns: Columns, entries_a_row: int, partitions: int
) -> tuple[Array, Array]:
    """int64: the entries by partition, in order within each; and where each partition begins."""
    gone = () if columns.edges_only else np.flatnonzero(columns.kind == Kind.REMOVE_VERTEX)
    if not len(gone):
        return sorted_by_owner(owners, partitions)
    owners[entries_a_row * gone] = partitions
    kept = np.flatnonzero(owners < partitions)
    entries = np.concatenate((kept, np.tile(entries_a_row * gone, partitions)))
    everywhere = np.repeat(np.arange(partitions, dtype=owners.dtype), len(gone))
    owners = np.concatenate((owners[kept], everywhere))
    order = np.lexsort((entries, owners))
    bounds = np.searchsorted(owners[order], np.arange(partitions + 1, dtype=owners.dtype))
    return entries[order], bounds
