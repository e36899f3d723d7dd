"""Two-hop neighbours on the CPU: the other vertices of a layer that share neighbours with a vertex.

A vertex's are found by walking from it to each neighbour and back, counting in a table of one
number a vertex how often another is met. Threads take vertices from a shared counter, each with a
table of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.atomics import fetch_add
from lpma.cpu.jit import compiled
from lpma.cpu.pieces import SMALL, THREADS, together
from lpma.cpu.search import first_not_below

if TYPE_CHECKING:
    from .anchored import Anchored

Array = npt.NDArray[Any]

GRAIN = 64  # vertices taken at once
SWEPT = 8  # entries of a table that are zeroed in the time of a step


def neighbors(graph: Anchored, least: int) -> Array:
    """int32[n]: how many other vertices share at least `least` neighbours with each."""
    return _counted(graph, least, False)


def candidates(graph: Anchored, least: int) -> Array:
    """int32[n]: as `neighbors`, of those of larger rank."""
    return _counted(graph, least, True)


def _counted(graph: Anchored, least: int, later: bool) -> Array:
    n = graph.num_anchors
    found = np.zeros(n, np.int32)
    rows = (graph.indptr, graph.indices, graph.back_indptr, graph.back)
    spread(
        _count, n, len(graph.indices),
        lambda queue: (queue, *rows, least, later, np.zeros(n, np.int32), found),
    )  # fmt: skip
    return found


def spread(
    kernel: Any, tasks: int, entries: int, arguments: Callable[[Array], tuple[Any, ...]]
) -> None:
    """Call `kernel(*arguments(queue))` in every thread, for work of `tasks` numbered pieces that
    the calls take from queue[0] up to queue[1]. A small piece of work is done in one thread."""
    queue = np.array([0, tasks], np.int64)
    threads = THREADS if entries >= SMALL // 8 else 1
    together(kernel, [arguments(queue) for _ in range(threads)])


@compiled
def after(row: Array, u: int) -> int:
    """The first place of a sorted row whose entry is above u."""
    return first_not_below(row, 0, len(row), u + 1)


@compiled
def _count(
    queue: Array,
    indptr: Array,
    indices: Array,
    back_indptr: Array,
    back: Array,
    least: int,
    later: bool,
    met: Array,
    found: Array,
) -> None:
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
            clear(u, steps, indptr, indices, back_indptr, back, met)
            if not later and indptr[u + 1] - indptr[u] >= least:
                count -= 1  # itself
            found[u] = count


@compiled
def meet(
    u: int,
    least: int,
    indptr: Array,
    indices: Array,
    back_indptr: Array,
    back: Array,
    met: Array,
    found: Array,
) -> tuple[int, int]:
    """Walk from u to all after it, and put those met `least` times into `found`, by rising rank:
    (how many these are, the steps of the walk). `met` is left for `clear`."""
    columns, steps = 0, 0
    for b in indices[indptr[u] : indptr[u + 1]]:
        row = back[back_indptr[b] : back_indptr[b + np.uint32(1)]]
        row = row[after(row, u) :]
        steps += len(row)
        for w in row:
            met[w] += 1
            if met[w] == least:
                found[columns] = w
                columns += 1
    found[:columns].sort()
    return columns, steps


@compiled
def clear(
    u: int,
    steps: int,
    indptr: Array,
    indices: Array,
    back_indptr: Array,
    back: Array,
    met: Array,
) -> None:
    """Zero the table after a walk of so many steps from u: all of it, or by the walk."""
    if steps > len(met) // SWEPT:
        met[:] = 0
        return
    for b in indices[indptr[u] : indptr[u + 1]]:
        for w in back[back_indptr[b] : back_indptr[b + np.uint32(1)]]:
            met[w] = 0


def renumbered(graph: Anchored, order: Array) -> Anchored:
    """The graph whose anchor of rank r is order[r]."""
    from .anchored import Anchored

    indptr = np.zeros(graph.num_anchors + 1, np.int64)
    np.cumsum(np.diff(graph.indptr)[order], out=indptr[1:])
    indices, back = np.empty_like(graph.indices), np.empty_like(graph.back)
    _renumber(graph.indptr, graph.indices, order, indptr, indices, graph.back_indptr, back)
    return Anchored(indptr, indices, graph.back_indptr, back)


@compiled
def _renumber(
    indptr: Array,
    indices: Array,
    order: Array,
    new_indptr: Array,
    new_indices: Array,
    back_indptr: Array,
    back: Array,
) -> None:
    place = back_indptr[:-1].copy()
    for rank in range(len(order)):
        u = order[rank]
        row = indices[indptr[u] : indptr[u + 1]]
        new_indices[new_indptr[rank] : new_indptr[rank + 1]] = row
        for b in row:
            back[place[b]] = rank
            place[b] += 1
