"""The kernels that most programs need: all files, the store's for the usual shapes of stores."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

from ....cuda.sources import ROOT, Options
from .kernels import ANY_SHAPE
from .options import options_for

SEGMENT_SIZE = 32
WEIGHT_BYTES = (0, 4, 8)


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
