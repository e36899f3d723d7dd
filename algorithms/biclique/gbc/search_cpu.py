"""A search on the CPU: its tasks, and a workspace for every thread."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lpma.cpu.threads import THREADS

from ..interrupt import stoppable
from ..paper import truncated_cpu
from ..paper.truncated import WIDTH, truncated
from ..progress import watched
from . import compact_cpu
from .compact_cpu import WORD
from .tasks_cpu import END, STOP, queue_of
from .types import Anchored, Prices, Search, Switches

__all__ = ["WORD", "prices", "search"]

Array = npt.NDArray[Any]

PAIRS, ROOTS = 32, 4  # tasks that a thread takes at a time, at least
MOST_PAIRS, RUNS = 1 << 14, 64  # pairs at a time, at most; times that a thread takes some
SMALL_WORK = 512  # pairs below which one thread is used
# Bytes of a part: its rows and their starts in both directions, the table of one thread, and
# numbers for each root and vertex while these are made. Truncated rows take WORDS more for each
# edge, which includes what is held while they are made.
VERTEX, EDGE, OTHER, WORDS = 80, 8, 8, 48
FIXED = 1 << 14


class _Sizes(NamedTuple):
    """The sizes of a workspace; see the two Workspace classes."""

    n: int
    levels: int
    columns: int
    words: int
    bins: int


def search(
    searched: Search,
    num_candidates: Array,
    bins: int,
    switches: Switches,
    memory_limit: int | None,
) -> Array:
    """uint64[bins]: the histogram of a search, as by `gbc.histogram`.

    num_candidates: int32[n], of each root; a vertex with 0 is not a root. memory_limit: bytes
    within which the search stays, its graph included. REQUIRES: memory_limit is at least what
    `prices` gives."""
    graph, depth = searched.graph, searched.depth
    roots = np.flatnonzero(num_candidates >= depth - 1)
    starts = np.concatenate(([0], np.cumsum(num_candidates[roots], dtype=np.int64)))
    sizes = _sizes(graph, num_candidates, depth, bins, switches)
    threads = THREADS if starts[-1] >= SMALL_WORK else 1
    if memory_limit is not None:
        words = -(-np.diff(graph.indptr) // WORD)
        spare = memory_limit - prices(depth, bins, switches).least(
            graph.num_anchors, len(graph.indices), len(graph.back_indptr) - 1,
            int(num_candidates.max(initial=0)),
            int((num_candidates.astype(np.int64) * words).max(initial=0)),
        )  # fmt: skip
        threads = max(1, min(threads, 1 + spare // _workspace(switches).bytes_of(*sizes)))
    kernel, calls = _calls(searched, roots, starts, sizes, switches, threads)

    def stop() -> None:
        for queue, *_ in calls:
            queue[STOP] = 1

    # Where every thread has its own share of the tasks, the first thread stands for all.
    with watched(calls[0][0], int(calls[0][0][END]), stop):
        stoppable(kernel, calls, stop)
    return sum((call[-1] for call in calls), np.zeros(bins, np.uint64))


def prices(depth: int, bins: int, switches: Switches) -> Prices:
    """What it costs to search a part with one thread."""
    levels = _levels(depth, switches)
    if switches.rows == "compact":
        return Prices(8 * bins + 24 * levels + FIXED, VERTEX, EDGE, OTHER, 12, 8 * levels)
    words = (8 + 8 * levels) * bins
    return Prices(words + 24 * levels + FIXED, VERTEX, EDGE + WORDS, OTHER, 8 + 4 * levels, 0)


def _workspace(switches: Switches) -> Any:
    return compact_cpu.Workspace if switches.rows == "compact" else truncated_cpu.Workspace


def _sizes(
    graph: Anchored, num_candidates: Array, depth: int, bins: int, switches: Switches
) -> _Sizes:
    of_root = num_candidates.astype(np.int64)
    columns, n = int(of_root.max(initial=0)) + 1, graph.num_anchors
    levels = _levels(depth, switches)
    if switches.rows != "compact":
        return _Sizes(n, levels, columns, bins, bins)
    words = -(-np.diff(graph.indptr) // WORD)
    return _Sizes(n, levels, columns, int((of_root * words).max(initial=0)) + 1, bins)


def _levels(depth: int, switches: Switches) -> int:
    return max(1, depth - 2) if switches.rows == "compact" else max(2, depth - 1)


def _calls(
    searched: Search,
    roots: Array,
    starts: Array,
    sizes: _Sizes,
    switches: Switches,
    threads: int,
) -> tuple[Callable[..., Any], list[tuple[Any, ...]]]:
    """The kernel, and its arguments for each thread: first a queue, last a histogram."""
    graph = searched.graph
    tasks = int(starts[-1]) if switches.edges else len(roots)
    # A thread that takes pairs of a root makes its bitmaps, so it should take long runs of them.
    pairs = min(MOST_PAIRS, max(PAIRS, tasks // (threads * RUNS)))
    grain = pairs if switches.edges else ROOTS
    if switches.stealing:
        queues = [queue_of(0, tasks)] * threads
    else:
        cuts = np.linspace(0, tasks, threads + 1).astype(np.int64).tolist()
        queues = [queue_of(*cut) for cut in pairwise(cuts)]
    given = (grain, *graph.rows, roots, starts, switches.edges, searched.depth, searched.least)
    spaces = [_workspace(switches).of(*sizes) for _ in range(threads)]
    kernel: Callable[..., Any]
    form: tuple[Any, ...] = (switches.common, switches.hybrid)
    if switches.rows == "compact":
        kernel = compact_cpu.search
    else:
        words = truncated(graph.indptr, graph.indices, WIDTH if switches.rows == "htb" else 1)
        kernel = truncated_cpu.search
        form = (*form, words.indptr, words.words, words.bits)
    return kernel, [(q, *given, *form, *space) for q, space in zip(queues, spaces, strict=True)]
