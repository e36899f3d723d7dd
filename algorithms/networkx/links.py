"""NetworkX's link prediction: scores of pairs of nodes by their common neighbours.

Pairs are scored lazily, PAIRS at a time, on the graph's device: without `ebunch` all pairs that
were not joined when the function was called, in NetworkX's order. As in NetworkX, an empty sum is
the integer 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

import algorithms
from lpma.arrays import device_of, to_host

from ..arrays import Array, beside
from ..similarity import of_pairs
from ..views.simple import View
from .converted import ConvertedGraph, networkx
from .degrees import degrees

Pairs = Iterable[tuple[Any, Any]] | None
Scores = Iterator[tuple[Any, Any, float]]
Score = Callable[[Array, Array], list[Any]]  # of pairs of rows

PAIRS = 1 << 16


def jaccard_coefficient(G: ConvertedGraph, ebunch: Pairs = None) -> Scores:
    def score(left: Array, right: Array) -> list[Any]:
        count, _, union = _of_pairs(G, left, right)
        return [c / u if u else 0 for c, u in zip(count.tolist(), union.tolist(), strict=True)]

    return _scored(G, ebunch, score)


def adamic_adar_index(G: ConvertedGraph, ebunch: Pairs = None) -> Scores:
    return _scored(G, ebunch, _sums(G, np.log))


def resource_allocation_index(G: ConvertedGraph, ebunch: Pairs = None) -> Scores:
    return _scored(G, ebunch, _sums(G, lambda degree: degree))


def preferential_attachment(G: ConvertedGraph, ebunch: Pairs = None) -> Scores:
    degree = degrees(G).astype(np.int64)
    return _scored(G, ebunch, lambda left, right: (degree[left] * degree[right]).tolist())


def common_neighbor_centrality(
    G: ConvertedGraph, ebunch: Pairs = None, alpha: float = 0.8
) -> Scores:
    def score(left: Array, right: Array) -> list[Any]:
        if bool((left == right).any()):
            raise networkx().NetworkXAlgorithmError("Self loops are not supported")
        count = _of_pairs(G, left, right)[0].tolist()
        if alpha == 1:
            return count
        distances = _distances(G, left, right).tolist()
        return [
            alpha * c + (1 - alpha) * len(G) / (d if d >= 0 else np.inf)
            for c, d in zip(count, distances, strict=True)
        ]

    return _scored(G, ebunch, score)


def _scored(G: ConvertedGraph, ebunch: Pairs, score: Score) -> Scores:
    """(u, v, score) for each pair. Raises NodeNotFound at once if a node is missing."""
    if ebunch is None:
        return _in_parts(G, _not_joined(G), score)
    pairs = list(ebunch)
    nodes = {node for u, v in pairs for node in (u, v)}
    if not nodes <= G.number.keys():  # NetworkX names the first
        for u, v in pairs:
            for node in (u, v):
                G.require(node, f"Node {node} not in G.")
    return _in_parts(G, pairs, score)


def _not_joined(G: ConvertedGraph) -> Iterator[tuple[Any, Any]]:
    """The pairs that no edge joins, in NetworkX's order; by the rows, since the original may change
    meanwhile."""
    if G.is_directed():
        nodes = dict.fromkeys(G.labels).keys()
        for v, node in enumerate(G.labels):
            for other in nodes - set(G.structure.neighbors(v)) - {node}:
                yield node, other
        return
    remaining = set(G.labels)
    while remaining:
        node = remaining.pop()
        for other in remaining - set(G.structure.neighbors(G.number[node])):
            yield node, other


def _in_parts(G: ConvertedGraph, pairs: Iterable[tuple[Any, Any]], score: Score) -> Scores:
    remaining = iter(pairs)
    while part := list(islice(remaining, PAIRS)):
        ends = tuple(zip(*part, strict=True))
        number = G.number.__getitem__
        left, right = (np.fromiter(map(number, end), np.int64, len(end)) for end in ends)
        yield from zip(*ends, score(left, right), strict=True)


def _sums(G: ConvertedGraph, divisor: Callable[[Array], Array]) -> Score:
    """The sums of 1/divisor(degree) over the common neighbours of each pair."""
    with np.errstate(divide="ignore"):
        values = beside(G.snapshot._indptr, 1 / divisor(degrees(G)))

    def score(left: Array, right: Array) -> list[Any]:
        count, total, _ = _of_pairs(G, left, right, values)
        if not bool(np.isfinite(total).all()):  # a node beside itself: its neighbour of degree 1
            raise ZeroDivisionError("division by zero")
        return [t if c else 0 for c, t in zip(count.tolist(), total.tolist(), strict=True)]

    return score


def _of_pairs(
    G: ConvertedGraph, left: Array, right: Array, values: Array | None = None
) -> tuple[Array, ...]:
    """As `similarity.of_pairs`, with pairs and results on the host."""
    s = G.snapshot
    with device_of(s._indptr):
        ends = beside(s._indptr, left), beside(s._indptr, right)
        found = of_pairs(View(s._indptr, s._indices), *ends, values)
        return tuple(map(to_host, found))


def _distances(G: ConvertedGraph, left: Array, right: Array) -> Array:
    """int64: the distance of each pair, −1 if there is no path; by a search per distinct first
    node."""
    found = np.empty(len(left), np.int64)
    by_source = np.argsort(left, kind="stable")
    starts = np.flatnonzero(np.diff(left[by_source], prepend=-1))
    for pairs in np.split(by_source, starts[1:]):
        hops = to_host(algorithms.bfs(G.snapshot, int(left[pairs[0]])))
        found[pairs] = hops[right[pairs]]
    return found
