"""Point queries of many requests, answered together: one call of the graph for each kind.

Idea: a call of the graph costs some 10 µs whatever it is asked, and an interlude
(`graph_requests.py`) costs a turn of the pipeline. So all questions that wait are handed over at
once; those of one kind are joined into one column, asked in one call, and each takes its rows of
the joint answer.

All of this runs in the pipeline's thread, while the stream waits. So there are bounds on it, and a
question that breaks one is refused as soon as that is known, before it is paid for:

    rows      of one answer, repeated vertices counted; and what the service could keep of it. Of
              one vertex that has more, the answer ends where it is full, and says so
    edges     that hops walk for one question
    seconds   of one interlude (`GraphView.share_s`), after which no further part of any question is
              begun; the others wait for the next interlude. A question that had a share for itself
              `TRIES` times and was not finished is refused: it is of one version, hence of one
              interlude.

A vertex that is asked for many times is read once (`reading.py`), and its rows are repeated where
the reply is written.

Requires: the vertices were validated (`bodies.py`).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lpma import Edges, Kind, Neighbors
from lpma.arrays import to_host
from lpma.errors import BatchError, OutOfMemory
from lpma.names import column_of

from ..types import Name
from .questions import NAME_BYTES, Answer, AnswerTooLarge, Most, Outcome, Question, Vertices
from .reading import Bounds, Reader, degrees, distinct, one_of

if TYPE_CHECKING:
    from ..pipeline.graph_requests import GraphView

Array = npt.NDArray[Any]

TRIES = 3  # shares of the stream's time that one question gets: the first may compile kernels


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
