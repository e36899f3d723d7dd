"""`python -m tests.support.emulated.algorithms SEED`: algorithms' kernels that take steps, on an
emulated device, against SciPy, NetworkX and the definitions. Where arrays are fenced, reading
beside one ends the process:

python -m tests.support.fence after tests.support.emulated.algorithms 0

Not here: kernels in which parts of a warp exchange values (core/refine.cu), and what the host has
CuPy's own kernels do."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as sparse

from . import cupy_on_host

Array = Any
Rows = tuple[Array, Array]  # indptr, indices
NO_LIMIT = int(np.iinfo(np.int32).max)


def graphs(seed: int) -> Iterator[tuple[int, Array, Array]]:
    """Edges (n, src, dst): paths, a hub, a clique, sources and sinks, at random."""
    rng = np.random.default_rng(seed)
    yield 1, np.zeros(1, np.int64), np.zeros(1, np.int64)
    yield 200, np.arange(199), np.arange(1, 200)
    yield 900, np.append(np.zeros(900, np.int64), np.arange(900)), rng.integers(0, 900, 1800)
    yield 70, *np.divmod(np.arange(2500), 50)
    yield 60, np.repeat(np.arange(20), 40), 20 + np.tile(np.arange(40), 20)
    yield 300, *rng.integers(0, 300, (2, 500))


def rows_of(n: int, src: Array, dst: Array) -> Rows:
    """Sorted rows without repeats."""
    edges = np.unique(src * n + dst)
    starts = np.searchsorted(edges, n * np.arange(n + 1)).astype(np.int64)
    return starts, (edges % n).astype(np.uint32)


def same(found: Array, expected: Array) -> None:
    np.testing.assert_array_equal(np.array(found), expected)


def search(out: Rows, back: Rows) -> None:
    """Levels, distances and strong components."""
    from algorithms.bfs import cuda as bfs
    from algorithms.shortest_paths import cuda as paths
    from algorithms.shortest_paths.cpu import Lengths
    from algorithms.strong_components import cuda as strong

    view, reverse = on_device(out), on_device(back)
    n, weights = len(out[0]) - 1, np.random.default_rng(1).random(len(out[1]))
    matrix = sparse.csr_array((weights, out[1], out[0]), shape=(n, n))
    graph = sparse.csgraph
    for source in {0, n // 2}:
        hops = graph.shortest_path(matrix, unweighted=True, indices=source)
        for way_back in (reverse, None):
            same(bfs.search(view, way_back, source)[0], np.where(hops < n, hops, -1))
        lengths = Lengths(on_device(weights), float(weights.mean()))
        found = paths.distances(view, lengths, source)
        np.testing.assert_allclose(found, graph.dijkstra(matrix, indices=source), rtol=1e-12)
        before = np.array(paths.predecessors(view, lengths, source, found))
        for v in np.flatnonzero(before >= 0):
            assert found[before[v]] + matrix[before[v], v] == found[v]
    component = graph.connected_components(matrix, connection="strong")[1]
    smallest = np.unique(component, return_index=True)[1][component]
    for most in (1, 2, 3, 5, 9, 17, strong.steps(view)):  # with few steps it may give up
        label, gave_up = strong.within(view, reverse, most)
        if not gave_up:
            same(label, smallest)
    assert not gave_up


def peel(rows: Rows) -> None:
    """Core numbers, and truss numbers by the rows of edges' ends."""
    from algorithms.core import cuda as core
    from algorithms.truss import cuda as truss
    from algorithms.truss.intersect_cpu import EdgeRows

    indptr, indices = rows
    n, src = len(indptr) - 1, np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    graph = nx.Graph(zip(src.tolist(), indices.tolist(), strict=True))
    graph.add_nodes_from(range(n))
    numbers = nx.core_number(graph)
    found = core.peeled(on_device(indptr), on_device(indices), None)
    same(found, [numbers[v] for v in range(n)])
    ends = np.stack((src, indices)).astype(np.uint32)
    edges, number = np.unique(np.sort(ends, 0), axis=1, return_inverse=True)
    held = EdgeRows(*map(on_device, (*edges, indptr, indptr[1:], indices, number.astype(np.int32))))
    triangles = [len(set(graph[u]) & set(graph[v])) for u, v in edges.T.tolist()]
    support = on_device(np.array(triangles, np.int32))
    found = np.array(truss.by_intersection(held, support, NO_LIMIT)) if triangles else np.empty(0)
    for k in range(3, int(max(found, default=2)) + 2):
        kept = {tuple(sorted(edge)) for edge in nx.k_truss(graph, k).edges}
        assert kept == set(map(tuple, edges.T[found >= k].tolist()))


def peel_sides(left: Rows, right: Rows) -> None:
    """What is left of both sides, as another peeling says that needs no order."""
    from algorithms.biclique.bipartite import cuda as bipartite

    most = (2, 3)
    degrees = np.concatenate((np.diff(left[0]), np.diff(right[0]))).astype(np.uint64)
    found = on_device(degrees)
    a, b, c, d = map(on_device, (*left, *right))
    bipartite.peel(a, b, c, d, found, *most)
    n = len(left[0]) - 1
    src, alive = np.repeat(np.arange(n), np.diff(left[0])), np.ones(len(left[1]), np.bool_)
    for _ in range(2 * n):
        of = [np.bincount(ends[alive], minlength=n) for ends in (src, left[1])]
        alive &= (of[0][src] >= most[0]) & (of[1][left[1]] >= most[1])
    for count, least, (first, last) in zip(of, most, pairwise((0, n, 2 * n)), strict=True):
        inside = count >= least
        same(np.array(found).view(np.int64)[first:last] >= least, inside)
        same(np.array(found)[first:last][inside], count[inside])


def on_device(given: Any) -> Any:
    """An array, or rows as a View, in new arrays of the device's."""
    from algorithms.views.simple import View

    if isinstance(given, tuple):
        return View(*map(on_device, given))
    copied = importlib.import_module("cupy").empty(given.shape, given.dtype)
    copied[...] = given
    return copied


def main() -> None:
    cupy_on_host.install()
    for n, src, dst in graphs(int(sys.argv[1])):
        out, back = rows_of(n, src, dst), rows_of(n, dst, src)
        search(out, back)
        other = src != dst
        ends = src[other], dst[other]
        peel(rows_of(n, np.concatenate(ends), np.concatenate(ends[::-1])))
        peel_sides(out, back)
    print("all agree")


if __name__ == "__main__":
    main()
