"""Columns of a snapshot that are copied when they are first read, or before the next batch.

Weights and times are three quarters of a snapshot's bytes, and most snapshots of a stream are taken
for an algorithm that reads neither. So a snapshot copies the rows only. Reading the weights or the
times copies both, under the graph's lock; so does a batch before it changes anything, and the
finalizer of the graph, for snapshots that still exist.

Invariant: while the graph's lock is free and columns are not copied, the store is as it was when
the snapshot was taken.

Trick: until then the names are missing from the snapshot's attributes, and Python asks the class
for them (`csr.MadeLate`). Once they are there, reading them costs what it always did.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ..arrays import Array

Columns = tuple[Array | None, Array | None]  # weights, times

NOT_YET: Any = object()  # in place of an array that is made when it is first read
KEY = "_deferred"  # the attribute of a snapshot whose columns are not copied yet


class Taker(Protocol):
    """For whom a snapshot on a device was taken: a stream."""

    stream: Any

    @property
    def waits(self) -> bool:
        """Whether another thread can go on for it."""

    def arrive(self) -> None:
        """Have the caller's current stream wait for it."""


class DeferredColumns:
    """The columns of all snapshots of one version of a graph."""

    def __init__(
        self, read: Callable[[Callable[[], Columns]], Columns], copy: Callable[[], Columns],
        taker: Taker | None = None,
    ):  # fmt: skip
        """read: calls a function under the graph's lock; copy: copies the columns, for `taker`."""
        self.taker = taker
        self._read: Callable[..., Columns] | None = read
        self._copy: Callable[[], Columns] | None = copy
        self._columns: Columns = None, None

    def columns(self) -> Columns:
        """The columns, copied now if they are not yet."""
        read = self._read
        columns = self._columns if read is None else read(self.copied)
        if self.taker is not None:
            self.taker.arrive()
        return columns

    def copied(self) -> Columns:
        """As `columns`. REQUIRES: the caller holds the graph's lock."""
        copy = self._copy
        if copy is not None:
            self._columns = copy()
            self._read = self._copy = None  # the store is not needed from here on
        return self._columns


def shared(snapshot: Any) -> dict[str, Any]:
    """The columns of a snapshot, as late as they are, for `Csr._trusted` of another with its
    edges."""
    late = vars(snapshot).get(KEY)
    if late is not None:
        return {"weights": NOT_YET, "times": NOT_YET, "late": late}
    return {"weights": snapshot._weights, "times": snapshot._times}
