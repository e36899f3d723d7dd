"""What a store must hold: the model every store is checked against, slow and simple by design.

Two sets of edges agree when their fingerprints do: the number of edges, and the sum of a mix of
every key modulo 2^64. The sum needs no order, so it can follow a stream edge by edge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .keys import Array, distinct, keys_of


@dataclass(frozen=True)
class Fingerprint:
    """The fingerprint of a set of edges, to be compared."""

    count: int
    checksum: int

    @staticmethod
    def of(keys: Array) -> Fingerprint:
        return Fingerprint(len(keys), _checksum(keys))


def _checksum(keys: Array) -> int:
    """The sum of every key's mix (David Stafford's variant 13 of the 64-bit finalizer)."""
    x = keys.astype(np.uint64)
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return int((x ^ x >> np.uint64(31)).sum(dtype=np.uint64))


class Model:
    """The set of edges that there should be: one sorted array, changed by whole-array steps."""

    def __init__(self, src: Array, dst: Array) -> None:
        self.keys = distinct(keys_of(src, dst))
        self.fingerprint = Fingerprint.of(self.keys)

    def insert(self, src: Array, dst: Array) -> Fingerprint:
        keys = distinct(keys_of(src, dst))
        new = keys[~self.holds(keys)]
        joined = np.concatenate((self.keys, new))
        joined.sort(kind="stable")  # two sorted runs: one merge
        self.keys = joined
        return self._changed(new, 1)

    def delete(self, src: Array, dst: Array) -> Fingerprint:
        keys = distinct(keys_of(src, dst))
        gone = keys[self.holds(keys)]
        self.keys = np.delete(self.keys, np.searchsorted(self.keys, gone))
        return self._changed(gone, -1)

    def holds(self, keys: Array) -> Array:
        """bool[q]: which of the keys are there."""
        fenced = np.append(self.keys, np.uint64(2**64 - 1))
        found: Array = fenced[np.searchsorted(self.keys, keys)] == keys
        return found

    def _changed(self, keys: Array, sign: int) -> Fingerprint:
        checksum = (self.fingerprint.checksum + sign * _checksum(keys)) % 2**64
        self.fingerprint = Fingerprint(self.fingerprint.count + sign * len(keys), checksum)
        return self.fingerprint
