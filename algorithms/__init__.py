"""Algorithms over snapshots of the graph: one folder each, named after what it computes.

A folder's first file has the public functions and says what the other files do; `views` is what
they all read a graph as.
"""

from .bfs import bfs
from .biclique import Biclique, count_all_bicliques, count_bicliques, list_bicliques
from .components import connected_components
from .core import core_numbers, k_core
from .ego import Diverse, diversity, top_diversity
from .pagerank import NotConverged, pagerank
from .tracker import Tracker
from .triangles import Support, edge_support, triangle_count, triangles
from .truss import Truss, k_truss, truss_numbers

__all__ = [
    "Biclique",
    "Diverse",
    "NotConverged",
    "Support",
    "Tracker",
    "Truss",
    "bfs",
    "connected_components",
    "core_numbers",
    "count_all_bicliques",
    "count_bicliques",
    "diversity",
    "edge_support",
    "k_core",
    "k_truss",
    "list_bicliques",
    "pagerank",
    "top_diversity",
    "triangle_count",
    "triangles",
    "truss_numbers",
]
