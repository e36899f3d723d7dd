"""Bicliques on the GPU, everything included: both sides found, trimmed, ordered, counted.

The generated graphs have 10^7 edges: uniform, and with hubs on both sides (ends are drawn as the
cube of a uniform number). What is published for the biclique paper's code on the same GPU, its
kernel alone: wiki-Vote as voter × candidate (3, 3) in 2.33 s and (4, 8) in 1.54 s.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from algorithms import count_all_bicliques, count_bicliques
from algorithms.biclique.bipartite import bipartite
from ingest import datasets
from lpma.arrays import to_host

from ..gpu.device import seconds
from ..measure import WrongAnswer
from ..report import Report, Setting
from .butterflies import Sides, real, sides
from .triangles import bare

ROUNDS, WARMUP = 5, 1
SIZES = {"wiki-Vote": ((2, 2), (3, 3), (4, 8)), "bip-gowalla": ((2, 2), (3, 3), (4, 4))}
PUBLISHED_MS = {("wiki-Vote", 3, 3): 2330.0, ("wiki-Vote", 4, 8): 1540.0}
VERTICES, EDGES, QUICK_EDGES = 1_000_000, 10_000_000, 20_000
MOST_CHECKED = 2_000_000  # edges of a graph that is counted on the host too


def run(setting: Setting) -> list[Report]:
    one = Report("gpu-bicliques", "milliseconds, median; from a snapshot without views")
    for name, graph in _graphs(setting.quick):
        for p, q in SIZES.get(name, ((2, 2),)):
            if not setting.out_of_time():
                one.add(_row(name, *graph, p, q))
    one.notes.append("sides: finding both. published: the kernel alone; ratio: it to `count`.")
    return [one, _all_at_once(setting)]


def _graphs(quick: bool) -> Iterator[tuple[str, Sides]]:
    for name in () if quick else SIZES:
        if datasets.find(name) is not None:
            yield name, real("cuda", name)
    rng = np.random.default_rng(1)
    n, m = (VERTICES // 100, QUICK_EDGES) if quick else (VERTICES, EDGES)
    yield "uniform", sides("cuda", *rng.integers(0, n, (2, m)))
    yield "hubs", sides("cuda", *(n * rng.random((2, m)) ** 3).astype(np.int64))


def _row(name: str, s: Any, left: int, p: int, q: int) -> dict[str, Any]:
    count = count_bicliques(s, p, q, left=left)
    if s.num_edges < MOST_CHECKED:
        host = (to_host(s.indptr), to_host(s.indices))
        if count != count_bicliques(host, p, q, left=left):
            raise WrongAnswer(f"{name} ({p}, {q}): the host counts others than {count}")
    whole = _median(lambda: count_bicliques(bare(s), p, q, left=left))
    published = PUBLISHED_MS.get((name, p, q), float("nan"))
    return {
        "graph": name, "edges": s.num_edges, "p": p, "q": q, "bicliques": count,
        "sides": _median(lambda: bipartite(bare(s), left)), "count": whole,
        "published": published, "ratio": published / whole,
    }  # fmt: skip


def _all_at_once(setting: Setting) -> Report:
    report = Report("gpu-bicliques-all", "milliseconds for all p ≤ 3 and q ≤ 6, median")
    if setting.quick or datasets.find("wiki-Vote") is None or setting.out_of_time():
        return report
    s, left = real("cuda", "wiki-Vote")
    milliseconds = _median(lambda: count_all_bicliques(bare(s), 3, 6, left=left))
    report.add({"graph": "wiki-Vote", "counts": 18, "all at once": milliseconds})
    return report


def _median(action: Callable[[], Any]) -> float:
    times = [seconds(action) * 1e3 for _ in range(ROUNDS + WARMUP)]
    return statistics.median(times[WARMUP:])
