"""Setting up a search on the CPU: roots, tasks, and a workspace for every thread."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.pieces import THREADS

from . import compact_cpu
from .budget import Prices
from .compact_cpu import WORD
from .interrupt import stoppable
from .paper import truncated_cpu
from .paper.truncated import WIDTH, truncated
from .progress import watched
from .tasks_cpu import STOP

if TYPE_CHECKING:
    from .anchored import Anchored
    from .gbc import Switches

Array = npt.NDArray[Any]

PAIRS, ROOTS = 32, 4  # tasks taken at once, if few
SMALL_WORK = 512  # pairs below which one thread is used
MOST_PAIRS, RUNS = 1 << 14, 64  # pairs at most; runs that a thread takes
# Bytes of a part: its rows and their starts both ways, the table of one thread, numbers by root and
# by vertex while they are made; of truncated rows also these, and what makes them.
VERTEX, EDGE, OTHER, WORDS = 80, 8, 8, 48
FIXED = 1 << 14


def search(
    graph: Anchored,
    later: Array,
    depth: int,
    least: int,
    bins: int,
    switches: Switches,
    memory_limit: int | None,
) -> Array:
    """The histogram of `gbc.histogram`, over roots with later[u] candidates; a root with none is
    not looked at. Within memory_limit bytes, the graph's among them, if these are what `prices`
    asks for."""
    roots = np.flatnonzero(later >= depth - 1)
    starts = np.concatenate(([0], np.cumsum(later[roots], dtype=np.int64)))
    threads = THREADS if starts[-1] >= SMALL_WORK else 1
    if memory_limit is not None:
        cells = int((later.astype(np.int64) * -(-np.diff(graph.indptr) // WORD)).max(initial=0))
        spare = memory_limit - prices(depth, bins, switches).least(
            graph.num_anchors, len(graph.indices), len(graph.back_indptr) - 1,
            int(later.max(initial=0)), cells,
        )  # fmt: skip
        space = _workspace(switches).bytes_of(*_sizes(graph, later, depth, bins, switches))
        threads = max(1, min(threads, 1 + spare // space))
    kernel, calls = _calls(graph, later, roots, starts, depth, least, bins, switches, threads)

    def stop() -> None:
        for queue, *_ in calls:
            queue[STOP] = 1

    # Where tasks are dealt out beforehand, the first worker's stand for all.
    with watched(calls[0][0], int(calls[0][0][1]), stop):
        stoppable(kernel, calls, stop)
    return sum((call[-1] for call in calls), np.zeros(bins, np.uint64))


def _queue(first: int, last: int) -> Array:
    """Of the tasks from `first` to `last` - 1, as in `_tasks_cpu`."""
    return np.array([first, last, 0])


def prices(depth: int, bins: int, switches: Switches) -> Prices:
    """What a part costs that one thread searches."""
    levels = _levels(depth, switches)
    if switches.rows == "compact":
        return Prices(8 * bins + 24 * levels + FIXED, VERTEX, EDGE, OTHER, 12, 8 * levels)
    words = (8 + 8 * levels) * bins
    return Prices(words + 24 * levels + FIXED, VERTEX, EDGE + WORDS, OTHER, 8 + 4 * levels, 0)


def _workspace(switches: Switches) -> Any:
    return compact_cpu.Workspace if switches.rows == "compact" else truncated_cpu.Workspace


def _sizes(
    graph: Anchored, later: Array, depth: int, bins: int, switches: Switches
) -> tuple[int, int, int, int, int]:
    """The arguments of the workspace."""
    of_root = later.astype(np.int64)
    columns, n = int(of_root.max(initial=0)) + 1, graph.num_anchors
    levels = _levels(depth, switches)
    if switches.rows != "compact":
        return n, levels, columns, bins, bins
    words = -(-np.diff(graph.indptr) // WORD)
    return n, levels, columns, int((of_root * words).max(initial=0)) + 1, bins


def _levels(depth: int, switches: Switches) -> int:
    return max(1, depth - 2) if switches.rows == "compact" else max(2, depth - 1)


def _calls(
    graph: Anchored,
    later: Array,
    roots: Array,
    starts: Array,
    depth: int,
    least: int,
    bins: int,
    switches: Switches,
    threads: int,
) -> tuple[Any, list[tuple[Any, ...]]]:
    """The kernel, and its arguments for each thread; the last is the histogram."""
    tasks = int(starts[-1]) if switches.edges else len(roots)
    # Whoever takes pairs of a root makes its bitmaps: runs of them should be long.
    pairs = min(MOST_PAIRS, max(PAIRS, tasks // (threads * RUNS)))
    grain = pairs if switches.edges else ROOTS
    if switches.stealing:
        queues = [_queue(0, tasks)] * threads
    else:
        cuts = np.linspace(0, tasks, threads + 1).astype(np.int64).tolist()
        queues = [_queue(*cut) for cut in pairwise(cuts)]
    rows = (graph.indptr, graph.indices, graph.back_indptr, graph.back)
    given = (grain, *rows, roots, starts, switches.edges, depth, least)
    sizes = _sizes(graph, later, depth, bins, switches)
    spaces = [_workspace(switches).of(*sizes) for _ in range(threads)]
    if switches.rows == "compact":
        kernel, form = compact_cpu.search, (switches.common, switches.hybrid)
    else:
        words = truncated(graph.indptr, graph.indices, WIDTH if switches.rows == "htb" else 1)
        kernel = truncated_cpu.search
        form = (switches.common, switches.hybrid, words.indptr, words.words, words.bits)  # type: ignore[assignment]
    return kernel, [(q, *given, *form, *space) for q, space in zip(queues, spaces, strict=True)]
