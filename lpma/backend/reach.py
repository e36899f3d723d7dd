"""What a backend may offer beside reading.py: hops by frontiers, all at once."""

from __future__ import annotations

from typing import Any, Protocol

from .values import Array, Segments


class Reaching(Protocol):
    """What a backend may also offer."""

    def reach(
        self, segments: Segments, vertices: Any, steps: Array, num_rows: int
    ) -> tuple[Array, Array] | None:
        """(indptr int64[q+1], ids uint32) of the vertices within 1 … steps[i] steps of vertices[i],
        rising; one is its own only if it is reached again. None if that would take too much memory.
        steps: int64[q], on the host, from 1 on; q > 0. REQUIRES: num_rows is above every id of
        an edge; no versions; no batch is under way."""
