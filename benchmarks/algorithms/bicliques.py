"""Butterflies and small (p, q)-bicliques through the public functions.

Ours begins with a snapshot without views, so that finding both sides is part of what is timed. On
the CPU scipy counts butterflies beside it: it multiplies the biadjacency matrix with its transpose,
from the side that costs less, and sums the pairs of common neighbours; it begins with the matrix
already made, in 64 bits. Graphs without sides of their own, such as wiki-Vote, are read as source ×
target: an edge joins the left copy of a vertex with the right copy of another.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sparse

import lpma
from algorithms import count_all_bicliques, count_bicliques
from algorithms.biclique.bipartite import bipartite
from ingest import datasets
from ingest.datasets import generators
from lpma import Snapshot
from lpma.arrays import to_host

from ..keys import Array
from ..report import Report, Setting, beside
from ..stopwatch import NAN, Action, WrongAnswer, alone, race
from .graphs import bare

Sides = tuple[Snapshot, int]  # a graph whose rows below the number are the left side

GRAPHS = ("bip-gowalla", "bip-jodie-wikipedia", "wiki-Vote")
ROUNDS, BUDGET_S = 5, 30.0
SMALL = tuple((p, q) for p in (2, 3) for q in range(2, 7))
KNOWN = {(2, 2): 36_023_154, (2, 6): 103_289_484_437_904, (3, 3): 1_719_957_371}  # of wiki-Vote

GPU_WARMUP = 1
SIZES = {"wiki-Vote": ((2, 2), (3, 3), (4, 8)), "bip-gowalla": ((2, 2), (3, 3), (4, 4))}
# Of the biclique paper's code on the same GPU, its kernel alone.
PUBLISHED_MS = {("wiki-Vote", 3, 3): 2330.0, ("wiki-Vote", 4, 8): 1540.0}
VERTICES, EDGES, QUICK_EDGES = 1_000_000, 10_000_000, 20_000
MOST_CHECKED = 2_000_000  # edges of a graph that is also counted on the host


def sides(device: str, src: Array, dst: Array) -> Sides:
    """src on the left, dst on the right, even if they share numbers."""
    left = int(src.max()) + 1
    g = lpma.Graph(directed=False, weight_dtype=None, times=False, device=device)
    g.insert(src, dst.astype(np.int64) + left)
    return g.snapshot(), left


def real(device: str, name: str) -> Sides:
    edges = datasets.load(name)
    return sides(device, edges.src, edges.dst)


def butterflies(setting: Setting) -> list[Report]:
    report = Report("butterflies", "seconds, median; ours from a snapshot without views")
    names = () if setting.quick else GRAPHS
    graphs = {name: real("cpu", name) for name in names if datasets.find(name) is not None}
    graphs = graphs or {"RMAT 12": sides("cpu", *generators.rmat(12, 16 << 12, seed=1))}
    for name, (s, left) in graphs.items():
        count, matrix = count_bicliques(s, 2, 2, left=left), _cheaper_side(s, left)
        actions = {
            "lpma": partial(_count, s, left, 2, 2),
            "scipy": partial(by_product, matrix),
        }
        timings = race(actions, _equals(count), rounds=ROUNDS, budget_s=BUDGET_S)
        row = {"graph": name, "edges": s.num_edges, "butterflies": count}
        report.add(row | beside(timings, ("scipy",)))
    report.notes.append("ratio: scipy to lpma.")
    return [report, _ten_counts(setting.quick)]


def _count(s: Snapshot, left: int, p: int, q: int) -> int:
    return count_bicliques(bare(s), p, q, left=left)


def _equals(expected: Any) -> Any:
    def check(name: str, answer: Any) -> None:
        if answer != expected:
            raise WrongAnswer(f"{name}: {answer} instead of {expected}")

    return check


def _cheaper_side(s: Snapshot, left: int) -> Any:
    """The biadjacency matrix, or its transpose, whichever product with its own has fewer terms."""
    matrix = sparse.csr_matrix((np.ones(len(s.indices), np.int64), s.indices, s.indptr))[:left]
    terms = [(np.diff(m.indptr).astype(np.int64) ** 2).sum() for m in (matrix, matrix.T.tocsr())]
    return matrix.T.tocsr() if terms[0] < terms[1] else matrix


def by_product(matrix: Any) -> int:
    """Butterflies from the numbers of common neighbours of all pairs of rows."""
    product = matrix @ matrix.T
    common, alone = product.data, product.diagonal()
    return int((common * (common - 1) // 2).sum() - (alone * (alone - 1) // 2).sum()) // 2


def _ten_counts(quick: bool) -> Report:
    """p in 2 … 3 and q in 2 … 6, one by one and all at once."""
    report = Report("small bicliques", "seconds, median; from a snapshot without views")
    if quick or datasets.find("wiki-Vote") is None:
        return report
    s, left = real("cpu", "wiki-Vote")
    answers = {size: _count(s, left, *size) for size in SMALL}
    if any(answers[size] != count for size, count in KNOWN.items()):
        raise WrongAnswer(f"wiki-Vote: {answers}")

    def one_by_one() -> dict[Any, int]:
        return {size: _count(s, left, *size) for size in SMALL}

    def all_at_once() -> dict[Any, int]:
        counts = count_all_bicliques(bare(s), 3, 6, left=left)
        return {size: counts[size] for size in SMALL}

    actions = {"one by one": one_by_one, "all at once": all_at_once}
    timings = race(actions, _equals(answers), rounds=ROUNDS, budget_s=BUDGET_S)
    row: dict[str, Any] = {"graph": "wiki-Vote", "counts": len(SMALL)}
    report.add(row | {name: timing.median for name, timing in timings.items()})
    return report


def gpu_bicliques(setting: Setting) -> list[Report]:
    """On a CUDA device: both sides found, trimmed, ordered, counted. The generated graphs have 10^7
    edges: uniform, and with hubs on both sides (ends are drawn as the cube of a uniform number)."""
    one = Report("gpu-bicliques", "milliseconds, median; from a snapshot without views")
    for name, (s, left) in _device_graphs(setting.quick):
        for p, q in SIZES.get(name, ((2, 2),)):
            if not setting.out_of_time():
                one.add(_device_row(name, s, left, p, q))
    one.notes.append("sides: finding both. published: the kernel alone; ratio: it to `count`.")
    return [one, _device_all_at_once(setting)]


def _device_graphs(quick: bool) -> Iterator[tuple[str, Sides]]:
    for name in () if quick else SIZES:
        if datasets.find(name) is not None:
            yield name, real("cuda", name)
    rng = np.random.default_rng(1)
    n, m = (VERTICES // 100, QUICK_EDGES) if quick else (VERTICES, EDGES)
    yield "uniform", sides("cuda", *rng.integers(0, n, (2, m)))
    yield "hubs", sides("cuda", *(n * rng.random((2, m)) ** 3).astype(np.int64))


def _device_row(name: str, s: Any, left: int, p: int, q: int) -> dict[str, Any]:
    count = count_bicliques(s, p, q, left=left)
    if s.num_edges < MOST_CHECKED:
        host = (to_host(s.indptr), to_host(s.indices))
        _equals(count_bicliques(host, p, q, left=left))(f"{name} ({p}, {q})", count)
    whole = _ms(lambda: _count(s, left, p, q))
    published = PUBLISHED_MS.get((name, p, q), NAN)
    return {
        "graph": name, "edges": s.num_edges, "p": p, "q": q, "bicliques": count,
        "sides": _ms(lambda: bipartite(bare(s), left)), "count": whole,
        "published": published, "ratio": published / float(whole),
    }  # fmt: skip


def _device_all_at_once(setting: Setting) -> Report:
    report = Report("gpu-bicliques-all", "milliseconds for all p ≤ 3 and q ≤ 6, median")
    if setting.quick or datasets.find("wiki-Vote") is None or setting.out_of_time():
        return report
    s, left = real("cuda", "wiki-Vote")
    milliseconds = _ms(lambda: count_all_bicliques(bare(s), 3, 6, left=left))
    report.add({"graph": "wiki-Vote", "counts": 18, "all at once": milliseconds})
    return report


def _ms(action: Action) -> float:
    return alone(action, rounds=ROUNDS, warmup=GPU_WARMUP) * 1e3
