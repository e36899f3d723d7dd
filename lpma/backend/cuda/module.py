"""Compiling and launching: one CUDA module a file and a set of fixed parameters.

CuPy keeps compiled modules in memory by source and options, and on disk in its kernel cache, so
a store of a shape seen before costs no compilation. Records (a store, a batch) are passed by
value as NumPy structures; scalars are int64 unless said otherwise.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cupy

from ...cuda.sources import Options, given

THREADS = 256


@lru_cache(maxsize=256)
def module(
    name: str, segment_size: int, weight_bytes: int, times: bool, cooperative: bool = False
) -> Any:
    """The compiled NAME.cu for stores of one shape; `cooperative` as all of its kernels are
    launched, see kernels.py."""
    options = options_for(segment_size, weight_bytes, times)
    code, all_options = given(f"lpma/backend/cuda/{name}.cu", options)
    return cupy.RawModule(code=code, options=all_options, enable_cooperative_groups=cooperative)


def options_for(segment_size: int, weight_bytes: int, times: bool) -> Options:
    """What a store's shape defines for the compiler."""
    return (f"-DSEGMENT={segment_size}", f"-DWEIGHT_BYTES={weight_bytes}", f"-DTIMES={int(times)}")


def shape_of(segments: Any) -> tuple[int, int, bool]:
    """(segment size, bytes a weight, times?): what kernels are compiled for."""
    weight_bytes = segments.weights[0].dtype.itemsize if segments.weights else 0
    return segments.segment_size, int(weight_bytes), segments.times is not None
