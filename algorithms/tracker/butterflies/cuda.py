"""The butterflies that have a listed edge, counted on a CUDA device: see butterflies.cu."""

from __future__ import annotations

from functools import partial

from ..listed_cuda import BLOCK, count

count_touching = partial(
    count, "algorithms/tracker/butterflies/butterflies.cu", "count_butterflies", BLOCK
)
