"""A mixed batch that lies, folded, beside the store while its queries are answered: the state of
its key after every operation. A query reads the last one before its place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...pma.keys import HALF, LOW
from ..degrees import Degrees, degrees_of
from ..values import Array
from .fold import States
from .located import Folded
from .slots import Slots


@dataclass(frozen=True)
class Beside:
    """A folded batch. Its *runs* are the operations of one key each."""

    batch: Folded

    @property
    def states(self) -> States:
        """After each operation."""
        return self.batch.states

    @cached_property
    def tags(self) -> Array:
        """uint64, rising: run << 32 | place of each operation."""
        runs = np.repeat(np.arange(len(self.batch.keys), dtype=np.uint64), self.batch.lengths)
        return runs << HALF | self.batch.place.astype(np.uint64)

    def seen(self, runs: Array, limits: Array) -> tuple[Array, Array]:
        """(bool[n], int64[n]): whether a run has an operation before a limit, and the last one."""
        first = runs.astype(np.uint64) << HALF
        row = np.searchsorted(self.tags, first | limits.astype(np.uint64)) - 1
        return row >= self.batch.operations.starts[runs], row

    def slots(self, rows: Array, like: Slots) -> Slots:
        """Slots of the states after some operations, with the columns of `like`."""
        states = self.states
        weights = None if states.weight is None else states.weight[rows]
        return Slots(
            self.batch.key[rows], weights, None if like.times is None else states.time[rows]
        )

    def seen_of(self, keys: Array, limits: Array) -> tuple[Array, Array]:
        """The same of keys, which need not be the batch's: (the queries that see one, which)."""
        runs = np.searchsorted(self.batch.keys, keys)
        known = np.flatnonzero(runs < len(self.batch.keys))
        known = known[self.batch.keys[runs[known]] == keys[known]]
        sees, row = self.seen(runs[known], limits[known])
        return known[sees], row[sees]

    @cached_property
    def degrees(self) -> Degrees:
        folded, present = self.batch, self.states.present.astype(np.int64)
        change = np.diff(present, prepend=0)
        starts = folded.operations.starts
        change[starts] = present[starts] - folded.stored.present
        edge = folded.key & LOW != LOW  # a marker is none
        return degrees_of(folded.key[edge] >> HALF, folded.place[edge], change[edge])
