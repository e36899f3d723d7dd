"""An ego network as a matrix of bits on the CPU: filling it, shrinking it to its k-core or k-truss,
and finding the components of what is left.

Bit y of row x says whether x and y are joined; rows are int64 words, the matrix is symmetric. Rows
are so short that checking for enough common neighbours takes a handful of instructions, fewer than
keeping counts. When an edge is removed from a truss, the edges that this may bring below the bound
lie in the rows of its ends, which are checked again.
"""

from __future__ import annotations

import numpy as np

from lpma.cpu.instructions import ones, trailing_zeros
from lpma.cpu.jit import compiled

from ...arrays import Array
from ..model import NONE


@compiled
def fill(
    row: Array, lower_indptr: Array, lower: Array, place: Array, matrix: Array, degree: Array
) -> None:
    """Write the ego network of the vertices in `row` to a matrix, and its degrees. place: 1 + the
    place of each of them in the row, 0 of others."""
    matrix[:] = 0
    degree[: len(row)] = 0
    for x in range(len(row)):
        v = np.int64(row[x])
        for w in lower[lower_indptr[v] : lower_indptr[v + 1]]:
            if w > row[-1]:
                break
            y = np.int64(place[w]) - 1
            if y >= 0:
                matrix[x, y >> 6] |= np.int64(1) << (y & 63)
                matrix[y, x >> 6] |= np.int64(1) << (x & 63)
                degree[x] += 1
                degree[y] += 1


@compiled
def part(matrix: Array, x: int, y: int) -> None:
    """REQUIRES: x and y are joined."""
    matrix[x, y >> 6] ^= np.int64(1) << (y & 63)
    matrix[y, x >> 6] ^= np.int64(1) << (x & 63)


@compiled
def shrink_to_core(matrix: Array, k: int, degree: Array, stack: Array) -> None:
    """Leave the edges of the k-core. degree: of each vertex, updated; stack: room for them."""
    top = 0
    for v in range(len(matrix)):
        if 0 < degree[v] < k:
            stack[top] = v
            top += 1
    while top:
        top -= 1
        x = np.int64(stack[top])
        for w in range(matrix.shape[1]):
            rest = matrix[x, w]
            while rest:
                y = (w << 6) + trailing_zeros(rest)
                rest &= rest - 1
                part(matrix, x, y)
                degree[y] -= 1
                if degree[y] == k - 1:
                    stack[top] = y
                    top += 1


@compiled
def _have_common(matrix: Array, x: int, y: int, enough: int) -> bool:
    """Whether x and y have at least `enough` common neighbours."""
    found = 0
    for w in range(matrix.shape[1]):
        both = matrix[x, w] & matrix[y, w]
        if both:
            found += ones(both)
            if found >= enough:
                return True
    return False


@compiled
def shrink_to_truss(matrix: Array, enough: int, queue: Array, is_queued: Array) -> None:
    """Leave the edges of the largest subgraph in which each is in `enough` triangles, 1 or more.
    queue, is_queued: room for all vertices. INVARIANT: an edge in too few has an end in the queue,
    or is the one being checked."""
    n = len(matrix)
    for v in range(n):
        queue[v] = v
        is_queued[v] = 1
    head, waiting = 0, n
    while waiting:
        x = np.int64(queue[head])
        head = head + 1 if head + 1 < n else 0
        waiting -= 1
        is_queued[x] = 0
        for w in range(matrix.shape[1]):
            rest = matrix[x, w]
            while rest:
                y = (w << 6) + trailing_zeros(rest)
                rest &= rest - 1
                if _have_common(matrix, x, y, enough):
                    continue
                part(matrix, x, y)
                for end in (x, y):
                    if not is_queued[end]:
                        is_queued[end] = 1
                        tail = head + waiting
                        queue[tail if tail < n else tail - n] = end
                        waiting += 1


@compiled
def components(matrix: Array, root: Array, stack: Array) -> int:
    """The number of components that have an edge. Writes to root[x] the first vertex of x's
    component, or NONE if x has no edge. stack: room for all vertices."""
    count = 0
    root[: len(matrix)] = NONE
    for first in range(len(matrix)):
        if root[first] != NONE or not matrix[first].any():
            continue
        count += 1
        root[first] = first
        stack[0] = first
        top = 1
        while top:
            top -= 1
            x = np.int64(stack[top])
            for w in range(matrix.shape[1]):
                rest = matrix[x, w]
                while rest:
                    y = (w << 6) + trailing_zeros(rest)
                    rest &= rest - 1
                    if root[y] == NONE:
                        root[y] = first
                        stack[top] = y
                        top += 1
    return count
