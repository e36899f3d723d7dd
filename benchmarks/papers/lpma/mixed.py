"""Mixed batches for the paper's Figure 16, their pieces, and their answers compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

import lpma
from lpma import Answers, Columns, Edges, Kind, Neighbors, arrays
from lpma.batch.columns import query_rows

from ...keys import Array, ends_of
from ...stopwatch import Clock, WrongAnswer

SHARE = 0.03  # of queries
COMPARED = 200  # answers of a batch
WARMUP = 2  # batches


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
    asks = query_rows(batch.kind)
    cuts = [0, *(np.flatnonzero(np.diff(asks)) + 1).tolist(), len(batch)]
    return [batch.rows(lo, hi) for lo, hi in pairwise(cuts)]


def work_of(batch: Columns, serially: bool) -> list[tuple[str, str, list[Columns]]]:
    """(the store, the way, the batches one after the other) of each way to apply a batch: mixed,
    its updates and its queries by themselves and, where that is wanted, cut at every query."""
    asked = query_rows(batch.kind)
    work = [("mixed", "mixed", [batch]), ("parts", "updates", [rows_of(batch, ~asked)]),
            ("parts", "queries", [rows_of(batch, asked)])]  # fmt: skip
    return [*work, ("serial", "serial", pieces_of(batch))] if serially else work


def timed(
    graphs: Mapping[str, lpma.Graph], batches: Iterable[Columns], serial: int, clock: Clock,
    also: Callable[[int, Columns, list[Any]], None] | None = None,
) -> dict[str, list[float]]:  # fmt: skip
    """Milliseconds of each way to apply the batches, each in a graph of its own, the first WARMUP
    left out; the first `serial` batches are cut at every query too, and must be answered alike.
    also: is called with each batch, its number, and its answers."""
    rng = np.random.default_rng(1)
    ms: dict[str, list[float]] = {"mixed": [], "updates": [], "queries": []}
    for i, batch in enumerate(batches):
        answers = {}
        for held, way, parts in work_of(batch, i < serial):
            apply = graphs[held].apply
            seconds, answers[way] = clock(lambda: [apply(part) for part in parts])  # noqa: B023
            if i >= WARMUP or way == "serial":
                ms.setdefault(way, []).append(seconds * 1e3)
        if "serial" in answers:
            compare(each(answers["mixed"]), each(answers["serial"]), rng)
        if also is not None:
            also(i, batch, each(answers["mixed"]))
    return ms


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
