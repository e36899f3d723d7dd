"""Point queries of many requests, answered together: one call of the graph for each kind.

Idea: a call of the graph costs some 10 µs whatever it is asked, and a turn
(`graph_requests.py`) costs a turn of the pipeline. So all questions that wait are handed over at
once; those of one kind are joined into one column, asked in one call, and each takes its rows of
the joint answer.

All of this runs in the pipeline's thread, while the stream waits. So there are bounds on it, and a
question that breaks one is refused as soon as that is known, before it is paid for:

    rows      of one answer, repeated vertices counted; and what the service could keep of it. Of
              one vertex that has more, the answer ends where it is full, and says so
    edges     that hops walk for one question
    seconds   of one turn (`GraphView.share_s`), after which no further part of any question is
              begun; the others wait for the next turn. A question that had a share for itself
              `TRIES` times and was not finished is refused: it is of one version, hence of one
              turn.

A vertex that is asked for many times is read once, and its rows are repeated where
the reply is written.

How neighbours are read: the cost of a question is known, or estimated, before it is paid. The rows
of successors and predecessors are the vertices' degrees. Of k steps, the edges that are walked are
at most the degrees of the starts and of all that k − 1 steps reach; so the steps are tried one
after the other, and none is taken whose edges are too many. What is left is cut into parts of some
milliseconds, as degrees are, and the clock is looked at between two of them.

Requires: the vertices were validated (`query_codecs.py`); the graph does not change meanwhile.
"""

from __future__ import annotations

import time
from asyncio import Future
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lpma import Edges, Kind, Neighbors
from lpma.arrays import to_host
from lpma.errors import BatchError, OutOfMemory
from lpma.names import FrozenNames, column_of

from ..types import Name

if TYPE_CHECKING:
    from ..pipeline.graph_requests import GraphView

Array = npt.NDArray[Any]
Vertices = list[Name] | Array  # names, or uint32 ids

TRIES = 3  # shares of the stream's time that one question gets: the first may compile kernels
PART_ROWS = 1 << 18  # that one call of the graph is to answer with, some 2 ms
PART_EDGES = 1 << 15  # that one call of two steps or more is to walk, some 10 ms
PART_DEGREES = 1 << 12  # that are asked for in one call, some ms


# Questions and answers -----------------------------------------------------------------------


class AnswerTooLarge(OutOfMemory):
    """One question asks for more than one answer may cost."""


@dataclass(slots=True, eq=False)
class Question:
    """What one request asks. `after` is of the length of `u`, with None where nothing is left out;
    v: the targets, for Kind.EDGE. until: its deadline, of time.monotonic()."""

    kind: Kind
    u: Vertices
    v: Vertices | None
    after: list[Name | None] | None
    k: int
    until: float
    future: Future[Answer]
    asked: float = field(default_factory=time.monotonic)
    watch: Any = None  # what tells that the client went away (query_queue.py)
    tries: int = 0  # how often it had a share for itself and was not finished


@dataclass(slots=True, eq=False)
class Answer:
    """The answer to one question, in a joint one, which lies on the host: elements lo … hi − 1 of
    it; of Neighbors, element places[i] for the i-th vertex asked.

    names: what turns the ids of Neighbors into names; None: they are what the client is told.
    seen: for each vertex asked, rows of ids up to that one are left out. more: of the one vertex
    that was asked, there are rows behind the last of these."""

    kind: Kind
    version: int
    time: int
    joint: Edges | Neighbors | Array
    lo: int
    hi: int
    names: FrozenNames | None = None
    places: Array | None = None
    seen: Array | None = None
    rows: int = 0  # of Neighbors, before any is left out
    more: bool = False


class Most(NamedTuple):
    """What one question may cost: bytes and rows of its answer, edges walked by hops."""

    bytes: int
    rows: int
    edges: int


Outcome = Answer | Exception | None  # None: there was no time left, ask again


# Many together -------------------------------------------------------------------------------


def answer(view: GraphView, questions: Sequence[Question], most: Most) -> list[Outcome]:
    """The outcome of each question, all at the version of this view."""
    view = view.by_id()
    groups: dict[tuple[Kind, int], list[int]] = defaultdict(list)
    for place, question in enumerate(questions):
        groups[question.kind, question.k].append(place)
    outcomes: list[Outcome] = [None] * len(questions)
    until = time.monotonic() + view.share_s
    for number, ((kind, k), places) in enumerate(groups.items()):
        if number and time.monotonic() > until:
            break
        asked = [questions[i] for i in places]
        together = _Together(view, kind, k, asked, most, until, leads=number == 0)
        for place, outcome in zip(places, together.outcomes(), strict=True):
            outcomes[place] = outcome
    return outcomes


class _Together:
    """Questions of one kind."""

    def __init__(
        self, view: GraphView, kind: Kind, k: int, questions: Sequence[Question], most: Most,
        until: float, leads: bool,
    ) -> None:  # fmt: skip
        self._graph: Any = view.graph
        self._view = view
        self._names = view.names
        self._kind, self._k = kind, k
        self._questions = questions
        self._until, self._leads = until, leads
        rows = min(most.rows, most.bytes // self._row_bytes())
        self._most, self._bounds = most, Bounds(until, most.edges, rows)
        self._ends = list(accumulate(len(q.u) for q in questions))

    def _row_bytes(self) -> int:
        """Of an answer's row."""
        weight = getattr(self._graph, "weight_dtype", None)
        columns = 8 + (0 if weight is None else weight.itemsize)
        return 4 + (0 if self._kind is Kind.HOPS else columns)

    def outcomes(self) -> list[Outcome]:
        try:
            if self._kind in (Kind.EDGE, Kind.DEGREE, Kind.VERTEX):
                return self._of_equal_sizes()
            return self._of_neighbors()
        except OutOfMemory as error:
            if len(self._questions) == 1:
                return [error]
        except BatchError as error:
            return [error] * len(self._questions)
        return [outcome for question in self._questions for outcome in self._alone(question)]

    def _alone(self, question: Question) -> list[Outcome]:
        """A question by itself, after its group took too much memory."""
        if time.monotonic() > self._until:
            return [None]
        alone = _Together(
            self._view, self._kind, self._k, [question], self._most, self._until, False
        )
        return alone.outcomes()

    def _given(self, columns: Iterable[Vertices]) -> Array:
        """The vertices of several questions, by their ids."""
        joint = _joined(list(columns))
        if self._names is not None:
            return self._names.look_up(column_of(joint, "vertex"))
        return np.asarray(joint, np.uint32)

    def _of_equal_sizes(self) -> list[Outcome]:
        """Where the answer has one row a vertex."""
        graph, joint = self._graph, self._given(q.u for q in self._questions)
        found: Any
        if self._kind is Kind.EDGE:
            targets = self._given(q.v for q in self._questions if q.v is not None)
            edges = graph.edges(joint, targets)
            found = edges.with_columns(to_host)
            return self._shared(found, len(self._questions))
        vertices, where = distinct(joint) if len(joint) > 1 else (joint, np.zeros(1, np.int64))
        if self._kind is Kind.VERTEX:
            found = to_host(graph.has_vertices(vertices))
            return self._shared(found[where[: len(joint)]], len(self._questions))
        needs = self._needs(where[: len(joint)])
        found = degrees(graph.degree, vertices, self._until)
        complete = int(np.searchsorted(needs, len(found), "right"))
        if not complete:
            return self._cut_off()
        return self._shared(found[where[: self._ends[complete - 1]]], complete)

    def _needs(self, where: Array) -> Array:
        """How many of the distinct vertices each question and those before it need."""
        most = np.concatenate([[0], np.maximum.accumulate(where) + 1])
        return most[np.array(self._ends)]

    def _shared(self, joint: Edges | Array, count: int) -> list[Outcome]:
        """A joint answer, parted among the first `count` questions; the others have none yet."""
        kind, version, stamp = self._kind, self._view.version, self._view.time
        starts = [0, *self._ends]
        shared: list[Outcome] = [
            Answer(kind, version, stamp, joint, starts[i], starts[i + 1]) for i in range(count)
        ]
        return shared + [None] * (len(self._questions) - count)

    def _cut_off(self) -> list[Outcome]:
        """There was no time to finish the first question."""
        outcomes: list[Outcome] = [None] * len(self._questions)
        if self._leads:
            outcomes[0] = self._not_in_time(self._questions[0])
        return outcomes

    def _not_in_time(self, question: Question) -> Outcome:
        """Of a question that had a share of the time and was not finished."""
        question.tries += 1
        if question.tries < TRIES:
            return None
        return AnswerTooLarge(
            "the stream cannot wait for this answer: ask for fewer vertices at once, or take a "
            "snapshot"
        )

    def _of_neighbors(self) -> list[Outcome]:
        reader = Reader(self._graph, self._kind, self._k, self._bounds)
        vertices, where = distinct(self._given(q.u for q in self._questions))
        needs = self._needs(where)
        sizes = degrees(reader.count, vertices, self._until)
        known = int(np.searchsorted(needs, len(sizes), "right"))
        if not known:
            return self._cut_off()
        ends = np.array([0, *self._ends[:known]])
        where = where[: ends[-1]]
        rows = _sums(sizes[where], ends)
        outcomes: list[Outcome] = [None] * len(self._questions)
        most = min(reader.part, self._bounds.rows)
        start = 0
        while start < known:
            stop, total = start + 1, rows[start]
            while stop < known and total + rows[stop] <= most:
                total += rows[stop]
                stop += 1
            group = range(start, stop)
            if total > most and not reader.walks and self._is_long(start, total):
                degrees_of = sizes[where[ends[start] : ends[stop]]]
                outcomes[start] = self._in_pieces(reader, start, degrees_of)
            elif total > self._bounds.rows and not reader.walks:
                outcomes[start] = reader.too_large()
            else:
                self._read(reader, group, vertices, sizes, where, ends, outcomes)
            start = stop
        return outcomes

    def _is_long(self, place: int, rows: int) -> bool:
        """Whether a question of so many rows may be answered in pieces: what is behind `after`
        shows when they are read, and of one vertex there may be more."""
        question = self._questions[place]
        return len(question.u) == 1 or (question.after is not None and rows > self._bounds.rows)

    def _has_time(self, place: int) -> bool:
        """Whether work for a question may begin: it leads, or the time is not over."""
        return (self._leads and place == 0) or time.monotonic() <= self._until

    def _read(
        self, reader: Reader, group: range, vertices: Array, sizes: Array, where: Array,
        ends: Array, outcomes: list[Outcome],
    ) -> None:  # fmt: skip
        """Read what a group of questions asks, together; if that is too much, in halves. where: the
        places among the vertices of what is asked; ends: of the questions in it."""
        if not self._has_time(group[0]):
            return
        ends_here = ends[group.start : group.stop + 1] - ends[group.start]
        chosen, at = np.unique(where[ends[group.start] : ends[group.stop]], return_inverse=True)
        try:
            found = reader.read(vertices[chosen], sizes[chosen])
        except AnswerTooLarge as error:
            if len(group) == 1:
                outcomes[group[0]] = error
                return
            middle = len(group) // 2
            for half in (group[:middle], group[middle:]):
                self._read(reader, half, vertices, sizes, where, ends, outcomes)
            return
        except Late:
            if self._leads and group[0] == 0:
                outcomes[0] = self._not_in_time(self._questions[0])
            return
        rows = _sums(np.diff(found.indptr)[at], ends_here)
        parts = zip(group, pairwise(ends_here.tolist()), rows, strict=True)
        for i, (lo, hi), count in parts:
            if count > self._bounds.rows:
                outcomes[i] = reader.too_large()
                continue
            seen = self._seen(self._questions[i])
            outcomes[i] = self._answer(found, at[lo:hi], seen=seen, rows=count)

    def _answer(self, found: Neighbors, places: Array, **more: Any) -> Answer:
        names = None if self._names is None else self._names.frozen()
        view, rows = self._view, len(places)
        return Answer(self._kind, view.version, view.time, found, 0, rows, names, places, **more)

    def _in_pieces(self, reader: Reader, asked: int, degrees_of: Array) -> Outcome:
        """The answer to a question about long rows: of one vertex as much as there are room and
        time for, of several all or nothing."""
        if not self._has_time(asked):
            return None
        question, parts = self._questions[asked], list[Neighbors]()
        counts = np.zeros(len(question.u), np.int64)
        vertices, is_alone, more = self._given([question.u]), len(question.u) == 1, False
        for place in np.flatnonzero(degrees_of).tolist():
            vertex = vertices[place : place + 1]
            last = None if question.after is None else self._id(question.after[place])
            is_whole = False
            while not is_whole:
                room = self._bounds.rows - int(counts.sum())
                is_late = bool(parts) and time.monotonic() > self._until
                if is_late and not is_alone:
                    is_first = self._leads and asked == 0
                    return self._not_in_time(question) if is_first else None
                if is_late or not room:
                    more = bool(len(reader.piece(vertex, last, 1).ids))
                    if more and not is_alone:
                        return reader.too_large()
                    break
                limit = min(reader.part, room)
                found = reader.piece(vertex, last, limit)
                parts.append(found)
                counts[place] += len(found.ids)
                is_whole = len(found.ids) < limit
                last = None if is_whole else int(found.ids[-1])
        rows = replace(one_of(parts), indptr=np.concatenate([[0], np.cumsum(counts)]))
        return self._answer(rows, np.arange(len(counts)), rows=len(rows.ids), more=more)

    def _seen(self, question: Question) -> Array | None:
        """The id up to which rows are left out, for each vertex."""
        if question.after is None:
            return None
        ids = (self._id(name) for name in question.after)
        return np.array([-1 if id is None else id for id in ids], np.int64)

    def _id(self, name: Name | None) -> int | None:
        """None of a name that no vertex goes by."""
        if name is None:
            return None
        return int(name) if self._names is None else self._names.find(name)


def _joined(columns: list[Vertices]) -> Any:
    """Columns one after the other: a list if all are lists."""
    if len(columns) == 1:
        return columns[0]
    lists = [column for column in columns if isinstance(column, list)]
    if len(lists) == len(columns):
        return list(chain.from_iterable(lists))
    arrays = [column for column in columns if isinstance(column, np.ndarray)]
    if len(arrays) == len(columns) and len({array.dtype for array in arrays}) == 1:
        return np.concatenate(arrays)
    return [name for column in columns for name in _listed(column)]


def _listed(column: Vertices) -> list[Name]:
    return column if isinstance(column, list) else column.tolist()


def _sums(values: Array, ends: Array) -> list[int]:
    """The sum of each part of the values."""
    sums: list[int] = np.diff(np.concatenate([[0], np.cumsum(values)])[ends]).tolist()
    return sums


# Neighbours ----------------------------------------------------------------------------------


class Bounds(NamedTuple):
    """What is read at most. until: of time.monotonic(); edges: walked for one question; rows: of
    one answer."""

    until: float
    edges: int
    rows: int


class Late(Exception):
    """The time is over before an answer is whole."""


def distinct(vertices: Array) -> tuple[Array, Array]:
    """(those that differ, in the order in which they appear first; the place of each in them)."""
    found, first, inverse = np.unique(vertices, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return found[order], rank[inverse]


def degrees(
    count: Callable[[Any], Any], vertices: Array, until: float, most: int | None = None
) -> Array:
    """int64: the degrees of the first of these vertices; of all, unless the time is over, or their
    sum is above `most`."""
    parts: list[Array] = []
    total = 0
    for start in range(0, len(vertices), PART_DEGREES):
        if time.monotonic() > until or (most is not None and total > most):
            break
        parts.append(np.asarray(to_host(count(vertices[start : start + PART_DEGREES]))))
        total += int(parts[-1].sum())
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


class Reader:
    """Reads neighbours of one kind."""

    def __init__(self, graph: Any, kind: Kind, k: int, bounds: Bounds) -> None:
        self._graph, self._k, self._bounds = graph, k, bounds
        self.walks = kind is Kind.HOPS and k > 1
        self.count = graph.in_degree if kind is Kind.PREDECESSORS else graph.degree
        self._call: Callable[[Any], Neighbors] = {
            Kind.SUCCESSORS: graph.successors,
            Kind.PREDECESSORS: graph.predecessors,
            Kind.HOPS: lambda u: graph.hops(u, k),
        }[kind]
        self._after = (
            graph.predecessors_after if kind is Kind.PREDECESSORS else graph.successors_after
        )
        self._has_columns = kind is not Kind.HOPS
        self.part = PART_EDGES if self.walks else PART_ROWS

    def too_large(self) -> AnswerTooLarge:
        edges, rows = self._bounds.edges, self._bounds.rows
        if self.walks:
            return AnswerTooLarge(
                f"more than {edges:,} edges would be walked, or {rows:,} vertices reached: ask for "
                "fewer vertices at once, or fewer steps; or take a snapshot"
            )
        return AnswerTooLarge(
            f"the answer has more than {rows:,} rows, the most of one answer here: ask for fewer "
            "vertices at once, or take a snapshot"
        )

    def read(self, vertices: Array, sizes: Array) -> Neighbors:
        """The neighbours of these vertices, whose degrees are `sizes`, part after part. Raises
        AnswerTooLarge, and Late if the time is over after the first part."""
        parts: list[Neighbors] = []
        ends = np.cumsum(sizes)
        done = rows = walked = 0
        most = len(vertices)
        while done < len(vertices) or not parts:
            if parts and time.monotonic() > self._bounds.until:
                raise Late
            start = int(ends[done - 1]) if done else 0
            step = int(np.searchsorted(ends, start + self.part, "right")) - done
            step = max(1, min(step, most))
            part = vertices[done : done + step]
            if self.walks and len(part):
                room = self._bounds.edges - walked
                found, count = self._walked(part, sizes[done : done + step], room)
                if found is None:
                    most = count
                    continue
                walked += count
                most = 2 * step
            else:
                found = self._call(part)
            parts.append(found.with_columns(to_host))
            done += len(part)
            rows += len(parts[-1].ids)
            if rows > self._bounds.rows:
                raise self.too_large()
        return one_of(parts)

    def piece(self, vertex: Array, after: int | None, limit: int) -> Neighbors:
        """At most `limit` neighbours of one vertex, those behind `after`; None: the first ones.
        REQUIRES: not `walks`."""
        found = self._after(vertex, after, limit).with_columns(to_host)
        return found if self._has_columns else Neighbors(found.indptr, found.ids)

    def _walked(self, part: Array, sizes: Array, room: int) -> tuple[Neighbors | None, int]:
        """(what is reached, edges walked); (None, fewer vertices to try at once) if these edges are
        many. Raises AnswerTooLarge if they are more than `room`, and Late."""
        before, each = -1, sizes
        for k in range(1, self._k + 1):
            edges = int(each.sum())
            if edges > room:
                raise self.too_large()
            if edges > self.part and k > 1 and len(part) > 1:
                fits = int(np.searchsorted(np.cumsum(each), self.part, "right"))
                return None, max(1, min(fits, len(part) - 1))
            reached = self._graph.hops(part, k).with_columns(to_host)
            if k == self._k or len(reached.ids) == before:
                break  # nothing more can be reached
            before = len(reached.ids)
            ids, where = distinct(reached.ids)
            found = degrees(self._graph.degree, ids, self._bounds.until, room)
            if len(found) < len(ids):
                raise self.too_large() if int(found.sum()) > room else Late
            each = sizes + np.diff(np.concatenate([[0], np.cumsum(found[where])])[reached.indptr])
        return reached, edges


def one_of(parts: list[Neighbors]) -> Neighbors:
    """The parts as one answer."""
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([0, *[len(part.ids) for part in parts]])
    indptr = [part.indptr[1:] + end for part, end in zip(parts, ends[:-1], strict=True)]
    return Neighbors(
        np.concatenate([np.zeros(1, np.int64), *indptr]),
        np.concatenate([np.empty(0, np.uint32), *[part.ids for part in parts]]),
        _column([part.weights for part in parts]),
        _column([part.times for part in parts]),
    )


def _column(columns: list[Array | None]) -> Array | None:
    present = [column for column in columns if column is not None]
    return np.concatenate(present) if present else None
