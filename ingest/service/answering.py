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
milliseconds, and the clock is looked at between two of them. A degree costs as much as a look at
each neighbour, so degrees too are asked for in parts, and of no vertex twice: a request may name
one hub 100,000 times.

Requires: the vertices were validated (`codecs.py`); the graph does not change meanwhile.
"""

from __future__ import annotations

import time
from asyncio import Future
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lpma import Edges, Kind, Neighbors
from lpma.arrays import to_host
from lpma.errors import BatchError, OutOfMemory
from lpma.names import FrozenNames, column_of

from ..formats.names import joined
from ..types import Name

if TYPE_CHECKING:
    from ..pipeline.graph_requests import GraphView

Array = npt.NDArray[Any]
Vertices = list[Name] | Array  # names, or uint32 ids

NAME_BYTES = 100  # of a name that a graph returns, as an object
TRIES = 3  # shares of the stream's time that one question gets: the first may compile kernels
PART_ROWS = 1 << 18  # that one call of the graph is to answer with, some 2 ms
PART_NAMES = 1 << 15  # the same, where rows are names
PART_EDGES = 1 << 15  # that one call of two steps or more is to walk, some 10 ms
FIRST_PART = 16  # vertices whose degrees are asked for first
QUICK_S, SLOW_S = 0.002, 0.01  # a part of degrees, after which the next is longer or shorter


_NOTHING = Neighbors(np.zeros(1, np.int64), np.empty(0, np.uint32))


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
    seen: for each vertex asked, rows of ids up to that one are left out. order: the ids of the
    joint answer, where it has names. more: of the one vertex that was asked, there are rows behind
    the last of these."""

    kind: Kind
    version: int
    time: int
    joint: Edges | Neighbors | Array
    lo: int
    hi: int
    names: FrozenNames | None = None
    places: Array | None = None
    seen: Array | None = None
    order: Array | None = None
    rows: int = 0  # of Neighbors, before any is left out
    more: bool = False


class Most(NamedTuple):
    """What one question may cost: bytes and rows of its answer, edges walked by hops."""

    bytes: int
    rows: int
    edges: int


Outcome = Answer | Exception | None  # None: there was no time left, ask again


# Many together -------------------------------------------------------------------------------


def answer(moment: GraphView, questions: Sequence[Question], most: Most) -> list[Outcome]:
    """The outcome of each question, all at the version of this moment."""
    groups: dict[tuple[Kind, int], list[int]] = defaultdict(list)
    for place, question in enumerate(questions):
        groups[question.kind, question.k].append(place)
    outcomes: list[Outcome] = [None] * len(questions)
    until = time.monotonic() + moment.share_s
    for number, ((kind, k), places) in enumerate(groups.items()):
        if number and time.monotonic() > until:
            break
        asked = [questions[i] for i in places]
        together = _Together(moment, kind, k, asked, most, until, leads=number == 0)
        for place, outcome in zip(places, together.outcomes(), strict=True):
            outcomes[place] = outcome
    return outcomes


class _Together:
    """Questions of one kind."""

    def __init__(
        self, moment: GraphView, kind: Kind, k: int, questions: Sequence[Question], most: Most,
        until: float, leads: bool,
    ) -> None:  # fmt: skip
        self._graph: Any = moment.graph
        self._moment = moment
        self._names = moment.names
        self._kind, self._k = kind, k
        self._questions = questions
        self._until, self._leads = until, leads
        self._most = most
        self._max_rows = min(most.rows, most.bytes // self._row_bytes())
        self._ends = list(accumulate(len(q.u) for q in questions))

    def _row_bytes(self) -> int:
        """Of an answer's row."""
        if self._kind is Kind.HOPS:
            columns = 0
        else:
            weight = getattr(self._graph, "weight_dtype", None)
            columns = 8 + (0 if weight is None else weight.itemsize)
        return columns + (NAME_BYTES if self._graph_has_names() else 4)

    def _graph_has_names(self) -> bool:
        return getattr(self._graph, "names", None) is not None

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
            self._moment, self._kind, self._k, [question], self._most, self._until, False
        )
        return alone.outcomes()

    def _given(self, columns: Iterable[Vertices]) -> Any:
        """The vertices of several questions, as the graph takes them."""
        joint = _joined(list(columns))
        if self._names is not None:
            return self._names.look_up(column_of(joint, "vertex"))
        if self._graph_has_names():
            return _listed(joint)
        return np.asarray(joint, np.uint32)

    def _of_equal_sizes(self) -> list[Outcome]:
        """Where the answer has one row a vertex."""
        graph, joint = self._graph, self._given(q.u for q in self._questions)
        found: Any
        if self._kind is Kind.EDGE:
            targets = self._given(q.v for q in self._questions if q.v is not None)
            edges = graph.edges(joint, targets)
            found = Edges(*map(to_host, (edges.found, edges.weights, edges.times)))
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
        kind, version, stamp = self._kind, self._moment.version, self._moment.time
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
        bounds = Bounds(self._until, self._most.edges, self._max_rows)
        reader = Reader(self._graph, self._kind, self._k, bounds)
        vertices, where = distinct(self._given(q.u for q in self._questions))
        ends = np.array([0, *self._ends])
        need = int(self._needs(where)[0])
        sizes = degrees(reader.count, vertices[:need], self._until)
        if len(sizes) < need:
            return self._cut_off()
        now = time.monotonic()  # half of what is left of the time is for the reading
        rest = degrees(reader.count, vertices[need:], now + (self._until - now) / 2)
        sizes = np.concatenate([sizes, rest])
        known = int(np.searchsorted(self._needs(where), len(sizes), "right"))
        where = where[: self._ends[known - 1]]
        ends = ends[: known + 1]
        rows = _sums(sizes[where], ends)
        refused, long = np.zeros(known, bool), np.zeros(known, bool)
        if not reader.walks:
            behind = np.array([q.after is not None for q in self._questions[:known]], bool)
            refused = rows > self._max_rows
            long = refused & behind  # how many rows they are shows when they are read
            long |= (np.diff(ends) == 1) & (rows > min(reader.part, self._max_rows))
        else:
            for i in np.flatnonzero(rows > self._most.edges):
                of_one = np.unique(where[ends[i] : ends[i + 1]])
                refused[i] = sizes[of_one].sum() > self._most.edges
        outcomes = self._read(reader, vertices, where, sizes, ends, refused | long)
        for place in np.flatnonzero(long).tolist():
            degrees_of = sizes[where[ends[place] : ends[place + 1]]]
            outcomes[place] = self._in_pieces(
                reader, self._questions[place], degrees_of, leads=place == 0
            )
        return outcomes + [None] * (len(self._questions) - known)

    def _read(
        self, reader: Reader, vertices: Any, where: Array, sizes: Array, ends: Array,
        refused: Array,
    ) -> list[Outcome]:  # fmt: skip
        """The outcomes of the first questions, whose sizes are known; those that are refused are
        not read. ends: of the questions in `where`."""
        outcomes: list[Outcome] = [self._too_large(reader) if no else None for no in refused]
        left = np.flatnonzero(~refused)
        if not len(left):
            return outcomes
        wanted = np.zeros(len(vertices), bool)
        wanted[where[np.repeat(~refused, np.diff(ends))]] = True
        at = np.cumsum(wanted) - 1  # places among those wanted
        if isinstance(vertices, list):
            vertices = [v for v, here in zip(vertices, wanted.tolist(), strict=True) if here]
        else:
            vertices = vertices[wanted]
        sizes = sizes[wanted[: len(sizes)]]
        needs = [int(at[where[ends[i] : ends[i + 1]]].max(initial=-1)) + 1 for i in left]
        found, done = reader.read(vertices, sizes, needs[0])
        counts = np.diff(found.indptr)
        bad = np.zeros(len(counts), bool)
        bad[[place for place in reader.refused if place < done]] = True
        names = None if self._names is None else self._names.frozen()
        order = self._order(found)
        for i, need in zip(left.tolist(), needs, strict=True):
            places = at[where[ends[i] : ends[i + 1]]]
            if need > done and not (len(reader.refused) and bad[places[places < done]].any()):
                continue
            rows = int(counts[places].sum()) if need <= done else 0
            if rows > self._max_rows or need > done or bad[places].any():
                outcomes[i] = self._too_large(reader)
                continue
            outcomes[i] = Answer(
                self._kind, self._moment.version, self._moment.time, found, 0, len(places), names,
                places, self._seen(self._questions[i]), order, rows,
            )  # fmt: skip
        first = left[0]
        if reader.first_too_large:
            outcomes[first] = self._too_large(reader)
        elif first == 0 and outcomes[0] is None:
            outcomes[0] = self._cut_off()[0]
        return outcomes

    def _in_pieces(
        self, reader: Reader, question: Question, degrees_of: Array, leads: bool
    ) -> Outcome:
        """The answer to a question about long rows: of one vertex as much as there are room and
        time for, of several all or nothing. leads: it gets a piece even if the time is over."""
        parts: list[Neighbors] = []
        counts = np.zeros(len(question.u), np.int64)
        vertices, is_alone, more = self._given([question.u]), len(question.u) == 1, False
        for place in np.flatnonzero(degrees_of).tolist():
            vertex = vertices[place : place + 1]
            last = None if question.after is None else self._behind(question.after[place])
            is_whole = False
            while not is_whole:
                room = self._max_rows - int(counts.sum())
                is_late = time.monotonic() > self._until and not (leads and not parts)
                if is_late and not (is_alone and parts):
                    return self._not_in_time(question) if leads else None
                if is_late or not room:
                    more = bool(len(reader.piece(vertex, last, 1).ids))
                    if more and not is_alone:
                        return self._too_large(reader)
                    break
                limit = min(reader.part, room)
                found = reader.piece(vertex, last, limit)
                parts.append(found)
                counts[place] += len(found.ids)
                is_whole = len(found.ids) < limit
                last = None if is_whole else found.ids[-1:].tolist()[0]
        rows = replace(one_of(parts), indptr=np.concatenate([[0], np.cumsum(counts)]))
        return Answer(
            self._kind, self._moment.version, self._moment.time, rows, 0, len(counts),
            None if self._names is None else self._names.frozen(), np.arange(len(counts)),
            rows=len(rows.ids), more=more,
        )  # fmt: skip

    def _too_large(self, reader: Reader) -> AnswerTooLarge:
        if reader.walks:
            return AnswerTooLarge(
                f"more than {self._most.edges:,} edges would be walked, or {self._max_rows:,} "
                "vertices reached: ask for fewer vertices at once, or fewer steps; or take a "
                "snapshot"
            )
        return AnswerTooLarge(
            f"the answer has more than {self._max_rows:,} rows, the most of one answer here: ask "
            "for fewer vertices at once, or take a snapshot"
        )

    def _seen(self, question: Question) -> Array | None:
        """The id up to which rows are left out, for each vertex."""
        if question.after is None:
            return None
        return np.array([self._id(name) for name in question.after], np.int64)

    def _behind(self, name: Name | None) -> Name | None:
        """What the graph takes as `after`."""
        id = self._id(name)
        if id < 0:
            return None
        return name if self._graph_has_names() else id

    def _order(self, found: Neighbors) -> Array | None:
        """The ids of an answer in names, if any question leaves out rows of it."""
        if not self._graph_has_names() or all(q.after is None for q in self._questions):
            return None
        ids: Array = np.asarray(self._graph.names.look_up(column_of(found.ids, "ids")))
        return ids

    def _id(self, name: Name | None) -> int:
        names = self._names if self._names is not None else getattr(self._graph, "names", None)
        if name is None:
            return -1
        if names is None:
            return int(name)
        id = names.find(name)
        return -1 if id is None else int(id)


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


def _sums(values: Array, ends: Array) -> Array:
    """The sum of each part of the values."""
    return np.diff(np.concatenate([[0], np.cumsum(values)])[ends])


# Neighbours ----------------------------------------------------------------------------------


class Bounds(NamedTuple):
    """What is read at most. until: of time.monotonic(); edges: walked for one vertex or question;
    rows: of one answer."""

    until: float
    edges: int
    rows: int


def distinct(vertices: Vertices) -> tuple[Vertices, Array]:
    """(those that differ, in the order in which they appear first; the place of each in them)."""
    if isinstance(vertices, np.ndarray):
        found, first, inverse = np.unique(vertices, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return found[order], rank[inverse]
    places: dict[Any, int] = {}
    where = [places.setdefault(vertex, len(places)) for vertex in vertices]
    return list(places), np.array(where, np.int64)


def degrees(
    count: Callable[[Any], Any], vertices: Vertices, until: float, most: int | None = None
) -> Array:
    """int64: the degrees of the first of these vertices; of all, unless the time is over, or their
    sum is above `most`."""
    parts: list[Array] = []
    done = total = 0
    step = FIRST_PART
    while done < len(vertices):
        started = time.monotonic()
        if started > until or (most is not None and total > most):
            break
        parts.append(np.asarray(to_host(count(vertices[done : done + step]))))
        done += len(parts[-1])
        total += int(parts[-1].sum())
        took = time.monotonic() - started
        step = 4 * step if took < QUICK_S else max(1, step >> (took > SLOW_S))
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
        named = getattr(graph, "names", None) is not None
        self.part = PART_EDGES if self.walks else PART_NAMES if named else PART_ROWS
        self.refused: list[int] = []  # places of vertices from where too many edges are walked
        self.first_too_large = False

    def read(self, vertices: Vertices, sizes: Array, first: int) -> tuple[Neighbors, int]:
        """(answers, how many vertices they are of): of all, unless the time is over, or the first
        question, which is of the `first` vertices, has too much. sizes: the degrees."""
        parts: list[Neighbors] = []
        ends = np.cumsum(sizes)
        done = rows = edges = 0
        most = len(vertices)
        while done < len(vertices) or not parts:
            start = int(ends[done - 1]) if done else 0
            step = int(np.searchsorted(ends, start + self.part, "right")) - done
            step = max(1, min(step, most))
            part = vertices[done : done + step]
            if self.walks and len(part):
                found, fits, walked = self._walked(part, sizes[done : done + step])
                if found is None and fits == 0:
                    break  # the time is over
                most = fits if found is None else 2 * step
                if found is None and fits < step:
                    continue
                if found is None:
                    self.refused.append(done)
                    found = Neighbors(np.zeros(2, np.int64), np.empty(0, np.uint32))
                    walked = 0
                edges += walked
            else:
                found = self._call(part)
            parts.append(_on_host(found))
            done += len(part)
            rows += len(parts[-1].ids)
            if done <= first and (rows > self._bounds.rows or edges > self._bounds.edges):
                self.first_too_large = True
                break
            if rows > self._bounds.rows or time.monotonic() > self._bounds.until:
                break
        if done < first:  # nothing of it will be told
            return _NOTHING, 0
        return one_of(parts), done

    def piece(self, vertex: Vertices, after: Any, limit: int) -> Neighbors:
        """At most `limit` neighbours of one vertex, those behind `after`; None: the first ones.
        REQUIRES: not `walks`."""
        found = _on_host(self._after(vertex, after, limit))
        return found if self._has_columns else Neighbors(found.indptr, found.ids)

    def _walked(self, part: Vertices, sizes: Array) -> tuple[Neighbors | None, int, int]:
        """(what is reached, vertices, edges walked); (None, fewer vertices to try) if they are too
        many, (None, 1) of one vertex if its edges are, (None, 0) if the time is over."""
        bounds, count = self._bounds, len(part)
        before, edges = -1, int(sizes.sum())
        for k in range(1, self._k):
            if edges > bounds.edges:
                return None, max(1, count // 4), edges
            reached = _on_host(self._graph.hops(part, k))
            if len(reached.ids) == before:
                return reached, count, edges  # nothing more can be reached
            before = len(reached.ids)
            ids, where = distinct(
                reached.ids.tolist() if reached.ids.dtype == object else reached.ids
            )
            found = degrees(self._graph.degree, ids, bounds.until, bounds.edges)
            if len(found) < len(ids):
                over = int(found.sum()) > bounds.edges
                return None, max(1, count // 4) if over else 0, edges
            each = sizes + np.diff(np.concatenate([[0], np.cumsum(found[where])])[reached.indptr])
            edges = int(each.sum())
            if edges > self.part and count > 1:
                fits = int(np.searchsorted(np.cumsum(each), self.part, "right"))
                return None, max(1, min(fits, count - 1)), edges
        if edges > bounds.edges:
            return None, max(1, count // 4), edges
        return self._call(part), count, edges


def _on_host(found: Neighbors) -> Neighbors:
    return Neighbors(*map(to_host, (found.indptr, found.ids, found.weights, found.times)))


def one_of(parts: list[Neighbors]) -> Neighbors:
    """The parts as one answer."""
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([0, *[len(part.ids) for part in parts]])
    indptr = [part.indptr[1:] + end for part, end in zip(parts, ends[:-1], strict=True)]
    parts = [part for part in parts if len(part.ids)] or parts[:1]
    return Neighbors(
        np.concatenate([np.zeros(1, np.int64), *indptr]),
        joined([part.ids for part in parts]) if parts else np.empty(0, np.uint32),
        _column([part.weights for part in parts]),
        _column([part.times for part in parts]),
    )


def _column(columns: list[Array | None]) -> Array | None:
    present = [column for column in columns if column is not None]
    return np.concatenate(present) if present else None
