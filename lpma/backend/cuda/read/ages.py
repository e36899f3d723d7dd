"""Which edges of a store on a CUDA device, and which times of a batch, are older than a time.

A batch's times are looked at on the store's stream, and the answer is written to the host's memory:
whoever has waited for a later kernel of that stream, as every batch does, does not wait for it
again. Streams else: see reader.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import cupy
import numpy as np

from ....cuda import driver
from ....cuda.driver import Array
from ....cuda.launch import blocks_for
from ...defaults import SAMPLED_SEGMENTS
from ..launch.kernels import launch_on
from ..launch.options import THREADS
from ..store.segments import Segments
from .reader import Reader


class Ages:
    """Of one store."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    @cached_property
    def _answer(self) -> tuple[Any, Any]:
        """A word of the host's for `any_older`, and the event after which it is there."""
        memory = self._reader.context.pinned(8)
        return np.frombuffer(memory, np.int64, 1), cupy.cuda.Event(disable_timing=True)

    def older(self, segments: Segments, before: int) -> tuple[Array, Array]:
        with self._reader as reader:
            room, _ = driver.fetch(_older(segments, before, None, None, 0)).tolist()
            keys, times = reader.new((room, cupy.uint64), (room, cupy.int64))
            if room:
                _older(segments, before, keys, times, room)
        return keys, times

    def since(
        self, segments: Segments, before: int
    ) -> tuple[tuple[Array, Array | None, Array | None], int]:
        weight, time = segments.value_dtypes
        with self._reader as reader:
            gone, loops = driver.fetch(_older(segments, before, None, None, 0)).tolist()
            n, blocks = segments.num_slots - gone, blocks_for(32 * segments.groups, THREADS)
            keys, weights, times = reader.new((n, cupy.uint64), (n, weight), (n, time))
            launch_on(
                segments, "ages", "since", THREADS * blocks,
                segments.record, before, keys, weights, times,
                driver.zeros(1 + blocks, cupy.uint64),
            )  # fmt: skip
        return (keys, weights, times), loops

    def sampled_times(self, segments: Segments) -> Array:
        step = max(1, (1 << segments.m) // SAMPLED_SEGMENTS)
        samples = -(-(1 << segments.m) // step)
        with self._reader:
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
        word, answered = self._answer
        driver.await_event(answered)  # an answer that nobody waited for
        word[0] = 0
        with self._reader.context as context:
            launch_on(
                segments, "ages", "any_older", len(times),
                times, len(times), before, np.uint64(word.ctypes.data),
            )  # fmt: skip
            driver.record(answered, context.stream)

        def answer() -> bool:
            driver.await_event(answered)
            return bool(word[0])

        return answer


def _older(segments: Segments, before: int, keys: Any, times: Any, room: int) -> Array:
    """uint64[2]: how many edges are older, and how many of them are loops. They are written where
    there is room."""
    hits = driver.zeros(2, cupy.uint64)
    launch_on(
        segments, "ages", "older", 32 * segments.groups,
        segments.record, before, keys, times, room, hits,
    )  # fmt: skip
    return hits
