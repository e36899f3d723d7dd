"""What programs see at a shard: its part, who owns which row, and what was derived from them.

What costs an exchange is made once and kept by name (`cache`), since a part, of one epoch, never
changes.

Invariants: 1. The part has as many rows as the whole graph. 2. All workers of a graph have the same
names in `cache`: programs run in lockstep, and these decide which supersteps follow.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from lpma.arrays import array_module, count_true, device_of
from lpma.errors import BatchError
from lpma.sharding import owners_of

from ...arrays import Array
from ...views.simple import device_module
from .types import Facts, Messages, Part

CHUNK = 1 << 22  # rows whose owners are computed at once


class ShardState:
    """One shard's part and what is known around it."""

    def __init__(self, part: Part) -> None:
        if not 0 <= part.shard < part.shards:
            raise BatchError(f"shard {part.shard} of {part.shards}: they go from 0")
        if part.bounds is not None and len(part.bounds) != part.shards + 1:
            raise BatchError(f"bounds of {part.shards} shards: one more than these are")
        self.part = part
        self.cache: dict[str, Any] = {}
        # Once names are numbered (naming.py), those of own rows and of all rows in the part.
        self.numbered: Any = None
        self.known: Any = None

    @property
    def xp(self) -> Any:
        """numpy or cupy, by the part's device."""
        return array_module(self.part.indptr)

    @property
    def num_rows(self) -> int:
        return self.part.num_rows

    @property
    def shards(self) -> int:
        return self.part.shards

    def facts(self) -> Facts:
        part = self.part
        with device_of(part.indptr):
            loops = 0
            if not part.directed:
                loops = count_true(device_module(part.indptr).looped(part.indptr, part.indices))
        return Facts(
            part.num_rows, len(part.indices), loops, part.version, part.time, part.directed,
            part.bounds, part.names is not None, part.left,
        )  # fmt: skip

    def replace(self, part: Part) -> None:
        """Hold another part instead, and nothing derived from the old one."""
        self.part = part
        self.cache = {}
        for name in ("owner", "is_owned", "owned"):
            self.__dict__.pop(name, None)

    def widen(self, n: int) -> None:
        """Give the part n rows (invariant 1). Raises BatchError if it has more."""
        if n == self.num_rows and (self.part.in_part is None or self.part.in_part.num_rows == n):
            return
        with device_of(self.part.indptr):
            self.replace(_widened(self.part, n))

    @cached_property
    def owner(self) -> Array:
        """uint16[n]: who owns each row."""
        return owners_of_rows(self.xp, self.num_rows, self.shards, self.part.bounds)

    @cached_property
    def is_owned(self) -> Array:
        """bool[n]: which rows this shard owns."""
        owned: Array = self.owner == np.uint16(self.part.shard)
        return owned

    @cached_property
    def owned(self) -> Array:
        """uint32, rising: the rows that this shard owns."""
        return self.rows_where(self.is_owned)

    def rows_where(self, mask: Array) -> Array:
        """uint32, rising: the rows where a bool[n] is True."""
        rows: Array = self.xp.flatnonzero(mask).astype(np.uint32)
        return rows

    def by_owner(self, rows: Array, values: Array | None = None) -> list[Array]:
        """These rows, or a value for each, by the rows' owners, in their order."""
        values = rows if values is None else values
        if self.shards == 1:
            return [values]
        owner = self.owner[rows]
        order = self.xp.argsort(owner, kind="stable")
        values, owner = values[order], owner[order]
        cuts = self.xp.searchsorted(owner, self.xp.arange(self.shards + 1, dtype=np.uint16))
        return [values[first:last] for first, last in pairwise(cuts.tolist())]

    def nothing(self) -> Messages:
        """No message to anyone."""
        return [None] * self.shards


def owners_of_rows(xp: Any, n: int, shards: int, bounds: tuple[int, ...] | None) -> Array:
    """uint16[n]: who owns each of n rows, in an array of xp, numpy or cupy. bounds: see `Part`."""
    owner: Array = xp.empty(n, np.uint16)
    if bounds is not None:
        for shard in range(shards):
            owner[bounds[shard] : bounds[shard + 1]] = shard
        return owner
    for first in range(0, n, CHUNK):
        rows = xp.arange(first, min(first + CHUNK, n), dtype=np.uint32)
        owner[first : first + len(rows)] = owners_of(rows, shards)
    return owner


def _widened(part: Part, n: int) -> Part:
    if part.num_rows > n:
        raise BatchError(f"a part of {part.num_rows} rows: the graph has {n}")
    xp = array_module(part.indptr)
    missing = xp.full(n - part.num_rows, part.indptr[-1], np.int64)
    indptr = xp.concatenate((part.indptr, missing))
    other = None if part.in_part is None else _widened(part.in_part, n)
    return replace(part, indptr=indptr, in_part=other)
