"""Which partition owns each vertex of a column, and columns spread over their owners.

`lpma.owners` is the specification: the hash of an id or a name, modulo the number of partitions.

Tricks: a division of 64 bits takes longer than the hash. So the hash's upper half is folded first,
h = high · (2^32 mod n) + low, which is below 2^49 for up to 2^16 partitions; its quotient by
floating point is at most one off. Owners are few, so rows are spread by counting, a column after
the other. Of a graph with names each name is hashed once, and its owner kept by the id that the
graph gave it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.cpu.jit import compiled, inlined
from lpma.names import Names
from lpma.names.table import TEXT
from lpma.owners import owners_of

from ..types import Array

MAX_PARTITIONS = 1 << 16
NOWHERE, EVERYWHERE = np.uint32(2**32 - 2), np.uint32(2**32 - 1)  # in place of a partition

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_POLYNOMIAL = np.uint64(0xEDB88320)  # of CRC-32, as zlib has it


def owners_in(vertices: Array, partitions: int) -> Array:
    """uint32[n]: as `lpma.owners.owners_of`. vertices: integers of any type, or names as objects.

    REQUIRES: 1 <= partitions <= MAX_PARTITIONS."""
    if vertices.dtype.kind not in "iu":
        return owners_of(vertices, partitions, np.uint32)
    if vertices.dtype != np.uint32:
        signed = vertices.dtype.kind == "i"
        vertices = vertices.astype(np.int64 if signed else np.uint64, copy=False).view(np.uint64)
    owners = np.empty(len(vertices), np.uint32)
    _own(np.ascontiguousarray(vertices), partitions, owners)
    return owners


class Spread:
    """Rows spread over partitions, those of a partition in their order.

    own: uint32[n], the partition of each row, or NOWHERE or EVERYWHERE. twins: the same of a second
    row that each row also makes, right behind it; None: it makes none. bounds: int64, where the
    rows of each partition begin, and the last one's end."""

    def __init__(self, own: Array, twins: Array | None, partitions: int) -> None:
        self._own = own
        self._twins = own[:0] if twins is None else twins
        self.bounds = np.zeros(partitions + 1, np.int64)
        _count(self._own, self._twins, self.bounds)

    def moved(self, first: Array, second: Array) -> Array:
        """A column after the spread: first[i] where row i went, second[i] where its twin did. They
        have one type."""
        if first.dtype == object:
            numbers = np.arange(len(first))
            entries = self.moved(numbers, numbers + len(first))
            return np.concatenate((first, second))[entries] if len(self._twins) else first[entries]
        out = np.empty(int(self.bounds[-1]), first.dtype)
        bits = np.dtype(f"u{first.itemsize}")
        columns = (np.ascontiguousarray(column).view(bits) for column in (first, second))
        _move(self._own, self._twins, self.bounds, *columns, out.view(bits))
        return out


class OwnersOfIds:
    """The owners of a graph's vertices, by their ids there."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self._known = 0  # of the ids that have names
        self._of_names = np.zeros(1, np.uint32)

    def of(self, ids: Array, names: Names | None) -> Array:
        """uint32[n]. ids: uint32, of `names` if there are some; others have no meaning."""
        if names is None:
            return owners_in(ids, self.partitions)
        return self.table(names).take(ids, mode="clip")

    def table(self, names: Names) -> Array:
        """uint32, at least one: the owners of all names, by their ids."""
        first, count = self._known, len(names)
        if first < count:
            if count > len(self._of_names):
                longer = np.zeros(2 * count, np.uint32)
                longer[:first] = self._of_names[:first]
                self._of_names = longer
            _own_names(*names.columns, first, count, self.partitions, self._of_names)
            self._known = count
        return self._of_names


# Compiled ------------------------------------------------------------------------------------


@inlined
def mixed(z: Any) -> Any:
    """See `lpma.owners`."""
    z = (z ^ (z >> _SHIFTS[0])) * _FACTORS[0]
    z = (z ^ (z >> _SHIFTS[1])) * _FACTORS[1]
    return z ^ (z >> _SHIFTS[2])


@inlined
def owner_of(z: Any, partitions: int, folded: int, inverse: float) -> int:
    """The owner of what is mixed from z, uint64. folded: 2^32 mod partitions; inverse: 1 /
    partitions. They are given, or a loop would compute them for each row."""
    h = mixed(z)
    h = np.int64(h >> _HALF) * folded + np.int64(h & _LOW)
    rest = h - np.int64(h * inverse) * partitions
    if rest < 0:
        rest += partitions
    elif rest >= partitions:
        rest -= partitions
    return int(rest)


@compiled
def _own(ids: Any, partitions: int, owners: Any) -> None:
    folded, inverse = (1 << 32) % partitions, 1.0 / partitions
    for i in range(len(ids)):
        owners[i] = owner_of(np.uint64(ids[i]), partitions, folded, inverse)


@compiled
def _own_names(
    kinds: Any, keys: Any, bounds: Any, blob: Any, first: int, stop: int, partitions: int,
    owners: Any,
) -> None:  # fmt: skip
    table = np.empty(256, np.uint64)
    for byte in range(256):
        crc = np.uint64(byte)
        for _ in range(8):
            crc = (crc >> np.uint64(1)) ^ (_POLYNOMIAL * (crc & np.uint64(1)))
        table[byte] = crc
    folded, inverse = (1 << 32) % partitions, 1.0 / partitions
    for i in range(first, stop):
        z = keys[i]  # an integer, or the number of a text
        if kinds[i] == TEXT:
            start, end = bounds[z], bounds[z + np.uint64(1)]
            crc = _LOW
            for at in range(start, end):
                crc = (crc >> np.uint64(8)) ^ table[(crc ^ np.uint64(blob[at])) & np.uint64(255)]
            z = (crc ^ _LOW) | (np.uint64(end - start) << _HALF)
        owners[i] = owner_of(z, partitions, folded, inverse)


@compiled
def _count(own: Any, twins: Any, bounds: Any) -> None:
    """Fill the bounds, which are 0."""
    count = len(bounds) - 1
    everywhere = 0
    for owners in (own, twins):
        for i in range(len(owners)):
            if owners[i] < count:
                bounds[owners[i] + 1] += 1
            elif owners[i] == EVERYWHERE:
                everywhere += 1
    for at in range(count):
        bounds[at + 1] += bounds[at] + everywhere


@compiled
def _move(own: Any, twins: Any, bounds: Any, first: Any, second: Any, out: Any) -> None:
    """See `Spread.moved`."""
    count = len(bounds) - 1
    at = bounds.copy()
    for i in range(len(own)):
        owner = own[i]
        if owner < count:
            out[at[owner]] = first[i]
            at[owner] += 1
        elif owner == EVERYWHERE:
            for partition in range(count):
                out[at[partition]] = first[i]
                at[partition] += 1
        if len(twins) and twins[i] < count:
            out[at[twins[i]]] = second[i]
            at[twins[i]] += 1
