"""What a thread searches next: tasks of a queue that several threads share, or of its own.

Tasks are pairs of a root and its first column, numbered root by root, or whole roots. Pairs are
handed out as runs of columns of one root, so that whoever fills a root's tables uses them for the
whole run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numba
import numpy.typing as npt

from .._atomics import fetch_add
from ._two_hop_cpu import after

Array = npt.NDArray[Any]


@numba.njit(cache=True, nogil=True)
def runs(queue: Array, grain: int, starts: Array, by_edges: bool) -> Iterator[tuple[int, int, int]]:
    """Take tasks, `grain` at a time, from queue[0] up to queue[1]: (a root's number, the first of
    its columns that are the caller's, the first that is not).

    starts: int64[roots+1], where each root's pairs begin among all, a pair a column."""
    while True:
        task = fetch_add(queue, 0, grain)
        last = min(task + grain, queue[1])
        if task >= last:
            return
        while task < last:
            if by_edges:
                number = after(starts, task) - 1
                end = min(starts[number + 1], last)
                yield number, task - starts[number], end - starts[number]
                task = end
            else:
                yield task, 0, starts[task + 1] - starts[task]
                task += 1
