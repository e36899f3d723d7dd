"""Vertex updates on the GPU: a workload of our own, after the paper's Appendix B.

Vertices are added isolated, removed again, and removed with all their edges; without an
in-neighbour store the in-edges are found by a scan.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import workloads_gpu
from ...keys import Array, ends_of
from ...report import Report, Setting
from ...stopwatch import Kernel, WrongAnswer, measure, on_device
from ...workloads_gpu import Stream
from .base import Ours

ROUNDS, WARMUP = 7, 2


def gpu_vertices(setting: Setting) -> Report:
    report = Report("gpu-vertices", "milliseconds a batch of vertex updates, median")
    scale, edges = (14, 100_000) if setting.quick else (20, 10_000_000)
    stream = workloads_gpu.rmat(scale, edges, 0)
    for predecessors in (True, False):
        for size in (100,) if setting.quick else (10**3, 10**4):
            if not setting.out_of_time():
                report.add(_row(stream, size, predecessors))
    return report


def _row(stream: Stream, size: int, predecessors: bool) -> dict[str, Any]:
    store = Ours("lpma", predecessors=predecessors)
    store.load(stream.base(), stream.vertices, len(stream.keys))
    graph, n = store.graph, stream.vertices
    fresh = [n + i * size + np.arange(size) for i in range(ROUNDS + WARMUP)]
    names = np.random.default_rng(size).permutation(n)
    # Each round removes other vertices, most of them with edges.
    old = [names[i * size : (i + 1) * size] for i in range(ROUNDS + WARMUP)]
    row = {
        "graph": stream.name, "in-store": predecessors, "batch": size,
        "add": _median(graph.add_vertices, fresh),
        "remove added": _median(graph.remove_vertices, fresh),
        "remove with edges": _median(graph.remove_vertices, old),
    }  # fmt: skip
    _verify(store, stream, np.concatenate(old))
    return row


def _median(change: Any, batches: list[Array]) -> float:
    kernel = Kernel(lambda i: batches[i].astype(np.uint32), change)
    timings = measure({"": kernel}, lambda *_: None, rounds=ROUNDS, warmup=WARMUP, clock=on_device)
    return timings[""].median * 1e3


def _verify(store: Ours, stream: Stream, gone: Array) -> None:
    import cupy

    removed = cupy.zeros(stream.vertices, bool)
    removed[cupy.asarray(gone)] = True
    keys = stream.base()
    src, dst = ends_of(keys)
    left = keys[~(removed[src] | removed[dst])]
    if store.graph.num_edges != len(left):
        raise WrongAnswer(f"{store.graph.num_edges:,} edges left, expected {len(left):,}")
    store.verify(left)
