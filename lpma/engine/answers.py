"""The answers to a batch's queries: found together by kind, read one by one.

On a device the answers stay there, and reading one slices them; `Answers.on_host` copies each
column once, for a caller who reads them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Array, array_module, device_of, to_host
from ..batch.columns import Columns, Kind
from ..results import Edges, Neighbors
from . import queries
from .mixed import MixedBatch
from .stores import Stores

if TYPE_CHECKING:
    from ..names import Names

Answer = Edges | Neighbors | Array


class Answers:
    """The answers to a batch's queries, by query number: each is what `Graph.edges`, `successors` …
    would have returned for that one query at its place in the batch. `Graph.apply` returns it. The
    arrays lie on the graph's device.

    >>> batch = lpma.Batch()
    >>> batch.insert(1, 2, 0.5)
    >>> edge, targets = batch.edge(1, 2), batch.successors(1)
    >>> answers = lpma.Graph(device="cpu").apply(batch)
    >>> len(answers), answers[edge].weights, answers[targets].ids
    (2, array([0.5], dtype=float32), array([2], dtype=uint32))
    """

    def __init__(self, kinds: Array, groups: dict[int, tuple[Array, Answer]]) -> None:
        self._kinds = kinds  # the kind of each query
        self._groups = groups
        self._answers = {kind: answer for kind, (_, answer) in groups.items()}
        self._row = np.empty(len(kinds), np.int64)
        for numbers, _ in groups.values():
            self._row[numbers] = np.arange(len(numbers))
        self._ends: dict[int, Array] = {}  # indptr by kind, on the host, once asked for

    def __len__(self) -> int:
        """The number of queries."""
        return len(self._kinds)

    def __repr__(self) -> str:
        """
        >>> batch = lpma.Batch()
        >>> batch.edge(1, 2), batch.degree(1), batch.edge(2, 1)
        (0, 1, 2)
        >>> lpma.Graph(device="cpu").apply(batch)
        <lpma.Answers to 3 queries: 2 edge, 1 degree>
        """
        kinds, counts = np.unique(self._kinds, return_counts=True)
        each = (
            f"{count:,} {Kind(int(kind)).name.lower()}"
            for kind, count in zip(kinds, counts, strict=True)
        )
        asked = "1 query" if len(self) == 1 else f"{len(self):,} queries"
        return f"<lpma.Answers to {asked}{': ' if len(self) else ''}{', '.join(each)}>"

    def __getitem__(self, number: int) -> Answer:
        """The answer to query `number`: Edges, Neighbors, or an array of length 1. Raises
        IndexError."""
        number = range(len(self))[number]
        row, kind = int(self._row[number]), int(self._kinds[number])
        answer = self._answers[kind]
        if isinstance(answer, Edges):
            return answer.rows(row, row + 1)
        if isinstance(answer, Neighbors):
            if kind not in self._ends:
                self._ends[kind] = to_host(answer.indptr)
            lo, hi = self._ends[kind][row : row + 2].tolist()
            with device_of(answer.indptr):
                indptr = answer.indptr[row : row + 2] - lo
            return answer.rows(lo, hi, indptr)
        return answer[row : row + 1]

    def on_host(self) -> Answers:
        """The same answers as NumPy's arrays: one copy per column and kind of query."""
        return Answers(
            self._kinds,
            {
                kind: (numbers, _moved(answer, to_host))
                for kind, (numbers, answer) in self._groups.items()
            },
        )


def _moved(answer: Answer, to: Callable[[Any], Any]) -> Answer:
    """The answer with each of its columns moved by `to`."""
    if isinstance(answer, Edges | Neighbors):
        return answer.with_columns(to)
    moved: Array = to(answer)
    return moved


class OneAnswer(Answers):
    """The answer to the only query of a batch. It may be kept on the host, where
    pipelines read it; reading it by number moves it to the graph's device."""

    def __init__(self, answer: Answer, like: Array) -> None:
        super().__init__(np.empty(0, np.uint8), {})
        self._answer = answer
        self._like = like  # an array that lies where answers are to be read

    def __len__(self) -> int:
        return 1

    def __getitem__(self, number: int) -> Answer:
        if number not in (0, -1):
            raise IndexError(number)
        xp = array_module(self._like)
        with device_of(self._like):
            return _moved(self._answer, xp.asarray)

    def on_host(self) -> OneAnswer:
        answer = _moved(self._answer, to_host)
        return OneAnswer(answer, np.empty(0))


class NamedAnswers(Answers):
    """Answers with names for ids."""

    def __init__(self, answers: Answers, names: Names) -> None:
        super().__init__(np.empty(0, np.uint8), {})
        self._by_id = answers
        self._names = names

    def __len__(self) -> int:
        return len(self._by_id)

    def __getitem__(self, number: int) -> Answer:
        answer = self._by_id[number]
        if isinstance(answer, Neighbors):
            return replace(answer, ids=self._names.of(answer.ids))
        return answer

    def on_host(self) -> NamedAnswers:
        return NamedAnswers(self._by_id.on_host(), self._names)


NO_ANSWERS = Answers(np.empty(0, np.uint8), {})


def answer_query(stores: Stores, columns: Columns) -> OneAnswer:
    """The answer to a batch of one query."""
    out, kind = stores.out, int(columns.kind[0])
    segments = out.segments
    answer: Answer
    if kind == Kind.EDGE:
        u, v = int(columns.src[0]), int(columns.dst[0])
        found, weight, time = out.backend.find_edge(segments, u, v)
        dtype = stores.weight_dtype
        answer = Edges(
            np.array([found]),
            None if dtype is None else np.array([weight], dtype),
            None if segments.times is None else np.array([time], np.int64),
        )
    elif kind == Kind.DEGREE:
        answer = out.backend.count_neighbors_of(segments, int(columns.src[0]))
    else:
        answer = _answer(stores, Kind(kind), None, columns.src, columns.dst, None)
    return OneAnswer(answer, segments.counts)


def answer_queries(stores: Stores, columns: Columns, batch: MixedBatch | None) -> Answers:
    """Answer the queries of a batch, all of one kind together: each as of its place if `batch` is
    given, else of everything."""
    places = columns.queries
    if not len(places):
        return NO_ANSWERS
    kinds = columns.kind[places]
    order = np.argsort(kinds, kind="stable")
    ends = np.cumsum(np.bincount(kinds)).tolist()
    at, lo = places[order], 0
    u, v, limits = _asked(stores, columns, batch, at)
    groups: dict[int, tuple[Array, Answer]] = {}
    for kind, hi in enumerate(ends):
        if lo == hi:
            continue
        here = slice(lo, hi)
        of_these = None if limits is None else limits[here]
        found = _answer(stores, Kind(kind), batch, u[here], v[here], of_these)
        groups[kind], lo = (order[here], found), hi
    return Answers(kinds, groups)


def _asked(
    stores: Stores, columns: Columns, batch: MixedBatch | None, at: Array
) -> tuple[Array, Array, Any]:
    """(src, dst, limits) of the queries in rows `at`."""
    if batch is None:
        return columns.src[at], columns.dst[at], None
    out = stores.out
    return out.backend.asked(out.segments, batch.staged, columns, at)


def _answer(
    stores: Stores, kind: Kind, batch: MixedBatch | None, u: Array, v: Array, limits: Any
) -> Answer:
    """Answer queries of one kind."""
    out, staged = stores.out, None if batch is None else batch.staged
    if kind == Kind.EDGE:
        return queries.edges(out, staged, u, v, limits)
    if kind == Kind.SUCCESSORS:
        return queries.neighbors(out, staged, u, limits)
    if kind == Kind.PREDECESSORS:
        reverse = stores.reverse
        assert reverse is not None, "Graph refuses what no store can answer"
        return queries.neighbors(reverse, staged, u, limits)
    if kind == Kind.HOPS:
        return queries.hops(out, staged, u, v.astype(np.int64), limits)
    if kind == Kind.DEGREE:
        return queries.degrees(out, staged, u, limits)
    return queries.present_vertices(stores, batch, u, limits)
