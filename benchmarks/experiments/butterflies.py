"""Butterflies beside scipy, and bicliques of many sizes through the public faces, on the CPU.

scipy multiplies the biadjacency matrix with its transpose, from the side that costs less, and sums
the pairs of common neighbours; it begins with the matrix made, in 64 bits. Ours begins with a
snapshot without views, so that finding both sides is part of what is timed. The ten counts of
wiki-Vote as voter × candidate are p in 2 … 3 and q in 2 … 6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sparse

import lpma
from algorithms import count_all_bicliques, count_bicliques
from ingest import datasets
from ingest.datasets import generators
from lpma import Snapshot

from ..measure import Kernel, WrongAnswer, measure
from ..report import Report, Setting
from .triangles import bare

Array = npt.NDArray[Any]
Sides = tuple[Snapshot, int]  # a graph whose rows below the number are the left side

GRAPHS = ("bip-gowalla", "bip-jodie-wikipedia", "wiki-Vote")
ROUNDS, BUDGET_S = 5, 30.0
SMALL = tuple((p, q) for p in (2, 3) for q in range(2, 7))
KNOWN = {(2, 2): 36_023_154, (2, 6): 103_289_484_437_904, (3, 3): 1_719_957_371}


def run(setting: Setting) -> list[Report]:
    return [_butterflies(setting.quick), _ten_counts(setting.quick)]


def sides(device: str, src: Array, dst: Array) -> Sides:
    """src on the left, dst on the right, whatever their numbers have in common."""
    left = int(src.max()) + 1
    g = lpma.Graph(directed=False, weight=None, times=False, device=device)
    g.insert(src, dst.astype(np.int64) + left)
    return g.snapshot(), left


def real(device: str, name: str) -> Sides:
    edges = datasets.load(name)
    return sides(device, edges.src, edges.dst)


def _butterflies(quick: bool) -> Report:
    report = Report("butterflies", "seconds, median; ours from a snapshot without views")
    names = () if quick else GRAPHS
    graphs = {name: real("cpu", name) for name in names if datasets.find(name) is not None}
    graphs = graphs or {"RMAT 12": sides("cpu", *generators.rmat(12, 16 << 12, seed=1))}
    for name, (s, left) in graphs.items():
        count, seconds = _race(s, left)
        row = {"graph": name, "edges": s.num_edges, "butterflies": count}
        report.add(row | seconds | {"ratio": seconds["scipy"] / seconds["lpma"]})
    report.notes.append("ratio: scipy to lpma.")
    return report


def _race(s: Snapshot, left: int) -> tuple[int, dict[str, float]]:
    count = count_bicliques(s, 2, 2, left=left)

    def verify(name: str, _: int, answer: int) -> None:
        if answer != count:
            raise WrongAnswer(f"{name}: {answer} butterflies instead of {count}")

    def kernel(action: Callable[[], int]) -> Kernel:
        return Kernel(lambda _: None, lambda _: action())

    matrix = _cheaper_side(s, left)
    actions = {
        "lpma": lambda: count_bicliques(bare(s), 2, 2, left=left),
        "scipy": lambda: by_product(matrix),
    }
    kernels = {name: kernel(action) for name, action in actions.items()}
    timings = measure(kernels, verify, rounds=ROUNDS, budget_s=BUDGET_S)
    return count, {name: timing.median for name, timing in timings.items()}


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
    report = Report("small bicliques", "seconds, median; from a snapshot without views")
    if quick or datasets.find("wiki-Vote") is None:
        return report
    s, left = real("cpu", "wiki-Vote")
    answers = {size: count_bicliques(bare(s), *size, left=left) for size in SMALL}
    if any(answers[size] != count for size, count in KNOWN.items()):
        raise WrongAnswer(f"wiki-Vote: {answers}")

    def one_by_one() -> dict[Any, int]:
        return {size: count_bicliques(bare(s), *size, left=left) for size in SMALL}

    def all_at_once() -> dict[Any, int]:
        counts = count_all_bicliques(bare(s), 3, 6, left=left)
        return {size: counts[size] for size in SMALL}

    def verify(name: str, _: int, answer: dict[Any, int]) -> None:
        if answer != answers:
            raise WrongAnswer(f"{name}: {answer} instead of {answers}")

    kernels = {
        "one by one": Kernel(lambda _: None, lambda _: one_by_one()),
        "all at once": Kernel(lambda _: None, lambda _: all_at_once()),
    }
    timings = measure(kernels, verify, rounds=ROUNDS, budget_s=BUDGET_S)
    row: dict[str, Any] = {"graph": "wiki-Vote", "counts": len(SMALL)}
    report.add(row | {name: timing.median for name, timing in timings.items()})
    return report
