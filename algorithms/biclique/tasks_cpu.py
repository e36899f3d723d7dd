"""What a thread searches next: tasks of a queue that several threads share, or of its own.

Tasks are pairs of a root and its first column, numbered root by root, or whole roots. Pairs are
handed out as runs of columns of one root, so that whoever fills a root's tables uses them for the
whole run.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from lpma.cpu.atomics import fetch_add
from lpma.cpu.jit import compiled

from .two_hop_cpu import after

Array = npt.NDArray[Any]

STOP = 2  # a place of the queue


@compiled
def next_run(
    task: int, last: int, queue: Array, grain: int, starts: Array, by_edges: bool
) -> tuple[int, int, int, int, int]:
    """A root's number, or -1 if nothing is left, the first of its columns that are the caller's and
    the first that is not; and what to call this with next, 0 and 0 at first, as `task` and `last`.

    queue: int64[3]: the first task that nobody took, of which a caller takes `grain` at a time, the
    end of all, and whether to stop. starts: int64[roots+1], where each root's pairs begin among
    all, a pair a column."""
    if task >= last:
        task = fetch_add(queue, 0, grain)
        last = min(task + grain, queue[1])
    if task >= last or is_stopped(queue):
        return -1, 0, 0, 0, 0
    if not by_edges:
        return task, 0, starts[task + 1] - starts[task], task + 1, last
    number = after(starts, task) - 1
    end = min(starts[number + 1], last)
    return number, task - starts[number], end - starts[number], end, last


@compiled
def is_stopped(queue: Array) -> bool:
    """Whether those who count are to end, whatever is left."""
    return fetch_add(queue, STOP, 0) != 0  # read anew each time
