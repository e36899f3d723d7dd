"""Compiling and launching: one CUDA module a file and a set of fixed parameters.

CuPy keeps compiled modules in memory by source and options, and on disk in its kernel cache, so
a store of a shape seen before costs no compilation. Records (a store, a batch) are passed by
value as NumPy structures; scalars are int64 unless said otherwise.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import cupy

HERE = Path(__file__).parent
THREADS = 256


@lru_cache(maxsize=256)
def module(
    name: str, segment_size: int, weight_bytes: int, times: bool, cooperative: bool = False
) -> Any:
    """The compiled NAME.cu for stores of one shape; `cooperative` as all of its kernels are
    launched, see kernels.py."""
    code, options = given(name, segment_size, weight_bytes, times)
    return cupy.RawModule(code=code, options=options, enable_cooperative_groups=cooperative)


def given(
    name: str, segment_size: int, weight_bytes: int, times: bool
) -> tuple[str, tuple[str, ...]]:
    """What the compiler is given: the source and the options. The source has its headers' hash in
    a comment: CuPy's cache keys on the source alone, and would miss an edited header."""
    options = (
        "--std=c++17",
        f"-I{HERE}",
        f"-DSEGMENT={segment_size}",
        f"-DWEIGHT_BYTES={weight_bytes}",
        f"-DTIMES={int(times)}",
    )
    headers = "".join(path.read_text() for path in sorted(HERE.glob("*.cuh")))
    mark = hashlib.sha256(headers.encode()).hexdigest()
    return f"// headers: {mark}\n" + (HERE / f"{name}.cu").read_text(), options


def blocks_for(items: int, per_block: int = THREADS) -> int:
    """Blocks of a plain grid that gives every item its thread."""
    return max(1, -(-items // per_block))


def shape_of(segments: Any) -> tuple[int, int, bool]:
    """(segment size, bytes a weight, times?): what kernels are compiled for."""
    weight_bytes = segments.weights[0].dtype.itemsize if segments.weights else 0
    return segments.segment_size, int(weight_bytes), segments.times is not None
