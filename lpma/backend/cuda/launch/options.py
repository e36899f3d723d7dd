"""What the store's kernels are compiled for: the shape of a store.

A store's segment size, the width of its weights and whether it keeps times never change, so the
compiler is given them as constants: columns that are off cost nothing, and loops over a segment
are unrolled. Each shape has its own kernels, which CuPy's cache on disk keeps.
"""

from __future__ import annotations

from functools import lru_cache

from ....cuda.sources import Options

THREADS = 256  # of a block, unless kernels.py or reads.py says otherwise: store.cuh


@lru_cache(maxsize=64)
def source(stem: str) -> str:
    """A file of the store's kernels, as lpma.cuda.sources names it."""
    return f"lpma/backend/cuda/kernels/{stem}.cu"


@lru_cache(maxsize=64)
def options_for(segment_size: int, weight_bytes: int, times: bool) -> Options:
    """The macros that a store's shape defines for the compiler."""
    return (f"-DSEGMENT={segment_size}", f"-DWEIGHT_BYTES={weight_bytes}", f"-DTIMES={int(times)}")
