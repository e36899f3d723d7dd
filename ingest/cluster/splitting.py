"""Rows go to the partitions of their owners: one stable pass over columns.

Idea: a row belongs to the partition of its source, so that partition's rows are the out-rows of the
vertices it owns. An edge of an undirected graph belongs to both ends, and is written as two rows,
(u, v) for u and (v, u) for v; a loop as one. Read together, the rows of all partitions are then the
edges of the symmetric graph, each once. Turned round, for those who ask for predecessors, an edge
belongs to its target alone.

Trick: rows are counted by partition, and each column is then spread over its places (`owners.py`).
A row that is written for both ends has a twin: itself as its target sees it.

Invariants:
    1. The rows of a partition stand in the order in which they came.
    2. An edge lies once in the partition of each end that it is written for, and nowhere else.
    3. ADD_VERTEX lies in its vertex's partition, REMOVE_VERTEX and EXPIRE in all of them: an edge
       into the vertex, and one that is too old, may lie in any.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

import numpy as np

from lpma.batch.columns import FIRST_OTHER, Columns, Kind

from ..types import Array
from .owners import EVERYWHERE, NOWHERE, Spread, owners_in


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
    if way is Way.IN:
        src, dst = _turned_round(columns, src, dst)
    own, twins = owners_in(src, partitions), None
    if way is Way.BOTH:
        twins = owners_in(dst, partitions)
        twins[src == dst] = NOWHERE
    if not columns.edges_only:
        own[columns.kind >= Kind.REMOVE_VERTEX] = EVERYWHERE
        if twins is not None:
            twins[columns.kind >= FIRST_OTHER] = NOWHERE
    spread = Spread(own, twins, partitions)

    def moved(column: Array | None) -> Array | None:
        return None if column is None else spread.moved(column, column)

    sources, targets = spread.moved(src, dst), spread.moved(dst, src)
    kind = None if columns.one_kind == Kind.INSERT else moved(columns.kind)
    weight, time, bounds = moved(columns.weight), moved(columns.time), spread.bounds
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
