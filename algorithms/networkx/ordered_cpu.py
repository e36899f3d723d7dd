"""Breadth-first search in the order of a queue: which vertex was found when, and from where.

`algorithms.bfs` finds levels in no order. NetworkX's edges, trees and paths depend on the order of
its dictionaries, which the rows here have. One thread runs the queue, on the host; most of the time
goes to making Python objects of the result.

Requires indptr int64[n+1] and indices uint32[m], C-contiguous; rows in any order.
"""

from __future__ import annotations

import numpy as np

from lpma.cpu.jit import compiled

from ..arrays import Array


@compiled
def search(
    indptr: Array, indices: Array, sources: Array, levels: int
) -> tuple[Array, Array, Array]:
    """uint32[k], the vertices found within `levels` steps, in order, distinct sources first;
    uint32[k], from which vertex each was found, a source from itself; and int64[l+1], where each
    level begins, and the end."""
    n = len(indptr) - 1
    order, parents = np.empty(n, np.uint32), np.empty(n, np.uint32)
    bounds = np.empty(n + 2, np.int64)
    seen = np.zeros(n, np.bool_)
    end = 0
    for source in sources:
        seen[source] = True
        order[end] = parents[end] = source
        end += 1
    bounds[0], begin, level = 0, 0, 0
    while begin < end:
        level += 1
        bounds[level] = end
        if level > levels:
            break
        for i in range(begin, bounds[level]):
            u = np.int64(order[i])
            for e in range(indptr[u], indptr[u + 1]):
                v = indices[e]
                if not seen[v]:
                    seen[v] = True
                    order[end], parents[end] = v, u
                    end += 1
        begin = bounds[level]
    return order[:end], parents[:end], bounds[: level + 1]
