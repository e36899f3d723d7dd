"""Where the values lie in a batch of Kafka: message format 2, read by compiled code.

Idea: only the offset, the time and the value of a record are needed, so its bytes are walked once
and no objects are made of the rest. This module works on bytes alone: recorded batches can be read
without a Kafka client.

    record := length, attributes u1, timestamp delta, offset delta, key bytes, value bytes
            , headers: count, (key bytes, value bytes)*        lengths and deltas as zigzag varints
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.jit import compiled

from ..types import Partition, Polled, Rejected, Values

Buffer = bytes | bytearray | memoryview
Column = npt.NDArray[np.int64]
Places = tuple[Column, Column, Column, Column]  # offsets, times, starts and stops of records

NO_VALUE = Rejected(b"", "a record without a value, as compaction takes for a deletion")


def polled(partition: Partition, offset: int, value: bytes | Values | None, time: int) -> Polled:
    """One record, or many, as a source returns them."""
    return Polled(partition, offset, NO_VALUE if value is None else value, time)


def values(
    data: Buffer, at: int, count: int, base: int, base_time: int
) -> Iterator[tuple[int, bytes | None, int]]:
    """(offset, value, time) of the `count` records that lie from `at` to the end of `data`, whose
    batch begins at offset `base` and time `base_time`. Raises ValueError if they are not
    exactly that."""
    places = places_of(data, at, count, base, base_time)
    return (
        (offset, None if start < 0 else bytes(data[start:stop]), time)
        for offset, time, start, stop in zip(*(each.tolist() for each in places), strict=True)
    )


def places_of(data: Buffer, at: int, count: int, base: int, base_time: int) -> Places:
    """The same as columns: their offsets, times, and where their values lie (start -1: none)."""
    offsets, times, starts, stops = (np.empty(count, np.int64) for _ in range(4))
    if not walk(np.frombuffer(data, np.uint8), at, offsets, times, starts, stops):
        raise ValueError(f"the batch at offset {base} is not made of records")
    return offsets + base, times + base_time, starts, stops


def stretch_of(places: Places, first: int, most: int) -> int:
    """Behind which record a stretch that begins at number `first` ends: of at most so many, with
    values all, at consecutive offsets."""
    offsets, _, starts, _ = places
    stop = min(first + most, len(offsets))
    good = offsets[first:stop] == offsets[first] + np.arange(stop - first)
    good &= starts[first:stop] >= 0
    return stop if good.all() else first + max(1, int(good.argmin()))


@compiled
def walk(data: Any, at: int, offsets: Any, times: Any, starts: Any, stops: Any) -> bool:
    """Find the offset and time deltas of each record and where its value lies (start −1: none).
    False if the records are not exactly what lies from `at` to the end of `data`."""
    for i in range(len(offsets)):
        length, at = _varint(data, at)
        if at < 0 or length < 0 or length > len(data) - at:
            return False
        end = at + length
        at += 1  # attributes
        times[i], at = _varint(data, at)
        offsets[i], at = _varint(data, at)
        _, at = _bytes(data, at)  # key
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
