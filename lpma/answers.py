"""The answers of a batch's queries: found together by kind, read one by one."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np
import numpy.typing as npt

from . import query
from .batch import Columns, Edges, Kind, Neighbors
from .store import LPMA

Array = npt.NDArray[Any]
Answer = Edges | Neighbors | Array


class Answers:
    """The answers of a batch's queries, by query number: what `Graph.edges`, `successors` …
    would have returned at that place, for one query."""

    def __init__(self, kinds: Array, groups: dict[int, tuple[Array, Answer]]) -> None:
        self._kinds = kinds  # of each query
        self._answers = {kind: answer for kind, (_, answer) in groups.items()}
        self._row = np.empty(len(kinds), np.int64)
        for numbers, _ in groups.values():
            self._row[numbers] = np.arange(len(numbers))

    def __len__(self) -> int:
        return len(self._kinds)

    def __getitem__(self, number: int) -> Answer:
        number = range(len(self))[number]
        row = int(self._row[number])
        answer = self._answers[int(self._kinds[number])]
        if isinstance(answer, Edges):
            return Edges(
                answer.found[row : row + 1],
                None if answer.weight is None else answer.weight[row : row + 1],
                None if answer.time is None else answer.time[row : row + 1],
            )
        if isinstance(answer, Neighbors):
            lo, hi = int(answer.indptr[row]), int(answer.indptr[row + 1])
            return Neighbors(
                np.array([0, hi - lo]),
                answer.ids[lo:hi],
                None if answer.weight is None else answer.weight[lo:hi],
                None if answer.time is None else answer.time[lo:hi],
            )
        return answer[row : row + 1]


class SerialAnswers(Answers):
    """The answers of one batch that was run piece by piece, numbered on."""

    def __init__(self, parts: list[Answers]) -> None:
        super().__init__(np.empty(0, np.uint8), {})
        self._parts = parts
        self._starts = np.cumsum([0, *(len(part) for part in parts)]).tolist()

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, number: int) -> Answer:
        number = range(len(self))[number]
        part = bisect_right(self._starts, number) - 1
        return self._parts[part][number - self._starts[part]]


NO_ANSWERS = Answers(np.empty(0, np.uint8), {})


def answer_queries(
    out: LPMA,
    into: LPMA | None,
    directed: bool,
    columns: Columns,
    batch: list[Any] | None,
    places: Array,
) -> Answers:
    """Answer the queries in rows `places`, those of a kind together. `batch` is the stores' view
    of the batch inside a mixed batch, None where the stores hold no versions."""
    if not len(places):
        return NO_ANSWERS
    kinds = columns.kind[places]
    out_batch, reverse_batch = (None, None) if batch is None else (batch[0], batch[-1])
    groups: dict[int, tuple[Array, Answer]] = {}
    for kind in query.distinct(kinds).tolist():
        numbers = np.flatnonzero(kinds == kind)
        at = places[numbers]
        u, v = columns.src[at], columns.dst[at]
        answer: Answer
        if kind == Kind.EDGE:
            answer = query.edges(out, out_batch, u, v, at)
        elif kind == Kind.SUCCESSORS:
            answer = query.neighbors(out, out_batch, u, at)
        elif kind == Kind.PREDECESSORS:
            store = into if into is not None else out  # Graph refuses what neither can answer
            answer = query.neighbors(store, reverse_batch, u, at)
        elif kind == Kind.HOPS:
            answer = query.hops(out, out_batch, u, v.astype(np.int64), at)
        elif kind == Kind.DEGREE:
            answer = query.degrees(out, out_batch, u, at)
        else:
            batches = (out_batch, reverse_batch)
            answer = query.present_vertices(out, into, directed, batches, u, at)
        groups[kind] = (numbers, answer)
    return Answers(kinds, groups)
