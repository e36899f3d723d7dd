"""Algorithms over snapshots of the graph: each module holds one, named after what it computes."""

from .bfs import bfs
from .components import connected_components
from .core import core_numbers, k_core
from .pagerank import NotConverged, pagerank
from .triangles import triangle_count

__all__ = [
    "NotConverged",
    "bfs",
    "connected_components",
    "core_numbers",
    "k_core",
    "pagerank",
    "triangle_count",
]
