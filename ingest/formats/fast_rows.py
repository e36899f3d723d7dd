"""Many small records at once: rows that follow each other become columns before they are decoded.

Idea: a stream of one operation a record costs ten microseconds each where Python decodes it, and a
tenth of one where compiled code does. So consecutive records of a partition that are plain rows are
read together, into one `Polled` of columns in which each row has its offset, as a file's rows have;
nothing behind this can tell. Everything else goes through as it came, to `decode_record`: the
compiled reader takes a record only where both would agree, and refuses none.

A plain row is an edge appended or deleted, in the grammar of `docs/format.md`:

    { "src": vertex, "dst": vertex [, "weight": number] [, "time": int64] [, "kind": name] }
    [ src, dst [, weight or nil [, time or nil]] ]          vertices as msgpack's unsigned integers
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lpma.batch.columns import Columns

from ..types import Partition, Polled

MAX_PLAIN_BYTES = 96  # a plain row has at most 71
MIN_RUN = 8  # rows; fewer are not worth an array each


class _Rows(NamedTuple):
    """What the records of one partition say, and which are plain: arrays of one length."""

    plain: npt.NDArray[np.bool_]
    kind: npt.NDArray[np.uint8]
    src: npt.NDArray[np.uint32]
    dst: npt.NDArray[np.uint32]
    weight: npt.NDArray[np.float64]
    time: npt.NDArray[np.int64]
    weighted: npt.NDArray[np.bool_]  # whether it names a weight
    timed: npt.NDArray[np.bool_]  # whether it names a time


def coalesce_rows(polled: list[Polled]) -> list[Polled]:
    """The same records in the same order, plain rows at consecutive offsets as columns."""
    if len(polled) < MIN_RUN:
        return polled
    found: list[Polled] = []
    for partition, group in groupby(polled, key=itemgetter(0)):
        records = list(group)
        found += records if len(records) < MIN_RUN else _runs(partition, records)
    return found


def _runs(partition: Partition, records: list[Polled]) -> Iterator[Polled]:
    values = [record.value if type(record.value) is bytes else b"" for record in records]
    values = [value if len(value) <= MAX_PLAIN_BYTES else b"" for value in values]
    stops = np.cumsum(np.fromiter(map(len, values), np.int64, len(values)))
    rows = _read(np.frombuffer(b"".join(values), np.uint8), stops)
    offsets = np.fromiter((record.offset for record in records), np.int64, len(records))
    for start, stop in _bounds(rows, offsets):
        if rows.plain[start] and stop - start >= MIN_RUN:
            yield Polled(partition, int(offsets[start]), _columns(rows, start, stop))
        else:
            yield from records[start:stop]


def _bounds(rows: _Rows, offsets: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Where to cut: between plain and other records, where an offset is missing, and between rows
    with a time and rows to be stamped."""
    cut = rows.plain[1:] != rows.plain[:-1]
    cut |= np.diff(offsets) != 1
    cut |= rows.timed[1:] != rows.timed[:-1]
    at = [0, *(np.flatnonzero(cut) + 1).tolist(), len(offsets)]
    return pairwise(at)


def _columns(rows: _Rows, start: int, stop: int) -> Columns:
    part = slice(start, stop)
    weight = rows.weight[part] if rows.weighted[part].any() else None
    time = rows.time[part] if rows.timed[start] else None
    given = rows.kind[part], rows.src[part], rows.dst[part], weight, time
    return Columns(*given, checked=True)  # the compiled reader takes valid rows alone


def _read(data: npt.NDArray[np.uint8], stops: npt.NDArray[np.int64]) -> _Rows:
    from .plain_rows import read_all  # not above: Numba takes a third of a second to import

    count = len(stops)
    dtypes: list[Any] = [np.bool_, np.uint8, np.uint32, np.uint32, np.float64, np.int64]
    rows = _Rows(*(np.zeros(count, dtype) for dtype in [*dtypes, np.bool_, np.bool_]))
    rows.weight[:] = 1.0
    read_all(data, stops, *rows)
    return rows
