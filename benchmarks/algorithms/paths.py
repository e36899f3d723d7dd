"""Shortest paths on a CUDA device, beside the CPU of the same machine, to the last bit.

Undirected graphs without loops, weights random from 0 to 1 in float32; paths start from the vertex
of the highest degree. *paths* is distances alone, once the weights have been looked at; *new* looks
at them too, as the first search of a snapshot does; *tree* has distances and predecessors. *cpu* is
distances on the CPU, by one thread, with weights that have been looked at. *floor* is the time for
reading rows and weights once and each target's distance, at the device's bandwidth.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import algorithms
import lpma
from ingest import datasets
from ingest.datasets import generators
from lpma import Snapshot
from lpma.arrays import to_host

from ..report import Report, Setting
from ..stopwatch import WrongAnswer, alone, measure, on_device, plain
from .graphs import DRAWS, SEED, bare, on_host
from .traversal import BANDWIDTH, GPU_ROUNDS, GPU_WARMUP

SCALES = (20, 22)
REAL = ("road-NY", "sx-mathoverflow", "uk-2007-05-100k")


def gpu_paths(setting: Setting) -> Report:
    report = Report("gpu-paths", "milliseconds, median")
    for name, s in _graphs(setting.quick):
        if not setting.out_of_time():
            report.add(_row(name, s))
    return report


def _graphs(quick: bool) -> Iterator[tuple[str, Snapshot]]:
    for name in () if quick else REAL:
        if datasets.find(name) is not None:
            edges = datasets.load(name)
            yield name, _weighted(edges.src, edges.dst)
    for scale in (12,) if quick else SCALES:
        yield f"RMAT {scale}", _weighted(*generators.rmat(scale, DRAWS << scale, seed=SEED))


def _weighted(src: Any, dst: Any) -> Snapshot:
    graph = lpma.Graph(directed=False, times=False, device="cuda")
    apart = src != dst
    weights = np.random.default_rng(SEED).random(int(apart.sum()))
    graph.insert(src[apart], dst[apart], weights)
    return graph.snapshot()._with(added=None)


def _row(name: str, s: Snapshot) -> dict[str, Any]:
    host = on_host(s)
    source = int(np.diff(host.indptr).argmax())
    expected = algorithms.shortest_path_tree(host, source)
    ways = {
        "paths": plain(lambda: algorithms.shortest_paths(s, source)),
        "new": plain(lambda: algorithms.shortest_paths(bare(s), source)),
        "tree": plain(lambda: algorithms.shortest_path_tree(s, source)),
    }

    def same(way: str, _: int, answer: Any) -> None:
        found = answer if way == "tree" else (answer, expected.predecessor)
        if not all(map(np.array_equal, map(to_host, found), expected)):
            raise WrongAnswer(f"{name}: {way} is not as on the CPU")

    timings = measure(ways, same, rounds=GPU_ROUNDS, warmup=GPU_WARMUP, clock=on_device)
    cpu = alone(lambda: algorithms.shortest_paths(host, source), rounds=1, warmup=0)
    passed = 8 * s.num_rows + (4 + 4 + 8) * len(s.indices)
    return {
        "graph": name, "edges": s.num_edges,
        **{way: timing.median * 1e3 for way, timing in timings.items()},
        "floor": passed / BANDWIDTH * 1e3, "cpu": cpu * 1e3,
    }  # fmt: skip
