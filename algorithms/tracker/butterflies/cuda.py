"""The butterflies that have one of the listed edges, counted on a CUDA device: see
butterflies.cu."""

from __future__ import annotations

from .. import listed_cuda
from ..types import Change


def difference(change: Change) -> int:
    """As `cpu.difference`. Waits for the device."""
    file = "algorithms/tracker/butterflies/butterflies.cu"
    return listed_cuda.difference(file, "count_butterflies", listed_cuda.BLOCK, change)()
