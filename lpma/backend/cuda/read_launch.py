"""Launching the kernels that read a store, and preparing their arguments."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ...cuda import launch
from .batches import StagedBatch
from .options import THREADS, options_for, shape_of, source
from .segments import BATCH, Segments

Array = Any  # numpy.ndarray or cupy.ndarray

GROUP_SLOTS = 512  # tiles.cuh
NULL = 0  # a column that is not there
NO_BATCH = np.zeros(1, f"V{BATCH.size}")


def launch_on(
    segments: Segments, stem: str, name: str, threads: int, *args: Any, block: int = THREADS
) -> None:
    options = options_for(*shape_of(segments))
    launch.run(source(stem), name, threads, *args, block=block, options=options)


def column(values: Any, dtype: Any) -> Any:
    """`values` on the device, contiguous; NULL for None."""
    if values is None:
        return NULL
    if isinstance(values, cupy.ndarray):
        return cupy.ascontiguousarray(values, dtype)
    return cupy.asarray(np.ascontiguousarray(values, dtype))


def or_null(array: Array | None) -> Any:
    return NULL if array is None else array


def record_of(staged: StagedBatch | None) -> Any:
    return NO_BATCH if staged is None else staged.record


def groups(segments: Segments) -> int:
    """Groups of segments, one per warp: see tiles.cuh."""
    each = min(32, max(1, GROUP_SLOTS // segments.segment_size))
    return -(-(1 << segments.m) // each)
