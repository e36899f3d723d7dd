"""A large batch's way from a caller's arrays to pinned memory: by a few threads that never wait for
the interpreter's lock (lpma/cpu/staging_kernels.py).

A device copies at full speed from pinned memory only, and one thread fills that at a fraction of
what the bus carries. So helpers are woken for a batch and take pieces of its columns, in the order
in which kernels need them, until none is left. The thread of the batch takes pieces too, but only
until the column that it waits for is whole. It sends that, launches what needs it, and comes back.

The kernels are Numba's. The first batch that is large enough has them loaded or compiled
(ready.py); until they are, batches go the slow way.

Measured on an H100's host: a helper is woken for every HELPED bytes beyond the first; from
MOST_THREADS on memory is hardly faster. A batch of one launch needs none (`put_here`).
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from ctypes import c_char, c_int64
from typing import Any

import numpy as np

from ....arguments.convert import BAD_VERTEX, BAD_WEIGHT, MAX_VERTEX, MAX_WEIGHT
from ....arrays import DATA, address
from ....cpu import threads
from ....cpu.ready import Behind
from ....cpu.staging_words import BAD, BYTES, HEAD, NARROW, SAME32, SAME64, SLOT, WORDS
from ....errors import BatchError
from ...values import Array

PIECE_ROWS = 1 << 14
HELPED = 1 << 19
MOST_THREADS = 6  # the batch's own among them
SLOTS = 16  # batches at once that helpers know of

LINE = 64  # bytes of a line of the caches (lpma/cpu/instructions.py, which needs Numba)
ALL32, MAX_SIGNED, ALL_BUT_SIGN = (1 << 32) - 1, (1 << 31) - 1, (1 << 63) - 1
MAX_WEIGHT_32 = int(np.float32(MAX_WEIGHT).view(np.uint32))
MAX_WEIGHT_64 = int(np.float64(MAX_WEIGHT).view(np.uint64))
MODULE = "lpma.cpu.staging_kernels"

yield_processor = os.sched_yield  # a sleep of no time can cost a hundred times as much


def width(name: str, column: Array) -> int:
    """Bytes of an entry of the column `name` of a batch where kernels read it."""
    return 4 if name in ("src", "dst") else int(column.dtype.itemsize)


def is_worth(size: int) -> bool:
    """Whether a batch of so many bytes, whose rows are known to be good, is staged by threads."""
    return size >= 2 * HELPED and threads.THREADS > 1 and compiled.is_ready()


# -- helpers ------------------------------------------------------------------------------------


class Crew:
    """The board that jobs are on, and helpers. kernels: lpma/cpu/staging_kernels.py, once read."""

    def __init__(self, kernels: Any) -> None:
        self.kernels = kernels
        self.board = np.zeros(SLOTS * SLOT + 1, np.int64)
        self.free = list(range(0, SLOTS * SLOT, SLOT))
        self._memory = np.zeros(2 * LINE, np.uint8)
        self.semaphore = -(-address(self._memory) // LINE) * LINE
        kernels.prepare(self.semaphore)
        self._helpers: list[threading.Thread] = []
        self._starting = threading.Lock()

    def call(self, at: int, helpers: int) -> None:
        """Let helpers take pieces of the job at `at`."""
        if helpers > len(self._helpers):
            with self._starting:
                while helpers > len(self._helpers):
                    # It never returns, and keeps the crew alive.
                    helper = threading.Thread(target=self._serve, daemon=True, name="lpma-staging")
                    helper.start()
                    self._helpers.append(helper)
        self.kernels.begin(self.board, at, self.semaphore, helpers)

    def _serve(self) -> None:
        self.kernels.serve(self.board, self.semaphore)


class Staging:
    """Columns on their way to pinned memory. Until `end`, threads read the caller's arrays and
    write to `landing`, so both are kept alive; dropping this object waits for `end`."""

    def __init__(
        self, names: Sequence[str], columns: Sequence[Array], into: Sequence[int], landing: Any
    ) -> None:
        """into: where each column goes in `landing`, multiples of LINE. REQUIRES: the kernels are
        `compiled`; columns are contiguous and of a batch's types, or such as admission.py lets
        pass."""
        assert not any(to % LINE for to in into)
        crew, rows = _crew_of_this_process(), len(columns[0])
        per_column = -(-rows // PIECE_ROWS)
        pieces = per_column * len(columns)
        words = _job([pieces, per_column, rows, PIECE_ROWS, 0, 0, 0], names, columns, into)
        size = rows * sum(map(width, names, columns))
        self._names, self._stage = names, crew.kernels.stage
        self._board, self._at = crew.board, -1
        helpers = min(size // HELPED, MOST_THREADS, threads.THREADS, pieces) - 1
        with suppress(IndexError):
            if helpers > 0:
                self._at = crew.free.pop()
        if self._at < 0:  # a board of its own, which nobody else looks at
            self._board, self._at, helpers = np.zeros(SLOT + 1, np.int64), 0, 0
        self._board[self._at + 1 : self._at + 1 + len(words)] = words
        kept = columns, landing
        self.end = weakref.finalize(self, _end, crew, self._board, self._at, len(columns), kept)
        if helpers:
            crew.call(self._at, helpers)
        else:
            self._board[self._at] = pieces

    def finish(self, number: int) -> None:
        """Return once this column is whole."""
        while not self._stage(self._board, self._at, number):
            yield_processor()

    def refuse_bad(self, number: int) -> None:
        """Raise BatchError if a row of this column is bad. REQUIRES: it is whole."""
        if self._board[self._at + HEAD + WORDS * number + BAD]:
            raise _complaint(self._names[number])


def _complaint(name: str) -> BatchError:
    return BatchError(BAD_WEIGHT if name == "weight" else f"{name}: {BAD_VERTEX}")


def put_here(
    names: Sequence[str], columns: Sequence[Array], into: Sequence[int], looks: bool
) -> None:
    """Copy the columns of a small batch at once, by this thread, which keeps the interpreter's
    lock. looks: raise BatchError if a row is bad. REQUIRES: `into` and columns as for Staging; and
    where the kernels are not there yet, all rows are known to be good."""
    if _kernels is None:
        for column, to in zip(columns, into, strict=True):
            memory = (c_char * column.nbytes).from_address(to)
            memoryview(memory).cast("B")[:] = column.data.cast("B")
        return
    job = np.array(_job([0, 0, 0, len(columns[0]), 0, 0, 0, 0], names, columns, into), np.int64)
    if _kernels.stage_alone(job, len(columns)) and looks:
        bad = job[HEAD + BAD :: WORDS].tolist().index(1)
        raise _complaint(names[bad])


def _job(
    head: list[int], names: Sequence[str], columns: Sequence[Array], into: Sequence[int]
) -> list[int]:
    """The words of a job: `head`, and those of each column, which say how it is copied."""
    for name, column, to in zip(names, columns, into, strict=True):
        at = c_int64.from_address(id(column) + DATA).value  # as `arrays.address`
        stride, size = column.strides[0], column.dtype.itemsize
        if name == "weight":
            if size == 4:
                how = SAME32, at, stride, to, MAX_SIGNED, MAX_WEIGHT_32
            else:
                how = SAME64, at, stride, to, ALL_BUT_SIGN, MAX_WEIGHT_64
        elif name in ("src", "dst"):
            if size == 8:
                how = NARROW, at, stride, to, 0, MAX_VERTEX
            else:
                most = MAX_VERTEX if column.dtype.kind == "u" else MAX_SIGNED
                how = SAME32, at, stride, to, ALL32, most
        elif stride == size:
            how = BYTES, at, stride, to, 0, 0
        else:
            how = SAME64, at, stride, to, 0, 0  # times
        head += *how, 0, 0
    return head


def _end(crew: Crew, board: Array, at: int, columns: int, kept: Any) -> None:
    """Return once nobody is at work on a job. `kept`: what it needs."""
    for number in range(columns):
        while not crew.kernels.stage(board, at, number):
            yield_processor()
    if board is crew.board:
        crew.free.append(at)


# -- the kernels --------------------------------------------------------------------------------

_kernels: Any = None  # the module of that name, once it is read
_crew: Crew | None = None
_turn = threading.Lock()


def _take_kernels() -> None:
    global _kernels
    from ....cpu import staging_kernels

    _kernels = staging_kernels


compiled = Behind([MODULE], _take_kernels)


def _crew_of_this_process() -> Crew:
    global _crew
    if _crew is None:
        with _turn:
            if _crew is None:
                _crew = Crew(_kernels)
    return _crew


def _forget_threads() -> None:
    """A forked child has none of its parent's threads."""
    global _crew, _turn
    _crew, _turn = None, threading.Lock()


os.register_at_fork(after_in_child=_forget_threads)
