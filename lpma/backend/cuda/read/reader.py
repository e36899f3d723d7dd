"""Reading a store for a caller: on the store's stream, with inputs and results of the caller's.

Streams: kernels run on the store's own stream. Results are allocated on the stream that is
current for the caller; the store's stream waits for that one before it writes, and that one for
the store's before it goes on. So whatever the caller enqueues next reads whole results, and
freeing one is ordered after that. A consumer on yet another stream must wait for the caller's, as
CuPy's DLPack does by itself.

Inputs: CuPy takes 20 us to copy forty kilobytes to the device, and 15 ms beside a busy thread. So
small columns are put into page-locked memory, where kernels read each value once. Two pieces of
memory take turns; an event says when a piece is no longer read."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import cupy
import numpy as np

from ....arguments.convert import BAD_VERTEX, refused_rows
from ....cuda import driver
from ....cuda.driver import Array
from ..launch.mailbox import Mailbox
from ..streams import Context
from ..upload.blocks import ALIGNMENT
from ..upload.staged_batch import StagedBatch

PIECE_BYTES = 1 << 21
TICKET, CANDIDATES, PRESENT, NO_VERTEX, WORDS = range(5)  # neighbors.cuh, and how many
UNCHECKED = None, 0, 0  # instead of Reader.checking


class _Piece:
    def __init__(self, memory: Any) -> None:
        self.at = int(memory.ptr)
        self.bytes = memoryview(memory).cast("B")
        self.used = 0
        self.read = cupy.cuda.Event(disable_timing=True)


class SortedBatch(NamedTuple):
    """A batch that lies sorted beside the store while its queries are answered."""

    staged: StagedBatch
    rows: Any  # KeyRows
    work: Any  # the Work of work.cuh
    ranks: Array  # int64: the slots before each row


class Reader:
    """How one store is read; and `beside`, the batch that lies beside it, if there is one.

    As a context manager, within which the store is read for the caller's stream: what is done runs
    on the store's device and stream. `new` allocates results, and orders the store's stream after
    the caller's: so it comes before inputs are read. `given` brings inputs to where kernels read
    them."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.stream = context.stream
        self.caller: Any = None  # the stream that the store is read for
        self.beside: SortedBatch | None = None
        self._pieces: list[_Piece] = []  # for inputs
        self._turn = 0

    def __enter__(self) -> Reader:
        self.context.__enter__()
        self.caller = self.context.entered[-1][1]
        return self

    def __exit__(self, *error: Any) -> None:
        context = self.context
        try:  # what is given up is freed in the order of the caller's stream
            piece = self._pieces[self._turn] if self._pieces else None
            if piece is not None and piece.used:
                driver.record(piece.read, self.stream)
                piece.used, self._turn = 0, 1 - self._turn
            context.hand_out(self.caller)
        finally:
            context.__exit__(*error)

    def new(self, *arrays: tuple[int, Any]) -> list[Any]:
        """Arrays of the caller's stream, each of a length and a dtype; None for no dtype."""
        made: list[Any] = []
        self.caller.use()
        try:
            for length, dtype in arrays:
                made.append(None if dtype is None else cupy.empty(length, dtype))
        finally:
            self.stream.use()
        self.context.take_in(self.caller)
        return made

    def given(self, values: Any, dtype: Any) -> Any:
        """`values` as a contiguous column, on the device or, until the reading ends, in memory that
        it reads; None for None."""
        if values is None:
            return None
        if isinstance(values, cupy.ndarray):
            return cupy.ascontiguousarray(values, dtype)
        column = np.ascontiguousarray(values, dtype)
        if not self._pieces:
            self._pieces = [_Piece(self.context.pinned(PIECE_BYTES)) for _ in range(2)]
        piece, size = self._pieces[self._turn], column.nbytes
        at = -(-piece.used // ALIGNMENT) * ALIGNMENT
        if at + size > PIECE_BYTES:
            return cupy.asarray(column)
        if not piece.used:
            driver.await_event(piece.read)
        piece.used = at + max(size, 1)
        if size:
            piece.bytes[at : at + size] = column.data.cast("B")
        return piece.at + at

    @cached_property
    def mailbox(self) -> Mailbox:
        """For the kernels that tell the host of what they found."""
        return Mailbox(self.context, 8 * WORDS)

    @cached_property
    def _seen(self) -> Array:
        return driver.zeros(2, np.uint32)

    def told(self) -> Any:
        """The words of the last kernel that tells some. Raises BatchError if one of the ids that it
        was given is no vertex."""
        words = self.mailbox.wait(self.stream, self.mailbox.ticket)
        if words[NO_VERTEX]:
            raise refused_rows(BAD_VERTEX, words[NO_VERTEX])
        return words

    def checking(self) -> tuple[Any, int, int]:
        """What query.cu needs to look at ids that lie on the device, of which nobody has, and the
        ticket with which it then tells."""
        return self._seen, self.mailbox.at, self.mailbox.next_ticket()

    def batch_and_places(
        self, staged: StagedBatch, limits: Array | None
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """What kernels get of the batch beside the store, and of the queries' limits."""
        assert self.beside is not None, "REQUIRES: sort_beside"
        return (staged.record, self.beside.work), (self.given(limits, np.int64),)
