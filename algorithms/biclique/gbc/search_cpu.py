"""A search on the CPU: its tasks, and a workspace for every thread."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from lpma.cpu.threads import THREADS

from ...arrays import Array, starts_of
from ..progress import stoppable, watched
from . import compact_cpu
from .compact_cpu import WORD
from .tasks_cpu import END, STOP, queue_of
from .types import Anchored, GbcOptions, Prices, Search

__all__ = ["WORD", "prices", "search"]


PAIRS, ROOTS = 32, 4  # tasks that a thread takes at a time, at least
MOST_PAIRS, RUNS = 1 << 14, 64  # pairs at a time, at most; times that a thread takes some
SMALL_WORK = 512  # pairs below which one thread is used
# Bytes of a part: its rows and their starts in both directions, the table of one thread, and
# numbers for each root and vertex. Truncated rows take WORDS more per edge, while they are made.
VERTEX, EDGE, OTHER, WORDS = 80, 8, 8, 48
FIXED = 1 << 14

Sizes = tuple[int, int, int, int, int]  # of a workspace: the arguments of `Workspace.of`


def search(
    searched: Search,
    num_candidates: Array,
    bins: int,
    options: GbcOptions,
    memory_limit: int | None,
) -> Array:
    """uint64[bins]: the histogram of a search, as by `gbc.histogram`.

    num_candidates: int32[n], 0 for a vertex that is not a root. memory_limit: bytes within which
    the search stays, its graph included. REQUIRES: memory_limit is at least what `prices` gives."""
    graph, depth = searched.graph, searched.depth
    roots = np.flatnonzero(num_candidates >= depth - 1)
    starts = starts_of(num_candidates[roots])
    sizes = _sizes(graph, num_candidates, depth, bins, options)
    threads = THREADS if starts[-1] >= SMALL_WORK else 1
    if memory_limit is not None:
        words = -(-np.diff(graph.indptr) // WORD)
        spare = memory_limit - prices(depth, bins, options).least(
            graph.num_anchors, len(graph.indices), len(graph.back_indptr) - 1,
            int(num_candidates.max(initial=0)),
            int((num_candidates.astype(np.int64) * words).max(initial=0)),
        )  # fmt: skip
        threads = max(1, min(threads, 1 + spare // _program(options).Workspace.bytes_of(*sizes)))
    kernel, calls = _calls(searched, roots, starts, sizes, options, threads)

    def stop() -> None:
        for queue, *_ in calls:
            queue[STOP] = 1

    # If threads have fixed shares of the tasks, the first one's progress stands for all.
    with watched(calls[0][0], int(calls[0][0][END]), stop):
        stoppable(kernel, calls, stop)
    return sum((call[-1].histogram for call in calls), np.zeros(bins, np.uint64))


def prices(depth: int, bins: int, options: GbcOptions) -> Prices:
    """What it costs to search a part with one thread."""
    levels = _levels(depth, options)
    if options.rows == "compact":
        return Prices(8 * bins + 24 * levels + FIXED, VERTEX, EDGE, OTHER, 12, 8 * levels)
    words = (8 + 8 * levels) * bins
    return Prices(words + 24 * levels + FIXED, VERTEX, EDGE + WORDS, OTHER, 8 + 4 * levels, 0)


def _program(options: GbcOptions) -> Any:
    """The module that searches such rows, ours or the paper's."""
    if options.rows == "compact":
        return compact_cpu
    from ..paper import truncated_cpu

    return truncated_cpu


def _sizes(
    graph: Anchored, num_candidates: Array, depth: int, bins: int, options: GbcOptions
) -> Sizes:
    of_root = num_candidates.astype(np.int64)
    words = bins
    if options.rows == "compact":
        words = int((of_root * -(-np.diff(graph.indptr) // WORD)).max(initial=0)) + 1
    columns = int(of_root.max(initial=0)) + 1
    return graph.num_anchors, _levels(depth, options), columns, words, bins


def _levels(depth: int, options: GbcOptions) -> int:
    return max(1, depth - 2) if options.rows == "compact" else max(2, depth - 1)


def _calls(
    searched: Search, roots: Array, starts: Array, sizes: Sizes, options: GbcOptions, threads: int
) -> tuple[Callable[..., Any], list[tuple[Any, ...]]]:
    """The kernel, and its arguments for each thread: first a queue, last a workspace."""
    graph, program = searched.graph, _program(options)
    tasks = int(starts[-1]) if options.edges else len(roots)
    # A thread makes the bitmaps of each root that it takes pairs of, so it should take long runs.
    pairs = min(MOST_PAIRS, max(PAIRS, tasks // (threads * RUNS)))
    grain = pairs if options.edges else ROOTS
    if options.stealing:
        queues = [queue_of(0, tasks)] * threads
    else:
        cuts = np.linspace(0, tasks, threads + 1).astype(np.int64).tolist()
        queues = [queue_of(*cut) for cut in pairwise(cuts)]
    given = (grain, graph.rows, roots, starts, options.edges, searched.depth, searched.least)
    spaces = [program.Workspace.of(*sizes) for _ in range(threads)]
    form: tuple[Any, ...] = (options.common, options.hybrid)
    if options.rows != "compact":
        words = program.truncated_rows(graph.indptr, graph.indices, options.rows)
        form = (*form, tuple(words))
    calls = [(q, *given, *form, space) for q, space in zip(queues, spaces, strict=True)]
    return program.search, calls
