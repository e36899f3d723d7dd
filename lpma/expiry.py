"""Expiry: which edges a batch lets expire, as rows of the batch, by what expires and not by what is
stored.

Source: sliding windows, as in GPMA (Sha, Li, He, Tan, VLDB 2017); the lazy index is that of timers
whose entries are checked when they are due.

Idea: in a store, an EXPIRE row names an edge and lets it go if its time at that place is less than
the row's (numba/fold.py, cuda/fold.cuh). So the host need not know which edges expire. It replaces
each EXPIRE row of the caller's by one row for every *candidate*, and a candidate that was touched
since costs a look and changes nothing.

Candidates come from the *front*: the stored edges older than a time, the horizon, in the order of
their times. It is made by one pass over the store when an expiry goes past the horizon; a graph
that never expires has none. The horizon is set so that about SHARE of the store lies before it. So
an edge that expires costs about 1 / SHARE slots passed over, one entry sorted, one row of a batch.

Invariants:
1. Every stored edge whose time is less than the horizon has an entry of exactly that time in the
   front or in `_late`, or is touched by the batch under way.
2. There are at most `_most` entries, that is SHARED_MOST of the store's slots or SMALL; where
   appends would make them more, the front is dropped, and the next expiry passes over the store.

What is popped for a batch that fails is lost, and the front with it (`forget`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .arrays import array_module, on_device, to_host
from .batch import MAX_OPERATIONS, Columns, Kind, are_of_edges
from .errors import BatchError
from .keys import HALF, LOW, ends_of, keys_of
from .store import LPMA

Array = npt.NDArray[Any]  # or cupy.ndarray

SHARE = 1 / 4  # of the slots, that lie before the horizon when the front is made
SHARED_MOST = 1 / 2  # of the slots, that the front may hold
SMALL = 1 << 16  # entries that it may always hold
LATE = 1 << 12  # late entries that are kept unsorted beside the front
LAST = (1 << 63) - 1

APPEND, EXPIRE = int(Kind.APPEND), int(Kind.EXPIRE)
NO_TIMES = "expire needs the times of edges: make the graph with times=True"


class Expiry:
    """The front of one graph. Not thread-safe: Graph lets in one thread at a time."""

    def __init__(self) -> None:
        self.horizon: int | None = None  # None: there is no front
        self._keys: Array = np.empty(0, np.uint64)  # by rising time, where the stores are
        self._times: Array = np.empty(0, np.int64)
        self._late: list[tuple[Array, Array]] = []  # (keys, times) beside it, in no order, on the
        # host, since they are few
        self._held = 0  # entries in all
        self._most = 0
        self._seen: tuple[Columns | None, Array] = None, np.empty(0, np.int64)  # see _early

    @property
    def nbytes(self) -> int:
        """Bytes of the front."""
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
        """The batch with its EXPIRE rows replaced by rows for candidates. Raises BatchError if the
        store keeps no times, MemoryError.
        REQUIRES: columns.expires. Whoever then does not apply the batch calls `forget`."""
        if not out.has_times:
            raise BatchError(NO_TIMES)
        if len(columns) == 1:  # as `Graph.expire` has it
            assert columns.time is not None
            keys, _ = self._due(int(columns.time[0]), out, directed)
            kind = np.full(len(keys), EXPIRE, np.uint8)
            return _marked(Columns(kind, *ends_of(keys), None, columns.time), EXPIRE)
        rows = np.flatnonzero(columns.kind == EXPIRE)
        before = to_host(_taken(columns.time, rows))
        latest = np.maximum.accumulate(before)
        keys, times = self._due(int(latest[-1]), out, directed)
        if not are_of_edges(columns.kind):
            keys = to_host(keys)
        # What is stored goes at the first expiry that reaches it, as does what the batch appends.
        stored_at = np.zeros(len(keys), np.int64)
        if len(rows) > 1:
            stored_at = np.searchsorted(latest, to_host(times), "right")
        early = self._early(columns, columns.time)
        appended, appended_at = _reached(early, columns, rows, before)
        src, dst = (
            _joined(near, _taken(column, appended))
            for near, column in zip(ends_of(keys), (columns.src, columns.dst), strict=True)
        )
        return _with_rows(columns, rows, src, dst, np.concatenate([stored_at, appended_at]))

    def _due(self, before: int, out: LPMA, directed: bool) -> tuple[Array, Array]:
        """The entries whose time is less than `before`, taken out of the front."""
        if not self.reaches(before):
            return self._make(before, out, directed)
        xp = array_module(self._times)
        n = int(xp.searchsorted(self._times, xp.asarray([before]))[0]) if len(self._times) else 0
        keys, times = self._keys[:n], self._times[:n]
        self._keys, self._times = self._keys[n:], self._times[n:]
        if self._late:
            late_keys, late_times = map(np.concatenate, zip(*self._late, strict=True))
            due = late_times < before
            keys, times = _joined(keys, late_keys[due]), _joined(times, late_times[due])
            late_keys, late_times = late_keys[~due], late_times[~due]
            self._late = [(late_keys, late_times)] if len(late_keys) else []
            if len(late_keys) > max(LATE, len(self._keys) // 8):
                self._late = []
                self._sort_in(late_keys, late_times)
        self._held -= len(keys)
        return keys, times

    def _make(self, before: int, out: LPMA, directed: bool) -> tuple[Array, Array]:
        """Pass over the store, with a horizon of `before` or later. An undirected edge has one
        entry, that of its smaller end. Returns what is due at once, which is not worth sorting."""
        self.forget()
        sample = np.sort(to_host(out.backend.sampled_times(out.segments)))
        horizon, slots = before, max(out.num_slots, 1)
        if len(sample):
            share = max(SHARE, min(1.0, LATE / slots))
            horizon = max(before, int(sample[min(int(share * len(sample)), len(sample) - 1)]))
        self._most = max(SMALL, int(slots * SHARED_MOST))
        keys, times = out.backend.older(out.segments, horizon)
        if not directed:
            once = (keys >> HALF) <= (keys & LOW)
            keys, times = keys[once], times[once]
        soon = times < before
        now = keys[soon], times[soon]
        if len(keys) - len(now[0]) > self._most:  # far from what the sample promised
            horizon, soon = before, times < horizon
        self.horizon, self._keys, self._times = horizon, keys[:0], times[:0]
        self._sort_in(keys[~soon], times[~soon])
        self._held = len(self._keys)
        return now

    def _sort_in(self, keys: Array, times: Array) -> None:
        keys, times = _joined(self._keys, keys), _joined(self._times, times)
        order = times.argsort()
        self._keys, self._times = keys[order], times[order]

    # -- what is touched ----------------------------------------------------------------------

    def _early(self, columns: Columns, time: Any) -> Array:
        """The rows that append edges of times before the horizon. time: as it is staged, of each
        row or of all. To look at times on a device is to wait for them: it is done once a batch."""
        if self._seen[0] is not columns:
            rows: Array = to_host(array_module(time).flatnonzero(time < self.horizon))
            if len(rows) and len(time) < len(columns):
                rows = np.arange(len(columns))
            self._seen = columns, rows[columns.kind[rows] == APPEND]
        return self._seen[1]

    def note(self, columns: Columns, time: Array) -> None:
        """Take in a batch that was applied: its appends with times before the horizon. time: as
        `_early` has it. REQUIRES: there is a front."""
        if columns.one_kind == EXPIRE:
            return
        rows = self._early(columns, time)
        self._seen = None, rows[:0]
        if len(rows):
            at = rows if len(time) == len(columns) else 0 * rows
            src, dst = (to_host(_taken(end, rows)) for end in (columns.src, columns.dst))
            self._add(keys_of(src, dst), to_host(_taken(time, at)))

    def note_one(self, src: int, dst: int, time: int) -> None:
        """Take in one append that was applied."""
        if self.horizon is not None and time < self.horizon:
            self._add(np.array([src << 32 | dst], np.uint64), np.array([time], np.int64))

    def _add(self, keys: Array, times: Array) -> None:
        self._held += len(keys)
        if self._held > self._most:
            self.forget()
        else:
            self._late.append((keys, times))


def _taken(column: Any, rows: Array) -> Array:
    """Rows of a column, by numbers on the host."""
    xp = array_module(column)
    taken: Array = column[rows if xp is np else xp.asarray(rows)]
    return taken


def _joined(*parts: Array) -> Array:
    """Columns one after the other, on a device if one of them lies there."""
    parts = tuple(part for part in parts if len(part)) or parts[:1]
    if len(parts) == 1:
        return parts[0]
    xp = next((array_module(part) for part in parts if on_device(part)), np)
    joined: Array = xp.concatenate([xp.asarray(part) for part in parts])
    return joined


def _reached(appends: Array, columns: Columns, rows: Array, before: Array) -> tuple[Array, Array]:
    """Of some rows that append an edge: (the row, which of the expiries `rows` is the first after
    it to reach its time), for those that one reaches. before: int64, of the expiries."""
    n, at = len(rows), appends[appends < rows[-1]]
    times, which = to_host(_taken(columns.time, at)), np.searchsorted(rows, at)
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
        whole = _joined(given[kept] if isinstance(kept, slice) else _taken(given, kept), put)
        return whole if order is None else _taken(whole, order)

    time: Any = columns.time
    if len(rows) == 1:
        times = array_module(time).repeat(time[rows[0] : rows[0] + 1], more)
    else:
        times = _taken(time, rows[which])
    weight = columns.weight
    expanded = Columns(
        column(columns.kind, np.full(more, EXPIRE, np.uint8)),
        column(columns.src, src),
        column(columns.dst, dst),
        None if weight is None else column(weight, array_module(weight).zeros(more, weight.dtype)),
        column(time, times),
        columns.checked,
    )
    of_edges = are_of_edges(columns.kind)
    return _marked(expanded, None if n else EXPIRE, of_edges)


def _marked(expanded: Columns, one_kind: int | None, of_edges: bool = True) -> Columns:
    """An expanded batch with what is known of its kinds. `one_kind`: None if that is not known."""
    expanded.edges_only, expanded.expires = of_edges, True
    if one_kind is not None and len(expanded):
        expanded.one_kind = one_kind
    return expanded
