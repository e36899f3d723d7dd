"""Full truss decompositions by every method, and NetworkX's k-truss beside ours.

Nothing that pip installs decomposes trusses; NetworkX has the k-truss of one k, which it makes by
removing edges in passes. Every round starts from the snapshot alone. The methods must agree.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

import algorithms
from algorithms.truss import METHODS
from ingest import datasets
from ingest.datasets import generators
from lpma import Snapshot

from ..measure import Kernel, Timing, WrongAnswer, measure
from ..report import Report, Setting
from .traversal import DRAWS, snapshot_of
from .triangles import bare

ROUNDS, BUDGET_S = 5, 20.0
REAL = ("email-Enron", "ego-twitter", "dblp-2010", "road-NY", "uk-2007-05-100k")
AFFECTED_MOST = 2_000_000  # triangles: the slides' method recounts them level by level
K = 10  # of NetworkX's k-truss


def run(setting: Setting) -> list[Report]:
    return [_methods(setting), _networkx(setting)]


def graphs(quick: bool, device: str = "cpu") -> Iterator[tuple[str, Snapshot]]:
    """RMAT 16 with 16 draws a vertex, and real ones."""
    scale = 10 if quick else 16
    yield f"RMAT {scale}", snapshot_of(*generators.rmat(scale, DRAWS << scale, seed=1), device)
    for name in () if quick else REAL:
        if datasets.find(name) is not None:
            edges = datasets.load(name)
            yield name, snapshot_of(edges.src, edges.dst, device)


def _methods(setting: Setting) -> Report:
    report = Report("truss", "full decomposition, seconds, median")
    for name, s in graphs(setting.quick):
        triangles = algorithms.triangle_count(s)
        methods = [m for m in METHODS if m != "affected" or triangles <= AFFECTED_MOST]
        timings, most = _race(s, methods)
        row: dict[str, Any] = {"graph": name, "edges": s.num_edges, "triangles": triangles}
        row |= {m: timings[m].median if m in timings else None for m in METHODS}
        report.add(row | {"largest": most})
    return report


def _race(s: Snapshot, methods: list[str]) -> tuple[dict[str, Timing], int]:
    expected = algorithms.truss_numbers(s).truss

    def verify(name: str, _: int, answer: Any) -> None:
        if not np.array_equal(answer.truss, expected):
            raise WrongAnswer(f"{name}: another decomposition than the default's")

    kernels = {method: Kernel(lambda _: bare(s), _decompose(method)) for method in methods}
    timings = measure(kernels, verify, rounds=ROUNDS, budget_s=BUDGET_S)
    return timings, int(expected.max(initial=0))


def _decompose(method: str) -> Callable[[Snapshot], algorithms.Truss]:
    return lambda s: algorithms.truss_numbers(s, method)


def _networkx(setting: Setting) -> Report:
    report = Report("truss", f"the {K}-truss beside NetworkX's, seconds, one run")
    if find_spec("networkx") is None:
        return report
    import networkx as nx

    scale = 10 if setting.quick else 14
    s = snapshot_of(*generators.rmat(scale, DRAWS << scale, seed=1), "cpu")
    graph = s.to_networkx()
    algorithms.k_truss(s, K)  # compiles
    times, edges = [], []
    for action in (lambda: algorithms.k_truss(bare(s), K).num_edges,
                   lambda: nx.k_truss(graph, K).number_of_edges()):  # fmt: skip
        start = time.perf_counter()
        edges.append(action())
        times.append(time.perf_counter() - start)
    if edges[0] != edges[1]:
        raise WrongAnswer(f"{edges[0]} edges in the {K}-truss, NetworkX has {edges[1]}")
    report.add({
        "graph": f"RMAT {scale}", "edges": s.num_edges, "left": edges[0],
        "lpma": times[0], "networkx": times[1], "ratio": times[1] / times[0],
    })  # fmt: skip
    return report
