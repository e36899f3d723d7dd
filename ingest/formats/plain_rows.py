"""The compiled reader of plain rows: edges appended, deleted or set, in our own form of msgpack.

Idea: what most streams of our own producers hold is read where it lies, in a tenth of a microsecond
a row, without an object for any of it. Every other record is left to `row_reader.py`.

    { "src": vertex, "dst": vertex [, "weight": number] [, "time": int64] [, "kind": name] }
    [ src, dst [, weight or nil [, time or nil]] ]

    vertex := an id, as msgpack's unsigned integers; where they go by names: an integer, or text

Positions are checked before they are read: −1 stands for "not plain, stop here".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.arguments.convert import MAX_NAME_BYTES
from lpma.batch.columns import DELETE, INSERT, MAX_VERTEX, MAX_WEIGHT, SET
from lpma.cpu.jit import compiled
from lpma.names.column import NEGATIVE, TEXT

_TEXT, _NEGATIVE = int(TEXT), int(NEGATIVE)


@compiled
def read_all(
    data: Any, starts: Any, stops: Any, names: bool, plain: Any, kind: Any, weight: Any, time: Any,
    weighted: Any, timed: Any, kinds: Any, keys: Any, bounds: Any, blob: Any,
) -> int:  # fmt: skip
    """kinds and keys: of src and dst of each row in turn, as columns of names have them; texts go
    to `blob`, and where they end to `bounds`. Returns how many these are. A row that proves not to
    be plain leaves no trace."""
    texts = 0
    for i in range(len(stops)):
        ok, k, u, v, w, t, has_w, has_t = _read_row(data, starts[i], stops[i], names)
        if ok:
            plain[i], kind[i] = True, k
            weight[i], time[i], weighted[i], timed[i] = w, t, has_w, has_t
            for j in range(2):
                of, value, size = u if j == 0 else v
                kinds[2 * i + j] = of
                if of == _TEXT:
                    used = bounds[texts]
                    for at in range(size):
                        blob[used + at] = data[value + at]
                    value, texts = np.int64(texts), texts + 1
                    bounds[texts] = used + size
                keys[2 * i + j] = np.uint64(value)
    return texts


@compiled
def _read_row(data: Any, at: int, stop: int, names: bool) -> Any:
    none = (0, np.int64(-1), 0)
    k, u, v = 0, none, none
    w, t, has_w, has_t = 1.0, np.int64(0), False, False
    bad = (False, 0, none, none, 1.0, np.int64(0), False, False)
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
            u, at = _vertex(data, at, stop, names)
        elif field == 1:
            v, at = _vertex(data, at, stop, names)
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
    if at != stop or seen & 3 != 3:
        return bad
    if not abs(w) <= MAX_WEIGHT:  # NaN fails, too
        return bad
    return True, k, u, v, w, t, has_w, has_t


@compiled
def _vertex(data: Any, at: int, stop: int, names: bool) -> Any:
    """(kind, the integer or where the text begins, bytes of the text), and the place behind it."""
    if not names:
        value, at = _unsigned(data, at, stop)
        return (0, value, 0), at if value <= MAX_VERTEX else -1
    size = np.int64(-1)
    if at < stop and 0xA0 <= data[at] <= 0xBF:
        size, start = np.int64(data[at]) - 0xA0, at + 1
    elif at + 1 < stop and data[at] == 0xD9:
        size, start = np.int64(data[at + 1]), at + 2
    elif at + 2 < stop and data[at] == 0xDA:
        size, start = np.int64(data[at + 1]) << 8 | np.int64(data[at + 2]), at + 3
    if size < 0:
        value, at = _integer(data, at, stop)
        return (_NEGATIVE if value < 0 else 0, value, 0), at
    if not 1 <= size <= MAX_NAME_BYTES or start + size > stop or data[start] & 0xC0 == 0x80:
        return (0, np.int64(-1), 0), -1
    return (_TEXT, np.int64(start), size), start + size


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
        return INSERT, at + 7
    if _text_is(data, at, stop, b"delete"):
        return DELETE, at + 7
    if _text_is(data, at, stop, b"set"):
        return SET, at + 4
    return 0, -1
