"""The triangles that have one of the listed edges, counted on a CUDA device: see triangles.cu."""

from __future__ import annotations

from collections.abc import Callable

from ..listed_cuda import difference
from ..types import Change


def begin(change: Change) -> Callable[[], int]:
    """As `cpu.begin`. What is returned waits for the device."""
    return difference("algorithms/tracker/triangles/triangles.cu", "count_touching", 32, change)
