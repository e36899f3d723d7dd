"""Expiry: the edges that a batch lets expire, as rows of the batch, at a cost that goes by what
expires and not by what is stored.

Source: sliding windows, as in GPMA (Sha, Li, He, Tan, VLDB 2017); the lazy index is that of timers
whose entries are checked when they are due.

Idea: in a store, an EXPIRE row names an edge, which is deleted if its time at that place is less
than the row's (numba/fold.py, cuda/kernels/fold.cuh). So the host need not know exactly which edges
expire: it replaces each EXPIRE row of the caller's by a row for every *candidate*, and one that was
touched since changes nothing. Candidates come from the *front*: the stored edges older than a time,
the horizon, sorted by time. One pass over the store makes it when an expiry goes past the horizon,
which is then set so that about SHARE of the store lies before it. So an edge that expires costs
about 1 / SHARE slots passed over, one entry sorted, one row of a batch.

The front lies where the stores are. The host knows every EVERY-th of its times, and finds there
which entries are due, and up to 2 EVERY that are not: so nothing waits for a device.

Invariants:
1. Every stored edge whose time is less than the horizon has an entry of exactly that time in the
   front or in `_late`, or is touched by the batch under way.
2. There are at most `_most` entries, which is SHARED_MOST of the store's slots or SMALL. If appends
   would add more, the front is dropped, and the next expiry passes over the store.

If a batch fails whose candidates were taken from the front, the front is dropped (`forget`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array, array_module, on_device, rows_of, to_host
from ..batch.columns import (
    DELETE,
    EXPIRE,
    MAX_OPERATIONS,
    Columns,
    may_lie_on_device,
    weighted_rows,
)
from ..errors import BatchError
from ..pma.keys import HALF, LOW, ends_of
from ..store.lpma import LPMA


class Entries(NamedTuple):
    """Edges and the times that they had when they were noted. An undirected edge has one entry."""

    src: Array  # uint32[n]
    dst: Array  # uint32[n]
    time: Array  # int64[n]

    def rows(self, which: slice | Array) -> Entries:
        """Some of them, as an index of their columns says."""
        return Entries(*(column[which] for column in self))

    def on_host(self) -> Entries:
        """The same, on the host."""
        return Entries(*map(to_host, self))


def together(parts: list[Entries]) -> Entries:
    """All of them, on a device if one of them lies there."""
    return Entries(*(joined(*columns) for columns in zip(*parts, strict=True)))


def joined(*parts: Array) -> Array:
    """Columns one after the other, on a device if one of them lies there."""
    parts = tuple(part for part in parts if len(part)) or parts[:1]
    if len(parts) == 1:
        return parts[0]
    xp = next((array_module(part) for part in parts if on_device(part)), np)
    joined: Array = xp.concatenate([xp.asarray(part) for part in parts])
    return joined


SHARE = 1 / 4  # of the slots, that lie before the horizon when the front is made
SHARED_MOST = 1 / 2  # of the slots, that the front may hold
SMALL = 1 << 16  # entries that it may always hold
LATE = 1 << 12  # late entries that are kept unsorted beside the front
EVERY = 64  # entries of the front from one time that the host knows to the next
LAST = (1 << 63) - 1

BRING_NOTHING = EXPIRE, DELETE  # batches of these bring no edge
NO_TIMES = "expire needs the times of edges: make the graph with times=True"


class Expiry:
    """The front of one graph. Not thread-safe: Graph lets in one thread at a time."""

    def __init__(self) -> None:
        self.horizon: int | None = None  # None: there is no front
        none = np.empty(0, np.uint32)
        self._front = Entries(none, none, np.empty(0, np.int64))  # by rising time
        self._known = self._front.time  # every EVERY-th time of the front, on the host
        self._late: list[Entries] = []  # beside it, in no order, on the host, since they are few
        self._held = 0  # entries in all
        self._most = 0
        self._sample: Array | None = None  # see sample
        self._seen: tuple[Columns | None, Array] = None, np.empty(0, np.int64)  # see _early
        self._looked: tuple[int, Callable[[], bool]] | None = None  # see look

    @property
    def nbytes(self) -> int:
        return 16 * self._held

    def forget(self) -> None:
        """Drop the front: the next expiry passes over the store."""
        self.__init__()  # type: ignore[misc]

    def reaches(self, before: int) -> bool:
        """Whether an expiry can be answered without a pass over the store."""
        return self.horizon is not None and before <= self.horizon

    def swept(self, before: int, slots: int) -> None:
        """Note that no edge is older than `before`: `sweep` has applied a batch."""
        self.forget()
        self.horizon, self._most = before, max(SMALL, int(slots * SHARED_MOST))

    # -- what expires -------------------------------------------------------------------------

    def expanded(self, columns: Columns, out: LPMA, directed: bool) -> Columns:
        """The batch with its EXPIRE rows replaced by rows for candidates. Raises BatchError without
        times, MemoryError. REQUIRES: columns.expires. Who then does not apply it calls `forget`."""
        if not out.has_times:
            raise BatchError(NO_TIMES)
        if len(columns) == 1:  # as `Graph.expire` has it
            assert columns.time is not None
            src, dst, _ = self._due(int(columns.time[0]), out, directed)
            ends = {"kind": np.full(len(src), EXPIRE, np.uint8), "src": src, "dst": dst}
            return _marked(columns.replace(**ends, weight=None, expiry_expanded=True), EXPIRE)
        rows = np.flatnonzero(columns.kind == EXPIRE)
        before = to_host(rows_of(columns.time, rows))
        latest = np.maximum.accumulate(before)
        due = self._due(int(latest[-1]), out, directed)
        if not may_lie_on_device(columns.kind):
            due = due.on_host()
        # What is stored goes at the first expiry that reaches it, as does what the batch appends.
        stored_at = np.zeros(len(due.src), np.int64)
        if len(rows) > 1:
            stored_at = np.searchsorted(latest[:-1], to_host(due.time), "right")
        early = self._early(columns, columns.time)
        appended, appended_at = _reached(early, columns, rows, before)
        src = joined(due.src, rows_of(columns.src, appended))
        dst = joined(due.dst, rows_of(columns.dst, appended))
        return _with_rows(columns, rows, src, dst, np.concatenate([stored_at, appended_at]))

    def _due(self, before: int, out: LPMA, directed: bool) -> Entries:
        """All entries whose time is less than `before`, and a few more."""
        if not self.reaches(before):
            return self._make(before, out, directed)
        known = int(np.searchsorted(self._known, before))
        due = self._front.rows(slice(known * EVERY))
        gone = max(known - 1, 0)  # of stretches of EVERY entries, of which all are due
        self._front = self._front.rows(slice(gone * EVERY, None))
        self._known = self._known[gone:]
        if self._late:
            late = together(self._late)
            soon = late.time < before
            due = together([due, late.rows(soon)])
            late = late.rows(~soon)
            self._late = [late] if len(late.src) else []
            if len(late.src) > max(LATE, len(self._front.src) // 8):
                self._late = []
                self._sort_in(together([self._front, late]))
        self._held = len(self._front.src) + sum(len(late.src) for late in self._late)
        return due

    def _make(self, before: int, out: LPMA, directed: bool) -> Entries:
        """Pass over the store, with a horizon of `before` or later. An undirected edge has one
        entry, that of its smaller end. Returns what is due at once."""
        sample, slots = self.sample(out), max(out.num_slots, 1)
        self.forget()
        horizon = before
        if len(sample):
            share = max(SHARE, min(1.0, LATE / slots))
            at = min(int(share * len(sample)), len(sample) - 1)
            horizon = max(before, int(np.partition(sample, at)[at]))
        self._most = max(SMALL, int(slots * SHARED_MOST))
        keys, times = out.backend.older(out.segments, horizon)
        if not directed:
            once = (keys >> HALF) <= (keys & LOW)
            keys, times = keys[once], times[once]
        found = Entries(*ends_of(keys), times)
        if horizon > before and len(keys) > self._most:  # far from what the sample promised
            found, horizon = found.rows(times < before), before
        self.horizon = horizon
        if horizon == before:
            return found
        self._sort_in(found)
        return self._due(before, out, directed)

    def sample(self, out: LPMA) -> Array:
        """int64: the times of some slots, on the host. Taken once a batch."""
        if self._sample is None:
            self._sample = out.backend.sampled_times(out.segments)
        return self._sample

    def _sort_in(self, entries: Entries) -> None:
        """Make the front of these entries."""
        order = entries.time.argsort()
        self._front = entries.rows(order)
        self._known = to_host(self._front.time[::EVERY])
        self._held = len(entries.src)

    # -- what is touched ----------------------------------------------------------------------

    def _early(self, columns: Columns, time: Any) -> Array:
        """The rows that append edges with times before the horizon. time: as it is staged, of each
        row or of all. Read once a batch, since on a device that means waiting."""
        if self._seen[0] is not columns:
            rows: Array = to_host(array_module(time).flatnonzero(time < self.horizon))
            if len(rows) and len(time) != len(columns):  # one time for all rows, or for none
                rows = np.arange(len(columns))
            self._seen = columns, rows[weighted_rows(columns.kind[rows])]
        return self._seen[1]

    def look(self, columns: Columns, time: Array, out: LPMA) -> None:
        """Start a search for times before the horizon in a batch that is about to be applied, for
        `note`. time: as for `_early`. REQUIRES: there is a front."""
        assert self.horizon is not None
        if columns.one_kind not in BRING_NOTHING:
            self._looked = self.horizon, out.backend.any_older(out.segments, time, self.horizon)

    def note(self, columns: Columns, time: Array) -> None:
        """Add the appends of an applied batch whose times are before the horizon. time: as for
        `_early`. REQUIRES: `look` has seen the batch, and there is a front."""
        looked, self._looked = self._looked, None
        is_none = looked is not None and looked[0] == self.horizon and not looked[1]()
        if columns.one_kind in BRING_NOTHING or is_none:
            return
        rows = self._early(columns, time)
        self._seen = None, rows[:0]
        if len(rows):
            at = rows if len(time) == len(columns) else 0 * rows
            src, dst = (rows_of(end, rows) for end in (columns.src, columns.dst))
            self._add(Entries(src, dst, rows_of(time, at)).on_host())

    def note_one(self, src: int, dst: int, time: int) -> None:
        """Add one append that was applied."""
        if self.horizon is not None and time < self.horizon:
            u, v = np.array([[src], [dst]], np.uint32)
            self._add(Entries(u, v, np.array([time], np.int64)))

    def _add(self, entries: Entries) -> None:
        self._held += len(entries.src)
        if self._held > self._most:
            self.forget()
        else:
            self._late.append(entries)


def _reached(appends: Array, columns: Columns, rows: Array, before: Array) -> tuple[Array, Array]:
    """Of some rows that append an edge: (the row, which of the expiries `rows` first reaches its
    time), for those that one reaches. before: int64, of the expiries."""
    n, at = len(rows), appends[appends < rows[-1]]
    times, which = to_host(rows_of(columns.time, at)), np.searchsorted(rows, at)
    # Skip the expiries that do not reach it: runs of 2^k of them by their largest `before`.
    largest = [before]
    while 2 ** len(largest) <= n:
        half = len(largest[-1]) - 2 ** (len(largest) - 1)
        largest.append(np.maximum(largest[-1][:half], largest[-1][-half:]))
    for k in reversed(range(len(largest))):
        fits = which + 2**k <= n
        short = fits & (largest[k][np.where(fits, which, 0)] <= times)
        which = which + short * 2**k
    found = which < n
    return at[found], which[found]


def _with_rows(columns: Columns, rows: Array, src: Array, dst: Array, which: Array) -> Columns:
    """The batch without its EXPIRE `rows`, each edge (src[i], dst[i]) put in for row which[i]."""
    n, more = len(columns) - len(rows), len(src)
    if n + more > MAX_OPERATIONS:
        raise MemoryError(f"{n + more:,} operations")
    kept: Any = slice(0, n)
    order = None
    if rows[0] < n:  # not all at the end
        kept = np.delete(np.arange(len(columns)), rows)
        order = np.argsort(np.concatenate([kept, rows[which]]), kind="stable")
    elif len(rows) > 1:
        order = np.argsort(np.concatenate([np.zeros(n, np.int64), 1 + which]), kind="stable")

    def column(given: Any, put: Any) -> Any:
        whole = joined(given[kept] if isinstance(kept, slice) else rows_of(given, kept), put)
        return whole if order is None else rows_of(whole, order)

    time: Any = columns.time
    if len(rows) == 1:
        times = array_module(time).repeat(time[rows[0] : rows[0] + 1], more)
    else:
        times = rows_of(time, rows[which])
    weight = columns.weight
    if weight is not None:
        weight = column(weight, array_module(weight).zeros(more, weight.dtype))
    expanded = columns.replace(
        kind=column(columns.kind, np.full(more, EXPIRE, np.uint8)),
        src=column(columns.src, src),
        dst=column(columns.dst, dst),
        weight=weight,
        time=column(time, times),
        expiry_expanded=True,
    )
    return _marked(expanded, None if n else EXPIRE, may_lie_on_device(columns.kind))


def _marked(expanded: Columns, one_kind: int | None, of_edges: bool = True) -> Columns:
    """An expanded batch with what is known of its kinds. `one_kind`: None if that is not known."""
    expanded.edges_only, expanded.expires = of_edges, True
    if one_kind is not None and len(expanded):
        expanded.one_kind = one_kind
    return expanded
