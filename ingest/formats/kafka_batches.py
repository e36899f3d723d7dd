"""Where the values lie in a batch of Kafka: message format 2, read by compiled code.

Idea: only the offset, the time, the key and the value of a record are needed, so its bytes are
walked once and no objects are made of the rest. This module works on bytes alone: recorded batches
can be read without a Kafka client.

    record := length, attributes u1, timestamp delta, offset delta, key bytes, value bytes
            , headers: count, (key bytes, value bytes)*        lengths and deltas as zigzag varints
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.jit import compiled

from ..types import NO_VALUE, Partition, Polled, Values

Buffer = bytes | bytearray | memoryview
Column = npt.NDArray[np.int64]
# Offsets, times, starts and stops of values, and of keys.
Places = tuple[Column, Column, Column, Column, Column, Column]


def polled(
    partition: Partition, offset: int, value: bytes | Values | None, time: int, key: bytes = b""
) -> Polled:
    """One record, or many, as a source returns them."""
    return Polled(partition, offset, NO_VALUE if value is None else value, time, key)


def values(
    data: Buffer, at: int, count: int, base: int, base_time: int
) -> Iterator[tuple[int, bytes | None, int]]:
    """(offset, value, time) of the `count` records that lie from `at` to the end of `data`, whose
    batch begins at offset `base` and time `base_time`. Raises ValueError if they are not
    exactly that."""
    places = places_of(data, at, count, base, base_time)
    return (
        (offset, None if start < 0 else bytes(data[start:stop]), time)
        for offset, time, start, stop in zip(*(each.tolist() for each in places[:4]), strict=True)
    )


def places_of(data: Buffer, at: int, count: int, base: int, base_time: int) -> Places:
    """The same as columns: their offsets, times, and where their values lie (start -1: none), and
    their keys (none: of no bytes)."""
    offsets, times, *found = (np.empty(count, np.int64) for _ in range(6))
    if not walk(np.frombuffer(data, np.uint8), at, offsets, times, *found):
        raise ValueError(f"the batch at offset {base} is not made of records")
    starts, stops, key_starts, key_stops = found
    return offsets + base, times + base_time, starts, stops, key_starts, key_stops


def stretch_of(places: Places, first: int, most: int) -> int:
    """Behind which record a stretch that begins at number `first` ends: of at most so many, with
    values all, at consecutive offsets."""
    offsets, _, starts, *_ = places
    stop = min(first + most, len(offsets))
    good = offsets[first:stop] == offsets[first] + np.arange(stop - first)
    good &= starts[first:stop] >= 0
    return stop if good.all() else first + max(1, int(good.argmin()))


@compiled
def walk(
    data: Any,
    at: int,
    offsets: Any,
    times: Any,
    starts: Any,
    stops: Any,
    key_starts: Any,
    key_stops: Any,
) -> bool:
    """Find the offset and time deltas of each record and where its value lies (start −1: none), and
    its key (none: it has no bytes). False if the records are not exactly what lies from `at` to the
    end of `data`."""
    for i in range(len(offsets)):
        length, at = _varint(data, at)
        if at < 0 or length < 0 or length > len(data) - at:
            return False
        end = at + length
        at += 1  # attributes
        times[i], at = _varint(data, at)
        offsets[i], at = _varint(data, at)
        key, at = _bytes(data, at)
        key_starts[i], key_stops[i] = max(key, 0), max(at, 0) if key >= 0 else 0
        starts[i], at = _bytes(data, at)
        stops[i] = at
        headers, at = _varint(data, at)
        if headers < 0:
            return False
        for _ in range(headers):
            if at < 0 or at > end:
                return False
            start, at = _bytes(data, at)
            if start < 0:
                return False  # a header has a name
            _, at = _bytes(data, at)
        if at != end:
            return False
    return bool(at == len(data))


@compiled
def _varint(data: Any, at: int) -> Any:
    """A zigzag integer and the place after it; −1 as the place if there is none."""
    value = np.uint64(0)
    shift = np.uint64(0)
    while 0 <= at < len(data) and shift < 64:
        byte = np.uint64(data[at])
        at += 1
        value |= (byte & np.uint64(0x7F)) << shift
        if byte < 128:
            # Shifted as unsigned: the sign is in the lowest bit.
            half = np.int64(value >> np.uint64(1))
            return half ^ -np.int64(value & np.uint64(1)), at
        shift += np.uint64(7)
    return np.int64(0), -1


@compiled
def _bytes(data: Any, at: int) -> Any:
    """Where bytes begin, −1 if they are absent, and the place after them."""
    length, at = _varint(data, at)
    if at < 0 or length > len(data) - at:
        return np.int64(-1), -1
    if length < 0:
        return np.int64(-1), at
    return np.int64(at), at + length
