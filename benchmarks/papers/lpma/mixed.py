"""Mixed batches for the paper's Figure 16, their pieces, and their answers compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

import lpma
from lpma import Answers, Columns, Edges, Kind, Neighbors, arrays

from ...keys import Array, ends_of
from ...stopwatch import WrongAnswer

SHARE = 0.03  # of queries
COMPARED = 200  # answers of a batch


def mixed_batch(rng: np.random.Generator, keys: Array, vertices: int) -> Columns:
    """These insertions in order, with queries at random places among them."""
    queries = int(len(keys) * SHARE)
    n = len(keys) + queries
    batch = lpma.pinned_batch(n)
    asks = np.zeros(n, bool)
    asks[rng.choice(n, queries, replace=False)] = True
    batch.kind[:] = Kind.INSERT
    batch.kind[asks] = rng.choice([Kind.EDGE, Kind.SUCCESSORS], queries)
    if batch.time is not None:
        batch.time[:] = np.arange(n)
    batch.src[~asks], batch.dst[~asks] = ends_of(keys)
    # Edges of this very batch, before and after their insertion, are the interesting ones.
    batch.src[asks], batch.dst[asks] = ends_of(rng.choice(keys, queries))
    some = asks & (rng.random(n) < 0.5)
    batch.src[some] = rng.integers(0, vertices, int(some.sum()), dtype=np.uint32)
    return batch


def rows_of(batch: Columns, chosen: Array) -> Columns:
    part = lpma.pinned_batch(int(chosen.sum()))
    for name in ("kind", "src", "dst", "weight", "time"):
        getattr(part, name)[:] = getattr(batch, name)[chosen]
    return replace(part)


def pieces_of(batch: Columns) -> list[Columns]:
    """The batch cut where queries follow updates, and where updates follow queries."""
    asks = batch.kind >= Kind.EDGE
    cuts = [0, *(np.flatnonzero(np.diff(asks)) + 1).tolist(), len(batch)]
    return [batch.rows(lo, hi) for lo, hi in pairwise(cuts)]


def work_of(batch: Columns, serially: bool) -> list[tuple[str, str, list[Columns]]]:
    """(the store, the way, the batches one after the other) of each way to apply a batch: mixed,
    its updates and its queries by themselves and, where that is wanted, cut at every query."""
    asked = batch.kind >= Kind.EDGE
    work = [("mixed", "mixed", [batch]), ("parts", "updates", [rows_of(batch, ~asked)]),
            ("parts", "queries", [rows_of(batch, asked)])]  # fmt: skip
    return [*work, ("serial", "serial", pieces_of(batch))] if serially else work


def each(answers: Sequence[Answers]) -> list[Any]:
    """The answers to the queries of all pieces of a batch, in order."""
    return [part[i] for part in answers for i in range(len(part))]


def compare(ours: Sequence[Any], others: Sequence[Any], rng: np.random.Generator) -> None:
    """A sample of the answers, column by column."""
    if len(ours) != len(others):
        raise WrongAnswer(f"opera: {len(ours)} answers, otherwise {len(others)}")
    for i in rng.integers(0, len(ours), min(COMPARED, len(ours))).tolist():
        pairs = zip(_columns(ours[i]), _columns(others[i]), strict=True)
        if not all(np.array_equal(a, b) for a, b in pairs):
            raise WrongAnswer(f"opera: the answer of query {i} is not the other way's")


def _columns(answer: Edges | Neighbors | Any) -> list[Array]:
    columns = [answer.found, answer.weights] if isinstance(answer, Edges) else (
        [answer.ids, answer.weights]
    )  # fmt: skip
    return [arrays.to_host(column) for column in columns]
