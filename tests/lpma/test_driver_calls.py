"""Calls of CUDA's driver, without one (lpma/cuda/library.py, lpma/cpu/driver_calls.py): compiled
ones do what those of ctypes do, and keep the interpreter's lock unless they may take long."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from lpma.cpu import driver_calls
from lpma.cuda.library import Calls, by_ctypes, by_numba
from tests.support.counting import counted, counting
from tests.support.driver_stand_in import Library
from tests.support.waiting import HANGS_S

BIG = (1 << 62) + 5  # an address
NAP_US = 20_000
LONG_S, USUAL_S = 0.3, 0.005  # whoever lets go of the lock waits so long for it
HANGS_NS = int(HANGS_S * 1e9)


@pytest.fixture(params=[by_ctypes, by_numba])
def made(request: pytest.FixtureRequest) -> tuple[Library, Calls]:
    library = Library()
    return library, request.param(library)


def test_each_call_gives_its_function_what_it_was_given(made: tuple[Library, Calls]) -> None:
    library, calls = made
    for status in (0, 700):
        library.status, library.noted = status, []
        got = [
            calls.launch(BIG, 5, 256, 100, 7, BIG + 1),
            calls.launch_together(BIG, 5, 256, 100, 7, BIG + 1),
            calls.record(BIG, 7),
            calls.wait(7, BIG),
            calls.copy(BIG, BIG + 1, 1 << 33, 7),
            calls.fill(BIG, 3, 1 << 33, 7),
            calls.follow(7, 8, BIG),
        ]
        assert got == [status] * 7
        assert library.noted == [
            ("cuLaunchKernel", BIG, 5, 1, 1, 256, 1, 1, 100, 7, BIG + 1, None),
            ("cuLaunchCooperativeKernel", BIG, 5, 1, 1, 256, 1, 1, 100, 7, BIG + 1),
            ("cuEventRecord", BIG, 7),
            ("cuStreamWaitEvent", 7, BIG, 0),
            ("cuMemcpyAsync", BIG, BIG + 1, 1 << 33, 7),
            ("cuMemsetD8Async", BIG, 3, 1 << 33, 7),
            ("cuEventRecord", BIG, 8),
            *([("cuStreamWaitEvent", 7, BIG, 0)] if not status else []),
        ]


@pytest.mark.parametrize("what", ["stream_done", "event_done"])
def test_looks_until_a_stream_or_an_event_is_done(made: tuple[Library, Calls], what: str) -> None:
    library, calls = made
    library.query_status = 600
    assert getattr(calls, what)(BIG, 600, 1000) == 600
    assert library.queries
    name = "cuStreamQuery" if what == "stream_done" else "cuEventQuery"
    assert set(library.noted) == {(name, BIG)}
    library.queries = 0
    library.on_query = lambda number: setattr(library, "query_status", 0 if number == 3 else 600)
    assert getattr(calls, what)(BIG, 600, HANGS_NS) == 0
    assert library.queries == 3


@pytest.mark.parametrize("place", [0, 1])
def test_looks_at_two_words(made: tuple[Library, Calls], place: int) -> None:
    library, calls = made
    words = np.zeros(2, np.int64)
    at, or_at = (words.ctypes.data + 8 * i for i in range(2))
    assert not calls.look(at, or_at, 9, 7, 1000)

    def write(number: int) -> None:
        words[place] = 9 if number == 8 else 0

    library.queries, library.on_query = 0, write
    assert calls.look(at, or_at, 9, 7, HANGS_NS)
    assert library.queries == 8
    assert set(library.noted) == {("cuStreamQuery", 7)}


def test_the_lock_is_kept_but_where_it_may_take_long() -> None:
    """The function that is called sleeps: libc's usleep, whose argument is a number of
    microseconds."""
    libc, zero = ctypes.CDLL(None), np.zeros(1, np.int64)
    sleep, clock = (
        ctypes.cast(f, ctypes.c_void_p).value for f in (libc.usleep, libc.clock_gettime)
    )
    looked = sleep, clock, zero.ctypes.data, zero.ctypes.data, 1, NAP_US, 1000 * NAP_US // 2
    with counting() as other:
        once = sleep, clock, NAP_US, 1, 0
        assert counted(other, lambda: driver_calls.await_done(*once), LONG_S) == 0
        assert counted(other, lambda: driver_calls.look(*looked), LONG_S) == 0
        assert counted(other, lambda: driver_calls.look_apart(*looked), USUAL_S) > 0
