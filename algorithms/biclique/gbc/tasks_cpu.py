"""What a thread searches next: tasks from a queue of its own, or shared with other threads.

A task is a pair of a root and its first column, numbered root by root, or a whole root. Pairs are
taken as runs of columns of one root, so that tables made for a root serve a whole run.
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
    """(root, first, end, task, last): the next run is the columns first … end - 1 of that root; −1
    if no task is left. Pass `task` and `last` to the next call; they begin as 0, 0.

    queue: by `queue_of`; a caller takes `grain` tasks at a time. starts: int64[roots+1], where each
    root's pairs begin among all."""
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
    """Whether threads must end now, whatever is left."""
    return fetch_add(queue, STOP, 0) != 0  # an atomic read, which cannot be hoisted out of a loop
