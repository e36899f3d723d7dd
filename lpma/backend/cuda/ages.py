"""Which edges of a store on a CUDA device are older than a time: backend/ages.py, in calls of CuPy.

They run on the caller's stream: after what the store's stream has under way, and before what it
does next.

Requires: the class that this is mixed into has a `stream`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import cupy

from .. import ages
from .segments import Segments

Array = Any  # cupy.ndarray


class Ages:
    """What the reading half of the backend says of times."""

    stream: Any  # cupy.cuda.Stream, non-blocking

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        own = self.stream
        with cupy.cuda.Device(own.device_id):
            caller = cupy.cuda.get_current_stream()
            caller.wait_event(own.record())
            yield
            own.wait_event(caller.record())

    def older(self, segments: Segments, before: int) -> tuple[Array, Array]:
        """(keys, times) of the edges older than a time."""
        with self._in_turn():
            return ages.older(segments, before)

    def sampled_times(self, segments: Segments) -> Array:
        """The times of some slots, from all over the store."""
        with self._in_turn():
            return ages.sampled_times(segments)
