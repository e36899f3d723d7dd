"""An ego network as a matrix of bits on the CPU: shrinking it to its k-core or k-truss, and finding
the components of what is left.

Bit y of row x says whether x and y are joined; rows are int64 words, the matrix is symmetric. A row
is so short that checking whether two vertices have enough common neighbours takes a handful of
instructions, fewer than keeping count of them: the check stops as soon as there are enough. When an
edge is taken out of a truss, the edges that it may bring below the bound lie in the rows of its
ends, which are looked at again.
"""

from __future__ import annotations

import numpy as np

from lpma.cpu.instructions import ones
from lpma.cpu.jit import compiled

from ...arrays import Array
from ..model import NONE


@compiled
def join(matrix: Array, x: int, y: int) -> None:
    matrix[x, y >> 6] |= np.int64(1) << (y & 63)
    matrix[y, x >> 6] |= np.int64(1) << (x & 63)


@compiled
def part(matrix: Array, x: int, y: int) -> None:
    """REQUIRES: x and y are joined."""
    matrix[x, y >> 6] ^= np.int64(1) << (y & 63)
    matrix[y, x >> 6] ^= np.int64(1) << (x & 63)


@compiled
def lowest(word: int) -> int:
    """The place of the lowest bit that is set in a word. REQUIRES: the word is not 0."""
    return ones((word & -word) - 1)


@compiled
def shrink_to_core(matrix: Array, k: int, degree: Array, stack: Array) -> None:
    """Leave the edges of the k-core. degree: of each vertex, updated; stack: room for all
    vertices."""
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
                y = (w << 6) + lowest(rest)
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
    queue, is_queued: room for all vertices.

    An edge that is in too few has an end in the queue, or is the one being looked at."""
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
                y = (w << 6) + lowest(rest)
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
    """The number of components that have an edge. Writes to root[x] the first vertex of the
    component of x, or NONE if x has no edge. stack: room for all vertices."""
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
                    y = (w << 6) + lowest(rest)
                    rest &= rest - 1
                    if root[y] == NONE:
                        root[y] = first
                        stack[top] = y
                        top += 1
    return count
