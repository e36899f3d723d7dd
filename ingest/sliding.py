"""Sliding windows: a graph that holds what is newer than a bound, and the bound follows the stream.

An edge's time is that of its last operation. A window of width w keeps the edges whose time is at
least `newest` − w, where `newest` never falls:

    event     the highest event time applied so far: of updates that carry a time. One that carries
              none does not move the window, since its stamp may be in another unit
    arrival   the stamp of the last operation applied. Every edge then has its stamp as its time,
              whatever event time its record carries

Idea: an expiry is an operation of the stream like any other (`Kind.EXPIRE`), so a window is one row
behind the last row of a batch. Queries of that batch see the graph before it, in every way in which
a batch is applied, and what follows the graph's changes sees what expired.

Invariants:
1. The bound is a function of the batches applied, of their rows and stamps. So a replay, which cuts
   the same batches, makes the same expiries; `newest` is all that a checkpoint has to keep.
2. After each batch no edge is older than the bound. Only where the bound rose, or the batch itself
   appended something older, is there anything to expire; elsewhere no row is added.
3. No bound leaves 64 bits: as long as `newest` − w would, nothing expires.

What was appended when it was older than the bound already is late by the window. It is counted, and
expires with its batch. A late policy other than "apply" keeps it out at the door: `lateness.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lpma.batch.columns import Columns, Kind

from .batcher import StreamBatch
from .window import LOWEST, bound_of

Array = npt.NDArray[Any]


class Slide(NamedTuple):
    """What a batch does to a window. newest: after it. before: what an expiry behind its rows is
    given; None: there is none. late: edges appended that were older than the bound by then."""

    newest: int | None
    before: int | None
    late: int


def slide(batch: StreamBatch, newest: int | None, width: int, arrival: bool) -> Slide:
    """What `batch` does to a window of this width. newest: before it.

    ENSURES: invariants 1 to 3. Where a batch has no operation, nothing moves: it is not in the
    journal either."""
    if not batch.operations:
        return Slide(newest, None, 0)
    old = bound_of(newest, width)
    if arrival:
        newest = batch.last_stamp  # which never falls
        return Slide(newest, _risen(old, bound_of(newest, width)), 0)
    columns = batch.columns
    if not len(columns) or columns.time is None:
        return Slide(newest, None, 0)
    moves = _moves(batch)
    moved = columns.time if moves is None else columns.time[moves]
    before_it = newest
    if len(moved):
        highest = int(moved.max())
        newest = highest if newest is None else max(newest, highest)
    bound = bound_of(newest, width)
    late = 0
    if bound is not None:
        old_times = (columns.time < bound) & (columns.kind == Kind.INSERT)
        if old_times.any():
            late = _late(columns.time, moves, before_it, width, old_times)
            if late:
                return Slide(newest, bound, late)
    return Slide(newest, _risen(old, bound), late)


def _risen(old: int | None, bound: int | None) -> int | None:
    return bound if bound is not None and (old is None or bound > old) else None


def _moves(batch: StreamBatch) -> Array | None:
    """bool[n]: which rows carry an event time, so that they move the window; None: all do."""
    kinds = batch.columns.kind
    carry, sizes = batch.timed
    if all(carry) and int(kinds.max()) < Kind.EXPIRE:
        return None
    moves: Array = np.repeat(np.array(carry, np.bool_), sizes) & (kinds < Kind.EXPIRE)
    return moves


def _late(
    times: Array, moves: Array | None, newest: int | None, width: int, old_times: Array
) -> int:
    """How many of the rows `old_times` were too old when they came, each judged by the rows up to
    itself: so it does not depend on where batches end."""
    floor = LOWEST if newest is None else newest
    seen = times if moves is None else np.where(moves, times, LOWEST)
    seen = np.maximum(np.maximum.accumulate(seen), floor)[old_times]
    times = times[old_times]
    # As unsigned integers the difference is exact, even if the signed one overflows 64 bits.
    behind = seen.view(np.uint64) - times.view(np.uint64)
    return int(np.count_nonzero((times < seen) & (behind > np.uint64(width))))


def with_expiry(columns: Columns, before: int) -> Columns:
    """The rows of a batch, and behind them the expiry of what is older than `before`."""
    last = np.zeros(1, np.uint32)
    weight = columns.weight
    return columns.replace(
        kind=np.append(columns.kind, np.uint8(Kind.EXPIRE)),
        src=np.append(columns.src, last),
        dst=np.append(columns.dst, last),
        weight=None if weight is None else np.append(weight, weight.dtype.type(0)),
        time=np.append(_times(columns), np.int64(before)),
    )


def _times(columns: Columns) -> Array:
    """REQUIRES: a batch of a stream, whose rows have times, unless it has no rows."""
    assert columns.time is not None or not len(columns)
    return np.zeros(0, np.int64) if columns.time is None else columns.time
