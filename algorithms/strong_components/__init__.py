"""Strongly connected components: which vertices lead to each other, along the edges' directions.

Components that ignore directions, weak ones, are `connected_components`.

cpu.py  Pearce's form of Tarjan's algorithm, straight from the rows, in one thread

On a CUDA device there is no program of its own: the rows are copied to the host and searched there,
and the labels lie where the graph does.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from lpma.arrays import device_of

from ..views.directed import present, rows
from ..views.hosted import beside, on_host
from ..views.simple import View
from . import cpu

Array = npt.NDArray[Any]  # or cupy.ndarray

NONE = -1


def strongly_connected_components(s: Any) -> Array:
    """The smallest vertex id of each vertex's strongly connected component: the vertices that it
    leads to and that lead to it. Where directions do not count, `connected_components` has the
    (weakly) connected ones.

    s: a Snapshot, a scipy or cupyx CSR matrix, or (indptr, indices), read with its directions.

    Returns int32[n], where s lies: −1 for a row that is not a vertex (in a Snapshot, one that is
    not `present`; in anything else every row is a vertex). Computed on the host, by one thread in
    O(n + m); the rows of a graph on a device are copied there. Raises `lpma.BatchError` if s is not
    a graph.

    Source: Pearce, "A space-efficient algorithm for finding strongly connected components",
    Information Processing Letters 116, 2016.

    >>> import algorithms, lpma
    >>> graph = lpma.Graph(device="cpu")
    >>> graph.insert([0, 2, 4, 2], [2, 4, 0, 3])
    >>> algorithms.strongly_connected_components(graph.snapshot())
    array([ 0, -1,  0,  3,  0], dtype=int32)
    """
    view = rows(s)
    labels: Array = beside(view.indptr, cpu.smallest_members(*components(view)))
    vertices = present(s)
    if vertices is not None:
        with device_of(labels):
            labels[~vertices] = NONE
    return labels


def components(view: View) -> tuple[Array, int]:
    """int32[n], on the host: the number of each row's component, each after all to which edges lead
    from it; and how many there are."""
    host = on_host(view)
    found: tuple[Array, int] = cpu.components(host.indptr, host.indices)
    return found
