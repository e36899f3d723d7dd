"""One operation at a time on a CUDA device: one launch of one warp, and one wait. See one.cu.

The answer comes through the host's own memory, which the kernel writes and the host watches: to
copy it back would cost more than the rest. A kernel's last word is the ticket it was given, which
no kernel before it had; so an answer that nobody waited for is not mistaken for another.

Nothing is ordered with the caller's stream but what stays on the device: what is asked comes by
value, and the answer is read by the host.
"""

from __future__ import annotations

import struct
from functools import cached_property
from typing import Any

import cupy
import numpy as np

from ...cuda import driver, launch
from ..values import DELETE, INSERT, REFUSED, Single
from .context import Context
from .csr import CsrReads
from .options import options_for, shape_of, source
from .read_launch import launch_on
from .segments import Segments
from .shapes import Shapes

Array = Any

FILE = source("one")
WARP = 32
ROOM = 512  # neighbours that come through the host's memory
WORDS = 8  # of an answer; the neighbours lie behind them

# Request of one.cu: answer, ticket; most, least of both stores; weight, time, least_held; src, dst,
# kind, from_top, back_from_top, back.
REQUEST = struct.Struct("<QqQQQQdqqIIiiii")
NONE, ANOTHER, SAME = range(3)


class Answer:
    """Words that kernels write and the host watches."""

    def __init__(self) -> None:
        size = 8 * WORDS + 4 * ROOM
        self._memory = cupy.cuda.alloc_pinned_memory(size)
        everything = np.frombuffer(self._memory, np.uint8, size)
        everything.fill(0)
        head = everything[: 8 * WORDS]
        self.words = head.view(np.int64).data
        self.doubles = head.view(np.float64).data
        self.ids = everything[8 * WORDS :].view(np.uint32)
        self.at = int(self._memory.ptr)
        self.ids_at = self.at + 8 * WORDS
        self._ticket = 0

    def next_ticket(self) -> int:
        self._ticket += 1
        return self._ticket

    def wait(self, ticket: int, stream: Any) -> None:
        """Until the kernel with that ticket has answered. Raises CuPy's CUDARuntimeError if the
        device fails."""
        driver.await_word(self.at, ticket, stream)


class OneByOne(Shapes, CsrReads):
    """See lpma.backend.protocol.Better."""

    context: Context
    written: bool

    @cached_property
    def _answer(self) -> Answer:
        return Answer()

    def _bounds_at(self, segments: Segments) -> tuple[int, int]:
        """The addresses of the bounds of judge.cuh."""
        most, least = self.device_bounds(segments.size, segments.segment_size)
        return most.data.ptr, least.data.ptr

    def find_edge(self, segments: Segments, src: int, dst: int) -> tuple[bool, float, int]:
        answer = self._answer
        ticket = answer.next_ticket()
        with self.context:
            launch_on(
                segments, "one", "look_up", WARP, segments.record, src, dst, answer.at, ticket,
                block=WARP,
            )  # fmt: skip
            answer.wait(ticket, self.stream)
        return bool(answer.words[1]), answer.doubles[2], answer.words[3]

    def find_neighbors(self, segments: Segments, src: int) -> Array:
        answer = self._answer
        ticket = answer.next_ticket()
        with self.context:
            launch_on(
                segments, "one", "list_neighbors", WARP, segments.record, src, answer.ids_at, ROOM,
                answer.at, ticket, block=WARP,
            )  # fmt: skip
            answer.wait(ticket, self.stream)
        n = answer.words[1]
        if n <= ROOM:
            return answer.ids[:n].copy()
        return cupy.asnumpy(self.neighbors(segments, None, np.array([src]), None, False)[1])

    def count_neighbors_of(self, segments: Segments, src: int) -> Array:
        with self._reading() as reading:
            counts = reading.new(1, np.int64)
            launch_on(
                segments, "one", "count_one", WARP, segments.record, src, counts, block=WARP
            )  # fmt: skip
        return counts

    def update_one(
        self, segments: Segments, back: Segments | None, src: int, dst: int, kind: int,
        weight: float, time: int, from_top: bool, back_from_top: bool, least_held: int,
    ) -> Single:  # fmt: skip
        answer = self._answer
        ticket = answer.next_ticket()
        other = segments if back is None else back
        how = NONE if back is None else SAME if back is segments else ANOTHER
        with self.context:
            request = REQUEST.pack(
                answer.at, ticket, *self._bounds_at(segments), *self._bounds_at(other), weight,
                time, least_held, src, dst, kind, from_top, back_from_top, how,
            )  # fmt: skip
            args = segments.record, other.record, np.frombuffer(request, f"V{REQUEST.size}")
            kernel = launch.compiled(FILE, "update_one", options_for(*shape_of(segments)))
            self.written = True
            launch.start("update_one", kernel, 1, WARP, args)
            answer.wait(ticket, self.stream)
        _, action, why, held, back_held = answer.words[:5].tolist()
        self.written = action != REFUSED
        if action in (INSERT, DELETE):
            change = 1 if action == INSERT else -1
            segments.num_slots += change
            if back is not None:
                back.num_slots += change
        return action, why, held, back_held
