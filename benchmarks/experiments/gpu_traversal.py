"""Components, BFS and PageRank on the GPU, on the graphs of `traversal`, with the same checks.

*bytes* is what one pass over the graph must read at least: row starts and targets once, and a value
a vertex, read and written; *floor* is the time for that at 4.2 TB/s. PageRank passes once a round.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

from lpma import Snapshot
from lpma.arrays import to_host

from ..gpu.device import seconds
from ..report import Report, Setting
from .traversal import ALGORITHMS, check, graphs, ours, standard

ROUNDS, WARMUP = 9, 2
BANDWIDTH = 4.2e12  # bytes a second, read and written


def run(setting: Setting) -> Report:
    report = Report("gpu-traversal", "milliseconds, median")
    for name, s in graphs(setting.quick, "cuda"):
        for algorithm in ALGORITHMS:
            if not setting.out_of_time():
                report.add(_row(name, s, algorithm))
    return report


def _row(name: str, s: Snapshot, algorithm: str) -> dict[str, Any]:
    source = int(np.diff(to_host(s.indptr)).argmax())
    way = ours(algorithm, s, source)
    check("lpma", algorithm, to_host(way()), standard(algorithm, s, source))
    times = [seconds(way) * 1e3 for _ in range(ROUNDS + WARMUP)][WARMUP:]
    passed = 8 * s.num_vertices + 4 * len(s.indices) + 16 * s.num_vertices
    return {
        "graph": name, "edges": s.num_edges, "algorithm": algorithm,
        "ms": statistics.median(times), "slowest": max(times),
        "bytes": passed, "floor": passed / BANDWIDTH * 1e3,
    }  # fmt: skip
