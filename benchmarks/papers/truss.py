"""Full truss decompositions by every method, among them that of the slides ("affected").

On the device also the default alone on large RMAT, with the most memory that the device held by its
own count, the store and its snapshot included; its answer is checked by counting triangles again
in a truss.

Every round starts from the snapshot alone; the methods must agree. No package that pip installs
decomposes trusses; for one k NetworkX has the k-truss, which it makes by removing edges in passes,
and GraphBLAS makes it of masked products. The published figures are AccTruss's on the same kind of
GPU, for the full decomposition, and the slides' result, 18.47 ms for the road network of California
(its largest truss is 4) on the GPU of their time, with which "affected" on road-NY may be compared
in kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import algorithms
from algorithms.truss import METHODS
from lpma import Snapshot

from ..algorithms import libraries
from ..algorithms.graphs import add_large, bare, memory_columns, rmat, rmat_as_published, snapshots
from ..algorithms.libraries import K
from ..device import memory_held, memory_used
from ..report import Report, Setting, beside
from ..stopwatch import NAN, Action, Kernel, Timing, WrongAnswer, alone, measure, on_device, race

REAL = ("email-Enron", "ego-twitter", "dblp-2010", "road-NY", "uk-2007-05-100k")
ROUNDS, BUDGET_S = 5, 20.0
LARGE_ROUNDS = 3
AFFECTED_MOST = 2_000_000  # triangles: the slides' method recounts them level by level
PEERS = ("graphblas", "networkx")
# RMAT 20 with 18 M draws.
PUBLISHED_MS = {
    "email-Enron": 1487.0, "ego-twitter": 4891.0, "dblp-2010": 1123.0, "uk-2007-05-100k": 4340.0,
    "RMAT 20": 9070.0,
}  # fmt: skip
ONCE_OVER_S = 1.0  # a method this slow is run once on the device


def truss(setting: Setting) -> list[Report]:
    report = Report("truss", "full decomposition, seconds, median")
    scales, names = ((10,), ()) if setting.quick else ((16,), REAL)
    for name, s in snapshots("cpu", scales, names):
        triangles = algorithms.triangle_count(s)
        methods = [m for m in METHODS if m != "affected" or triangles <= AFFECTED_MOST]
        timings, most = _race(s, methods)
        row: dict[str, Any] = {"graph": name, "edges": s.num_edges, "triangles": triangles}
        row |= {m: timings[m].median if m in timings else None for m in METHODS}
        report.add(row | {"largest": most})
    return [report, _k_truss(setting)]


def _race(s: Snapshot, methods: list[str]) -> tuple[dict[str, Timing], int]:
    expected = algorithms.truss_numbers(s).truss

    def verify(name: str, _: int, answer: Any) -> None:
        if not np.array_equal(answer.truss, expected):
            raise WrongAnswer(f"{name}: another decomposition than the default's")

    def kernel(method: str) -> Kernel:
        return Kernel(lambda _: bare(s), lambda s: algorithms.truss_numbers(s, method))

    kernels = {method: kernel(method) for method in methods}
    timings = measure(kernels, verify, rounds=ROUNDS, budget_s=BUDGET_S)
    return timings, int(expected.max(initial=0))


def _k_truss(setting: Setting) -> Report:
    report = Report("k-truss", f"the {K}-truss, seconds, median")
    for scale in (10,) if setting.quick else (14, 16):
        s, peers = rmat(scale, "cpu"), PEERS if scale < 16 else PEERS[:1]
        row = {"graph": f"RMAT {scale}", "edges": s.num_edges}
        report.add(row | beside(k_truss(s, peers), PEERS))
    report.notes.append("ratio: the fastest of the others to lpma.")
    return report


def k_truss(s: Snapshot, peers: Sequence[str] = PEERS) -> dict[str, Timing]:
    """The k-truss of one k, a snapshot without views to begin from, beside other libraries."""
    others = libraries.pairs("k_truss", s, peers)
    left = algorithms.k_truss(bare(s), K).num_edges

    def check(name: str, found: Any) -> None:
        if (found if name in others else found.num_edges) != left:
            raise WrongAnswer(f"{name}: {left} edges are in the {K}-truss")

    actions: dict[str, Action] = {"lpma": lambda: algorithms.k_truss(bare(s), K)}
    return race(
        actions | libraries.runs_of(others), libraries.read(others, check),
        rounds=ROUNDS, budget_s=BUDGET_S,
    )  # fmt: skip


def gpu_truss(setting: Setting) -> list[Report]:
    report = Report("gpu-truss", "full decomposition, milliseconds, median")
    for name, s in snapshots("cuda", (), () if setting.quick else REAL):
        if not setting.out_of_time():
            report.add(_device_row(name, s, setting))
    scale = 12 if setting.quick else 20
    if not setting.out_of_time():
        report.add(_device_row(f"RMAT {scale}", rmat_as_published(scale, "cuda"), setting))
    report.notes.append("published: AccTruss; ratio: it to `incidence`.")
    large = Report("gpu-truss-large", "full decomposition, milliseconds, median; GiB")
    add_large(large, setting, _large_row)
    return [report, large]


def _large_row(name: str, s: Snapshot) -> dict[str, Any]:
    found = algorithms.truss_numbers(bare(s))
    k = int(found.truss.max()) // 4
    if not _is_truss(found, k):
        raise WrongAnswer(f"{name}: an edge of truss number {k} or more is in too few triangles")
    largest, edges = int(found.truss.max()), len(found.truss)
    del found
    before = memory_used()
    ms = alone(lambda: algorithms.truss_numbers(bare(s)), rounds=LARGE_ROUNDS, warmup=0) * 1e3
    held = memory_held()
    return {
        "graph": name, "arcs": s.num_edges, "edges": edges, "largest": largest, "ms": ms,
    } | memory_columns(before, held, edges)  # fmt: skip


def _is_truss(found: algorithms.Truss, k: int) -> bool:
    """Whether the edges of truss number k and above are each in k - 2 triangles of these."""
    import cupy

    kept = found.truss >= k
    src, dst = found.src[kept], found.dst[kept]
    order = cupy.argsort(cupy.concatenate((src, dst)).astype(np.uint64) << np.uint64(32)
                         | cupy.concatenate((dst, src)))  # fmt: skip
    rows, indices = cupy.concatenate((src, dst))[order], cupy.concatenate((dst, src))[order]
    indptr = cupy.searchsorted(rows, cupy.arange(int(rows[-1]) + 2, dtype=np.uint32))
    return int(algorithms.edge_support((indptr, indices)).support.min()) >= k - 2


def _device_row(name: str, s: Snapshot, setting: Setting) -> dict[str, Any]:
    expected = algorithms.truss_numbers(s).truss
    triangles = algorithms.triangle_count(s)
    row: dict[str, Any] = {"graph": name, "edges": s.num_edges, "triangles": triangles}
    for method in METHODS:
        skipped = method == "affected" and triangles > AFFECTED_MOST
        row[method] = None if skipped or setting.out_of_time() else device_ms(s, method, expected)
    published = PUBLISHED_MS.get(name, NAN)
    ours = float(row["incidence"] or NAN)
    return row | {"largest": int(expected.max()), "published": published, "ratio": published / ours}


def device_ms(s: Snapshot, method: str, expected: Any) -> float:
    if not bool((algorithms.truss_numbers(s, method).truss == expected).all()):
        raise WrongAnswer(f"{method}: another decomposition than the default's")
    run = partial(algorithms.truss_numbers, method=method)
    first, _ = on_device(lambda: run(bare(s)))  # warms up
    if first > ONCE_OVER_S:
        return first * 1e3
    return alone(lambda: run(bare(s)), rounds=ROUNDS, warmup=0) * 1e3
