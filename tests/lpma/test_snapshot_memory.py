"""Snapshots' memory: kept for the next one, never shared by two that live."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import lpma
from lpma.backend.numba import snapshot_memory
from lpma.backend.numba.allocate import HUGE_PAGE_BYTES, LARGE_BYTES
from lpma.host import CAN_LEND_PAGES

needs_pages = pytest.mark.skipif(not CAN_LEND_PAGES, reason="no MADV_FREE on this system")
N = 1 << 20


@pytest.fixture(autouse=True)
def no_spare() -> Iterator[None]:
    gc.collect()
    snapshot_memory._spare.clear()
    yield
    gc.collect()
    snapshot_memory._spare.clear()


def start(array: Any) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def test_what_is_asked_for() -> None:
    """Lengths, dtypes, room of their own; small ones too."""
    for n in (0, 1, 1000, N):
        arrays = snapshot_memory.arrays(
            (n + 1, np.int64), (n, np.uint32), (0, np.float32), (n, np.int64)
        )
        assert [len(a) for a in arrays] == [n + 1, n, 0, n]
        assert [a.dtype for a in arrays] == [np.int64, np.uint32, np.float32, np.int64]
        for number, array in enumerate(arrays):
            assert array.flags.writeable
            assert array.flags.aligned
            array.fill(number)
        for number, array in enumerate(arrays):
            assert (array == number).all()


@needs_pages
def test_the_memory_is_taken_again() -> None:
    (first,) = snapshot_memory.arrays((N, np.int64))
    where = start(first)
    assert where % HUGE_PAGE_BYTES == 0
    del first
    (smaller,) = snapshot_memory.arrays((N // 2, np.int64))
    assert start(smaller) == where
    del smaller
    (grown,) = snapshot_memory.arrays((N + N // 10, np.int64))  # there was an eighth more
    assert start(grown) == where


@needs_pages
def test_a_view_keeps_it() -> None:
    """The memory goes with the last view of any of the arrays, and not before."""
    first, second = snapshot_memory.arrays((N, np.int64), (N, np.int64))
    first[:], second[:] = 1, 2
    view = second[10:20].view(np.uint64)
    del first, second
    assert not snapshot_memory._spare
    (other,) = snapshot_memory.arrays((2 * N, np.int64))
    other[:] = 3
    assert (view == 2).all()
    del view
    assert len(snapshot_memory._spare) == 1


@needs_pages
def test_two_areas_at_most_are_kept() -> None:
    held = [snapshot_memory.arrays((N, np.int64)) for _ in range(4)]
    del held
    assert len(snapshot_memory._spare) == 2
    (large,) = snapshot_memory.arrays((4 * N, np.int64))  # does not fit in the spare, which goes
    large[:] = 0
    assert not snapshot_memory._spare
    small = snapshot_memory.arrays((LARGE_BYTES // 16, np.int64))
    del small
    assert not snapshot_memory._spare


def test_snapshots_of_many_threads_stay_apart() -> None:
    """Each thread's snapshots hold its own graph's edges, however they come and go."""
    wrong: list[int] = []

    def work(number: int) -> None:
        edges = np.arange(60_000 + 1000 * number, dtype=np.uint32)
        g = lpma.Graph(device="cpu")
        g.insert(edges, edges[::-1] + number)
        kept = g.snapshot()
        for _ in range(20):
            s = g.snapshot()
            if not all(np.array_equal(x.indices, edges[::-1] + number) for x in (s, kept)):
                wrong.append(number)
            kept = s

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
