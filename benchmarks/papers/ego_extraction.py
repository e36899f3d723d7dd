"""Extracting all ego networks of a graph and doing nothing with them, on either device."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np

from algorithms.diversity.extract import Scorer
from algorithms.diversity.extract import cpu as extract_cpu
from lpma.cpu.pieces import by_rows

from ..keys import Array
from ..stopwatch import synchronize
from .diversity_programs import Graph, K, Program


def extraction(program: Program, graph: Graph) -> Callable[[], int]:
    """A run that answers with the number of edges of all ego networks; the sizes of these are known
    beforehand."""
    scorer = Scorer(graph.on[program.device], "truss", K)
    owners = np.flatnonzero(scorer.bounds()).astype(np.uint32)
    if program.device == "cuda":
        return lambda: _on_device(scorer, owners)
    return lambda: _on_host(scorer, owners, program.all_workers)


def _on_host(scorer: Scorer, owners: Array, in_threads: bool) -> int:
    egos = scorer.egos
    upto = np.concatenate(([0], np.cumsum(egos.edges[owners])))
    most = int(egos.vertices[owners].max(initial=0)), int(egos.edges[owners].max(initial=0))
    rows = egos.view.indptr, egos.view.indices
    if in_threads:
        return int(sum(by_rows(_extract, upto, owners, *rows, *most)))
    return int(_extract(0, len(owners), owners, *rows, *most))


@numba.njit(cache=True, nogil=True)
def _extract(
    first: int, last: int, owners: Array, indptr: Array, indices: Array, vertices: int, edges: int
) -> int:
    place_of = np.zeros(len(indptr) - 1, np.int32)
    ends = np.empty((edges, 2), np.int32)
    starts, mark = np.empty(vertices + 1, np.int64), np.zeros(vertices, np.int64)
    adjacent, edge = np.empty(2 * edges, np.int32), np.empty(2 * edges, np.int32)
    total = 0
    for i in range(first, last):
        owner = np.int64(owners[i])
        m = extract_cpu.edges(owner, indptr, indices, place_of, ends)
        extract_cpu.rows(indptr[owner + 1] - indptr[owner], ends[:m], starts, adjacent, edge, mark)
        total += m
    return total


def _on_device(scorer: Scorer, owners: Array) -> int:
    import cupy

    from algorithms.diversity.extract import cuda as extract_cuda

    total, there = 0, cupy.asarray(owners)
    for first, last in extract_cuda.batches(scorer.egos, owners):
        _, view = extract_cuda.extracted(scorer.egos, owners[first:last], there[first:last])
        total += len(view.indices) // 2
    synchronize()
    return total
