"""Arrays on huge pages, if the system has them.

A batch touches segments all over the store, and each column of a segment lies on a page of its
own. On pages of 4 KiB nearly every touch misses the processor's table of pages, which costs more
than the cache miss itself; on pages of 2 MiB the table covers the store. NumPy asks for huge
pages too, but hands out recycled memory whose pages were decided long before. So large arrays
are mapped afresh here, aligned, and unmapped when their last view goes.

The first touch of a page clears it. A batch that expands the store touches a segment here and
there in the new level: on huge pages it would clear the whole level at once, for many times the
batch's own cost. So a level appended by expansion asks for small pages.
"""

from __future__ import annotations

import mmap

import numpy as np
import numpy.typing as npt

from ...arrays import Array
from ...host import HAS_HUGE_PAGES, want_huge_pages

HUGE_PAGE_BYTES = 2 << 20
LARGE_BYTES = HUGE_PAGE_BYTES // 4  # from here an array has pages of its own


def empty(n: int, dtype: npt.DTypeLike, huge: bool = True) -> Array:
    """An uninitialized array of n entries, on huge pages or on none. Raises MemoryError."""
    dtype = np.dtype(dtype)
    size = n * dtype.itemsize
    if size < LARGE_BYTES or not HAS_HUGE_PAGES:
        return np.empty(n, dtype)
    area = mapped(size, huge)
    skip = first_huge_page(area)
    return np.frombuffer(area, np.uint8)[skip : skip + size].view(dtype)


def mapped(size: int, huge: bool = True) -> mmap.mmap:
    """A fresh area with room for `size` bytes from its first huge page on. Raises MemoryError."""
    room = (size // HUGE_PAGE_BYTES + 2) * HUGE_PAGE_BYTES
    try:
        # Private to this process: a shared mapping would get no huge pages.
        area = mmap.mmap(-1, room, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError) as error:
        raise MemoryError(f"cannot map {size:,} bytes") from error
    want_huge_pages(area, huge)
    return area


def first_huge_page(area: mmap.mmap) -> int:
    """Where the first page that can be a huge one begins, in bytes from the start."""
    start: int = np.frombuffer(area, np.uint8).__array_interface__["data"][0]
    return -start % HUGE_PAGE_BYTES


def zeros(n: int, dtype: npt.DTypeLike) -> Array:
    """An array of n zeros; pages never touched take no memory. Raises MemoryError."""
    dtype = np.dtype(dtype)
    if n * dtype.itemsize < LARGE_BYTES:
        return np.zeros(n, dtype)
    return empty(n, dtype)
