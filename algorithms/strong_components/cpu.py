"""Strongly connected components on the CPU: one depth-first search, O(n + m), without recursion.

Source: Pearce, "A space-efficient algorithm for finding strongly connected components", IPL 116,
2016, which is Tarjan's algorithm with one number for each vertex, `label`:

    0                 not yet visited
    1, 2, …           on the path of the search, or in a component that still grows: the place in
                      the order of visits of the first vertex known to be reached from it. A vertex
                      that keeps its own place is the root of its component
    n, n − 1, …       in a complete component, the first of which has n

Places are reused when a component is complete, so they stay below the numbers of complete
components, and one comparison, label[w] < label[v], serves both kinds. The path, and vertices that
wait for their component, share one array, from either end.

Requires indptr int64[n+1] and indices uint32[m], C-contiguous. n < 2^31.
"""

from __future__ import annotations

import numpy as np

from lpma.cpu.jit import compiled

from ..arrays import Array


@compiled
def components(indptr: Array, indices: Array) -> tuple[Array, int]:
    """int32[n]: each vertex's component, numbered from 0 in the order of completion, after those
    its edges lead to; and how many there are."""
    n = len(indptr) - 1
    label = np.zeros(n, np.int32)
    stacks = np.empty(n, np.int32)  # the path from the left, vertices that wait from the right
    cursor = np.empty(n, np.int64)  # by depth: the next entry of the row
    is_root = np.empty(n, np.bool_)  # by depth
    waiting = n  # the last that waits
    place, complete = 1, n  # of the next visit; of the next component
    for start in range(n):
        if label[start] != 0:
            continue
        depth = 0
        v, e, least, own = np.int64(start), indptr[start], np.int64(place), True
        place += 1
        label[v] = least
        while True:
            end = indptr[v + 1]
            descended = False
            while e < end:
                w = indices[e]
                e += 1
                if label[w] == 0:  # visit w, and come back to v
                    label[v] = least
                    stacks[depth], cursor[depth], is_root[depth] = v, e, own
                    depth += 1
                    v, e, least, own = np.int64(w), indptr[w], np.int64(place), True
                    label[v] = least
                    place += 1
                    descended = True
                    break
                if label[w] < least:
                    least, own = np.int64(label[w]), False
            if descended:
                continue
            if own:
                place -= 1
                while waiting < n and label[stacks[waiting]] >= least:
                    label[stacks[waiting]] = complete
                    waiting += 1
                    place -= 1
                label[v] = complete
                complete -= 1
            else:
                label[v] = least
                waiting -= 1
                stacks[waiting] = v
            if depth == 0:
                break
            depth -= 1
            of_child = np.int64(label[v])
            v, e, own = np.int64(stacks[depth]), cursor[depth], is_root[depth]
            least = np.int64(label[v])
            if of_child < least:
                least, own = of_child, False
    for u in range(n):
        label[u] = n - label[u]
    return label, n - complete


def smallest_members(component: Array, count: int) -> Array:
    """int32[n]: the smallest vertex of each vertex's component, of `count`."""
    smallest = np.empty(count, np.int32)
    smallest[component[::-1]] = np.arange(len(component), dtype=np.int32)[::-1]  # the last stays
    return smallest[component]
