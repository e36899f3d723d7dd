"""Columns on their way to pinned memory, without a device (lpma/backend/cuda/upload/staging.py):
what threads copy, narrow and refuse, for every type, every layout, and lengths around the borders
of pieces."""

from __future__ import annotations

import subprocess
import sys
import threading
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpma import BatchError
from lpma.arguments.convert import MAX_VERTEX, MAX_WEIGHT
from lpma.backend.cuda.upload import staging
from lpma.cpu import instructions, threads
from lpma.cpu.staging_kernels import stage
from lpma.cpu.staging_words import DONE, HEAD, LEFT, PER_COLUMN, PIECE, PIECES, ROWS, SLOT
from tests.support.waiting import HANGS_S

Array = npt.NDArray[Any]

PIECE_ROWS = 16  # of 4 bytes: a line
IDS = ("uint32", "int32", "uint64", "int64")
WEIGHTS = ("float32", "float64")
NAMES = ("src", "dst", "weight", "time")
EDGES = (0, 1, MAX_VERTEX, MAX_VERTEX + 1, 2**31 - 1, 2**31, 2**32, 2**33 + 5, 2**63 - 1, 2**64 - 1,
         -1, -(2**31), -(2**32), -(2**63))  # fmt: skip
SCALES = (0.0, -0.0, 1.5, -MAX_WEIGHT, MAX_WEIGHT, 1.1e30, -1e31, np.inf, -np.inf, np.nan, 1e-45)


@pytest.fixture(scope="module", autouse=True)
def kernel() -> None:
    staging.compiled.get_ready()
    assert staging.compiled.is_ready()
    assert staging.LINE == instructions.LINE


def with_layout(column: Array, layout: str) -> Array:
    """The same values, laid out otherwise."""
    if layout == "gaps":
        wide = np.zeros((len(column), 3), column.dtype)
        wide[:, 1] = column
        return wide[:, 1]
    if layout == "backwards":
        return np.ascontiguousarray(column[::-1])[::-1]
    if layout == "read-only":
        column = column.copy()
        column.flags.writeable = False
    return column


@st.composite
def columns(draw: st.DrawFn) -> list[Array]:
    """src, dst, weight, time of one length, good and bad, in any layout."""
    n = draw(st.integers(1, 4 * PIECE_ROWS + 1))
    made = []
    for name in NAMES:
        dtype = np.dtype(
            draw(st.sampled_from(IDS if name in ("src", "dst") else WEIGHTS))
            if name != "time"
            else "int64"
        )
        if name == "weight":
            column = np.ones(n, dtype)
            for row in draw(st.lists(st.integers(0, n - 1), max_size=3)):
                with np.errstate(over="ignore"):
                    column[row] = draw(st.sampled_from(SCALES))
        else:
            bounds = np.iinfo(dtype)
            inside = [v for v in EDGES if bounds.min <= v <= bounds.max]
            column = np.arange(n, dtype=dtype)
            for row in draw(st.lists(st.integers(0, n - 1), max_size=3)):
                column[row] = draw(st.sampled_from(inside))
        layout = draw(st.sampled_from(["plain", "gaps", "backwards", "read-only"]))
        made.append(with_layout(column, layout))
    return made


def is_bad(name: str, column: Array) -> bool:
    """The oracle: value by value."""
    if name == "time":
        return False
    if name == "weight":
        most = column.dtype.type(MAX_WEIGHT)
        return not all(-most <= value <= most for value in column)
    return not all(0 <= value <= MAX_VERTEX for value in column.tolist())


def room_for(given: list[Array]) -> list[Array]:
    types = ("uint32", "uint32", given[2].dtype, "int64")
    return [aligned(len(given[0]), dtype) for dtype in types]


def aligned(n: int, dtype: npt.DTypeLike) -> Array:
    """Zeros that begin at a multiple of a cache's line, as pinned memory does."""
    memory = np.zeros((n + staging.LINE) * 8, np.uint8)
    at = -memory.ctypes.data % staging.LINE
    return memory[at : at + n * np.dtype(dtype).itemsize].view(dtype)


def begun(given: list[Array], into: list[Array]) -> staging.Staging:
    return staging.Staging(NAMES, given, [array.ctypes.data for array in into], into)


@given(given=columns(), helpers=st.integers(0, 3), order=st.permutations(range(4)))
def test_what_threads_copy_and_refuse(given: list[Array], helpers: int, order: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staging, "PIECE_ROWS", PIECE_ROWS)
        patch.setattr(staging, "HELPED", 1)
        patch.setattr(staging, "MOST_THREADS", 1 + helpers)
        patch.setattr(threads, "THREADS", 4)
        into = room_for(given)
        under_way = begun(given, into)
        for number in order:
            name, column = NAMES[number], given[number]
            under_way.finish(number)
            if is_bad(name, column):
                with pytest.raises(BatchError, match=name):
                    under_way.refuse_bad(number)
            else:
                under_way.refuse_bad(number)
                np.testing.assert_array_equal(into[number], column)
        under_way.end()


@pytest.mark.parametrize(
    "bytes_a_helper, expected", [(1 << 30, 0), (1 << 10, staging.MOST_THREADS - 1)]
)
def test_helpers_are_called_for_large_batches_only(
    monkeypatch: pytest.MonkeyPatch, bytes_a_helper: int, expected: int
) -> None:
    called = []
    monkeypatch.setattr(staging, "HELPED", bytes_a_helper)
    monkeypatch.setattr(threads, "THREADS", 64)
    call = staging.Crew.call

    def noted(self: staging.Crew, at: int, helpers: int) -> None:
        called.append(helpers)
        call(self, at, helpers)

    monkeypatch.setattr(staging.Crew, "call", noted)
    n = 5 * staging.PIECE_ROWS
    given = [np.arange(n), np.arange(n), np.ones(n), np.arange(n)]
    into = room_for(given)
    begun(given, into).end()
    assert called == [expected] * (expected > 0)
    for mine, theirs in zip(into, given, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_column_that_others_are_at_work_on_is_waited_for() -> None:
    """The call without the interpreter's lock comes back, so that nobody waits for that lock."""
    board = np.zeros(SLOT + 1, np.int64)
    board[[LEFT, PIECES, PER_COLUMN, ROWS, PIECE]] = 0, 2, 2, 2, 1  # both pieces are taken
    board[HEAD + DONE] = 1
    assert not stage(board, 0, 0)
    assert board[LEFT] <= 0
    board[HEAD + DONE] = 2
    assert stage(board, 0, 0)


def large() -> list[Array]:
    n = 1 << 18
    return [np.arange(n), np.arange(n), np.ones(n), np.arange(n)]


def test_nobody_keeps_what_was_copied() -> None:
    given = large()
    into = room_for(given)
    under_way = begun(given, into)
    gone = [weakref.ref(column) for column in (*given, *into)]
    under_way.finish(3)
    under_way.end()
    under_way.end()
    del given, into
    assert all(ref() is None for ref in gone)


def test_what_is_dropped_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory is given back when no helper writes to it any more."""
    monkeypatch.setattr(threads, "THREADS", 4)
    given = large()
    into = room_for(given)
    begun(given, into)
    for mine, theirs in zip(into, given, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert len(staging._crew_of_this_process().free) == staging.SLOTS


def test_more_batches_than_the_board_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "THREADS", 4)
    jobs = []
    for _ in range(staging.SLOTS + 2):
        given = large()
        jobs.append((given, room_for(given)))
    under_way = [begun(*job) for job in jobs]
    for one in reversed(under_way):
        one.end()
    for given, into in jobs:
        for mine, theirs in zip(into, given, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_many_threads_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with jobs of its own, which follow one another in the same places of the board; helpers
    serve all."""
    monkeypatch.setattr(staging, "PIECE_ROWS", PIECE_ROWS)
    monkeypatch.setattr(staging, "HELPED", 1)
    monkeypatch.setattr(threads, "THREADS", 4)
    wrong: list[str] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for turn in range(300):
            n = int(rng.integers(1, 20 * PIECE_ROWS))
            src, dst = rng.integers(0, 2**31, (2, n))
            given: list[Array] = [src, dst.astype(np.int32), rng.random(n), rng.integers(0, 9, n)]
            into = room_for(given)
            begun(given, into).end()
            for mine, theirs in zip(into, given, strict=True):
                if not np.array_equal(mine, theirs):
                    wrong.append(f"seed {seed}, turn {turn}")

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


SCRIPT = """
import os, sys, threading
import numpy as np
from lpma.backend.cuda.upload import staging
from lpma.cpu import threads
threads.THREADS = 4
staging.compiled.get_ready()

def copied():
    given = [np.arange(1 << 18), np.arange(1 << 18)]
    into = [np.zeros(1 << 18, np.uint32).view(np.uint8) for _ in given]
    memory = np.zeros(1 << 22, np.uint8)
    first = -memory.ctypes.data % 64 + memory.ctypes.data
    under_way = staging.Staging(("src", "dst"), given, (first, first + (1 << 20)), memory)
    under_way.finish(1)
    return under_way, bool((memory[first - memory.ctypes.data:].view(np.uint8)[:4] == 0).all())

under_way, good = copied()
assert good
child = os.fork()
if not child:
    copied()[0].end()
    os._exit(len(staging._crew.free) != staging.SLOTS)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print("done")
"""


def test_a_process_that_forks_and_one_that_ends() -> None:
    """Helpers are a process's own, and keep none from ending, not even while a batch is begun."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=HANGS_S
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
