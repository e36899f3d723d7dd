"""Two-hop neighbours on the CPU: the other vertices of a layer that share neighbours with a vertex.

A walk goes from the vertex to each neighbour and back, and a table with one number per vertex of
the layer counts how often each is met. Threads take vertices from a shared counter, each with a
table of its own. REQUIRES: sorted rows.
"""

from __future__ import annotations

import numpy as np

from lpma.cpu.atomics import fetch_add
from lpma.cpu.jit import compiled
from lpma.cpu.pieces import SMALL
from lpma.cpu.search import first_not_below
from lpma.cpu.threads import THREADS, run_all

from ...arrays import Array
from ..bipartite import Bipartite

Rows = tuple[Array, Array, Array, Array]  # `Bipartite.rows`

GRAIN = 64  # vertices taken at once
SWEPT = 8  # entries of a table that can be zeroed in the time of one step of a walk


def num_neighbors(graph: Bipartite, least: int) -> Array:
    """int32[n]: for each anchor, how many others share at least `least` neighbours with it."""
    return _counted(graph, least, False)


def num_candidates(graph: Bipartite, least: int) -> Array:
    """int32[n]: as `num_neighbors`, but only others of larger rank count."""
    return _counted(graph, least, True)


def _counted(graph: Bipartite, least: int, later: bool) -> Array:
    n = graph.num_left
    found = np.zeros(n, np.int32)
    queue = np.array([0, n], np.int64)  # the first vertex not taken, and the end
    threads = THREADS if len(graph.left_indices) >= SMALL // 8 else 1
    calls = [
        (queue, graph.rows, least, later, np.zeros(n, np.int32), found) for _ in range(threads)
    ]
    run_all(_count, calls)
    return found


@compiled
def after(row: Array, u: int) -> int:
    """The first place of a sorted row whose entry is larger than u."""
    return first_not_below(row, 0, len(row), u + 1)


@compiled
def _count(queue: Array, rows: Rows, least: int, later: bool, met: Array, found: Array) -> None:
    indptr, indices, back_indptr, back = rows
    while True:
        first = fetch_add(queue, 0, GRAIN)
        if first >= queue[1]:
            return
        for u in range(first, min(first + GRAIN, queue[1])):
            count, steps = 0, 0
            for b in indices[indptr[u] : indptr[u + 1]]:
                row = back[back_indptr[b] : back_indptr[b + np.uint32(1)]]
                row = row[after(row, u) if later else 0 :]
                steps += len(row)
                for w in row:
                    met[w] += 1
                    count += met[w] == least
            clear(u, steps, rows, met)
            if not later and indptr[u + 1] - indptr[u] >= least:
                count -= 1  # itself
            found[u] = count


@compiled
def meet(
    u: int, least: int, rows: Rows, met: Array, found: Array, earlier: bool
) -> tuple[int, int]:
    """Walk from u to all anchors of larger rank, or with `earlier` of smaller rank, and write those
    met at least `least` times to `found`, by rising rank. Returns their number, and the steps of
    the walk: pass these to `clear`, which must follow."""
    indptr, indices, back_indptr, back = rows
    columns, steps = 0, 0
    for b in indices[indptr[u] : indptr[u + 1]]:
        row = back[back_indptr[b] : back_indptr[b + np.uint32(1)]]
        row = row[: after(row, u - 1)] if earlier else row[after(row, u) :]
        steps += len(row)
        for w in row:
            met[w] += 1
            if met[w] == least:
                found[columns] = w
                columns += 1
    found[:columns].sort()
    return columns, steps


@compiled
def clear(u: int, steps: int, rows: Rows, met: Array) -> None:
    """Zero the table after a walk of `steps` from u: all of it if that was long, else by walking
    again."""
    if steps > len(met) // SWEPT:
        met[:] = 0
        return
    indptr, indices, back_indptr, back = rows
    for b in indices[indptr[u] : indptr[u + 1]]:
        for w in back[back_indptr[b] : back_indptr[b + np.uint32(1)]]:
            met[w] = 0
