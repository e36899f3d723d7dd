"""Shards on the devices of one host: what they apply together, and what algorithms gain by them.

A shard a device, each in a thread with a graph of its own, as a `Cluster` of the engine "local" has
them. Edges are drawn on the devices, so that no log stands in the way. `times` is to one device
with the whole graph: in the first table to the same number of edges a batch and device, in the
second to the functions of `algorithms` on its Snapshot. Each run of an algorithm begins with parts
or a snapshot of which no view was derived, and what it finds is compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import algorithms
from algorithms.sharded import LocalWorkers, Part, ShardedSnapshot
from lpma import Graph, Snapshot
from lpma.arrays import to_host
from lpma.sharding import owners_of

from .. import device, workloads_gpu
from ..device import on_each
from ..keys import ends_of
from ..report import Report, Setting
from ..stopwatch import NAN, WrongAnswer, median
from ..stores.gpu.race import Wait, together

BATCHES, WARM_UP, ROUNDS = 20, 3, 3
SWEEPS = 20  # of PageRank


@dataclass(frozen=True)
class Size:
    scale: int
    edges: int  # of the whole graph
    batches: tuple[int, ...]  # edges a batch and shard


def gpu_cluster(setting: Setting) -> list[Report]:
    size = Size(14, 200_000, (1000, 10_000))
    if not setting.quick:
        size = Size(24, 1 << 27, (10_000, 100_000, 1_000_000))
    counts = [count for count in (1, 2, 4, 8) if count <= device.count()]
    return [_updates(setting, size, counts), _algorithms(setting, size, counts)]


# Updates ---------------------------------------------------------------------------------------


def _updates(setting: Setting, size: Size, counts: list[int]) -> Report:
    report = Report("gpu-cluster", "millions of edges a second that all shards apply together")
    for batch in size.batches:
        alone = NAN
        for count in counts:
            if setting.out_of_time():
                break
            rates = [_rate(size.scale, batch, count) for _ in range(ROUNDS)]
            alone = median(rates) if count == 1 else alone
            row = {"batch": batch, "devices": count, "M edges/s": median(rates)}
            report.add(row | {"times": median(rates) / alone})
    return report


def _rate(scale: int, batch: int, count: int) -> float:
    """Millions of edges a second, from the first batch to the last of the slowest shard."""

    def shard(number: int, ready: Wait, ended: Wait) -> None:
        import cupy

        with cupy.cuda.Device(number):
            keys = workloads_gpu.rmat(scale, 0, batch * (BATCHES + WARM_UP)).keys
            src, dst = ends_of(keys)
            graph = Graph(device=f"cuda:{number}")
            for turn in range(BATCHES + WARM_UP):
                if turn == WARM_UP:
                    cupy.cuda.get_current_stream().synchronize()
                    ready()
                rows = slice(turn * batch, (turn + 1) * batch)
                graph.insert(src[rows], dst[rows])
            cupy.cuda.get_current_stream().synchronize()
            ended()

    took = together(count, shard)
    return count * batch * BATCHES / took / 1e6


# Algorithms ------------------------------------------------------------------------------------


def _algorithms(setting: Setting, size: Size, counts: list[int]) -> Report:
    report = Report("gpu-cluster", f"algorithms on RMAT {size.scale}, undirected; milliseconds")
    graph = _graph(size, 0, 1, directed=False)
    alone: dict[str, tuple[float, Any]] = {}
    for name, algorithm in _ALGORITHMS.items():
        alone[name] = _best(graph.snapshot, algorithm)
        report.add(_row(name, "one Snapshot", alone[name][0], 1.0))
    del graph
    for count in counts:
        graphs = on_each(count, lambda i: _graph(size, i, count))  # noqa: B023
        for name, algorithm in _ALGORITHMS.items():
            if setting.out_of_time():
                return report
            workers: list[LocalWorkers] = []
            ms, found = _best(lambda: _sharded(graphs, workers), algorithm)  # noqa: B023
            _compare(name, found, alone[name][1])
            row = _row(name, f"{count} shards", ms, alone[name][0] / ms)
            last = workers[-1]
            report.add(row | {"supersteps": last.steps, "MB sent": last.bytes_sent / 1e6})
    return report


def _row(name: str, where: str, ms: float, times: float) -> dict[str, Any]:
    row = {"algorithm": name, "where": where, "ms": ms, "times": times}
    return row | {"supersteps": 0, "MB sent": 0.0}


_ALGORITHMS: dict[str, Callable[[Any], Any]] = {
    "connected_components": algorithms.connected_components,
    "core_numbers": algorithms.core_numbers,
    "triangle_count": algorithms.triangle_count,
    "pagerank": lambda s: algorithms.pagerank(s, tol=0.0, max_iter=SWEEPS),
}


def _best(fresh: Callable[[], Any], algorithm: Callable[[Any], Any]) -> tuple[float, Any]:
    """The median milliseconds, and what was found; the first run, which may compile, is left
    out."""
    ms, found = [], None
    for _ in range(ROUNDS + 1):
        s = fresh()
        began = time.perf_counter()
        found = algorithm(s)
        found = found if isinstance(found, int) else to_host(found)
        ms.append((time.perf_counter() - began) * 1e3)
    return median(ms[1:]), found


def _compare(name: str, found: Any, expected: Any) -> None:
    if name == "pagerank":
        same = np.allclose(found, expected, rtol=1e-6, atol=1e-12)
    else:
        same = np.array_equal(found, expected)
    if not same:
        raise WrongAnswer(f"{name} differs from one device's")


def _sharded(graphs: list[Graph], made: list[LocalWorkers]) -> ShardedSnapshot:
    snapshots: list[Snapshot] = [graph.snapshot() for graph in graphs]
    parts = [Part.of(s, i, len(graphs), directed=False) for i, s in enumerate(snapshots)]
    made.append(LocalWorkers(parts))
    return ShardedSnapshot.of(made[-1])


def _graph(size: Size, number: int, count: int, directed: bool = True) -> Graph:
    """One shard's rows of the graph, both directions of each edge; or the whole graph, if that is
    undirected."""
    import cupy

    src, dst = ends_of(workloads_gpu.rmat(size.scale, 0, size.edges).keys)
    if directed:
        src, dst = cupy.concatenate((src, dst)), cupy.concatenate((dst, src))
        own = owners_of(src, count) == number
        src, dst = src[own], dst[own]
    graph = Graph(device=f"cuda:{number}", directed=directed)
    for start in range(0, len(src), 1 << 24):
        graph.insert(src[start : start + (1 << 24)], dst[start : start + (1 << 24)])
    return graph
