"""What a pipeline needs of a stream: the `Source` protocol and its values.

A source is a set of partitions; a partition is a sequence whose offsets rise. The pipeline alone
decides what has been read: it keeps the offsets with the state of the graph and seeks to them, so
a source commits nothing and keeps no state for a consumer. Reading the same offsets again gives the
same records, in the same order within a partition; the order between partitions may differ, and the
pipeline's journal holds the one that counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from uuid import UUID

from lpma.batch.columns import Columns

from ..errors import IdentityError, OffsetError
from ..types import Partition, Polled, Sink

if TYPE_CHECKING:
    from lpma.names import Names

FILES = "file"  # the cluster of every file


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
                raise IdentityError(f"topic {topic!r} of the checkpoint is not in this source")
            if found.topics[topic] != name:
                raise IdentityError(
                    f"topic {topic!r} was replaced or created again since the checkpoint: its "
                    "offsets mean something else now; start a new checkpoint"
                )

    def _other_file(self, name: str, id: str, found: Identity) -> str:
        """How the file `found` differs from this one of that name and id."""
        if name not in found.topics:
            other = ", ".join(found.topics)
            return f"the file read was {name!r}, this one is {other!r}: give it by its own name"
        if found.topics[name].partition("-")[0] != id.partition("-")[0]:
            return (
                f"the file {name!r} holds other bytes than the one that was read: restore it, or "
                "start a new checkpoint"
            )
        then, now = self.read_as or {}, found.read_as or {}
        differ = [
            f"{option} was {then[option]!r}, now {now[option]!r}"
            for option in then
            if option in now and now[option] != then[option]
        ]
        how = "; ".join(differ) or "its columns, names or separator are others"
        return (
            f"the file {name!r} is not read as it was then ({how}): say the same as then, or start "
            "a new checkpoint"
        )


def check_offset(partition: Partition, offset: int, first: int, end: int) -> None:
    """Raise OffsetError unless first <= offset <= end, the offsets a log holds and writes next."""
    if offset < first:
        raise OffsetError(
            f"{partition.topic}/{partition.number}: offset {offset} was trimmed, the first kept is "
            f"{first}: restore the log, or start a new checkpoint from {first} on, or let a resume "
            "go on without what is gone: accept_gap=True, `lpma ingest --accept-gap`"
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


class Source(Protocol):
    """A replayable stream. Not for use from two threads at once.

    >>> source: ingest.Source = ingest.SqliteLog("log")
    >>> _ = source.produce("updates", ingest.encode_row(1, 2))
    >>> [polled.offset for polled in source.poll(500, 0.0)]
    [0]
    """

    @property
    def bounded(self) -> bool:
        """Whether nothing will ever follow the present end: a file, not a log."""
        ...

    def poll(self, max_records: int, timeout: float) -> list[Polled]:
        """The next records, in order within each partition, moving the positions past them.

        Waits up to `timeout` seconds for the first; an empty list means that none came. Memory is
        bounded by the source's own limit in bytes. Raises SourceError; OffsetError if a
        position lies outside what the source still holds."""
        ...

    def seek(self, positions: Mapping[Partition, int]) -> None:
        """Read these partitions from these offsets next. Others stay if they are. Raises
        OffsetError if an offset is gone or was never written."""
        ...

    def positions(self) -> dict[Partition, int]:
        """The next offset to be polled, for every partition read."""
        ...

    def at_end(self) -> bool:
        """Whether everything now in the source has been polled."""
        ...

    def identity(self) -> Identity:
        """Which source this is. Raises SourceError if that cannot be found out."""
        ...

    def sink(self) -> Sink | None:
        """Where replies and dead letters go by default: the log itself, if it can be written to.
        The source makes it, and closes it with itself."""
        ...


@runtime_checkable
class Log(Source, Protocol):
    """A source that keeps growing, and knows its present end."""

    def end_offsets(self) -> dict[Partition, int]:
        """The offset after the last record of each partition read."""
        ...


@runtime_checkable
class ReadsAhead(Log, Protocol):
    """A log that can be read otherwise than in its own order between partitions: where much waits,
    live queries first."""

    def queries_ahead(self, max_records: int) -> list[Polled]:
        """The queries that stand first in their partitions, if much was written before them that
        is still to be read; empty if not. Moves the positions past them; does not wait."""
        ...

    def poll_one(self, partition: Partition, max_records: int) -> list[Polled]:
        """As `poll`, of one partition alone; does not wait."""
        ...


@runtime_checkable
class Wakes(Protocol):
    """A source whose waiting can be cut short."""

    def wake(self) -> None:
        """Let a `poll` that waits, or the next one that would, return what there is. May be called
        from any thread."""
        ...


@runtime_checkable
class PartedSink(Sink, Protocol):
    """A sink whose caller chooses the partitions. `create_topic` does nothing about a topic that is
    there, `partitions_of` raises SourceError if it is not. `produce_parts` writes the records of
    each partition in order, and returns and raises as `produce_many`."""

    def create_topic(self, name: str, partitions: int, /) -> None: ...

    def partitions_of(self, topic: str, /) -> int: ...

    def produce_parts(self, parts: Mapping[Partition, Sequence[bytes]], /) -> object: ...


@runtime_checkable
class ListsTopics(Protocol):
    """A sink that can say which topics there are."""

    def topic_names(self) -> Collection[str]:
        """The names of all topics that may be seen. Raises SourceError if no broker is reached."""
        ...


class Appends(Protocol):
    """A handle by which records are appended to a log."""

    def append(self, partition: Partition, values: Sequence[bytes], /) -> Sequence[int]:
        """Append records in order to one partition; their offsets, where -1 is one that the log
        does not know any more. All are durable when it returns. Raises SourceError: then some may
        have been written all the same; RecordError if one is larger than the log takes."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Writable(Protocol):
    """A log that others of this process may append to while it is read."""

    def writer(self, patience: float) -> Appends:
        """A new handle, to be used by one thread and closed by whoever asked for it. patience:
        seconds that it waits for a log which does not answer. Raises SourceError."""
        ...


@runtime_checkable
class Inspectable(Protocol):
    """A log that says what it still holds, and shows single records of it."""

    def first_offsets(self) -> dict[Partition, int]:
        """The lowest offset still held by each partition read."""
        ...

    def records_at(self, offsets: Mapping[Partition, int]) -> dict[Partition, Polled]:
        """The records at these offsets, without those that are no longer there. The positions stay.
        Raises OffsetError if an offset was never written."""
        ...


@runtime_checkable
class KnowsEnds(Protocol):
    """A source that can say how far it reaches; lag is reported for no other."""

    def known_ends(self) -> dict[Partition, int]:
        """The offset the next record of each partition will have, as far as it is known without
        waiting. May be called from any thread."""
        ...


@runtime_checkable
class Parted(Inspectable, KnowsEnds, Log, Protocol):
    """A log of which some partitions may be left unread for a while."""

    def read_only(self, partitions: Iterable[Partition] | None) -> None:
        """Let `poll` read these partitions alone, until it is told otherwise; None: all of them
        again. Everything else still speaks of all. To be called by the thread that polls. Raises
        SourceError for a partition that is not read here."""
        ...


@runtime_checkable
class KnowsOwners(Protocol):
    """A source of which each partition is for the updates of certain vertices."""

    def owned(self, partition: Partition, batch: Columns, names: Names | None) -> Columns:
        """Updates of that partition as they are to be applied. names: of the ids in src; None: they
        are the vertices. Raises RecordError if one of them belongs in another partition."""
        ...


@runtime_checkable
class KnowsTrouble(Protocol):
    """A source that may fail for a while and be read on later."""

    def trouble(self) -> str | None:
        """Why it cannot be read at the moment; None if it can. May be called from any thread, and
        wait as long as the source lets it."""
        ...
