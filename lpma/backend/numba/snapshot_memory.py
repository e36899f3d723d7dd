"""The memory of snapshots, kept for the next one.

A snapshot is as large as the graph, and fresh pages are expensive: the system clears each of them,
which takes twice as long as to copy into it. So the pages of the last snapshot that was freed stay
mapped, and the next one that fits takes them. Meanwhile they are marked as free: the system takes
them back when it needs memory. The few pages of a small graph are simply kept.

Requires a system with MADV_FREE (Linux, macOS); elsewhere every snapshot has fresh memory.
"""

from __future__ import annotations

import mmap
import weakref
from collections import deque
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...arrays import Array
from ...host import CAN_LEND_PAGES, lend_pages
from .allocate import HUGE_PAGE_BYTES, LARGE_BYTES, first_huge_page, mapped

LINE_BYTES = 64
HELD_BYTES = 8 << 20  # up to here an area keeps its pages: to mark them costs more than a copy


class _Area(NamedTuple):
    """Mapped pages, from the first that can be a huge one."""

    pages: mmap.mmap
    start: int  # the address
    size: int  # bytes


# For the rows and the columns of a snapshot. A deque's operations are atomic: an array may be freed
# by any thread.
_spare: deque[_Area] = deque(maxlen=2)


class _Room:
    """The owner of an area, alive as long as any array in it."""

    def __init__(self, area: _Area) -> None:
        self.__array_interface__ = {
            "version": 3, "shape": (area.size,), "typestr": "|u1", "data": (area.start, False),
        }  # fmt: skip
        weakref.finalize(self, _keep, area).atexit = False


def _keep(area: _Area) -> None:
    """Keep an area, whose arrays are freed, for the next snapshot."""
    with suppress(OSError, ValueError):
        if area.size > HELD_BYTES:
            lend_pages(area.pages)
        _spare.append(area)


def arrays(*wanted: tuple[int, npt.DTypeLike]) -> list[Array]:
    """Uninitialized arrays of (entries, dtype), which share one area: it is free for the next call
    when the last view of any of them goes. Raises MemoryError."""
    parts, start = [], 0
    for n, given in wanted:
        dtype = np.dtype(given)
        parts.append((start, start + n * dtype.itemsize, dtype))
        start += -(-n * dtype.itemsize // LINE_BYTES) * LINE_BYTES
    if not CAN_LEND_PAGES or start < LARGE_BYTES:
        return [np.empty(n, dtype) for n, dtype in wanted]
    whole = np.asarray(_room(start))
    return [whole[first:end].view(dtype) for first, end, dtype in parts]


def _room(size: int) -> _Room:
    """The smallest spare area that is large enough; else a new one, a little larger, because the
    next snapshot of a graph that grows will be. What is never touched takes no memory."""
    with suppress(ValueError):  # another thread was faster
        fit = [area for area in list(_spare) if area.size >= size]
        if fit:
            area = min(fit, key=lambda area: area.size)
            _spare.remove(area)
            return _Room(area)
        _spare.clear()
    pages = mapped(size + size // 8 + HUGE_PAGE_BYTES)
    skip = first_huge_page(pages)
    start = np.frombuffer(pages, np.uint8)[skip:].__array_interface__["data"][0]
    return _Room(_Area(pages, start, len(pages) - skip))
