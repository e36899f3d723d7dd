"""Rows go to the partitions of their owners: one stable pass over columns.

Idea: a row belongs to the partition of its source, so that partition's rows are the out-rows of the
vertices it owns. An edge of an undirected graph belongs to both ends, and is written as two rows,
(u, v) for u and (v, u) for v; a loop as one. Read together, the rows of all partitions are then the
edges of the symmetric graph, each once. Turned round, for those who look for predecessors, an edge
belongs to its target alone.

Tricks: an *entry* 2·i + s is row i seen from its source (s = 0) or its target (s = 1). Which
entries there are says which way the rows go; one sort of their owners, kept stable, brings them
together by partition and leaves those of a partition in the order of the rows. Owners are small
integers, which NumPy sorts by radix. They are found for a block of rows at a time, so that the
hashes in between stay in the cache.

Invariants:
    1. The rows of a partition stand in the order in which they came.
    2. Every edge lies once in the partition of each end that it is written for, and nowhere else.
    3. ADD_VERTEX lies in its vertex's partition, REMOVE_VERTEX in all of them: an edge into the
       vertex may lie in any.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

import numpy as np

from lpma.batch import Columns, Kind
from lpma.owners import owners_of

from ..types import Array

_BLOCK_ROWS = 1 << 15


class Way(Enum):
    """From which ends edges are written."""

    OUT = "by source"
    IN = "turned round, by target"
    BOTH = "by source, and turned round by target; loops once"


class Part(NamedTuple):
    """The rows of one partition: kind, weight and time of `columns`; their ends, which may be
    names, apart."""

    number: int
    src: Array
    dst: Array
    kind: Array | None  # None: appends
    weight: Array | None
    time: Array | None


def split(columns: Columns, src: Array, dst: Array, partitions: int, way: Way) -> Iterator[Part]:
    """The rows of `columns`, whose ends are src and dst (ids or names of one type), by partition;
    without those that have no rows.

    REQUIRES: updates on the host. ENSURES: invariants 1 to 3."""
    plain = not columns.one_kind and columns.one_kind is not None
    order, bounds = _order(columns, src, dst, partitions, way, plain)
    if way is Way.OUT:
        rows, sources, targets = order, src[order], dst[order]
    else:
        ends = np.empty(2 * len(src), src.dtype)
        ends[::2], ends[1::2] = src, dst
        rows, sources, targets = order >> 1, ends[order], ends[order ^ 1]
    kind = None if plain else columns.kind[rows]
    weight = None if columns.weight is None else columns.weight[rows]
    time = None if columns.time is None else columns.time[rows]
    for number in np.flatnonzero(np.diff(bounds)).tolist():
        part = slice(bounds[number], bounds[number + 1])
        yield Part(
            number, sources[part], targets[part],
            None if kind is None else kind[part],
            None if weight is None else weight[part],
            None if time is None else time[part],
        )  # fmt: skip


def _order(
    columns: Columns, src: Array, dst: Array, partitions: int, way: Way, plain: bool
) -> tuple[Array, Array]:
    """int64: rows (way OUT) or entries, sorted by partition; and where each partition begins."""
    none = partitions  # the owner of an entry that is not written
    dtype = np.uint8 if partitions < 256 else np.uint16
    if way is Way.OUT:
        owners = _owners(src, partitions, dtype)
    else:
        owners = np.empty(2 * len(src), dtype)
        owners[1::2] = _owners(dst, partitions, dtype)
        if way is Way.BOTH:
            owners[::2] = _owners(src, partitions, dtype)
            owners[1::2][src == dst] = none
        else:
            owners[::2] = none
        if not plain:
            alone = columns.kind >= Kind.ADD_VERTEX
            owners[1::2][alone] = none
            owners[::2][alone] = _owners(src[alone], partitions, dtype)
    gone = () if plain else np.flatnonzero(columns.kind == Kind.REMOVE_VERTEX)
    if len(gone):
        return _with_everywhere(owners, gone if way is Way.OUT else 2 * gone, partitions)
    order = np.argsort(owners, kind="stable")
    counts = np.bincount(owners, minlength=partitions)[:partitions]
    bounds = np.concatenate(([0], np.cumsum(counts)))
    return order[: bounds[-1]], bounds


def _with_everywhere(owners: Array, gone: Array, partitions: int) -> tuple[Array, Array]:
    """As `_order`, where the entries `gone` belong to every partition."""
    owners[gone] = partitions
    kept = np.flatnonzero(owners < partitions)
    entries = np.concatenate((kept, np.tile(gone, partitions)))
    numbers = np.concatenate((owners[kept], np.repeat(np.arange(partitions), len(gone))))
    order = np.lexsort((entries, numbers))
    counts = np.bincount(numbers, minlength=partitions)
    return entries[order], np.concatenate(([0], np.cumsum(counts)))


def _owners(vertices: Array, partitions: int, dtype: type) -> Array:
    owners = np.empty(len(vertices), dtype)
    for start in range(0, len(vertices), _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        owners[block] = owners_of(vertices[block], partitions)
    return owners
