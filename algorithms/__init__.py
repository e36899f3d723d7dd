"""Algorithms over snapshots of the graph: each module holds one, named after what it computes."""

from .core import core_numbers, k_core
from .triangles import triangle_count

__all__ = ["core_numbers", "k_core", "triangle_count"]
