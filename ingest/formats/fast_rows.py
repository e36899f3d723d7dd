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

from lpma.batch import MAX_VERTEX, MAX_WEIGHT, Columns, Kind
from lpma.cpu.jit import compiled

from ..types import Partition, Polled

MAX_PLAIN_BYTES = 96  # a plain row has at most 71
MIN_RUN = 8  # rows; fewer are not worth an array each

assert (int(Kind.APPEND), int(Kind.DELETE)) == (0, 1), "_kind reads their names as 0 and 1"


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


def with_runs(polled: list[Polled]) -> list[Polled]:
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
    return Columns(rows.kind[part], rows.src[part], rows.dst[part], weight, time)


def _read(data: npt.NDArray[np.uint8], stops: npt.NDArray[np.int64]) -> _Rows:
    count = len(stops)
    dtypes: list[Any] = [np.bool_, np.uint8, np.uint32, np.uint32, np.float64, np.int64]
    rows = _Rows(*(np.zeros(count, dtype) for dtype in [*dtypes, np.bool_, np.bool_]))
    rows.weight[:] = 1.0
    _read_all(data, stops, *rows)
    return rows


# Compiled. Positions are checked before they are read: −1 stands for "not plain, stop here" ------


@compiled
def _read_all(
    data: Any, stops: Any, plain: Any, kind: Any, src: Any, dst: Any,
    weight: Any, time: Any, weighted: Any, timed: Any,
) -> None:  # fmt: skip
    start = np.int64(0)
    for i in range(len(stops)):
        stop = stops[i]
        # A copy on the side of the columns: a row that proves not to be plain leaves no trace.
        ok, k, u, v, w, t, has_w, has_t = _read_row(data, start, stop)
        if ok:
            plain[i], kind[i], src[i], dst[i] = True, k, u, v
            weight[i], time[i], weighted[i], timed[i] = w, t, has_w, has_t
        start = stop


@compiled
def _read_row(data: Any, at: int, stop: int) -> Any:
    k, u, v = 0, np.int64(-1), np.int64(-1)
    w, t, has_w, has_t = 1.0, np.int64(0), False, False
    bad = (False, 0, np.int64(0), np.int64(0), 1.0, np.int64(0), False, False)
    if at >= stop:
        return bad
    head = data[at]
    at += 1
    is_map = 0x82 <= head <= 0x85
    if not is_map and not 0x92 <= head <= 0x94:
        return bad
    seen = 0  # a bit for each field that was read
    for place in range(head & 15):
        if is_map:
            field, at = _field(data, at, stop)
        else:
            field = place
        if at < 0 or field < 0 or seen >> field & 1:
            return bad
        seen |= 1 << field
        if not is_map and field >= 2 and at < stop and data[at] == 0xC0:
            at += 1  # nil: as if it were not there
            continue
        if field == 0:
            u, at = _unsigned(data, at, stop)
        elif field == 1:
            v, at = _unsigned(data, at, stop)
        elif field == 2:
            w, at = _number(data, at, stop)
            has_w = True
        elif field == 3:
            t, at = _integer(data, at, stop)
            has_t = True
        else:
            k, at = _kind(data, at, stop)
        if at < 0:
            return bad
    if at != stop or not 0 <= u <= MAX_VERTEX or not 0 <= v <= MAX_VERTEX:
        return bad
    if not abs(w) <= MAX_WEIGHT:  # NaN fails, too
        return bad
    return True, k, u, v, w, t, has_w, has_t


@compiled
def _big_endian(data: Any, at: int, size: int) -> Any:
    value = np.uint64(0)
    for i in range(size):
        value = (value << np.uint64(8)) | np.uint64(data[at + i])
    return value


@compiled
def _unsigned(data: Any, at: int, stop: int) -> Any:
    """A non-negative integer below 2^63 in msgpack's unsigned forms, and the place behind it."""
    if at >= stop:
        return np.int64(-1), -1
    head = data[at]
    if head < 0x80:
        return np.int64(head), at + 1
    if not 0xCC <= head <= 0xCF:
        return np.int64(-1), -1
    size = 1 << (head - 0xCC)
    if at + 1 + size > stop:
        return np.int64(-1), -1
    value = np.int64(_big_endian(data, at + 1, size))
    return value, at + 1 + size if value >= 0 else -1


@compiled
def _integer(data: Any, at: int, stop: int) -> Any:
    """An integer of 64 bits with its sign, and the place behind it."""
    if at < stop and data[at] >= 0xE0:
        return np.int64(data[at]) - 256, at + 1
    if at < stop and 0xD0 <= data[at] <= 0xD3:
        size = 1 << (data[at] - 0xD0)
        if at + 1 + size > stop:
            return np.int64(0), -1
        value = np.int64(_big_endian(data, at + 1, size))
        unused = 64 - 8 * size
        return value << unused >> unused, at + 1 + size
    return _unsigned(data, at, stop)


@compiled
def _number(data: Any, at: int, stop: int) -> Any:
    """A float or an integer as a float, and the place behind it."""
    if at < stop and (data[at] == 0xCA or data[at] == 0xCB):
        size = 4 if data[at] == 0xCA else 8
        if at + 1 + size > stop:
            return 0.0, -1
        bits = _big_endian(data, at + 1, size)
        if size == 4:
            return np.float64(np.uint32(bits).view(np.float32)), at + 5
        return np.uint64(bits).view(np.float64), at + 9
    value, behind = _integer(data, at, stop)
    return np.float64(value), behind


@compiled
def _text_is(data: Any, at: int, stop: int, text: Any) -> bool:
    if at + 1 + len(text) > stop:
        return False
    same = data[at] == 0xA0 + len(text)
    for i in range(len(text)):
        same &= data[at + 1 + i] == text[i]
    return bool(same)


@compiled
def _field(data: Any, at: int, stop: int) -> Any:
    """The place of a key among src, dst, weight, time, kind, and the place behind it."""
    if _text_is(data, at, stop, b"src"):
        return 0, at + 4
    if _text_is(data, at, stop, b"dst"):
        return 1, at + 4
    if _text_is(data, at, stop, b"weight"):
        return 2, at + 7
    if _text_is(data, at, stop, b"time"):
        return 3, at + 5
    if _text_is(data, at, stop, b"kind"):
        return 4, at + 5
    return -1, -1


@compiled
def _kind(data: Any, at: int, stop: int) -> Any:
    if _text_is(data, at, stop, b"append"):
        return 0, at + 7
    if _text_is(data, at, stop, b"delete"):
        return 1, at + 7
    return 0, -1
