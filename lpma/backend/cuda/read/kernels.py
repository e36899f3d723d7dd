"""Launching the kernels that read a store, and preparing their arguments."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ....cuda import launch
from ..launch.options import THREADS, source
from ..store.segments import Segments

Array = Any  # numpy.ndarray or cupy.ndarray

GROUP_SLOTS = 512  # tiles.cuh


def launch_on(
    segments: Segments, stem: str, name: str, threads: int, *args: Any, block: int = THREADS
) -> None:
    launch.run(source(stem), name, threads, *args, block=block, options=segments.options)


def column(values: Any, dtype: Any) -> Any:
    """`values` on the device, contiguous; None stays None."""
    if values is None:
        return None
    if isinstance(values, cupy.ndarray):
        return cupy.ascontiguousarray(values, dtype)
    return cupy.asarray(np.ascontiguousarray(values, dtype))


def groups(segments: Segments) -> int:
    """Groups of segments, one per warp: see tiles.cuh."""
    each = min(32, max(1, GROUP_SLOTS // segments.segment_size))
    return -(-(1 << segments.m) // each)
