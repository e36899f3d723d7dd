"""Point queries of many requests, answered together: one call of the graph for each kind.

Idea: a call of the graph costs some 10 µs whatever it is asked, and an interlude (`interludes.py`)
costs a turn of the pipeline. So all questions that wait are handed over at once; those of one kind
are joined into one column, asked in one call, and each takes its rows of the joint answer.

All of this runs in the pipeline's thread, while the stream waits. So there are bounds on it:

    rows      an answer that the service could not keep while it is paged through is refused
    seconds   after `PAUSE_S` no further question is begun; the others wait for the next interlude

Long answers are found in parts, so that both bounds are met within a question of many vertices. The
sizes of successors are known beforehand from the degrees; of hops and predecessors nothing is
known, so the parts begin small and grow while their answers are small. All parts of a question are
asked in one interlude, hence at one version.

Requires: the vertices were validated (`bodies.py`).
"""

from __future__ import annotations

import time
from asyncio import Future
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lpma import Edges, Kind, Neighbors
from lpma.arrays import to_host
from lpma.errors import BatchError, OutOfMemory
from lpma.names import FrozenNames, column_of

from ..formats.names import joined
from ..types import Name

if TYPE_CHECKING:
    from ..interludes import Moment

Array = npt.NDArray[Any]
Vertices = list[Name] | Array

PAUSE_S = 0.25  # of one interlude, after which no further question is begun
PART_ROWS = 1 << 20  # that one call of the graph is to answer with, where that is known
FIRST_PART = 16  # vertices asked at once where the size of their answers is not known
NAME_BYTES = 100  # of a name that a graph returns, as an object


class AnswerTooLarge(OutOfMemory):
    """One question has an answer of more rows than the service keeps."""


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
    watch: Any = None  # what tells that the client went away (asking.py)


@dataclass(slots=True, eq=False)
class Answer:
    """The answer to one question: elements lo … hi − 1 of a joint one, which lies on the host.
    names: what turns the ids of Neighbors into names; None: they are what the client is told."""

    kind: Kind
    version: int
    time: int
    joint: Edges | Neighbors | Array
    lo: int
    hi: int
    names: FrozenNames | None = None


Outcome = Answer | Exception | None  # None: there was no time left, ask again


def answer(moment: Moment, questions: Sequence[Question], max_bytes: int) -> list[Outcome]:
    """The outcome of each question, all at the version of this moment. max_bytes: of one answer."""
    groups: dict[tuple[Kind, int], list[int]] = defaultdict(list)
    for place, question in enumerate(questions):
        groups[question.kind, question.k].append(place)
    outcomes: list[Outcome] = [None] * len(questions)
    pause = time.monotonic() + PAUSE_S
    for number, ((kind, k), places) in enumerate(groups.items()):
        if number and time.monotonic() > pause:
            break
        together = _Together(moment, kind, k, [questions[i] for i in places], max_bytes, pause)
        for place, outcome in zip(places, together.outcomes(), strict=True):
            outcomes[place] = outcome
    return outcomes


class _Together:
    """Questions of one kind."""

    def __init__(
        self, moment: Moment, kind: Kind, k: int, questions: Sequence[Question], max_bytes: int,
        pause: float,
    ) -> None:  # fmt: skip
        self._graph: Any = moment.graph
        self._moment = moment
        self._names = moment.names
        self._kind, self._k = kind, k
        self._questions = questions
        self._pause = pause
        self._max_bytes = max_bytes
        self._max_rows = max_bytes // self._row_bytes()
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
        if time.monotonic() > self._pause:
            return [None]
        alone = _Together(
            self._moment, self._kind, self._k, [question], self._max_bytes, self._pause
        )
        return alone.outcomes()

    def _given(self, columns: Iterable[Vertices]) -> Any:
        """The vertices of several questions, as the graph takes them."""
        joint = _joined(list(columns))
        if self._names is not None:
            return self._names.look_up(column_of(joint, "vertex"))
        if self._graph_has_names():
            return joint
        return np.asarray(joint, np.uint32)

    def _of_equal_sizes(self) -> list[Outcome]:
        """Where the answer has one row a vertex."""
        graph, joint = self._graph, self._given(q.u for q in self._questions)
        found: Any
        if self._kind is Kind.EDGE:
            targets = self._given(q.v for q in self._questions if q.v is not None)
            edges = graph.edges(joint, targets)
            found = Edges(*map(to_host, (edges.found, edges.weight, edges.time)))
        elif self._kind is Kind.DEGREE:
            found = to_host(graph.degree(joint))
        else:
            found = to_host(graph.has_vertices(joint))
        return self._shared(found, len(self._questions))

    def _shared(self, joint: Edges | Neighbors | Array, count: int) -> list[Outcome]:
        """A joint answer, parted among the first `count` questions; the others have none yet."""
        kind, version, stamp = self._kind, self._moment.version, self._moment.time
        names = None
        if self._names is not None and isinstance(joint, Neighbors):
            names = self._names.frozen()
        starts = [0, *self._ends]
        shared: list[Outcome] = [
            Answer(kind, version, stamp, joint, starts[i], starts[i + 1], names)
            for i in range(count)
        ]
        return shared + [None] * (len(self._questions) - count)

    def _of_neighbors(self) -> list[Outcome]:
        joint = self._given(q.u for q in self._questions)
        first, sizes = self._ends[0], None
        if self._kind is Kind.SUCCESSORS:
            sizes = np.cumsum(to_host(self._graph.degree(joint)))
            if first and int(sizes[first - 1]) > self._max_rows:
                return [self._too_large(), *[None] * (len(self._questions) - 1)]
        parts, done = self._parts(joint, sizes)
        complete = sum(end <= done for end in self._ends)
        if complete == 0 and sum(len(part.ids) for part in parts) > self._max_rows:
            return [self._too_large(), *[None] * (len(self._questions) - 1)]
        found = _one(parts)
        outcomes = self._shared(self._without_seen(found, done), complete)
        for i, start in enumerate([0, *self._ends[: complete - 1]][:complete]):
            if found.indptr[self._ends[i]] - found.indptr[start] > self._max_rows:
                outcomes[i] = self._too_large()
        return outcomes  # a question that was cut off is asked again, and then is the first

    def _too_large(self) -> AnswerTooLarge:
        return AnswerTooLarge(
            f"the answer has more than {self._max_rows:,} rows, the most that are kept here: ask "
            "for fewer vertices at once"
        )

    def _parts(self, joint: Any, sizes: Array | None) -> tuple[list[Neighbors], int]:
        """The answers to the first `done` vertices; all of them, unless a bound is met. sizes:
        the rows of the answers up to each vertex, if they are known."""
        call, first = self._call(), self._ends[0]
        until = max(question.until for question in self._questions)
        parts: list[Neighbors] = []
        done = rows = 0
        step = FIRST_PART
        while done < len(joint) or not parts:
            if sizes is not None:
                step = max(1, int(np.searchsorted(sizes, rows + PART_ROWS, "right")) - done)
            found = call(joint[done : done + step])
            columns = found.indptr, found.ids, found.weight, found.time
            parts.append(Neighbors(*map(to_host, columns)))
            done = min(len(joint), done + step)
            here = len(parts[-1].ids)
            rows += here
            step = 4 * step if here < PART_ROWS >> 4 else max(1, step >> (here > PART_ROWS))
            if rows > self._max_rows or time.monotonic() > (
                self._pause if done >= first else until
            ):
                break
        return parts, done

    def _call(self) -> Callable[[Any], Neighbors]:
        graph, k = self._graph, self._k
        if self._kind is Kind.SUCCESSORS:
            return lambda u: graph.successors(u)
        if self._kind is Kind.PREDECESSORS:
            return lambda v: graph.predecessors(v)
        return lambda u: graph.hops(u, k)

    def _without_seen(self, found: Neighbors, done: int) -> Neighbors:
        """The rows above each vertex's `after`."""
        if all(question.after is None for question in self._questions):
            return found
        seen = np.full(done, -1, np.int64)
        start = 0
        for question, end in zip(self._questions, self._ends, strict=True):
            if question.after is not None and end <= done:
                seen[start:end] = [self._id(name) for name in question.after]
            start = end
        ids = found.ids
        if self._graph_has_names():
            ids = self._graph.names.look_up(column_of(ids, "ids"))
        counts = np.diff(found.indptr)
        kept = ids > np.repeat(seen, counts)
        before = np.concatenate([[0], np.cumsum(kept)])
        weight = None if found.weight is None else found.weight[kept]
        stamps = None if found.time is None else found.time[kept]
        return Neighbors(before[found.indptr], found.ids[kept], weight, stamps)

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
    plain = [column if isinstance(column, list) else column.tolist() for column in columns]
    return [*chain.from_iterable(plain)]


def _one(parts: list[Neighbors]) -> Neighbors:
    """The parts as one answer."""
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([0, *[len(part.ids) for part in parts]])
    indptr = [part.indptr[1:] + end for part, end in zip(parts, ends[:-1], strict=True)]
    return Neighbors(
        np.concatenate([np.zeros(1, np.int64), *indptr]),
        joined([part.ids for part in parts]),
        _column([part.weight for part in parts]),
        _column([part.time for part in parts]),
    )


def _column(columns: list[Array | None]) -> Array | None:
    present = [column for column in columns if column is not None]
    return np.concatenate(present) if present else None
