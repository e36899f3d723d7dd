"""What a graph answers about one edge or one vertex, in plain numbers.

The same questions for many at once, and the same rules for what a vertex is, are in graph_reads.py;
one.py answers them.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from .coerce import one_vertex
from .guard import Guard
from .one import One, is_vertex
from .results import Edge

Array = npt.NDArray[Any]


class GraphOne:
    """The part of `lpma.Graph` for one at a time."""

    _one: One
    _guard: Guard

    def has_edge(self, u: int, v: int) -> bool:
        """Whether the edge (u, v) is there. Raises BatchError. For many at once: `edges`.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert(1, 2)
        >>> g.has_edge(1, 2), g.has_edge(2, 1)
        (True, False)
        """
        if not (is_vertex(u) and is_vertex(v)):
            u, v = one_vertex(u, "u"), one_vertex(v, "v")
        return self._guard.read(self._one.has_edge, u, v)

    def edge(self, u: int, v: int) -> Edge | None:
        """The weight and the time of the edge (u, v); None if it is not there. Raises BatchError.
        For many at once: `edges`.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert(1, 2, weight=0.5, time=7)
        >>> g.edge(1, 2).weight
        0.5
        """
        if not (is_vertex(u) and is_vertex(v)):
            u, v = one_vertex(u, "u"), one_vertex(v, "v")
        return self._guard.read(self._one.edge, u, v)

    def neighbors(self, u: int) -> Array:
        """uint32[d]: the targets of u's edges, sorted; NumPy's on every device. Raises BatchError.
        For many vertices at once, or with weights: `successors`.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([1, 1, 2], [3, 2, 3])
        >>> g.neighbors(1)
        array([2, 3], dtype=uint32)
        """
        if not is_vertex(u):
            u = one_vertex(u, "u")
        return self._guard.read(self._one.neighbors, u)
