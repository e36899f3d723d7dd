"""What a backend may offer beside reading.py: hops by frontiers, all at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from .values import Array, Segments


class Reaching(Protocol):
    """What a backend may also offer."""

    def reach(
        self, segments: Segments, staged: Any, vertices: Any, steps: Array, limits: Array | None,
        largest_vertex: Callable[[], int],
    ) -> tuple[Array, Array] | None:  # fmt: skip
        """(indptr int64[q+1], ids uint32) of the vertices within 1 … steps[i] steps of vertices[i],
        rising; one is its own only if it is reached again. None if that would take too much memory,
        or where it is not offered within a batch. staged, limits: as for a query (reading.py).
        steps: int64[q], on the host, from 1 on; q > 0. largest_vertex: says the largest id of an
        edge, outside a batch; that may be a scan."""
