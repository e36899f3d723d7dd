"""An estimate of the work of enumerating subsets.

Source: Knuth, "Estimating the efficiency of backtrack programs", Mathematics of Computation
29(129), 1975, doi:10.1090/S0025-5718-1975-0373371-6. A random descent goes from node to child, and
weighs each node's candidates by the inverse of the probability of getting there; the mean over
descents is an unbiased estimate of the sum over all nodes. A child is chosen in proportion to the
leaves it would have in a complete graph. So the estimate is exact for a complete graph, and good
where a nearly complete part holds most of the work, which suffices to choose a method. Descents
begin at evenly spaced roots, and are the same in every run.
"""

from __future__ import annotations

import numpy as np

from lpma.arrays import to_host
from lpma.cpu.jit import compiled

from ...arrays import Array
from .two_hop_cpu import after
from .types import Search

DESCENTS = 512
LEAST = 1e-300  # the smallest probability to divide by


def work(search: Search, most: float = np.inf) -> float:
    """The estimated sum of candidates over all nodes of a search, or some number above `most` as
    soon as it exceeds that."""
    graph = search.graph
    n = graph.num_left
    if n == 0:
        return 0.0
    roots = np.linspace(0, n - 1, min(DESCENTS, n)).astype(np.int64)
    rows = tuple(map(to_host, graph.rows))
    share = n / len(roots)
    return share * float(_descend(roots, *rows, search.depth, search.least, most / share))


@compiled
def _descend(
    roots: Array, indptr: Array, indices: Array, back_indptr: Array, back: Array, depth: int,
    least: int, most: float,
) -> float:  # fmt: skip
    """The sum over descents from these roots; they end once it exceeds `most`."""
    state = np.uint64(1)
    n = len(indptr) - 1
    met, candidate = np.zeros(n, np.int64), np.zeros(n, np.int64)
    found = np.empty(n, np.int64)
    total = 0.0
    for number in range(len(roots)):
        u = roots[number]
        common = indices[indptr[u] : indptr[u + 1]].copy()
        times = 1.0
        for level in range(1, depth):
            mark = number * depth + level  # on the candidates of this node
            parent = mark - 1 if level > 1 else -1
            count = 0
            for b in common:
                row = back[back_indptr[b] : back_indptr[b + np.uint32(1)]]
                for w in row[after(row, u) :]:
                    met[w] += 1
                    if met[w] == least and (parent < 0 or candidate[w] == parent):
                        candidate[w] = mark
                        found[count] = w
                        count += 1
            for b in common:
                row = back[back_indptr[b] : back_indptr[b + np.uint32(1)]]
                for w in row[after(row, u) :]:
                    met[w] = 0
            if count < depth - level:
                break
            total += times * count
            if total > most:
                return total
            found[:count].sort()
            place, probability, state = _least_of_subset(count, depth - level, state)
            times /= max(probability, LEAST)
            u = found[place]
            common = _shared(common, indices[indptr[u] : indptr[u + 1]])
    return total


@compiled
def _least_of_subset(count: int, size: int, state: np.uint64) -> tuple[int, float, np.uint64]:
    """The least member of a random subset of 0 … count - 1, its probability, and the next state of
    the random generator (Knuth's linear congruential one)."""
    probability = 1.0
    for place in range(count - size):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        share = size / (count - place)
        if np.float64(state >> np.uint64(11)) * 2.0**-53 < share:
            return place, probability * share, state
        probability *= 1 - share
    return count - size, probability, state


@compiled
def _shared(a: Array, b: Array) -> Array:
    """The intersection of two sorted rows."""
    shared = np.empty(min(len(a), len(b)), a.dtype)
    i, j, count = 0, 0, 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            shared[count] = a[i]
            count += 1
        x, y = a[i], b[j]
        i += x <= y
        j += y <= x
    return shared[:count]
