"""What a graph answers about one edge or one vertex, in plain numbers.

The same questions for many at once, and the same rules for what a vertex is, are in graph_reads.py;
one.py answers them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from .graph_named import GraphNamed
from .one import is_vertex
from .results import Edge

if TYPE_CHECKING:
    from .names import Name

Array = npt.NDArray[Any]


class GraphOne(GraphNamed):
    """The part of `lpma.Graph` for one at a time."""

    def has_edge(self, u: Name, v: Name) -> bool:
        """Whether the edge (u, v) is there. Raises BatchError. For many at once: `edges`.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert(1, 2)
        >>> g.has_edge(1, 2), g.has_edge(2, 1)
        (True, False)
        """
        if self.names is not None or not (is_vertex(u) and is_vertex(v)):
            u, v = self._vertex(u, "u"), self._vertex(v, "v")
        return self._guard.read(self._one.has_edge, u, v)

    def edge(self, u: Name, v: Name) -> Edge | None:
        """The weight and the time of the edge (u, v); None if it is not there. Raises BatchError.
        For many at once: `edges`.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert(1, 2, weight=0.5, time=7)
        >>> g.edge(1, 2).weight
        0.5
        """
        if self.names is not None or not (is_vertex(u) and is_vertex(v)):
            u, v = self._vertex(u, "u"), self._vertex(v, "v")
        return self._guard.read(self._one.edge, u, v)

    def neighbors(self, u: Name) -> Array:
        """uint32[d]: the targets of u's edges, sorted; NumPy's on every device. Raises BatchError.
        For many vertices at once, or with weights: `successors`.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([1, 1, 2], [3, 2, 3])
        >>> g.neighbors(1)
        array([2, 3], dtype=uint32)
        """
        if self.names is not None or not is_vertex(u):
            u = self._vertex(u, "u")
        found = self._guard.read(self._one.neighbors, u)
        return found if self.names is None else self.names.of(found)
