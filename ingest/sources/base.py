"""What a pipeline needs of a stream: the base classes of sources, logs and their writers.

A source is a set of partitions; a partition is a sequence whose offsets rise. The pipeline alone
decides what has been read: it keeps the offsets with the state of the graph and seeks to them, so
a source commits nothing and keeps no state for a consumer. Reading the same offsets again gives the
same records, in the same order within a partition; the order between partitions may differ, and the
pipeline's journal holds the one that counted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from lpma.batch.columns import Columns

from ..errors import IdentityError, OffsetError
from ..types import Partition, Polled, Record, Sink

if TYPE_CHECKING:
    from lpma.names import Names

FILES = "file"  # the cluster of every file


class TopicsDiffer(IdentityError):
    """A source lacks a topic of the checkpoint."""


@dataclass(frozen=True)
class Identity:
    """Which source this is: the id of its cluster (log, file system) and of each topic read. A
    topic that is deleted and created again has another id. A file is a topic by its own name, whose
    id is of its bytes and of how it is read; `read_as` says that, as plain values, where known.

    >>> with ingest.SqliteLog("log") as log:
    ...     log.create_topic("updates")
    ...     log.identity().check(log.identity())
    """

    cluster: str
    topics: Mapping[str, str]
    read_as: Mapping[str, Any] | None = None

    def check(self, found: Identity) -> None:
        """Raise IdentityError unless `found` still holds everything this one names."""
        if found.cluster != self.cluster:
            raise IdentityError(
                f"the checkpoint was taken from source {self.cluster}, this one is "
                f"{found.cluster}: give the source it came from, or start a new checkpoint"
            )
        for topic, name in self.topics.items():
            if self.cluster == FILES and found.topics.get(topic) != name:
                raise IdentityError(self._other_file(topic, name, found))
            if topic not in found.topics:
                others = ", ".join(map(repr, found.topics)) or "none"
                raise TopicsDiffer(
                    f"topic {topic!r} of the checkpoint is not in this source, which reads "
                    f"{others}: read what the checkpoint's stream reads, or start a new checkpoint"
                )
            if found.topics[topic] != name:
                raise IdentityError(
                    f"topic {topic!r} was replaced or created again since the checkpoint: its "
                    "offsets mean something else now; start a new checkpoint"
                )

    def _other_file(self, name: str, id: str, found: Identity) -> str:
        """How the file `found` differs from this one of that name and id."""
        other, other_id = next(iter(found.topics.items()))
        same_bytes = other_id.partition("-")[0] == id.partition("-")[0]
        if name != other and same_bytes:
            return (
                f"the file was called {name!r} when it was read, this one is {other!r}, and a "
                f"checkpoint goes by the name: rename it, or give a link to it: ln -s {other} "
                f"{name}"
            )
        if name != other:
            return (
                f"the file read was {name!r}, this one is {other!r}, and holds other bytes: the "
                f"checkpoint goes on with {name}; give another checkpoint directory for a new "
                "stream"
            )
        if not same_bytes:
            return (
                f"the file {name!r} holds other bytes than the one that was read: restore it, or "
                "start a new checkpoint"
            )
        then, now = self.read_as or {}, found.read_as or {}
        differ = [
            f"{option} was {_in_words(then[option])}, now {_in_words(now[option])}"
            for option in then
            if option in now and now[option] != then[option]
        ]
        how = "; ".join(differ) or "its columns, names or separator are others"
        return (
            f"the file {name!r} is not read as it was then ({how}): say the same as then, or start "
            "a new checkpoint"
        )


def _in_words(value: Any) -> str:
    return "not given" if value is None else repr(value)


def check_offset(partition: Partition, offset: int, first: int, end: int) -> None:
    """Raise OffsetError unless first <= offset <= end, the offsets a log holds and writes next."""
    if offset < first:
        raise OffsetError(
            f"{partition.topic}/{partition.number}: offset {offset} was trimmed, the first kept is "
            f"{first}: restore the log, or start a new checkpoint from {first} on, or let a resume "
            "go on without what is gone: accept_gap=True, or `lpma ingest --set "
            "checkpoints.accept_gap=true`"
        )
    check_written(partition, offset, end)


def check_written(partition: Partition, offset: int, end: int) -> None:
    """Raise OffsetError if `offset` lies beyond what a log writes next."""
    if offset > end:
        raise OffsetError(
            f"{partition.topic}/{partition.number}: offset {offset} was never written, the log "
            f"ends at {end}: is this the log it came from, or an older copy?"
        )


def kind_of(identity: Identity) -> str:
    """What kind of source this names, in words: "a file", "an embedded log" or "Kafka". An
    embedded log's cluster is a uuid as text; Kafka takes no such text for an id of its own."""
    if identity.cluster == "file":
        return "a file"
    try:
        is_log = str(UUID(identity.cluster)) == identity.cluster
    except ValueError:
        is_log = False
    return "an embedded log" if is_log else "Kafka"


class Source(ABC):
    """A replayable stream: the base of every source, your own included. Only `poll`, `seek`,
    `positions`, `at_end` and `identity` must be written; the rest says what else a source can do,
    and is nothing by default. Not for use from two threads at once.

    >>> class Squares(ingest.Source):
    ...     bounded = True
    ...     place = ingest.Partition("squares", 0)
    ...     next = 0
    ...     def poll(self, max_records, timeout):
    ...         start, self.next = self.next, min(self.next + max_records, 3)
    ...         return [ingest.sources.Polled(self.place, i, ingest.encode_row(i, i * i))
    ...                 for i in range(start, self.next)]
    ...     def seek(self, positions):
    ...         self.next = positions.get(self.place, self.next)
    ...     def positions(self):
    ...         return {self.place: self.next}
    ...     def at_end(self):
    ...         return self.next == 3
    ...     def identity(self):
    ...         return ingest.sources.Identity("squares", {"squares": "v1"})
    >>> with ingest.Pipeline(Squares(), lpma.Graph(device="cpu")) as pipeline:
    ...     pipeline.run()
    3
    """

    bounded: bool = False  # whether nothing will ever follow the present end: a file, not a log
    topics: tuple[str, ...] = ()  # that are read; (): those of `positions`
    names: bool = False  # whether the vertices of decoded rows go by names
    mirrors: bool = False  # whether each edge comes in both directions, as its file says
    can_wake: bool = False  # whether `wake` does anything
    cuts_batches: bool = False  # whether its records say where batches end: `types.Record.closes`
    why_read_only: str | None = None  # why nobody may append to it; None: who can may
    decoder: Callable[[bytes], Record] | None = None  # of its records; None: as the settings say

    @abstractmethod
    def poll(self, max_records: int, timeout: float) -> list[Polled]:
        """The next records, in order within each partition, moving the positions past them.

        Waits up to `timeout` seconds for the first; an empty list means that none came. Memory is
        bounded by the source's own limit in bytes. Raises SourceError; OffsetError if a
        position lies outside what the source still holds."""

    def poll_many(self, max_records: int, timeout: float) -> list[Polled]:
        """As `poll`; but consecutive records of a partition may come as one list of values, which
        costs less than one by one."""
        return self.poll(max_records, timeout)

    @abstractmethod
    def seek(self, positions: Mapping[Partition, int]) -> None:
        """Read these partitions from these offsets next. Others stay if they are. Raises
        OffsetError if an offset is gone or was never written."""

    @abstractmethod
    def positions(self) -> dict[Partition, int]:
        """The next offset to be polled, for every partition read."""

    @abstractmethod
    def at_end(self) -> bool:
        """Whether everything now in the source has been polled."""

    @abstractmethod
    def identity(self) -> Identity:
        """Which source this is. Raises SourceError if that cannot be found out."""

    def sink(self) -> Sink | None:
        """Where replies and dead letters go by default: the log itself, if it can be written to.
        The source makes it, and closes it with itself. None: nowhere."""
        return None

    # What it holds, as far as it knows -------------------------------------------------------

    def end_offsets(self) -> dict[Partition, int]:
        """The offset after the last record of each partition read; may wait for an answer. Empty if
        the source has no such ends."""
        return {}

    def known_ends(self) -> dict[Partition, int]:
        """The same as far as it is known without waiting; lag is reported for these partitions. May
        be called from any thread."""
        return {}

    def first_offsets(self) -> dict[Partition, int]:
        """The lowest offset still held by each partition read. Empty: nothing is ever dropped."""
        return {}

    def records_at(self, offsets: Mapping[Partition, int]) -> dict[Partition, Polled] | None:
        """The records at these offsets, without those that are no longer there; None: the source
        shows no single records. The positions stay. Raises OffsetError if an offset was never
        written."""
        return None

    def owned(self, partition: Partition, batch: Columns, names: Names | None) -> Columns:
        """Updates of that partition as they are to be applied. names: of the ids in src; None: they
        are the vertices. Raises RecordError if one of them belongs in another partition."""
        return batch

    def trouble(self) -> str | None:
        """Why it cannot be read at the moment; None if it can. May be called from any thread, and
        wait as long as the source lets it."""
        return None

    def checkpointed(self, positions: Mapping[Partition, int]) -> None:  # noqa: B027
        """A checkpoint was committed: what lies before these offsets is never read again. For
        sources that tell others; may be called from any thread."""

    # Reading in another order ----------------------------------------------------------------

    def queries_ahead(self, max_records: int) -> list[Polled]:
        """The queries that stand first in their partitions, if much was written before them that
        is still to be read; empty if not. Moves the positions past them; does not wait."""
        return []

    def poll_one(self, partition: Partition, max_records: int) -> list[Polled] | None:
        """As `poll`, of one partition alone, without waiting; None: the source cannot."""
        return None

    def wake(self) -> None:  # noqa: B027 - by default it does nothing
        """Let a `poll` that waits, or the next one that would, return what there is. May be called
        from any thread."""


class Log(Source):
    """A source that keeps growing, knows its offsets, and can be produced to."""

    @abstractmethod
    def end_offsets(self) -> dict[Partition, int]: ...

    @abstractmethod
    def known_ends(self) -> dict[Partition, int]: ...

    @abstractmethod
    def first_offsets(self) -> dict[Partition, int]: ...

    @abstractmethod
    def records_at(self, offsets: Mapping[Partition, int]) -> dict[Partition, Polled]: ...

    @abstractmethod
    def read_only(self, partitions: Iterable[Partition] | None) -> None:
        """Let `poll` read these partitions alone, until it is told otherwise; None: all of them
        again. Everything else still speaks of all. To be called by the thread that polls. Raises
        SourceError for a partition that is not read here."""

    @abstractmethod
    def sink(self) -> LogWriter: ...

    @abstractmethod
    def writer(self, patience: float) -> LogWriter:
        """A new handle to append by, to be used by one thread and closed by whoever asked for it.
        patience: seconds that it waits for a log which does not answer. Raises SourceError."""


class LogWriter(ABC):
    """A handle to write to the topics of a log, whose caller may choose the partitions."""

    patience: float = 0.0  # seconds for which a transaction that failed is begun anew

    @abstractmethod
    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Make a topic; one that exists stays as it is. Raises SourceError."""

    @abstractmethod
    def partitions_of(self, topic: str) -> int:
        """How many partitions a topic has. Raises SourceError if there is no such topic."""

    @abstractmethod
    def topic_names(self) -> set[str]:
        """The names of all topics that may be seen. Raises SourceError if no log is reached."""

    @abstractmethod
    def produce_many(self, topic: str, values: Sequence[bytes]) -> object:
        """Append records to a topic. All are durable when it returns. Raises SourceError: then some
        may have been written all the same; RecordError if one is larger than the log takes."""

    @abstractmethod
    def produce_parts(
        self, parts: Mapping[Partition, Sequence[bytes]]
    ) -> Mapping[Partition, Sequence[int]]:
        """As `produce_many`, to partitions, in the order of each; the offsets, where -1 is one that
        the log does not know any more."""

    def append(self, partition: Partition, values: Sequence[bytes]) -> Sequence[int]:
        """As `produce_parts`, to one partition."""
        return self.produce_parts({partition: values})[partition]

    def in_transactions(self, name: str) -> LogWriter | None:
        """Another handle, to be closed by whoever asked for it, which writes in transactions under
        this name and raises AwayError for one that may be begun anew. None: each write is one."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Release what is held. A second call does nothing."""
