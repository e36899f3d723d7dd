"""Full truss decompositions on the GPU, by every method, from the snapshot alone.

Published: AccTruss on the same kind of GPU, for the full decomposition; and the slides' result,
18.47 ms for the road network of California (its largest truss is 4) on the GPU of their time, with
which "affected" on road-NY may be compared in kind. RMAT 20 has 18 M draws.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import algorithms
from algorithms.truss import METHODS
from ingest import datasets
from ingest.datasets import generators
from lpma import Snapshot

from ..gpu.device import seconds
from ..measure import WrongAnswer
from ..report import Report, Setting
from .traversal import snapshot_of
from .triangles import bare
from .truss import AFFECTED_MOST, REAL

ROUNDS, WARMUP = 5, 1
PUBLISHED_MS = {
    "email-Enron": 1487.0, "ego-twitter": 4891.0, "dblp-2010": 1123.0, "uk-2007-05-100k": 4340.0,
    "RMAT 20": 9070.0,
}  # fmt: skip
ONCE_OVER_MS = 1000.0  # a method this slow is run once


def run(setting: Setting) -> Report:
    report = Report("gpu-truss", "full decomposition, milliseconds, median")
    for name, s in graphs(setting.quick):
        if not setting.out_of_time():
            report.add(_row(name, s, setting))
    report.notes.append("published: AccTruss; ratio: it to `incidence`.")
    return report


def graphs(quick: bool) -> Iterator[tuple[str, Snapshot]]:
    for name in () if quick else REAL:
        if datasets.find(name) is not None:
            edges = datasets.load(name)
            yield name, snapshot_of(edges.src, edges.dst, "cuda")
    scale, draws = (12, 16 << 12) if quick else (20, 18_000_000)
    yield f"RMAT {scale}", snapshot_of(*generators.rmat(scale, draws, seed=1), "cuda")


def _row(name: str, s: Snapshot, setting: Setting) -> dict[str, Any]:
    expected = algorithms.truss_numbers(s).truss
    triangles = algorithms.triangle_count(s)
    row: dict[str, Any] = {"graph": name, "edges": s.num_edges, "triangles": triangles}
    for method in METHODS:
        skipped = method == "affected" and triangles > AFFECTED_MOST
        row[method] = None if skipped or setting.out_of_time() else _median(s, method, expected)
    published = PUBLISHED_MS.get(name, float("nan"))
    ours = row["incidence"] or float("nan")
    return row | {"largest": int(expected.max()), "published": published, "ratio": published / ours}


def _median(s: Snapshot, method: str, expected: Any) -> float:
    if not bool((algorithms.truss_numbers(s, method).truss == expected).all()):
        raise WrongAnswer(f"{method}: another decomposition than the default's")
    times: list[float] = []
    for _ in range(ROUNDS + WARMUP):
        times.append(seconds(lambda: algorithms.truss_numbers(bare(s), method)) * 1e3)
        if times[0] > ONCE_OVER_MS:
            return times[0]
    return statistics.median(times[WARMUP:])
