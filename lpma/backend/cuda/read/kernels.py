"""Launching the kernels that read a store, and preparing their arguments."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from ....cuda import launch
from ....cuda.modules import Kernel
from ....cuda.sources import Options
from ..launch.options import THREADS, source
from ..store.segments import Segments

GROUP_SLOTS = 512  # tiles.cuh


def launch_on(
    segments: Segments, stem: str, name: str, threads: int, *args: Any, block: int = THREADS
) -> None:
    """Launch about `threads` threads of a kernel; nothing if there are none."""
    if threads > 0:
        kernel = _loaded(cupy.cuda.runtime.getDevice(), stem, name, segments.options)
        launch.start(name, kernel, -(-threads // block), block, args)


@lru_cache(maxsize=1024)
def _loaded(device: int, stem: str, name: str, options: Options) -> Kernel:
    """A kernel for the current device, which is given."""
    return launch.compiled(source(stem), name, options)


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
    return -(-(1 << segments.size.m) // each)
