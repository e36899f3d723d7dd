"""What `lpma cluster run-algorithm` computes on the snapshot of a cluster: the same figures as
`analyses` has for one of one graph, as far as there are algorithms for shards.

The rows of such a snapshot are all ids, or all names, that there are. Only those that are vertices
are reported: the ends of edges, and what was added.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

import algorithms

from ..state.vertex_names import Called, VertexNames, Vertices
from ..types import Name
from . import Result, of_components, of_core_numbers, of_hops, of_ranks, of_vertices

if TYPE_CHECKING:
    from algorithms.sharded import ShardedSnapshot


def vertices_of(s: ShardedSnapshot) -> Vertices:
    """The vertices that are there, and what they go by."""
    present: Any = SimpleNamespace(ids=np.flatnonzero(s.present).astype(np.uint32))
    names: Any = s.names  # what is frozen is read as what grows
    return Vertices(present, VertexNames(names))


def degree(s: ShardedSnapshot, v: Vertices) -> Result:
    """How many edges go out of each vertex."""
    degrees = s.degrees()[v.ids]
    return of_vertices(v, "degree", degrees, {"largest": int(degrees.max(initial=0))})


def core(s: ShardedSnapshot, v: Vertices) -> Result:
    """Core numbers."""
    return of_core_numbers(v, algorithms.core_numbers(s)[v.ids])


def triangles(s: ShardedSnapshot, v: Vertices) -> Result:
    """How many triangles there are."""
    return Result({"triangles": np.array([algorithms.triangle_count(s)])}, {})


def components(s: ShardedSnapshot, v: Vertices) -> Result:
    """Connected components, ignoring directions: for each vertex one that all of its component
    share, and how many vertices are in it."""
    labels = algorithms.connected_components(s)[v.ids]
    roots, inverse, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    return of_components(v, labels, roots, sizes[inverse], sizes, lambda of: Called(v.names, of))


def pagerank(s: ShardedSnapshot, v: Vertices, **options: Any) -> Result:
    """PageRank."""
    return of_ranks(v, algorithms.pagerank(s, **options)[v.ids])


def bfs(s: ShardedSnapshot, v: Vertices, source: Name) -> Result:
    """Hops from the vertex `source`. Raises VertexError if it is not in the graph."""
    row = int(v.ids[v.row(source)])
    return of_hops(v, algorithms.bfs(s, row if s.names is None else source)[v.ids])


def diversity(s: ShardedSnapshot, v: Vertices, model: str, k: int) -> Result:
    """Structural diversity: how many social contexts each vertex has."""
    scores = algorithms.diversity(s, model, k)[v.ids]
    return of_vertices(v, "score", scores, {"largest_score": int(scores.max(initial=0))})


ANALYSES: dict[str, Callable[..., Result]] = {
    "degree": degree,
    "core": core,
    "triangles": triangles,
    "components": components,
    "pagerank": pagerank,
    "bfs": bfs,
    "diversity": diversity,
}
