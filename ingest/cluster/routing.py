"""Rows go to the partitions of their owners, one stable pass over columns, and become records.

Idea: a row belongs to the partition of its source, so that partition's rows are the out-rows of the
vertices it owns. An edge of an undirected graph belongs to both ends, and is written as two rows,
(u, v) for u and (v, u) for v; a loop as one. Read together, the rows of all partitions are then the
edges of the symmetric graph, each once. Turned round, for those who ask for predecessors, an edge
belongs to its target alone.

Trick: rows are counted by partition, and each column is then spread over its places (`owners.py`).
A row that is written for both ends has a twin: itself as its target sees it.

A partition's rows are cut into records of about `PIECE_BYTES`, which decode quickly and which
brokers take as they are set up. One that names its producer stays one record in each partition: the
second of the same number would be dropped as a repeat.

Invariants:
    1. The rows of a partition stand in the order in which they came.
    2. An edge lies once in the partition of each end that it is written for, and nowhere else.
    3. ADD_VERTEX lies in its vertex's partition, REMOVE_VERTEX and EXPIRE in all of them: an edge
       into the vertex, and one that is too old, may lie in any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np

from lpma.arrays import to_host
from lpma.batch.columns import Columns, Kind, edge_rows, query_rows
from lpma.batch.named import NamedColumns
from lpma.engine.admission import validated
from lpma.errors import BatchError
from lpma.names import Column
from lpma.names.column import names_of_entries

from ..errors import RecordError
from ..formats.encode import encode_updates
from ..formats.names import joined, names_of
from ..formats.records import MAX_TEXT_ROWS
from ..types import Array, Names, Record
from .owners import EVERYWHERE, NOWHERE, Spread, owners_in, rows_everywhere


class Direction(Enum):
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


def split(
    columns: Columns, src: Array, dst: Array, partitions: int, direction: Direction
) -> Iterator[Part]:
    """The rows of `columns` by partition, without the partitions that get none. src, dst: the ends,
    of one type.

    REQUIRES: updates, on the host. ENSURES: invariants 1 to 3."""
    if direction is Direction.IN:
        src, dst = _turned_round(columns, src, dst)
    own, twins = owners_in(src, partitions), None
    if direction is Direction.BOTH:
        twins = owners_in(dst, partitions)
        twins[src == dst] = NOWHERE
    if not columns.edges_only:
        own[rows_everywhere(columns.kind)] = EVERYWHERE
        if twins is not None:
            twins[~edge_rows(columns.kind)] = NOWHERE
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
    turned = edge_rows(columns.kind)
    return np.where(turned, dst, src), np.where(turned, src, dst)


PIECE_BYTES = 512 << 10  # brokers take 1 MiB, unless they are told otherwise
_TEXT_ROW_BYTES = 5  # of a name in a column of text, besides its UTF-8


class Rows(NamedTuple):
    """Updates that can be written: `batch` on the host, and the ends of its rows, ids or names, as
    two columns of one type. `producer` and `seq` if they name their producer."""

    batch: Columns
    src: Array
    dst: Array
    producer: str | None = None
    seq: int | None = None


def checked(record: Record, names: bool) -> Rows:
    """The rows of a record, whose vertices go by names or ids: those beside the columns, or else
    the columns' own. Raises RecordError if it has a query, or ends that are none."""
    if isinstance(record.batch, NamedColumns):
        record = _apart(record, record.batch)
    batch = record.batch.moved(to_host) if record.batch.on_device else record.batch
    if batch.ids_resolved:
        raise RecordError("these ids were given by a graph's dictionary: give the names themselves")
    if record.queries or query_rows(batch.kind).any():
        raise RecordError("a query is no update: ask through a client of the query topic")
    if not names and record.names is not None:
        raise RecordError("names: this sink writes ids; make it with names=True")
    ends = record.names or batch
    if not batch.checked:
        batch = _validated(batch, names)
        ends = ends if names else batch
    src, dst = ends.src, ends.dst
    if names:
        src, dst = names_of(src, "src"), names_of(dst, "dst")
    if not len(src) == len(dst) == len(batch):
        raise RecordError(
            f"{len(src)} and {len(dst)} vertices in {len(batch)} rows: they must agree"
        )
    if src.dtype != dst.dtype:
        widest = np.uint64 if src.dtype.kind == dst.dtype.kind == "u" else object
        src, dst = src.astype(widest), dst.astype(widest)
    return Rows(batch, src, dst, record.producer, record.seq)


def _validated(batch: Columns, names: bool) -> Columns:
    """The batch with its columns validated; where vertices go by names, without its ends. Raises
    RecordError."""
    try:
        if names:
            none = np.zeros(len(batch), np.uint32)
            batch = batch.replace(src=none, dst=none)
        return validated(batch)
    except BatchError as error:
        raise RecordError(str(error)) from None


def _apart(record: Record, batch: NamedColumns) -> Record:
    """The record with the names of its columns beside them."""
    src = _names_in(batch.sources)
    none = np.zeros(len(src), np.uint32)
    dst = none if batch.targets is None else _names_in(batch.targets)
    columns = Columns(batch.kind, none, none, batch.weight, batch.time)
    return replace(record, batch=columns, names=Names(src, dst))


def _names_in(column: Column | None) -> Array:
    assert column is not None
    column = column.spread()
    rows = np.arange(len(column))
    return names_of_entries(rows, column.kinds, column.keys, column.bounds, column.blob)


def merged(parts: Sequence[Rows]) -> Iterator[Rows]:
    """The same rows in the same order in fewer pieces: those that follow each other as one, unless
    they name their producer, or have times and those before have none."""
    filled = [rows for rows in parts if len(rows.batch)]
    for (producer, _), group in groupby(filled, key=_alike):
        several = list(group)
        if producer is not None or len(several) == 1:
            yield from several
            continue
        src, dst = joined([rows.src for rows in several]), joined([rows.dst for rows in several])
        if src.dtype != dst.dtype:
            src, dst = src.astype(object), dst.astype(object)
        yield Rows(Columns.joined([rows.batch for rows in several]), src, dst)


def _alike(rows: Rows) -> tuple[str | None, bool]:
    return rows.producer, rows.batch.time is None


def encoded(
    part: Part,
    names: bool,
    producer: str | None = None,
    seq: int | None = None,
    whole: bool = False,
) -> list[bytes]:
    """The rows of a partition as records, of which the first gets the number `seq` and the others
    those that follow. `whole`: one record. Raises RecordError."""
    values: list[bytes] = []
    bounds = [0, len(part.src)] if whole else _bounds(part)
    for start, stop in pairwise(bounds):
        piece = part.rows(start, stop)
        values.append(
            encode_updates(
                piece.src, piece.dst, piece.weight, piece.time, piece.kind, producer=producer,
                seq=None if seq is None else seq + len(values), names=names,
            )
        )  # fmt: skip
    return values


def _bounds(part: Part) -> list[int]:
    """Where the rows are cut into records."""
    rows = len(part.src)
    columns = [column for column in part[1:] if isinstance(column, np.ndarray)]
    row_bytes = sum(column.itemsize for column in columns if column.dtype != object)
    if part.src.dtype != object:
        return [*range(0, rows, max(1, PIECE_BYTES // row_bytes)), rows]
    sizes = np.full(rows, row_bytes + 2 * _TEXT_ROW_BYTES)
    for ends in (part.src, part.dst):
        sizes += [len(str(name).encode()) for name in ends.tolist()]
    stops = np.cumsum(sizes)
    bounds = [0]
    while bounds[-1] < rows:
        start = bounds[-1]
        before = int(stops[start - 1]) if start else 0
        stop = int(np.searchsorted(stops, before + PIECE_BYTES, "right"))
        bounds.append(max(start + 1, min(stop, start + MAX_TEXT_ROWS)))
    return bounds
