"""Which edges of a store on a CUDA device, and which times of a batch, are older than a time.

What reads the store runs on the caller's stream: after what the store's stream has under way, and
before what it does next. A batch's times are looked at on the store's stream, and the answer is
written to the host's memory: whoever has waited for a later kernel of that stream, as every batch
does, does not wait for it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import cupy
import numpy as np

from ....cuda import driver
from ....cuda.launch import blocks_for
from ...defaults import SAMPLED_SEGMENTS
from ..launch.options import THREADS
from ..store.segments import Segments
from ..streams import Context
from .kernels import groups, launch_on

Array = Any  # cupy.ndarray


class Ages:
    """Of one store."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._stream = context.stream
        self._word: Any = None  # pinned memory, for the answer of `any_older`
        self._answered: Any = None  # the event after which it is there

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        own = self._stream
        with cupy.cuda.Device(own.device_id):
            caller = cupy.cuda.get_current_stream()
            driver.follow(caller, own)
            try:
                yield
            finally:
                driver.follow(own, caller)

    def older(self, segments: Segments, before: int) -> tuple[Array, Array]:
        with self._in_turn():
            room, _ = driver.fetch(_older(segments, before, None, None, 0)).tolist()
            keys, times = cupy.empty(room, cupy.uint64), cupy.empty(room, cupy.int64)
            if room:
                _older(segments, before, keys, times, room)
            return keys, times

    def since(
        self, segments: Segments, before: int
    ) -> tuple[tuple[Array, Array | None, Array | None], int]:
        with self._in_turn():
            gone, loops = driver.fetch(_older(segments, before, None, None, 0)).tolist()
            n, blocks = segments.num_slots - gone, blocks_for(32 * groups(segments), THREADS)
            keys, times = cupy.empty(n, cupy.uint64), cupy.empty(n, cupy.int64)
            weights = cupy.empty(n, segments.weights[0].dtype) if segments.weights else None
            launch_on(
                segments, "ages", "since", THREADS * blocks,
                segments.record, before, keys, weights, times,
                driver.zeros(1 + blocks, cupy.uint64),
            )  # fmt: skip
        return (keys, weights, times), loops

    def sampled_times(self, segments: Segments) -> Array:
        step = max(1, (1 << segments.m) // SAMPLED_SEGMENTS)
        samples = -(-(1 << segments.m) // step)
        with self._in_turn():
            found = cupy.empty((2, 32 * samples), cupy.int64)
            launch_on(
                segments, "ages", "sample_times", 32 * samples,
                segments.record, step, samples, found[0], found[1],
            )  # fmt: skip
            times, filled = driver.fetch(found)
        return times[filled != 0]

    def any_older(self, segments: Segments, times: Array, before: int) -> Callable[[], bool]:
        """A look at a batch's times, which is under way."""
        if isinstance(times, np.ndarray):
            found = bool((times < before).any())
            return lambda: found
        if self._word is None:
            memory = cupy.cuda.alloc_pinned_memory(8)
            self._word = np.frombuffer(memory, np.int64, 1)
            self._answered = cupy.cuda.Event(disable_timing=True)
        word, answered = self._word, self._answered
        driver.await_event(answered)  # an answer that nobody waited for
        word[0] = 0
        with self._context:
            launch_on(
                segments, "ages", "any_older", len(times),
                times, len(times), before, np.uint64(word.ctypes.data),
            )  # fmt: skip
            driver.record(answered, self._stream)

        def answer() -> bool:
            driver.await_event(answered)
            return bool(word[0])

        return answer


def _older(segments: Segments, before: int, keys: Any, times: Any, room: int) -> Array:
    """uint64[2]: how many edges are older, and how many of them are loops. They are written where
    there is room."""
    hits = driver.zeros(2, cupy.uint64)
    launch_on(
        segments, "ages", "older", 32 * groups(segments),
        segments.record, before, keys, times, room, hits,
    )  # fmt: skip
    return hits
