"""Mixed batches: insertions with 3 % of queries among them, each answered as of its place.

Ours takes a batch at once. The other stores are asked run by run, as whoever uses them has to: the
insertions up to the next query, then the queries up to the next insertion. All must give the same
answers, and hold the stream's edges at the end.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from lpma import Columns, Kind
from lpma.batch.columns import UPDATES

from .. import workloads
from ..keys import keys_of
from ..model import Model
from ..papers.lpma.mixed import each, mixed_batch, pieces_of
from ..report import Report, Setting, rates
from ..stopwatch import Kernel, Timing, WrongAnswer, measure
from ..workloads import Workload
from . import peers
from .base import Lpma, Store

ROUNDS, WARMUP = 6, 1
BUDGET_S = 6.0


def mixed(setting: Setting) -> Report:
    report = Report("mixed", "million operations a second, median batch, 3 % queries")
    names = ("lpma", *(peer.name for peer in peers.ALL))
    scale, loaded = (12, 20_000) if setting.quick else (18, 2_100_000)
    for size in (1_000,) if setting.quick else (10**3, 10**4):
        workload = workloads.rmat(scale, loaded, (ROUNDS + WARMUP) * size)
        others = [peer() for peer in peers.available() if setting.wants(peer.name)]
        timings = race(workload, size, others)
        row = {"graph": workload.name, "batch": size}
        report.add(row | rates(timings, size, names, names[1:]))
    report.notes.append("ratio: lpma to the fastest of the others.")
    return report


def race(workload: Workload, size: int, others: list[Store]) -> dict[str, Timing]:
    """What ours and the others take for batches with `size` insertions."""
    ours, rng = Lpma(), np.random.default_rng(size)
    stores: dict[str, Store] = {store.name: store for store in (ours, *others)}
    for store in stores.values():
        store.load(*workload.base(), workload.n)
    model, expected, batches = Model(*workload.base()), [], []
    for i in range(WARMUP + ROUNDS):
        src, dst = workload.stream(i * size, size)
        batches.append(mixed_batch(rng, keys_of(src, dst), workload.n))
        expected.append(model.insert(src, dst))
    answers: dict[int, list[Any]] = {}

    def prepare(store: Store, i: int) -> tuple[int, list[_Piece]]:
        return i, [_Piece(store, piece) for piece in pieces_of(batches[i])]

    def apply(given: tuple[int, Columns]) -> None:
        answers[given[0]] = each([ours.graph.apply(given[1])])

    def kernel(store: Store) -> Kernel:
        if store is ours:
            return Kernel(lambda i: (i, batches[i]), apply)
        run = lambda given: (given[0], [piece.run() for piece in given[1]])  # noqa: E731
        return Kernel(lambda i: prepare(store, i), run)

    def verify(name: str, rounds: int, answer: Any) -> None:
        stores[name].verify(expected[rounds - 1])
        if name == ours.name:
            return
        number, found = answer
        theirs = [one for piece in found for one in piece]
        for mine, other in zip(answers[number], theirs, strict=True):
            same = mine.found[0] if isinstance(other, bool) else mine.ids
            if not np.array_equal(same, other):
                raise WrongAnswer(f"{name}: another answer within a batch than lpma's")

    kernels = {name: kernel(store) for name, store in stores.items()}
    return measure(kernels, verify, rounds=ROUNDS, warmup=WARMUP, budget_s=BUDGET_S)


class _Piece:
    """Insertions, or queries, that follow each other, in the form that suits a store best."""

    def __init__(self, store: Store, piece: Columns) -> None:
        self._store, self._inserts = store, int(piece.kind[0]) in UPDATES
        self._is_edge = piece.kind == Kind.EDGE
        if self._inserts:
            self._batch = store.prepare(piece.src, piece.dst)
        else:
            edges, rows = self._is_edge, ~self._is_edge
            self._batch = store.prepare(piece.src[edges], piece.dst[edges])
            self._vertices = piece.src[rows].astype(np.int64)

    def run(self) -> list[Any]:
        """The answers to queries: whether the edge is there, or the sorted successors."""
        if self._inserts:
            self._store.insert(self._batch)
            return []
        found = iter(self._store.has_edges(self._batch).tolist() if self._is_edge.any() else ())
        rows = iter(())  # type: Any
        if len(self._vertices):
            indptr, ids = self._store.successors(self._vertices)
            rows = (np.sort(ids[a:b]) for a, b in pairwise(indptr))
        return [next(found) if is_edge else next(rows) for is_edge in self._is_edge.tolist()]
