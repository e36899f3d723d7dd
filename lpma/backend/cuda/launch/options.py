"""What the store's kernels are compiled for: the shape of a store.

A store's segment size, the width of its weights and whether it keeps times never change, so the
compiler is given them as constants: columns that are off cost nothing, and loops over a segment
are unrolled. Each shape has its own kernels, which CuPy's cache on disk keeps. Most programs need
those of the usual shapes, and all other files: `prebuilt_kernels`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from pathlib import Path

from ....cuda.sources import ROOT, Options

THREADS = 256  # of a block, unless kernels.py or a caller of launch_on says otherwise: store.cuh
ANY_SHAPE = (32, 4, True)  # sorting reads no slots, so it is compiled once for all shapes
SEGMENT_SIZE = 32
WEIGHT_BYTES = (0, 4, 8)


@lru_cache(maxsize=64)
def source(stem: str) -> str:
    """A file of the store's kernels, as lpma.cuda.sources names it."""
    return f"lpma/backend/cuda/kernels/{stem}.cu"


@lru_cache(maxsize=64)
def options_for(segment_size: int, weight_bytes: int, times: bool) -> Options:
    """The macros that a store's shape defines for the compiler."""
    return (f"-DSEGMENT={segment_size}", f"-DWEIGHT_BYTES={weight_bytes}", f"-DTIMES={int(times)}")


def prebuilt_kernels() -> Iterator[tuple[str, Options]]:
    """Each file with the options that the host launches its kernels with."""
    yield "lpma/cuda/trial.cu", ()
    for file in _files("lpma/backend/cuda/kernels"):
        if Path(file).stem.startswith("sort"):
            yield file, options_for(*ANY_SHAPE)
            continue
        for weight_bytes, times in product(WEIGHT_BYTES, (True, False)):
            yield file, options_for(SEGMENT_SIZE, weight_bytes, times)
    for file in _files("algorithms"):
        yield file, ()


def _files(folder: str) -> list[str]:
    """The sources in a folder and below it."""
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("*.cu"))
