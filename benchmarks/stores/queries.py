"""Queries per second: whether an edge is there, and a vertex's successors.

Half of the edges asked for are there. Vertices are drawn uniformly (paper, section VII-D).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import workloads
from ..keys import Array, ends_of, keys_of
from ..model import Model
from ..report import Report, Setting, rates
from ..stopwatch import Kernel, Timing, WrongAnswer, measure
from ..workloads import Workload
from . import peers
from .base import Lpma, Store

ROUNDS = 7
BUDGET_S = 3.0

Pair = tuple[Array, Array]


def queries(setting: Setting) -> Report:
    report = Report("queries", "million queries a second, median batch")
    names = ("lpma", *(peer.name for peer in peers.ALL))
    for workload, sizes in _workloads(setting.quick):
        candidates: list[Store] = [Lpma(), *(peer() for peer in peers.available())]
        stores = {store.name: store for store in candidates if setting.wants(store.name)}
        for store in stores.values():
            store.load(*workload.base(), workload.n)
        model = Model(*workload.base())
        for size in sizes:
            for what, query, asked in (
                ("edge", edges, size),
                ("successors", successors, size // 10),
            ):
                row = {"graph": workload.name, "query": what, "batch": asked}
                found = rates(query(workload, model, asked, stores), asked, names, names[1:])
                report.add(row | found)
    report.notes.append("ratio: lpma to the fastest of the others.")
    return report


def _workloads(quick: bool) -> Iterator[tuple[Workload, list[int]]]:
    if quick:
        yield workloads.rmat(14, 100_000, 0), [10**4]
        return
    yield workloads.rmat(18, 2_100_000, 0), [10**4, 10**5]
    yield workloads.rmat(20, 8_400_000, 0), [10**4, 10**5]


def edges(
    workload: Workload, model: Model, size: int, stores: dict[str, Store]
) -> dict[str, Timing]:
    """Whether edges are there, of which half are. All stores hold what the model does."""
    rng = np.random.default_rng(size)

    def draw() -> Pair:
        there = rng.choice(model.keys, size // 2)
        ends = rng.integers(0, workload.n, (2, size - len(there)), dtype=np.uint32)
        return ends_of(rng.permutation(np.concatenate((there, keys_of(*ends)))))

    batches = [draw() for _ in range(1 + ROUNDS)]

    def verify(name: str, rounds: int, found: Array) -> None:
        if not np.array_equal(found, model.holds(keys_of(*batches[rounds - 1]))):
            raise WrongAnswer(f"{name}: edge queries answered wrongly")

    def kernel(store: Store) -> Kernel:
        return Kernel(lambda i: store.prepare(*batches[i]), store.has_edges)

    kernels = {name: kernel(store) for name, store in stores.items()}
    return measure(kernels, verify, rounds=ROUNDS, budget_s=BUDGET_S)


def successors(
    workload: Workload, model: Model, size: int, stores: dict[str, Store]
) -> dict[str, Timing]:
    rng = np.random.default_rng(size)
    batches = rng.integers(0, workload.n, (1 + ROUNDS, size), dtype=np.int64)

    def verify(name: str, rounds: int, answer: Pair) -> None:
        u, (indptr, ids) = batches[rounds - 1], answer
        for i in rng.integers(0, size, 200):
            row = np.sort(ids[int(indptr[i]) : int(indptr[i + 1])])
            if not np.array_equal(row, _row_of(model, int(u[i]))):
                raise WrongAnswer(f"{name}: the successors of {u[i]} are wrong")

    kernels = {
        name: Kernel(lambda i: batches[i], store.successors) for name, store in stores.items()
    }
    return measure(kernels, verify, rounds=ROUNDS, budget_s=BUDGET_S)


def _row_of(model: Model, u: int) -> Array:
    fences = np.array([u << 32, (u + 1) << 32], np.uint64)
    first, end = np.searchsorted(model.keys, fences)
    return ends_of(model.keys[first:end])[1]
