"""Algorithms over snapshots of the graph: each module holds one, named after what it computes."""

from .bfs import bfs
from .biclique import Biclique, count_all_bicliques, count_bicliques, list_bicliques
from .components import connected_components
from .core import core_numbers, k_core
from .pagerank import NotConverged, pagerank
from .tracker import Tracker
from .triangles import Support, edge_support, triangle_count, triangles
from .truss import Truss, k_truss, truss_numbers

__all__ = [
    "Biclique",
    "NotConverged",
    "Support",
    "Tracker",
    "Truss",
    "bfs",
    "connected_components",
    "core_numbers",
    "count_all_bicliques",
    "count_bicliques",
    "edge_support",
    "k_core",
    "k_truss",
    "list_bicliques",
    "pagerank",
    "triangle_count",
    "triangles",
    "truss_numbers",
]
