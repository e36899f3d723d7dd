"""One consumer of Kafka, from its connection to its first error: no retries, nothing remembered.

After an error inside its record iterator a consumer of kafka-python may spin forever, so a reader
that has raised is closed, and `source.py` opens another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...errors import SourceError
from ...formats.records import is_query
from ...types import Partition, Polled
from ..base import Identity
from . import clock
from .client import connect, look_up
from .records import PartitionRecords

# `client` is imported first: its error says what is missing.
from kafka import KafkaConsumer, TopicPartition  # isort: skip

_CONFIG: Mapping[str, Any] = {
    "group_id": None,
    "enable_auto_commit": False,
    "auto_offset_reset": "none",
    "isolation_level": "read_committed",
    "check_crcs": True,
    "fetch_max_wait_ms": 20,
}
_ASK_TIMEOUT_S = 5.0  # for offsets
_ASK_EVERY_S = 0.1  # whether a record has come
_FLOWING_WAIT_MS = 1  # of a fetch for a record, while records come
_SURE_S = 0.05  # less than it takes to delete a topic, create it again and fill it
_QUESTION_S = 1.0  # from a broker's last answer to asking whether it is there


class Reader:
    """Reads the partitions it is assigned of `topics`. Raises SourceError if no broker is
    reached within `timeout` seconds or a topic is not there; its methods raise whatever
    kafka-python does."""

    def __init__(
        self,
        bootstrap: str,
        topics: tuple[str, ...],
        settings: Mapping[str, Any],
        max_bytes: int,
        timeout: float,
    ) -> None:
        self._bootstrap = bootstrap
        self._topics = topics
        config = {**_CONFIG, "fetch_max_bytes": max_bytes, "max_partition_fetch_bytes": max_bytes}
        self._consumer, self._client = connect(
            KafkaConsumer, bootstrap, settings, timeout, **config
        )
        self._records: Any = type("Records", (PartitionRecords,), {})  # of this consumer
        self._consumer._fetcher.PartitionRecords = self._records
        self._fetching: dict[str, Any] = self._consumer._fetcher.config
        self._cluster = self._client.cluster
        self._assigned: set[Partition] = set()
        self._of_queries: set[Partition] = set()  # by the last record that was read of each
        self._answered = clock.now()
        self._asked = 0.0
        self._question: Any = None
        self.changed = False  # whether topic metadata has come since `look_up`
        try:
            self.look_up()
        except BaseException:
            self.close()
            raise
        self._cluster.add_listener(self._on_metadata)  # called by the consumer's own thread

    def _on_metadata(self, _: Any) -> None:
        self.changed = True

    def close(self) -> None:
        self._consumer.close(autocommit=False, timeout_ms=0)

    # The topics ------------------------------------------------------------------------------

    def look_up(self) -> None:
        """Ask the brokers about the topics. Raises SourceError if one is not there."""
        self.changed = False
        self._looked_up = clock.now()
        if absent := look_up(self._client, self._topics):
            raise SourceError(
                f"{self._bootstrap}: no topic {', '.join(absent)}: create it, or correct its name"
            )

    @property
    def doubtful(self) -> bool:
        """Whether a topic may have been replaced since the last `look_up`. kafka-python fetches by
        name: it returns records of a topic deleted and created again, if the offsets allow it."""
        old = clock.now() - self._looked_up > _SURE_S
        return old or bool(self._cluster.need_update)  # a broker reported an unknown partition

    def identity(self) -> Identity:
        """According to the last answer. Raises SourceError if it lacked a topic or its id."""
        ids = {topic: self._cluster.topic_id(topic) for topic in self._topics}
        if nameless := [topic for topic, id in ids.items() if id is None or not id.int]:
            raise SourceError(
                f"{self._bootstrap}: no id of topic {', '.join(nameless)}: it is gone, or the "
                "brokers are older than Kafka 2.8"
            )
        return Identity(str(self._cluster.cluster_id), {t: str(id) for t, id in ids.items()})

    def partitions(self) -> set[Partition]:
        """According to the last answer."""
        return {
            Partition(topic, number)
            for topic in self._topics
            for number in self._cluster.partitions_for_topic(topic) or ()
        }

    # Offsets ---------------------------------------------------------------------------------

    def firsts(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The first offset each partition holds."""
        return _by_partition(
            self._consumer.beginning_offsets(_native(partitions), _ASK_TIMEOUT_S * 1000)
        )

    def ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The offset after the last committed record, or mark, of each partition."""
        return _by_partition(self._consumer.end_offsets(_native(partitions), _ASK_TIMEOUT_S * 1000))

    def known_ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The ends that came with the last records, of the partitions that were fetched."""
        marks = {p: self._consumer.highwater(TopicPartition(*p)) for p in partitions}
        return {partition: int(mark) for partition, mark in marks.items() if mark is not None}

    def place(self, partition: Partition) -> int:
        """The offset fetched next: past marks of transactions too, once they have been read."""
        return int(self._consumer.position(TopicPartition(*partition), _ASK_TIMEOUT_S * 1000))

    def assign(self, positions: Mapping[Partition, int]) -> None:
        """Read these partitions and no others; those that are new, from these positions on. What
        was fetched of one that is left out is dropped."""
        wanted = {TopicPartition(*partition) for partition in positions}
        if wanted != self._assigned:
            new = wanted - self._assigned
            self._consumer.assign(list(wanted))
            self._assigned = wanted
            self.seek(
                {Partition(*partition): positions[Partition(*partition)] for partition in new}
            )

    def seek(self, positions: Mapping[Partition, int]) -> None:
        """Read these assigned partitions from these positions on."""
        for partition, offset in positions.items():
            self._consumer.seek(TopicPartition(*partition), offset)

    def records_at(self, offsets: Mapping[Partition, int]) -> dict[Partition, Polled]:
        """The records at these offsets, below the ends, of assigned partitions; without those that
        are no longer there. Call `seek` for all assigned partitions afterwards.

        The other partitions stand at their ends in the meantime, where nothing comes. They are not
        paused: what 3.0.12 had fetched of a paused one may block it forever."""
        found: dict[Partition, Polled] = {}
        waiting = dict(offsets)
        deadline = clock.now() + _ASK_TIMEOUT_S
        ends = self.ends(self._assigned)
        self.seek({**ends, **waiting})
        while waiting:
            for record in self.poll(len(waiting), _ASK_EVERY_S):
                if waiting.get(record.partition) == record.offset:
                    found[record.partition] = record
            # If a record was compacted away, a later one comes instead.
            passed = {p for p, offset in waiting.items() if self.place(p) > offset}
            self.seek({partition: ends[partition] for partition in passed})
            waiting = {p: offset for p, offset in waiting.items() if p not in passed}
            if waiting and clock.now() > deadline:
                raise SourceError(f"no answer about {len(waiting)} partitions that are read")
        return found

    # Records ---------------------------------------------------------------------------------

    def poll(self, max_records: int, timeout: float, together: bool = False) -> list[Polled]:
        """The next records; together: consecutive ones of a partition as one. Where several
        partitions have been fetched, those of queries come first, behind what is left of the one at
        hand."""
        self._put_queries_first()
        self._records.together = together
        found = self._consumer.poll(round(timeout * 1000), max_records)
        polled: list[Polled] = [record for records in found.values() for record in records]
        # A fetch of the partitions that are empty holds up the next one of those that are not, and
        # every question to the same broker.
        self._fetching["fetch_max_wait_ms"] = (
            _FLOWING_WAIT_MS if polled else _CONFIG["fetch_max_wait_ms"]
        )
        if polled:
            self._answered = clock.now()
        for records in found.values():
            end = records[-1].final
            asks = isinstance(end.value, bytes) and is_query(end.value)
            (self._of_queries.add if asks else self._of_queries.discard)(end.partition)
        return polled

    def _put_queries_first(self) -> None:
        # kafka-python's own thread may append meanwhile; nothing but a poll takes away.
        fetched = self._consumer._fetcher._completed_fetches
        for at in range(len(fetched)):
            if Partition(*fetched[at].topic_partition) in self._of_queries:
                completion = fetched[at]
                del fetched[at]
                fetched.appendleft(completion)

    def silence(self) -> float:
        """For how many seconds the brokers have owed an answer: 0.0 if they do not.

        kafka-python does not report brokers that do not answer: a poll is just empty. So when
        nothing comes, they are asked about the topics, without waiting, which also shows new
        partitions."""
        now = clock.now()
        if self._question is not None and self._question.is_done:
            if self._question.succeeded():
                self._answered = now
            self._question = None
        if self._question is None and now - self._answered >= _QUESTION_S:
            self._question = self._cluster.request_update()
            if self._asked <= self._answered:
                self._asked = now
        return now - self._asked if self._asked > self._answered else 0.0


def _native(partitions: Iterable[Partition]) -> list[TopicPartition]:
    return [TopicPartition(*partition) for partition in partitions]


def _by_partition(offsets: Mapping[TopicPartition, int]) -> dict[Partition, int]:
    return {Partition(*partition): offset for partition, offset in offsets.items()}
