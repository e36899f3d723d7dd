"""The triangles that have one of the listed edges, counted on a CUDA device: see triangles.cu."""

from __future__ import annotations

from functools import partial

from ..listed_cuda import count

count_touching = partial(count, "algorithms/tracker/triangles/triangles.cu", "count_touching", 32)
