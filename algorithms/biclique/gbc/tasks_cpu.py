"""What a thread searches next: tasks from a queue, its own or shared with other threads.

A task is a pair of a root and its first column, numbered root by root, or a whole root. Pairs are
handed out as runs of columns of one root, so that a thread that fills a root's tables uses them for
a whole run.
"""

from __future__ import annotations

import numpy as np

from lpma.cpu.atomics import fetch_add
from lpma.cpu.jit import compiled

from ...arrays import Array
from .two_hop_cpu import after

NEXT, END, STOP = range(3)  # words of a queue: the first task not taken, the end, whether to stop


def queue_of(first: int, last: int) -> Array:
    """int64[3]: a queue of the tasks first … last - 1."""
    return np.array([first, last, 0], np.int64)


@compiled
def next_run(
    task: int, last: int, queue: Array, grain: int, starts: Array, by_edges: bool
) -> tuple[int, int, int, int, int]:
    """(root, first, end, task, last): the caller's next run is the columns first … end - 1 of the
    root with that number; the root is -1 if no task is left. `task` and `last` are to be passed to
    the next call; they are 0 and 0 at first.

    queue: as `queue_of` made it, from which a caller takes `grain` tasks at a time. starts:
    int64[roots+1], where each root's pairs begin among all, one for each column."""
    if task >= last:
        task = fetch_add(queue, NEXT, grain)
        last = min(task + grain, queue[END])
    if task >= last or is_stopped(queue):
        return -1, 0, 0, 0, 0
    if not by_edges:
        return task, 0, starts[task + 1] - starts[task], task + 1, last
    number = after(starts, task) - 1
    end = min(starts[number + 1], last)
    return number, task - starts[number], end - starts[number], end, last


@compiled
def is_stopped(queue: Array) -> bool:
    """Whether threads are to end now, whatever is left."""
    return fetch_add(queue, STOP, 0) != 0  # an atomic read, which cannot be hoisted out of a loop
