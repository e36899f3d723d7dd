"""Queries on the GPU: edges and sorted successors. A workload of our own, after Section VII-D.

Half of the edges asked for are there; vertices are drawn uniformly. Ids come from plain host
arrays (*host*) or lie on the device (*device*). *floor* is the time to write the answer's bytes
at 4.2 TB/s. PageRank and BFS, the paper's other queries, are in algorithms/traversal.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import workloads_gpu
from ...keys import Array, ends_of, keys_of
from ...report import Report, Setting
from ...stopwatch import WrongAnswer, alone
from ...workloads_gpu import Stream
from .base import Ours
from .updates import DRAWS

ROUNDS, WARMUP = 9, 2
BANDWIDTH = 4.2e12  # bytes per second, read and written


def gpu_queries(setting: Setting) -> Report:
    report = Report("gpu-queries", "milliseconds a batch of queries, median")
    for stream in _graphs(setting):
        if setting.out_of_time():
            continue
        store, base = Ours("lpma"), stream.base()
        store.load(base, stream.vertices, len(base))
        for size in (1_000,) if setting.quick else (10**4, 10**5):
            report.add(edges(store, stream, base, size))
            report.add(_successors(store, stream, base, size))
    return report


def _graphs(setting: Setting) -> Any:
    if setting.quick:
        yield workloads_gpu.rmat(14, 100_000, 0)
        return
    yield workloads_gpu.rmat(20, 10_000_000, 0)
    yield workloads_gpu.rmat(20, 75_000_000, 0, draws=DRAWS)
    yield workloads_gpu.uniform(20, 10_000_000, 0)


def edges(store: Ours, stream: Stream, base: Any, size: int) -> dict[str, Any]:
    import cupy

    rng = np.random.default_rng(size)
    there = base[cupy.asarray(rng.integers(0, len(base), size // 2))].get()
    absent = rng.integers(0, stream.vertices, (2, size - len(there)), dtype=np.uint32)
    keys = rng.permutation(np.concatenate((there, keys_of(*absent))))
    found = store.graph.edges(*ends_of(keys)).found
    wanted = cupy.asarray(keys)
    place = cupy.minimum(cupy.searchsorted(base, wanted), len(base) - 1)
    if not bool((found == (base[place] == wanted)).all()):
        raise WrongAnswer("edge queries answered wrongly")
    return _row(stream, "edges", size, ends_of(keys), store.graph.edges, 13 * size)


def _successors(store: Ours, stream: Stream, base: Any, size: int) -> dict[str, Any]:
    import cupy

    rng = np.random.default_rng(size)
    u = rng.integers(0, stream.vertices, size, dtype=np.uint32)
    rows = store.graph.successors(u)
    asked = cupy.asarray(u).astype(cupy.uint64)
    first, end = (
        cupy.searchsorted(base, (asked + np.uint64(i)) << np.uint64(32)) for i in range(2)
    )
    if not bool((cupy.diff(rows.indptr) == end - first).all()):
        raise WrongAnswer("successor queries: wrong degrees")
    place = cupy.arange(int(rows.indptr[-1]))
    row = cupy.searchsorted(rows.indptr[1:], place, side="right")
    wanted = base[first[row] + place - rows.indptr[row]]
    if not bool((keys_of(asked[row], rows.ids) == wanted).all()):
        raise WrongAnswer("successor queries: wrong ids")
    answered = 16 * len(rows.ids) + 8 * (size + 1)
    return _row(stream, "successors", size, (u,), store.graph.successors, answered)


def _row(
    stream: Stream, what: str, size: int, columns: tuple[Array, ...], ask: Any, answered: int
) -> dict[str, Any]:
    import cupy

    on_device = tuple(map(cupy.asarray, columns))

    def median(given: tuple[Any, ...]) -> float:
        return alone(lambda: ask(*given), rounds=ROUNDS, warmup=WARMUP) * 1e3

    floor = answered / BANDWIDTH * 1e3
    device, host = median(on_device), median(columns)
    return {
        "graph": stream.name, "edges": stream.loaded, "query": what, "batch": size,
        "device": device, "host": host, "bytes": answered, "floor": floor,
        "to floor": float(device) / floor,
    }  # fmt: skip
