"""Truss decomposition on the CPU: each method with what it needs.

Requires a ranked view in NumPy's arrays.
"""

from __future__ import annotations

from lpma.host import available_memory_bytes

from ..arrays import Array
from ..triangles import cpu as triangles
from ..triangles.ranked import EdgeList, Ranked
from .incidence_cpu import incidence
from .intersect_cpu import by_intersection, edge_rows
from .peel_cpu import by_incidence

TRIANGLE_BYTES = 16  # of the incidence


def free_bytes() -> float:
    """Memory that can be allocated; infinite if unknown."""
    return available_memory_bytes() or float("inf")


def chosen(count: int) -> str:
    """The method that "auto" takes for so many triangles."""
    return "incidence" if 2 * TRIANGLE_BYTES * count <= free_bytes() else "intersect"


def decompose(ranks: Ranked, method: str, until: int) -> tuple[EdgeList, Array]:
    """The edges, and int32[m] of them: truss numbers below `until`, and `until` for the edges that
    are left then."""
    edges = triangles.edge_list(ranks)
    if method == "auto":
        method = chosen(triangles.count(ranks))
    if method == "incidence":
        return edges, by_incidence(incidence(ranks), until)[edges.slot]
    rows = edge_rows(ranks.view, edges)
    if method == "affected":
        from .paper.cpu import by_affected  # when needed: importing kernels takes time

        return edges, by_affected(rows, until)
    support = triangles.support(ranks)[edges.slot]
    return edges, by_intersection(rows, support, until)
