"""Components, BFS and PageRank on one undirected snapshot, beside other libraries.

Graphs are RMAT with 16 draws a vertex, ids shuffled, made simple, and real ones; BFS starts from
the vertex of the highest degree. PageRank ends when ranks change by less than 1e-6 in all, in each
library that can be told so (traversals.py says how each is run). Every answer is compared with
SciPy's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import algorithms
import lpma
from ingest import datasets
from ingest.datasets import generators
from lpma import Snapshot
from lpma.cpu.threads import THREADS

from .. import traversals
from ..keys import Array
from ..measure import Kernel, Timing, WrongAnswer, measure
from ..report import Report, Setting

ALGORITHMS = ("components", "bfs", "pagerank")
PEERS = ("scipy", "networkit", "graphblas", "igraph")
ROUNDS, BUDGET_S = 7, 20.0
DRAWS = 16  # a vertex


def run(setting: Setting) -> Report:
    report = Report("traversal", "seconds, median")
    for name, s in graphs(setting.quick):
        source = int(np.diff(s.indptr).argmax())
        peers = traversals.by_library(s, source, THREADS)
        for algorithm in ALGORITHMS:
            runs = {"lpma": ours(algorithm, s, source)}
            runs |= {peer: can[algorithm] for peer, can in peers.items() if algorithm in can}
            runs = {peer: way for peer, way in runs.items() if setting.wants(peer)}
            expected = standard(algorithm, s, source)
            report.add(_row(name, s, algorithm, _race(algorithm, runs, expected)))
    report.notes.append("ratio: the fastest of the others to lpma. igraph has no tolerance to set.")
    return report


def graphs(quick: bool, device: str = "cpu") -> Iterator[tuple[str, Snapshot]]:
    """Undirected snapshots without loops."""
    for scale in (12,) if quick else (18, 20):
        src, dst = generators.rmat(scale, DRAWS << scale, seed=1)
        yield f"RMAT {scale}", snapshot_of(src, dst, device)
    for name in () if quick else ("ego-twitter", "road-NY", "uk-2007-05-100k"):
        if datasets.find(name) is not None:
            edges = datasets.load(name)
            yield name, snapshot_of(edges.src, edges.dst, device)


def snapshot_of(src: Array, dst: Array, device: str) -> Snapshot:
    g = lpma.Graph(directed=False, weight=None, times=False, device=device)
    edges = src != dst
    g.insert(src[edges], dst[edges])
    return replace(g.snapshot(), added=None)  # every row a vertex, as all the others have it


def ours(algorithm: str, s: Snapshot, source: int) -> traversals.Run:
    if algorithm == "components":
        return lambda: algorithms.connected_components(s)
    if algorithm == "bfs":
        return lambda: algorithms.bfs(s, source)
    return lambda: algorithms.pagerank(s, traversals.DAMPING, traversals.TOLERANCE)


def _race(algorithm: str, runs: dict[str, traversals.Run], expected: Array) -> dict[str, Timing]:
    def verify(name: str, _: int, answer: Any) -> None:
        check(name, algorithm, np.asarray(answer), expected)

    def kernel(way: traversals.Run) -> Kernel:
        return Kernel(lambda _: None, lambda _: way())

    kernels = {name: kernel(way) for name, way in runs.items()}
    return measure(kernels, verify, rounds=ROUNDS, budget_s=BUDGET_S)


def standard(algorithm: str, s: Snapshot, source: int) -> Array:
    """SciPy's answer, and for PageRank its formula with SciPy's product, on the host."""
    if algorithm != "pagerank":
        return np.asarray(traversals.of_scipy(s, source)[algorithm]())
    n, damping, matrix = s.num_vertices, traversals.DAMPING, s.to_scipy().astype(float)
    degree = np.diff(matrix.indptr)
    ranks = np.full(n, 1 / n)
    for _ in range(traversals.ROUNDS):
        shares = np.divide(ranks, degree, out=np.zeros(n), where=degree > 0)
        lost = ranks[degree == 0].sum()
        ranks = (1 - damping + damping * lost) / n + damping * (matrix @ shares)
    return ranks


def check(name: str, algorithm: str, answer: Array, expected: Array) -> None:
    """Raise WrongAnswer where an answer is another than the standard's."""
    if algorithm == "pagerank":
        right = float(abs(answer / answer.sum() - expected).sum()) < 1e-4
    elif algorithm == "components":  # the same parts, whatever they are called
        pairs = np.unique(np.column_stack((answer, expected)), axis=0)
        right = len(pairs) == len(np.unique(answer)) == len(np.unique(expected))
    else:  # what is not reached is −1, infinite, or as good as infinite
        far = len(answer)
        answer, expected = (np.where((x < 0) | (x > far), far, x) for x in (answer, expected))
        right = bool((answer == expected).all())
    if not right:
        raise WrongAnswer(f"{name}: {algorithm} is wrong")


def _row(name: str, s: Snapshot, algorithm: str, timings: dict[str, Timing]) -> dict[str, Any]:
    row: dict[str, Any] = {"graph": name, "edges": s.num_edges, "algorithm": algorithm}
    row |= {who: timings[who].median if who in timings else None for who in ("lpma", *PEERS)}
    others = [timing.median for who, timing in timings.items() if who != "lpma"]
    ours = timings["lpma"].median if "lpma" in timings else float("nan")
    row["ratio"] = min(others, default=float("nan")) / ours
    return row
