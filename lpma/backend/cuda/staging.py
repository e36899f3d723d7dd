"""A large batch's way from a caller's arrays to pinned memory: by a few threads that never wait for
the interpreter's lock (lpma/cpu/staging_kernels.py).

A device copies at full speed from pinned memory only, and one thread fills that at a fraction of
what the bus carries. So helpers are woken for a batch and take pieces of its columns, in the order
in which kernels need them, until none is left. The thread of the batch takes pieces too, but only
until the column that it waits for is whole. It sends that, launches what needs it, and comes back.

Kernels of Numba's do the work, which programs on a device otherwise need not import. The first
batch that would be worth it has them read, or compiled, by a thread, and goes the slow way, as do
those after it until that thread is done. LPMA_COMPILE=ahead has it wait instead, and
`lpma.compile("cuda")` does the same beforehand.

Rules, measured on an H100's host: below LEAST rows the slow way is as fast. A helper is woken for
every HELPED bytes beyond the first; from MOST_THREADS on memory is hardly faster.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from time import sleep
from typing import Any, NamedTuple

import numpy as np

from ...arrays import address
from ...coerce import MAX_VERTEX, MAX_WEIGHT
from ...cpu import compiling, ready, threads
from ...cpu.staging_words import (
    BAD,
    BYTES,
    HEAD,
    NARROW,
    SAME32,
    SAME64,
    SLOT,
    WORDS,
)
from ...errors import BatchError

Array = Any

LEAST = 1 << 14
PIECE_ROWS = 1 << 14
HELPED = 1 << 19
MOST_THREADS = 6  # the batch's own among them
SLOTS = 16  # batches at once that helpers know of

LINE = 64  # bytes of a line of the caches (lpma/cpu/instructions.py, which needs Numba)
ALL32, MAX_SIGNED, ALL_BUT_SIGN = (1 << 32) - 1, (1 << 31) - 1, (1 << 63) - 1
MAX_WEIGHT_32 = int(np.float32(MAX_WEIGHT).view(np.uint32))
MAX_WEIGHT_64 = int(np.float64(MAX_WEIGHT).view(np.uint64))
MODULE = "lpma.cpu.staging_kernels"

# A sleep of no time can cost a hundred times as much.
yield_processor: Callable[[], None] = getattr(os, "sched_yield", partial(sleep, 0))


def width(name: str, column: Array) -> int:
    """Bytes of an entry of the column `name` of a batch where kernels read it."""
    return 4 if name in ("src", "dst") else int(column.dtype.itemsize)


def is_worth(size: int) -> bool:
    """Whether a batch of so many bytes, whose rows are known to be good, is staged by threads."""
    return size >= 2 * HELPED and threads.THREADS > 1 and is_ready()


# -- helpers ------------------------------------------------------------------------------------


class Kernels(NamedTuple):
    """See lpma/cpu/staging_kernels.py."""

    prepare: Callable[[int], None]
    begin: Callable[[Array, int, int, int], None]
    serve: Callable[[Array, int], None]
    stage: Callable[[Array, int, int], bool]


class Crew:
    """The board that jobs are on, and helpers. `kernels` are those that `get_ready` has read."""

    def __init__(self, kernels: Kernels) -> None:
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
                    # It never comes back, and keeps what it works with.
                    helper = threading.Thread(target=self._serve, daemon=True, name="lpma-staging")
                    helper.start()
                    self._helpers.append(helper)
        self.kernels.begin(self.board, at, self.semaphore, helpers)

    def _serve(self) -> None:
        self.kernels.serve(self.board, self.semaphore)


class Staging:
    """Columns on their way to pinned memory. Until `end` threads read the caller's arrays and write
    to `landing`; both are kept, and so is this, in effect: if it is dropped, that waits."""

    def __init__(
        self, names: Sequence[str], columns: Sequence[Array], into: Sequence[int], landing: Any
    ) -> None:
        """into: where each column goes in `landing`, multiples of LINE. REQUIRES: `is_ready`;
        columns are contiguous and of a batch's types, or such as as_given.py lets pass."""
        assert not any(to % LINE for to in into)
        crew = _crew_of_this_process()
        rows, size = len(columns[0]), 0
        per_column = -(-rows // PIECE_ROWS)
        pieces = per_column * len(columns)
        words = [pieces, per_column, rows, PIECE_ROWS, 0, 0, 0]
        for name, column, to in zip(names, columns, into, strict=True):
            words += (*_words(name, column, to), 0, 0)
            size += rows * width(name, column)
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
            if self._names[number] == "weight":
                raise BatchError(
                    f"weight: finite values of at most {MAX_WEIGHT:g} in size are taken"
                )
            raise BatchError(f"{self._names[number]}: vertex ids go from 0 to {MAX_VERTEX}")


def _end(crew: Crew, board: Array, at: int, columns: int, kept: Any) -> None:
    """Return once nobody is at work on a job. `kept`: what it needs."""
    for number in range(columns):
        while not crew.kernels.stage(board, at, number):
            yield_processor()
    if board is crew.board:
        crew.free.append(at)


def _words(name: str, column: Array, into: int) -> tuple[int, ...]:
    """How a column is copied: the first words of a column of a job."""
    at, stride, size = address(column), column.strides[0], column.dtype.itemsize
    if name == "weight":
        if size == 4:
            return SAME32, at, stride, into, MAX_SIGNED, MAX_WEIGHT_32
        return SAME64, at, stride, into, ALL_BUT_SIGN, MAX_WEIGHT_64
    if name in ("src", "dst"):
        if size == 8:
            return NARROW, at, stride, into, 0, MAX_VERTEX
        most = MAX_VERTEX if column.dtype.kind == "u" else MAX_SIGNED
        return SAME32, at, stride, into, ALL32, most
    if stride == size:
        return BYTES, at, stride, into, 0, 0
    return SAME64, at, stride, into, 0, 0  # times


# -- the kernels --------------------------------------------------------------------------------

_kernels: Kernels | None = None
_crew: Crew | None = None
_reader: threading.Thread | None = None
_turn = threading.Lock()


def is_ready() -> bool:
    """Whether the kernels can be called; if not, they are being read when this returns."""
    if _kernels is None and _reader is None:
        if os.environ.get("LPMA_COMPILE") == "ahead":
            get_ready()
        else:
            _read_behind()
    return _kernels is not None


def get_ready() -> None:
    """Wait until the kernels can be called."""
    reader = _reader
    if reader is not None:
        reader.join()
    if _kernels is None:
        _read()


def _read_behind() -> None:
    global _reader
    with _turn:
        if _reader is None:
            # No daemon: the interpreter must not end while a library is being loaded.
            _reader = threading.Thread(target=_read, name="lpma-ready")
            _reader.start()


def _read() -> None:
    global _kernels
    with suppress(compiling.CompileError, OSError):  # then they are compiled here
        compiling.compile_all(
            [ready.STORE], niceness=compiling.BEHIND, wanted=lambda entry: entry.module == MODULE
        )
    with ready.reading:
        from ...cpu.staging_kernels import begin, prepare, serve, stage

        kernels = Kernels(prepare, begin, serve, stage)
        crew = Crew(kernels)
        crew.board[-1] = 1
        serve(crew.board, crew.semaphore)
        begin(crew.board, 0, crew.semaphore, 0)
        stage(crew.board, 0, 0)
        _kernels = kernels


def _crew_of_this_process() -> Crew:
    global _crew
    if _crew is None:
        with _turn:
            if _crew is None:
                assert _kernels is not None
                _crew = Crew(_kernels)
    return _crew


def _forget_threads() -> None:
    """A forked child has none of its parent's threads."""
    global _crew, _reader, _turn
    _crew, _reader, _turn = None, None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
