"""The values that pass along the stream's road, from a source's records to the replies.

This file is at the bottom: it imports nothing from this package, so that every other file may name
what it takes and returns without importing the file on the other side. What these values look like
as bytes is in `docs/reference/format.md`.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from lpma import Edges, Neighbors
from lpma.batch.columns import Columns, Kind
from lpma.file.atomic import Writable
from lpma.pma.counters import Unchanged

if TYPE_CHECKING:
    from lpma.engine.answers import Answers

Array = npt.NDArray[Any]

UPDATES = "updates"  # the default names of the topics
QUERIES = "queries"
REPLIES = "replies"
DEAD_LETTERS = "dead-letters"
RESULTS = "results"
CHANGES = "changes"

Ids = Literal["dense", "mapped"]  # what `names` was until the next release: see `arguments.py`
Name = int | str  # of a vertex
Late = Literal["apply", "dead-letter", "reject"]  # what becomes of late operations
Answer = Edges | Neighbors | Array  # to one query

MAX_TEXT_BYTES = 64  # of an id, a source, a topic, as UTF-8
MAX_MESSAGE_BYTES = 1024  # of a reply's message and a dead letter's reason
REPLY_HEAD_BYTES = 256  # of a reply besides the rows of its answer, at most
NAME_ROW_BYTES = 5  # of one row of a column of names, besides the text
_DIGEST_BYTES = 8


# Places in a stream --------------------------------------------------------------------------


class Partition(NamedTuple):
    """A sequence of records whose offsets rise: one of a topic, by its number from 0 on.

    >>> ingest.Partition("updates", 0)
    Partition(topic='updates', number=0)
    """

    topic: str
    number: int


class Position(NamedTuple):
    """Where a partition is read from next: an offset, and how many rows of its record are done."""

    offset: int
    row: int = 0


class RecordFingerprint(NamedTuple):
    """What identifies the record at an offset."""

    offset: int
    digest: str  # hex


@dataclass(frozen=True)
class Rejected:
    """Something the source itself could not read as an operation; it becomes a dead letter.
    line: its number in a file, from 1; None: not known. is_name: a vertex in it is no id, but
    would do as a name.

    >>> ingest.sources.Rejected(b"1 x", "line 7: not a number").reason
    'line 7: not a number'
    """

    value: bytes
    reason: str
    line: int | None = None
    is_name: bool = False


NO_VALUE = Rejected(b"", "a record without a value, as compaction takes for a deletion")


class Values(Sequence[bytes]):
    """The bytes of many records, where they lie in `data`: value i from starts[i] to stops[i].
    times: when each was written, ms since 1970; None: the source looked up the last one's alone.
    keys: of as many records, of which one without has no bytes; None: no record has one.

    >>> values = ingest.types.Values.of([b"ab", b"c"])
    >>> len(values), values[1], list(values)
    (2, b'c', [b'ab', b'c'])
    """

    __slots__ = ("data", "keys", "starts", "stops", "times")

    def __init__(
        self,
        data: bytes,
        starts: Array,
        stops: Array,
        times: Array | None = None,
        keys: Values | None = None,
    ) -> None:
        self.data, self.starts, self.stops, self.times = data, starts, stops, times
        self.keys = keys

    @classmethod
    def of(cls, values: Sequence[bytes]) -> Values:
        return cls.in_lines(
            b"\n".join(values), np.fromiter(map(len, values), np.int64, len(values))
        )

    @classmethod
    def of_keys(cls, keys: Sequence[bytes]) -> Values | None:
        """These keys, of which one that has no bytes is none."""
        return cls.of(keys) if any(keys) else None

    @classmethod
    def in_lines(cls, data: bytes, sizes: Array) -> Values:
        """Of values of these sizes, with the end of a line between each and the next."""
        stops = np.cumsum(sizes + 1) - 1
        return cls(data, stops - sizes, stops)

    def lines(self) -> bytes:
        """All of them, with the end of a line between each and the next."""
        ends = np.frombuffer(self.data, np.uint8)[self.stops[:-1]]
        if bool((self.starts[1:] == self.stops[:-1] + 1).all() and (ends == ord("\n")).all()):
            return self.data[self.starts[0] : self.stops[-1]]
        return b"\n".join(self)

    def first_bytes(self) -> Array:
        """uint8[n]: the first byte of each; 0 of an empty one."""
        there = self.stops > self.starts
        found = np.zeros(len(self), np.uint8)
        found[there] = np.frombuffer(self.data, np.uint8)[self.starts[there]]
        return found

    @property
    def longest(self) -> int:
        """The length of the longest; 0 of none."""
        return int((self.stops - self.starts).max(initial=0))

    def __len__(self) -> int:
        return len(self.stops)

    def __iter__(self) -> Iterator[bytes]:
        data, places = self.data, zip(self.starts.tolist(), self.stops.tolist(), strict=True)
        return iter([data[start:stop] for start, stop in places])

    def __getitem__(self, at: Any) -> Any:
        """One value, or those of a slice."""
        if isinstance(at, slice):
            times = None if self.times is None else self.times[at]
            keys = None if self.keys is None else self.keys[at]
            return Values(self.data, self.starts[at], self.stops[at], times, keys)
        return self.data[self.starts[at] : self.stops[at]]


class Polled(NamedTuple):
    """What one poll brings from one place of a partition: one encoded record, at one offset; or
    many, at consecutive offsets; or operations that are decoded already, at as many offsets as
    there are rows. If vertices go by names, their src and dst are names, as `Names` has them.

    >>> place = ingest.Partition("updates", 0)
    >>> ingest.sources.Polled(place, 7, ingest.encode_row(1, 2)).last
    7
    """

    partition: Partition
    offset: int
    value: bytes | Values | Columns | Rejected  # NO_VALUE of a record that has a key alone
    time: int = 0  # when it, or the last of many, was written, ms since 1970, if the source knows
    key: bytes = b""  # of one record, if it has one and the source reads it; many: `Values.keys`

    @property
    def counts_rows(self) -> bool:
        """Whether each row of the value has an offset of its own."""
        return isinstance(self.value, Columns)

    @property
    def last(self) -> int:
        """The last offset this covers."""
        return self.offset + (
            len(self.value) - 1 if isinstance(self.value, Columns | Values) else 0
        )

    @property
    def records(self) -> int:
        """How many there are; rows that are decoded already count as one."""
        return len(self.value) if isinstance(self.value, Values) else 1

    @property
    def fingerprint(self) -> RecordFingerprint | None:
        """Of the last record, a digest of its bytes and of its time, which tells records apart that
        have the same bytes. None for rows of a file: its identity covers every byte."""
        if isinstance(self.value, Columns):
            return None
        value: Any = self.final.value
        data = value.value if isinstance(value, Rejected) else value
        time = self.time.to_bytes(8, "little", signed=True)
        digest = hashlib.blake2b(time, digest_size=_DIGEST_BYTES)
        digest.update(data)
        return RecordFingerprint(self.last, digest.hexdigest())

    @property
    def final(self) -> Polled:
        """The last of many records, by itself."""
        if not isinstance(self.value, Values):
            return self
        key = b"" if self.value.keys is None else self.value.keys[-1]
        return self._replace(offset=self.last, value=self.value[-1], key=key)

    def split(self, offset: int) -> tuple[Polled, Polled]:
        """What lies before `offset`, and the rest. REQUIRES: self.offset < offset <= self.last. The
        time of the first is that of the whole, unless `Values.times` has it."""
        assert isinstance(self.value, Columns | Values), "one record at one offset does not split"
        assert self.offset < offset <= self.last
        at = offset - self.offset
        if isinstance(self.value, Values):
            head, tail = self.value[:at], self.value[at:]
            time = self.time if head.times is None else int(head.times[-1])
            return self._replace(value=head, time=time), self._replace(offset=offset, value=tail)
        head, tail = self.value.rows(0, at), self.value.rows(at, len(self.value))
        return self._replace(value=head), self._replace(offset=offset, value=tail)


# Records -------------------------------------------------------------------------------------

NO_UPDATES = Columns.validated([], [], [], None, None)


@dataclass(frozen=True)
class Query:
    """One query of the stream. `dst` is the number of steps for HOPS, 0 if unused. `src`,
    `dst` and `after` may be text if vertices go by names.

    >>> data = ingest.encode_query("q1", lpma.Kind.HOPS, 7, steps=2)
    >>> ingest.decode_record(data).queries[0].dst
    2
    """

    id: str
    kind: Kind
    src: Name
    dst: Name = 0
    reply: str | None = None  # None: the pipeline's first reply topic
    deadline: int | None = None  # ms since 1970
    after: Name | None = None  # only ids above it are wanted


@dataclass(frozen=True)
class Names:
    """The ends of a record's edges by name, a row each: uint32 or uint64, int64 if some are
    negative, or objects, each an int or a str. `dst` means nothing in a vertex operation."""

    src: Any  # an array, or a list of what it would hold
    dst: Any

    def take(self, chosen: Array) -> Names:
        """Those of the rows where the mask bool[n] is true."""
        return Names(np.asarray(self.src)[chosen], np.asarray(self.dst)[chosen])


@dataclass(frozen=True)
class Record:
    """A decoded record: its updates in order, or its query; (producer, seq) if it names them.
    If it has `names`, `batch.src` and `batch.dst` are zeros that wait for the ids; if it has
    `resolve`, `batch` waits for what that makes of the graph's dictionary. is_change: the updates
    are one change of a table, and are applied together or not at all. closes: a batch ends with it,
    where the source says where batches end.

    >>> record = ingest.decode_record(ingest.encode_row(1, 2, producer="shop-7", seq=4))
    >>> len(record.batch), record.producer, record.seq
    (1, 'shop-7', 4)
    """

    batch: Columns
    queries: tuple[Query, ...] = ()
    producer: str | None = None
    seq: int | None = None
    names: Names | None = None
    is_change: bool = False
    resolve: Callable[[Any], Columns] | None = None
    closes: bool = False

    def rows(self, start: int, stop: int) -> Record:
        """Those rows, as a record of the same producer."""
        names = self.names and Names(self.names.src[start:stop], self.names.dst[start:stop])
        return replace(self, batch=self.batch.rows(start, stop), names=names)

    def only(self, chosen: Array) -> Record:
        """The rows where the mask bool[n] is true, as a record of the same producer."""
        names = None if self.names is None else self.names.take(chosen)
        return replace(self, batch=self.batch.take(chosen), names=names)


# Replies -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reply:
    """The answer to query `id`, or an error. `answer` is what the graph gives for one query:
    Edges of length 1, Neighbors with one row, int64[1] for a degree, bool[1] for a vertex. If
    vertices go by names, the ids of Neighbors are names: uint64, int64, or objects, each int or
    str.

    >>> reply = ingest.Reply("q1", lpma.Kind.DEGREE, version=3, time=9, answer=np.array([2]))
    >>> ingest.decode_reply(ingest.formats.replies.encode_reply(reply)).answer
    array([2])
    """

    id: str
    kind: Kind
    version: int  # of the graph after the query's batch
    time: int  # when the query was buffered, ms since 1970
    answer: Answer | None = None
    error: str | None = None  # "deadline", "hops", "memory", "retry" or "unsupported"
    message: str = ""  # what to do about the error
    retry_after_ms: int | None = None  # if the error is "retry"
    more: bool = False  # whether rows of higher ids were left out
    epoch: int | None = None  # as of which all shards answered; None: one did, at its own place

    @property
    def cursor(self) -> Name | None:
        """What a query for the next rows carries as `after`; None if there are none."""
        if not self.more or not isinstance(self.answer, Neighbors):
            return None
        last: Name = self.answer.ids[-1:].tolist()[0]
        return last

    @property
    def rows(self) -> int:
        """How many rows the answer has: those of the neighbours, else 1."""
        return len(self.answer.ids) if isinstance(self.answer, Neighbors) else 1

    def first_rows(self, rows: int) -> Reply:
        """This reply with at most so many of its rows; with `more` if it has others.
        REQUIRES: rows >= 1."""
        answer = self.answer
        if not isinstance(answer, Neighbors) or len(answer.ids) <= rows:
            return self
        return replace(self, answer=answer.rows(0, rows), more=True)

    def within(self, limit: int) -> Reply:
        """This reply with as many of its rows, but at least one, as `limit` bytes take encoded; or,
        for an error, with as much of its message."""
        answer = self.answer
        if not isinstance(answer, Neighbors):
            if not self.message or limit >= REPLY_HEAD_BYTES + MAX_MESSAGE_BYTES:
                return self
            return replace(self, message=clipped(self.message, max(0, limit - REPLY_HEAD_BYTES)))
        columns = (answer.weights, answer.times)
        row_bytes = sum(column.itemsize for column in columns if column is not None)
        if answer.ids.dtype == object:
            longest = max((len(str(name).encode()) for name in answer.ids.tolist()), default=0)
            row_bytes += NAME_ROW_BYTES + longest
        else:
            row_bytes += answer.ids.itemsize
        return self.first_rows(max(1, (limit - REPLY_HEAD_BYTES) // row_bytes))


def clipped(message: str, max_bytes: int) -> str:
    """The start of `message` that takes at most `max_bytes` as UTF-8."""
    return message.encode(errors="replace")[:max_bytes].decode(errors="ignore")


# The ends of the road ------------------------------------------------------------------------


@runtime_checkable
class Sink(Protocol):
    """A log to write to. Returns when all values are durable; raises when not all are. Raises
    RecordError if a value is larger than the log takes; others may have been written then."""

    def produce_many(self, topic: str, values: Sequence[bytes], /) -> object: ...


@runtime_checkable
class TopicSink(Sink, Protocol):
    """A sink that can make its topics."""

    def create_topic(self, name: str, /) -> None:
        """Make a topic; does nothing if it exists."""
        ...


class Image(Protocol):
    """A part of a checkpoint, copied: it no longer changes. `lpma.Graph.image` makes one."""

    def write(self, file: Writable, /) -> object: ...


class Directions(Protocol):
    """What must be known of a graph to know which queries it can answer."""

    @property
    def directed(self) -> bool: ...
    @property
    def has_predecessors(self) -> bool: ...


class StreamGraph(Directions, Protocol):
    """What a pipeline needs of a graph; `lpma.Graph` has it.

    `apply` changes nothing if it raises OutOfMemory, unless that is AnswersTooLarge: then the
    updates are applied. Batches have been validated. `image` is a copy of all it holds; see
    checkpointer.Part."""

    @property
    def version(self) -> int: ...
    @property
    def num_edges(self) -> int: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def levels(self) -> int: ...
    @property
    def density(self) -> float: ...
    @property
    def unchanged(self) -> Unchanged: ...
    @property
    def expired(self) -> int: ...
    def apply(self, batch: Columns, /) -> Answers | Sequence[Answer]: ...
    def image(self, old: Any = None, /) -> Image: ...


class Closing(ABC):
    """What holds a file or a connection: `with` gives the object itself, and closes it."""

    @abstractmethod
    def close(self) -> None:
        """Release what is held. A second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
