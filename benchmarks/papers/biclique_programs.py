"""The programs of the biclique paper, and ours, on the graphs that both are run on.

The paper is Qiu et al., "Accelerating biclique counting on GPU" (GBC); its graphs are KONECT's, and
its GPU an RTX 3090. Here graphs are the bipartite ones at hand, wiki-Vote read as voter × candidate
(an edge joins the left copy of a vertex with the right copy of another), and the two synthetic ones
made as the paper says: sizes fixed, a power law of two-hop neighbours for the left layer, and for
each of its vertices as many neighbours drawn from the right as give it that many.

Times cover a whole count: trimming, choosing and ranking the layer, two-hop lists, the search. They
do not cover Border, which serves every query: it is made beforehand, as in the paper. A program is
left out of a query ("–") if ours already takes long: see `times`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.biclique import gbc
from algorithms.biclique.bipartite import Bipartite, bipartite, trimmed
from ingest import datasets

from ..stopwatch import Figure, WrongAnswer, on_host
from ..stopwatch import median as median_of
from . import gbc as paper

Array = npt.NDArray[Any]

OURS = "compact"
PROGRAMS = {OURS: None, "GBC": paper.GBC, "GBL": paper.GBL}
REAL = ("wiki-Vote", "bip-gowalla", "bip-jodie-wikipedia")
SYNTHETIC = {"S1": (6_720, 5_300, 207_146), "S2": (12_720, 11_100, 220_651)}  # |U|, |V|, |E|
QUICK = (300, 200, 3_000)
QUERIES = ((4, 12), (6, 10), (8, 8), (10, 6), (12, 4))  # p + q = 16, as in the paper
EXPONENT = 2.1  # of the power law
ROUNDS = 3
OURS_MOST_S = {"GBC": 1.0, "GBL": 0.1}  # if ours takes longer, theirs is left out
ONCE_S = 2.0  # what takes longer is run once


def graphs(device: str, quick: bool) -> Iterator[tuple[str, Bipartite]]:
    if quick:
        yield "synthetic", synthetic(device, *QUICK)
        return
    for name in REAL:
        if datasets.find(name) is not None:
            yield name, real(device, name)
    for name, sizes in SYNTHETIC.items():
        yield name, synthetic(device, *sizes)


def real(device: str, name: str) -> Bipartite:
    edges = datasets.load(name)
    return of_edges(device, edges.src, edges.dst)


def synthetic(device: str, a: int, b: int, m: int, seed: int = 1) -> Bipartite:
    """a left and b right vertices, m edges or nearly. A neighbour brings m/b two-hop neighbours on
    average, so that numbers of both follow the same law."""
    rng = np.random.default_rng(seed)
    law = np.minimum(rng.pareto(EXPONENT - 1, a) + 1, b / 4)
    degrees = np.clip(np.round(law * (m / law.sum())), 1, b // 2).astype(np.int64)
    right = np.concatenate([rng.choice(b, degree, replace=False) for degree in degrees])
    return of_edges(device, np.repeat(np.arange(a), degrees), right)


def of_edges(device: str, left: Array, right: Array) -> Bipartite:
    """The graph of a layer of left copies and a layer of right copies."""
    _, left = np.unique(left, return_inverse=True)
    _, right = np.unique(right, return_inverse=True)
    a, b = int(left.max()) + 1, int(right.max()) + 1
    keys = np.sort(left.astype(np.int64) * b + right)
    indptr = np.searchsorted(keys, np.arange(a + b + 1) * b)
    rows: tuple[Any, Any] = (indptr, (keys % b + a).astype(np.uint32))
    if device == "cuda":
        import cupy

        rows = (cupy.asarray(rows[0]), cupy.asarray(rows[1]))
    return bipartite(rows, a)


def times(
    b: Bipartite, p: int, q: int, programs: Mapping[str, paper.Program | None] = PROGRAMS,
    ordered: Bipartite | None = None,
) -> tuple[int, dict[str, float]]:  # fmt: skip
    """The count, and each program's seconds, the median of ROUNDS; NaN for what is left out. All
    must agree with the first. ordered: the graph in Border's order, for truncated bitmaps. A
    program that is None is ours."""
    seconds: dict[str, float] = {}
    expected: int | None = None
    for name, program in programs.items():
        ours = next(iter(seconds.values()), 0.0)
        if ours > OURS_MOST_S.get(name, OURS_MOST_S["GBC"]):
            seconds[name] = float("nan")
            continue
        truncated = program is not None and program.truncated
        graph = ordered if ordered is not None and truncated else b
        count, seconds[name] = median(graph, _counter(p, q, program))
        if expected not in (None, count):
            raise WrongAnswer(f"{name} ({p}, {q}): {count} instead of {expected}")
        expected = count
    return expected or 0, seconds


def _counter(p: int, q: int, program: paper.Program | None) -> Callable[[Bipartite], int]:
    count = gbc.count if program is None else partial(paper.count, program=program)
    return lambda b: count(trimmed(b, p, q), p, q)


def median(b: Bipartite, action: Callable[[Bipartite], Any]) -> tuple[Any, Figure]:
    """What an action returns, and its seconds."""
    action(trimmed(b, b.num_right + 1, 1))  # compiles, on an empty graph
    taken: list[float] = []
    while len(taken) < ROUNDS and sum(taken) < ONCE_S:
        seconds, result = on_host(lambda: action(b))
        taken.append(seconds)
    return result, median_of(taken)


def about(name: str, b: Bipartite) -> dict[str, Any]:
    """The first columns of a row."""
    return {"graph": name, "left": b.num_left, "right": b.num_right, "edges": b.num_edges}
