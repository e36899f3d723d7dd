"""Triangles on the GPU: the view and the listing apart, and both together.

RMAT 20 has 18 M draws, as in what is published: there GroupTC's best kernels take 17.6 ms (HS) and
18.4 ms (BS), TriCore's 27.7, Polak's 72, each after 4.3 ms of orienting and sorting.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from typing import Any

import algorithms
from algorithms.triangles.ranked import ranked
from ingest import datasets
from ingest.datasets import generators
from lpma import Snapshot
from lpma.arrays import to_host

from ..gpu.device import seconds
from ..measure import WrongAnswer
from ..report import Report, Setting
from .traversal import snapshot_of
from .triangles import bare

ROUNDS, WARMUP = 9, 2
REAL = ("ego-twitter", "road-NY", "uk-2007-05-100k")
PUBLISHED_MS = {"RMAT 20": 17.6 + 4.3}


def run(setting: Setting) -> Report:
    report = Report("gpu-triangles", "milliseconds, median")
    for name, s in graphs(setting.quick):
        if not setting.out_of_time():
            report.add(_row(name, s))
    report.notes.append("published: the best of them with its preparation; ratio: it to `whole`.")
    return report


def graphs(quick: bool) -> Iterator[tuple[str, Snapshot]]:
    scale, draws = (12, 16 << 12) if quick else (20, 18_000_000)
    yield f"RMAT {scale}", snapshot_of(*generators.rmat(scale, draws, seed=1), "cuda")
    for name in () if quick else REAL:
        if datasets.find(name) is not None:
            edges = datasets.load(name)
            yield name, snapshot_of(edges.src, edges.dst, "cuda")


def _row(name: str, s: Snapshot) -> dict[str, Any]:
    found = algorithms.triangle_count(s)  # leaves the view on s
    if found != algorithms.triangle_count((to_host(s.indptr), to_host(s.indices))):
        raise WrongAnswer(f"{name}: the host counts other triangles than {found}")
    whole = _median(lambda: algorithms.triangle_count(bare(s)))
    published = PUBLISHED_MS.get(name, float("nan"))
    return {
        "graph": name, "edges": s.num_edges, "triangles": found,
        "view": _median(lambda: ranked(bare(s))),
        "count": _median(lambda: algorithms.triangle_count(s)),
        "whole": whole,
        "by vertex": _median(lambda: algorithms.triangles(s)),
        "by edge": _median(lambda: algorithms.edge_support(s)),
        "published": published, "ratio": published / whole,
    }  # fmt: skip


def _median(action: Callable[[], Any]) -> float:
    times = [seconds(action) * 1e3 for _ in range(ROUNDS + WARMUP)]
    return statistics.median(times[WARMUP:])
