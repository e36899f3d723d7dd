"""Which partition owns each vertex of a column, and rows in the order of their owners.

`lpma.owners` is the specification: the hash of an id or a name, modulo the number of partitions.

Tricks: a division of 64 bits takes longer than the hash. So the hash's upper half is folded first,
h = high · (2^32 mod n) + low, which is below 2^49 for up to 2^16 partitions; its quotient by
floating point is at most one off. Owners are few, so rows are sorted by counting. Of a graph with
names each name is hashed once, and its owner kept by the id that the graph gave it.
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


def sorted_by_owner(owners: Array, partitions: int) -> tuple[Array, Array]:
    """int64: the rows by partition, in order within each; and where each partition begins, and the
    last one ends. owners: uint32; a row whose owner is no partition is left out."""
    order, bounds = np.empty(len(owners), np.int64), np.empty(partitions + 1, np.int64)
    _sort(owners, bounds, order)
    return order[: bounds[-1]], bounds


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
def _sort(owners: Any, bounds: Any, order: Any) -> None:
    """See `sorted_by_owner`. Rows of no partition come last."""
    count: Any = len(bounds) - 1
    starts = np.zeros(count + 2, np.int64)
    for i in range(len(owners)):
        starts[min(np.int64(owners[i]), count) + 1] += 1
    for at in range(count + 1):
        starts[at + 1] += starts[at]
    bounds[:] = starts[: count + 1]
    for i in range(len(owners)):
        o: Any = min(np.int64(owners[i]), count)
        order[starts[o]] = i
        starts[o] += 1
