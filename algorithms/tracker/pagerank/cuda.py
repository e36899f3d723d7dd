"""Tracked PageRank on a CUDA device: a layout that outlives many batches, and one launch for all
passes of an update. pagerank.cu has the method, the package the mathematics.

A layout of the rows (`algorithms.pagerank.layout_cuda`) takes as long as a few passes. So it is
kept, with a list of what has changed since. Rule: rows are laid out anew, and the value recomputed,
when the list has a SHARE of all entries, or when ids exceed rows, of which there are a ROOM more.

Requires arrays on the current device. Work is enqueued on the current stream; `solve` waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np

from lpma.cuda import driver, launch

from ...pagerank import cuda
from ...pagerank.layout_cuda import Layout, lay_out
from ...views.simple import View
from ..types import Change, TrackedRows
from .cpu import even_share

Array = Any  # cupy.ndarray

SHARE = 1 / 16
ROOM = 1 / 8
FILE = "algorithms/tracker/pagerank/pagerank.cu"


@dataclass
class State:
    """Arrays are of the layout's rows, not of vertices."""

    layout: Layout
    row_of: Array  # uint32, by vertex
    degree: Array  # uint32
    shares: Array  # float64, 0 where the degree is
    rest: Array  # float64, likewise
    even: float  # the share that a row gets with its first edges
    keys: Array  # uint64, rising: entries that came or went, see pagerank.cu


def begin(rows: TrackedRows, damping: float) -> State:
    """Every share alike, so that the rest sums to 0."""
    n = rows.num_rows
    room = n + int(ROOM * n) + 1024
    indptr = cupy.full(room + 1, len(rows.indices), np.int64)
    indptr[: n + 1] = rows.indptr
    view = View(indptr, rows.indices)
    layout = lay_out(view, view, None, None, None)
    row_of = cupy.empty(room, np.uint32)
    row_of[layout.vertex] = cupy.arange(room, dtype=np.uint32)
    degree = cupy.diff(indptr)[layout.vertex].astype(np.uint32)
    has_edges = degree > 0
    share = even_share(int(has_edges.astype(np.int64).sum()), len(rows.indices), damping)
    shares = cupy.where(has_edges, share, 0.0)
    rest = cupy.where(has_edges, 1 - (1 - damping) * share * degree, 0.0)
    return State(layout, row_of, degree, shares, rest, share, cupy.empty(0, np.uint64))


def follow(state: State, change: Change, damping: float) -> bool:
    """Bring the state from the rows before to those after. False if rows must be laid out anew; the
    state is then useless."""
    rows, entries = state.layout.rows, len(change.after.indices)
    count = len(change.inserted) + len(change.deleted)
    if change.after.num_rows > rows or len(state.keys) + count > SHARE * entries:
        return False
    keys = cupy.empty(count, np.uint64)
    for changed, are_gone in ((change.inserted, 0), (change.deleted, 1)):
        into = keys[len(change.inserted) :] if are_gone else keys
        launch.run(
            FILE, "row_keys", len(changed), changed, len(changed), state.row_of, are_gone, into
        )
    keys.sort()
    launch.run(
        FILE, "measure_rows", rows, state.layout.vertex, rows, change.after.indptr,
        change.after.num_rows, np.float64(state.even), state.degree, state.shares, state.rest,
    )  # fmt: skip
    launch.run(
        FILE, "move_rest", 32 * count, keys, count, np.float64(damping), state.shares, state.rest
    )
    state.keys = cupy.concatenate((state.keys, keys))
    state.keys.sort()
    return True


def solve(state: State, rows: TrackedRows, damping: float, least: float) -> Array:
    """float64[n]: the ranks, when the rest is at most `least` for each vertex with edges."""
    layout, n, count = state.layout, rows.num_rows, len(state.keys)
    starts = cupy.empty(count, np.bool_)
    launch.run(FILE, "mark_rows", count, state.keys, count, starts)
    first_keys = cupy.flatnonzero(starts)
    enough = least * int(cupy.count_nonzero(state.degree))
    along, following = (cupy.empty(layout.rows + 1, np.float32) for _ in range(2))
    product, extra = cupy.empty(layout.rows), driver.zeros(layout.rows)
    hot, how = cuda.pulling(layout.rows, 4)
    blocks = launch.resident_blocks(FILE, "solve", **how)
    launch.run_together(
        FILE, "solve", max(32 * layout.tasks, 1),
        *layout.shape, hot, layout.places, state.keys, count, first_keys, len(first_keys),
        state.degree, np.float64(damping), np.float64(enough), state.shares, state.rest, along,
        following, product, extra, cupy.empty(layout.pieces), cupy.empty((2, blocks, 2)), **how,
    )  # fmt: skip
    ranks = cupy.empty(n)
    launch.run(
        FILE, "rank_rows", layout.rows,
        layout.vertex, layout.rows, n, rows.present, state.degree, state.shares, ranks,
    )  # fmt: skip
    return ranks / ranks.sum() if n else ranks
