"""A large batch's way from a caller's arrays to pinned memory: by a few threads, each of which
makes one call for the whole batch, without the interpreter's lock (lpma/cpu/staging_kernels.py).

A device copies at full speed from pinned memory only, and one thread fills that at a fraction of
what the bus carries. So the helpers are told of a batch once and take its pieces until none is
left, in the order in which kernels need them; the thread of the batch takes pieces too, but only
until the column that it waits for is whole. It sends that, launches what needs it, and comes back.

A kernel of Numba's does the work, which programs on a device otherwise need not import. The first
batch that would be worth it has the kernel read, or compiled, by a thread, and goes the slow way,
as do those after it until that thread is done. LPMA_COMPILE=ahead has it wait instead, and
`lpma.compile("cuda")` does the same beforehand.

Rules, measured on an H200: below LEAST rows a NumPy call a column is as fast. A helper is told of a
batch for every HELPED bytes beyond the first, since to wake it takes as long as copying a tenth of
that; beyond MOST_THREADS memory is no faster.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from time import sleep
from typing import Any

import numpy as np

from ...arrays import address
from ...coerce import MAX_VERTEX, MAX_WEIGHT
from ...cpu import compiling, ready, threads
from ...cpu.staging_words import (
    BAD,
    BYTES,
    HEAD,
    NARROW,
    PIECE,
    SAME32,
    SAME64,
    WORDS,
)
from ...errors import BatchError

Array = Any

LEAST = 1 << 14
PIECE_ROWS = 1 << 14
HELPED = 1 << 19
MOST_THREADS = 6  # the batch's own among them

LINE = 64  # bytes of a line of the caches (lpma/cpu/instructions.py, which needs Numba)
ALL32, MAX_SIGNED, ALL_BUT_SIGN = (1 << 32) - 1, (1 << 31) - 1, (1 << 63) - 1
MAX_WEIGHT_32 = int(np.float32(MAX_WEIGHT).view(np.uint32))
MAX_WEIGHT_64 = int(np.float64(MAX_WEIGHT).view(np.uint64))
MODULE = "lpma.cpu.staging_kernels"

# A sleep of no time can cost a hundred times as much.
yield_processor: Callable[[], None] = getattr(os, "sched_yield", partial(sleep, 0))

Kernel = Callable[[Array, int], bool]


def width(name: str, column: Array) -> int:
    """Bytes of an entry of the column `name` of a batch where kernels read it."""
    return 4 if name in ("src", "dst") else int(column.dtype.itemsize)


def is_worth(size: int) -> bool:
    """Whether a batch of so many bytes, whose rows are known to be good, is staged by threads."""
    return size >= 2 * HELPED and threads.THREADS > 1 and is_ready()


class Staging:
    """Columns on their way to pinned memory. Until all are there, the threads at work read the
    caller's arrays, which are kept, and write to `landing`."""

    def __init__(
        self, names: Sequence[str], columns: Sequence[Array], into: Sequence[int], landing: Any
    ) -> None:
        """into: where each column goes in `landing`, multiples of LINE. REQUIRES: the kernel
        `is_ready`; columns are contiguous and of a batch's types, or such as as_given.py lets
        pass."""
        assert not any(to % LINE for to in into)
        self._names, self._columns, self._landing = names, columns, landing
        rows, size = len(columns[0]), 0
        words = [0, rows, PIECE_ROWS, len(columns)]
        for name, column, to in zip(names, columns, into, strict=True):
            words += (*_words(name, column, to), 0, 0)
            size += rows * width(name, column)
        self._job = np.array(words, np.int64)
        pieces = -(-rows // PIECE_ROWS) * len(columns)
        _call_helpers(self, min(size // HELPED, MOST_THREADS, threads.THREADS, pieces) - 1)

    def help(self) -> None:
        """Take pieces until none is left."""
        assert _kernel is not None
        _kernel(self._job, len(self._columns))

    def finish(self, number: int) -> None:
        """Return once this column is whole."""
        assert _kernel is not None
        while not _kernel(self._job, number):
            yield_processor()

    def refuse_bad(self, number: int) -> None:
        """Raise BatchError if a row of this column is bad. REQUIRES: it is whole."""
        if self._job[HEAD + WORDS * number + BAD]:
            if self._names[number] == "weight":
                raise BatchError(
                    f"weight: finite values of at most {MAX_WEIGHT:g} in size are taken"
                )
            raise BatchError(f"{self._names[number]}: vertex ids go from 0 to {MAX_VERTEX}")

    def end(self) -> None:
        """Return once nobody is at work on it."""
        for number in range(len(self._columns)):
            self.finish(number)


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


# -- helpers ------------------------------------------------------------------------------------

_waiting: SimpleQueue[Staging] = SimpleQueue()
_helpers: list[threading.Thread] = []
_starting = threading.Lock()


def _call_helpers(staging: Staging, number: int) -> None:
    if number > len(_helpers):
        with _starting:
            while number > len(_helpers):
                helper = threading.Thread(
                    target=_help, args=(_waiting,), daemon=True, name="lpma-staging"
                )
                helper.start()
                _helpers.append(helper)
    for _ in range(number):
        _waiting.put(staging)


def _help(waiting: SimpleQueue[Staging]) -> None:
    while True:
        waiting.get().help()


# -- the kernel ---------------------------------------------------------------------------------

_kernel: Kernel | None = None
_reader: threading.Thread | None = None


def is_ready() -> bool:
    """Whether the kernel can be called; if not, it is being read when this returns."""
    if _kernel is None and _reader is None:
        if os.environ.get("LPMA_COMPILE") == "ahead":
            get_ready()
        else:
            _read_behind()
    return _kernel is not None


def get_ready() -> None:
    """Wait until the kernel can be called."""
    reader = _reader
    if reader is not None:
        reader.join()
    if _kernel is None:
        _read()


def _read_behind() -> None:
    global _reader
    with _starting:
        if _reader is None:
            # No daemon: the interpreter must not end while a library is being loaded.
            _reader = threading.Thread(target=_read, name="lpma-ready")
            _reader.start()


def _read() -> None:
    global _kernel
    with suppress(compiling.CompileError, OSError):  # then it is compiled here
        compiling.compile_all(
            [ready.STORE], niceness=compiling.BEHIND, wanted=lambda entry: entry.module == MODULE
        )
    with ready.reading:
        from ...cpu.staging_kernels import stage

        nothing = np.zeros(HEAD + WORDS, np.int64)
        nothing[PIECE] = 1
        stage(nothing, 0)
        _kernel = stage


def _forget_threads() -> None:
    """A forked child has none of its parent's threads."""
    global _waiting, _helpers, _starting, _reader
    _waiting, _helpers, _starting, _reader = SimpleQueue(), [], threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
