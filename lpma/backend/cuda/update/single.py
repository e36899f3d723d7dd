"""One operation at a time on a CUDA device: one launch of one warp, and one wait. See one.cu.

The answer comes through the host's own memory (launch/mailbox.py). Nothing is ordered with the
caller's stream but what stays on the device: what is asked comes by value, and the answer is read
by the host.
"""

from __future__ import annotations

import struct
from functools import cached_property
from typing import Any

import cupy
import numpy as np

from ...values import DELETE, INSERT, REFUSED, Array, Single
from ..launch.kernels import launch_on
from ..launch.mailbox import Mailbox
from ..read.neighbors import Neighbors
from ..read.reader import Reader
from ..store.segments import Segments
from ..store.shapes import Shapes
from ..store.work import Work

WARP = 32
ROOM = 512  # neighbours that come through the host's memory
WORDS = 8  # of an answer; the neighbours lie behind them

# Request of one.cu: answer, ticket; most, least of both stores; weight, time, least_held; src, dst,
# kind, from_top, back_from_top, back.
REQUEST = struct.Struct("<QqQQQQdqqIIiiii")
NONE, ANOTHER, SAME = range(3)


class SingleOperationPath:
    """Of one store. See lpma.backend.protocol.Better."""

    def __init__(self, shapes: Shapes, work: Work, reader: Reader, neighbors: Neighbors) -> None:
        self._shapes, self._work = shapes, work
        self._reader, self._context, self._stream = reader, reader.context, reader.stream
        self._neighbors = neighbors

    @cached_property
    def _mailbox(self) -> Mailbox:
        return Mailbox(self._context, 8 * WORDS + 4 * ROOM)

    @cached_property
    def _doubles(self) -> Any:
        """The words of the mailbox, read as such."""
        return self._mailbox.memory.view(np.float64).data

    def find_edge(self, segments: Segments, src: int, dst: int) -> tuple[bool, float, int]:
        mailbox = self._mailbox
        ticket = mailbox.next_ticket()
        with self._context:
            launch_on(
                segments, "one", "look_up", WARP, segments.record, src, dst, mailbox.at, ticket,
                block=WARP,
            )  # fmt: skip
            words = mailbox.wait(self._stream, ticket)
        return bool(words[1]), self._doubles[2], words[3]

    def find_neighbors(self, segments: Segments, src: int) -> Array:
        mailbox, ids = self._mailbox, 8 * WORDS
        ticket = mailbox.next_ticket()
        with self._context:
            launch_on(
                segments, "one", "list_neighbors", WARP, segments.record, src, mailbox.at + ids,
                ROOM, mailbox.at, ticket, block=WARP,
            )  # fmt: skip
            n = mailbox.wait(self._stream, ticket)[1]
        if n <= ROOM:
            return mailbox.memory[ids : ids + 4 * n].view(np.uint32).copy()
        row = self._neighbors.neighbors(segments, None, np.array([src]), None, False)
        return cupy.asnumpy(row[1])

    def count_neighbors_of(self, segments: Segments, src: int) -> Array:
        with self._reader as reader:
            (counts,) = reader.new((1, np.int64))
            launch_on(
                segments, "one", "count_one", WARP, segments.record, src, counts, block=WARP
            )  # fmt: skip
        return counts

    def update_one(
        self, segments: Segments, back: Segments | None, src: int, dst: int, kind: int,
        weight: float, time: int, from_top: bool, back_from_top: bool, least_held: int,
    ) -> Single:  # fmt: skip
        mailbox, work = self._mailbox, self._work
        ticket = mailbox.next_ticket()
        other, how = segments, NONE if back is None else SAME
        if back is not None and back is not segments:
            other, how = back, ANOTHER
        with self._context:
            bounds_at = self._shapes.bounds_at(segments)
            others_at = bounds_at if other is segments else self._shapes.bounds_at(other)
            request = REQUEST.pack(
                mailbox.at, ticket, *bounds_at, *others_at, weight,
                time, least_held, src, dst, kind, from_top, back_from_top, how,
            )  # fmt: skip
            work.written = True
            launch_on(
                segments, "one", "update_one", WARP, segments.record, other.record,
                np.frombuffer(request, f"V{REQUEST.size}"), block=WARP,
            )  # fmt: skip
            words = mailbox.wait(self._stream, ticket)
        _, action, why, held, back_held = words[:5].tolist()
        work.written = action != REFUSED
        if action in (INSERT, DELETE):
            change = 1 if action == INSERT else -1
            segments.num_slots += change
            if back is not None:
                back.num_slots += change
        return action, why, held, back_held
