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
from .queries import MixedBatch
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

    def __init__(
        self, kinds: Array, groups: dict[int, tuple[Array, Answer]], like: Array | None = None
    ) -> None:
        """kinds: of each query; groups: the numbers of the queries of a kind, and the answers to
        them; like: an array that lies where answers are to be read, if they lie elsewhere."""
        self._kinds, self._groups, self._like = kinds, groups, like
        self._names: Names | None = None
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
        counted = zip(kinds.tolist(), counts.tolist(), strict=True)
        each = (f"{count:,} {Kind(kind).name.lower()}" for kind, count in counted)
        asked = "1 query" if len(self) == 1 else f"{len(self):,} queries"
        return f"<lpma.Answers to {asked}{': ' if len(self) else ''}{', '.join(each)}>"

    def __getitem__(self, number: int) -> Answer:
        """The answer to a query: Edges, Neighbors, or an array of length 1. Raises IndexError."""
        if not -len(self) <= number < len(self):
            raise IndexError(f"query {number}: the batch had {len(self)}")
        number %= len(self)
        row, kind = int(self._row[number]), int(self._kinds[number])
        answer: Answer = self._groups[kind][1]
        if self._like is not None:
            with device_of(self._like):
                answer = _moved(answer, array_module(self._like).asarray)
        if isinstance(answer, Edges):
            return answer.rows(row, row + 1)
        if not isinstance(answer, Neighbors):
            return answer[row : row + 1]
        if kind not in self._ends:
            self._ends[kind] = to_host(answer.indptr)
        lo, hi = self._ends[kind][row : row + 2].tolist()
        with device_of(answer.indptr):
            indptr = answer.indptr[row : row + 2] - lo
        found = answer.rows(lo, hi, indptr)
        return found if self._names is None else replace(found, ids=self._names.of(found.ids))

    def on_host(self) -> Answers:
        """The same answers as NumPy's arrays: one copy per column and kind of query."""
        groups = {
            kind: (numbers, _moved(answer, to_host))
            for kind, (numbers, answer) in self._groups.items()
        }
        return Answers(self._kinds, groups).by_name(self._names)

    def by_name(self, names: Names | None) -> Answers:
        """The same object, whose vertices go by these names from now on."""
        self._names = names
        return self


def _moved(answer: Answer, to: Callable[[Any], Any]) -> Answer:
    """The answer with each of its columns moved by `to`."""
    if isinstance(answer, Edges | Neighbors):
        return answer.with_columns(to)
    moved: Array = to(answer)
    return moved


NO_ANSWERS = Answers(np.empty(0, np.uint8), {})


def answer_query(stores: Stores, columns: Columns) -> Answers:
    """The answer to a batch of one query. It may lie on the host, where pipelines read it; reading
    it by number moves it to the graph's device."""
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
    return Answers(columns.kind.copy(), {kind: (np.zeros(1, np.int64), answer)}, segments.counts)


def answer_queries(stores: Stores, columns: Columns, batch: MixedBatch | None) -> Answers:
    """Answer the queries of a batch by kind: as of their places if `batch` is given, else at its
    end."""
    places = columns.queries
    if not len(places):
        return NO_ANSWERS
    kinds = columns.kind[places]
    order = np.argsort(kinds, kind="stable")
    ends = np.cumsum(np.bincount(kinds)).tolist()
    at, lo = places[order], 0
    if batch is None:
        u, v, limits = columns.src[at], columns.dst[at], None
    else:
        out = stores.out
        u, v, limits = out.backend.asked(out.segments, batch.staged, columns, at)
    groups: dict[int, tuple[Array, Answer]] = {}
    for kind, hi in enumerate(ends):
        if lo == hi:
            continue
        here = slice(lo, hi)
        of_these = None if limits is None else limits[here]
        found = _answer(stores, Kind(kind), batch, u[here], v[here], of_these)
        groups[kind], lo = (order[here], found), hi
    return Answers(kinds, groups)


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
