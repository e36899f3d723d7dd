"""What kernels read at their bounds: stores and graphs of nothing, of one edge, of a few. Takes
seconds: python -m tests.support.fence after tests.support.fence.small"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np

import algorithms
import lpma
from algorithms.pagerank import cpu as pagerank
from algorithms.sharded import split
from lpma.cpu import pieces
from tests.support import kernel_workload

Edges = list[tuple[int, int]]


def graphs() -> dict[str, Edges]:
    """By what they are. Bits of vertices fill a word, miss one of it, or have one in the next."""
    rng = np.random.default_rng(1)
    return {
        "nothing": [],
        "a loop": [(0, 0)],
        "an edge": [(0, 1)],
        "a late edge": [(6, 70)],
        "a triangle": [(0, 1), (1, 2), (2, 0)],
        "a clique": [(u, v) for u in range(7) for v in range(u)],
        "a star": [(9, v) for v in range(40)],
        **{f"a path of {n}": [(u, u + 1) for u in range(n - 1)] for n in (63, 64, 65)},
        "many": [(int(u), int(v)) for u, v in rng.integers(0, 50, (400, 2))],
    }


def analyse(edges: Edges, directed: bool) -> None:
    """Every algorithm, on a snapshot as it comes and on one after a change."""
    g = lpma.Graph(directed, device="cpu")
    g.insert([u for u, _ in edges], [v for _, v in edges])
    for _ in range(2):
        s = g.snapshot()
        if edges:
            kernel_workload.analyse(s)
            kernel_workload.analyse((s.indptr.copy(), s.indices.copy()))
            kernel_workload.analyse_shards(s)
        else:
            _analyse_nothing(s)
        g.insert(*(edges[0][::-1] if edges else (0, 1)))
        edges = edges or [(0, 1)]


def _analyse_nothing(s: lpma.Snapshot) -> None:
    """What does not ask for a vertex."""
    for function in (
        algorithms.core_numbers, algorithms.triangle_count, algorithms.triangles,
        algorithms.edge_support, algorithms.truss_numbers, algorithms.connected_components,
        algorithms.strongly_connected_components, algorithms.pagerank,
    ):  # fmt: skip
        function(s)
    for model in ("component", "core", "truss"):
        algorithms.diversity(s, model, 3)
    spread: Any = algorithms.ShardedSnapshot.of(split(s, 2))
    algorithms.core_numbers(spread)
    algorithms.connected_components(spread)


def main() -> None:
    with patch.object(kernel_workload, "SIZES", (1, 2, 20, 300)):
        for options in kernel_workload.OPTIONS:
            kernel_workload.use_store(lpma.Graph(device="cpu", **options))
    for directed in (True, False):
        for name, edges in graphs().items():
            print(name, flush=True)
            analyse(edges, directed)
        with patch.object(pieces, "FEW", 0), patch.object(pagerank, "CACHED", 0):
            analyse(graphs()["many"], directed)  # as in large graphs


if __name__ == "__main__":
    main()
