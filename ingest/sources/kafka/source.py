"""Kafka as a source: every partition of some topics, read at the offsets the pipeline asks for.

Idea: no consumer group decides anything. Partitions are assigned and positioned by `seek`, the
offsets are those of our checkpoint. A `group` is told of them after each checkpoint, for display
(group.py); nothing reads that. Only records of committed transactions are seen.

    what goes wrong                        what happens
    broker away, stalled, restarted        asked again, at growing intervals, from the start on;
                                           SourceError, naming the cause, once that has gone on
                                           for `patience` seconds; logged once (outage.py)
    a damaged batch, any other error       the same, each time with a new consumer
    a topic or the cluster replaced        IdentityError
    a topic rolled back and written again  RewrittenError, by the last record read
    an offset trimmed, or never written    OffsetError
    a partition added                      found within seconds, read from its beginning

Memory: a consumer fetches only from within `poll`, when it has used up what it has. A pipeline that
falls behind holds at most two fetches of `max_bytes` a broker, and the rest waits in Kafka: not
polling is the back-pressure, and nothing has to be paused.
Offsets have gaps where transactions end and where a topic was compacted: a position is that of the
record before it, plus one. Requires brokers of Kafka 2.8 or newer, which give topics ids.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ...errors import AwayError, IdentityError, OffsetError, SourceError
from ...types import Closing, Partition, Polled
from ..base import Identity, Log, check_offset, check_written
from ..chosen import Chosen, readable
from ..fingerprints import check_same
from . import clock
from .client import (
    CONNECT_TIMEOUT_S,
    checked_bootstrap,
    checked_settings,
    checked_topics,
    may_pass,
    said,
)
from .group import GroupOffsets, checked_group
from .outage import Outage, Trouble
from .reader import Reader
from .sink import KafkaSink

from kafka.errors import (  # isort: skip
    KafkaError,
    LogTruncationError,
    OffsetOutOfRangeError,
    UnsupportedCodecError,
)

PATIENCE_S = 60.0
_CONNECT_TIMEOUT_S = CONNECT_TIMEOUT_S
RECONNECT_TIMEOUT_S = 2.0  # a poll may exceed its time-out by this
_MAX_SILENCE_S = 4.0  # after which another consumer is tried: no fetch may take longer
_ENDS_EVERY_S = 1.0  # the known ends are renewed

T = TypeVar("T")


class KafkaSource(Closing, Log):
    """All partitions of `topics`, as a Source, read from their beginnings until `seek` says
    otherwise. partitions: only these are read, as {topic: numbers}; a topic that is not named is
    read whole, new partitions too.

    bootstrap: "host:port,host:port", or a sequence of such. settings: how to reach the brokers, by
    kafka-python's names: TLS, SASL, time-outs (`client.SETTINGS`).
    max_bytes: what one fetch may bring (one record may pass it), within 4 seconds; beside a flood,
    live queries are read behind the fetch at hand, so a larger one lets them wait. patience: for
    how many seconds of trouble a call goes on trying before it raises SourceError; `poll` returns
    in the meantime. group: a consumer group that is told, after each checkpoint of a pipeline, how
    far it has come, for tools that show the lag; nothing else uses the group.

    Raises SourceError if no broker is reached in that time, or something is not there."""

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        topics: Sequence[str],
        *,
        partitions: Mapping[str, Collection[int]] | None = None,
        settings: Mapping[str, Any] | None = None,
        max_bytes: int = 2 << 20,
        patience: float = PATIENCE_S,
        group: str | None = None,
    ) -> None:
        if max_bytes < 1 or not patience >= 0:
            raise SourceError("max_bytes must be positive and patience not negative")
        self.bootstrap = checked_bootstrap(bootstrap)
        self.topics = checked_topics(topics)
        self.max_bytes = max_bytes
        self._chosen = Chosen(self.topics, partitions)
        self._only: frozenset[Partition] | None = None  # read for the time being; None: all
        self._settings = checked_settings(settings)
        self._positions: dict[Partition, int] = {}
        self._last: dict[Partition, Polled] = {}  # polled of each partition
        self._ends: dict[Partition, int] = {}  # when last asked for
        self._known_ends: dict[Partition, int] = {}  # replaced, never changed
        self._ends_known = 0.0  # when
        self._passed: dict[Partition, tuple[int, int]] = {}  # a position, and the end behind marks
        self._sink: KafkaSink | None = None
        self._group = None if group is None else checked_group(group)
        self._told: GroupOffsets | None = None  # made when there is something to tell
        self.patience = patience
        self._trouble = Trouble(Outage(self.bootstrap))
        self._reader: Reader | None = None  # None: lost, or not connected yet
        self._closed = False
        self._connect(_CONNECT_TIMEOUT_S)

    def __repr__(self) -> str:
        return f"KafkaSource({self.bootstrap!r}, {list(self.topics)!r})"

    def close(self) -> None:
        """Close the connections, including those of the source's own sink."""
        self._closed = True
        self._drop()
        if self._sink is not None:
            self._sink.close()
        if self._told is not None:
            self._told.close()
        self._trouble.outage.end()

    # Reading ---------------------------------------------------------------------------------

    def poll(self, max_records: int = 500, timeout: float = 0.0) -> list[Polled]:
        return self._polled(max_records, timeout, together=False)

    def poll_many(self, max_records: int, timeout: float) -> list[Polled]:
        return self._polled(max_records, timeout, together=True)

    def _polled(self, most: int, timeout: float, together: bool) -> list[Polled]:
        deadline = clock.now() + timeout
        while True:
            polled = self._attempt(lambda reader: self._poll(reader, most, deadline, together))
            if polled or clock.now() >= deadline:
                return polled or []
            if self._reader is None:
                self._trouble.rest(deadline)

    def _poll(self, reader: Reader, most: int, deadline: float, together: bool) -> list[Polled]:
        left = max(0.0, deadline - clock.now())
        polled = reader.poll(most, min(left, 1.0), together)
        if polled and reader.doubtful:
            reader.look_up()
            self._learn(reader)
        elif reader.changed:
            reader.changed = False
            self._learn(reader)
        for record in polled:
            self._positions[record.partition] = record.last + 1
            self._last[record.partition] = record.final
        if clock.now() - self._ends_known > _ENDS_EVERY_S:
            self._know_ends(reader)
        if not polled and reader.silence() > min(_MAX_SILENCE_S, self.patience):
            self._trouble.begins(clock.now() - reader.silence())
            raise SourceError("the brokers do not answer")
        return polled

    def seek(self, positions: Mapping[Partition, int]) -> None:
        wanted = {Partition(*partition): offset for partition, offset in positions.items()}
        self._patiently(lambda reader: self._check(reader, wanted))
        self._positions |= wanted
        self._patiently(lambda reader: reader.seek(wanted))

    def read_only(self, partitions: Iterable[Partition] | None) -> None:
        """Let `poll` read these partitions alone, until it is told otherwise; None: all again."""
        self._only = readable(partitions, self._positions)
        self._attempt(lambda reader: reader.assign(self._readable()))  # or when it is connected

    def _readable(self) -> dict[Partition, int]:
        """Where reading goes on in the partitions that are read for the time being."""
        only = self._positions.keys() if self._only is None else self._only
        return {partition: self._positions[partition] for partition in only}

    def positions(self) -> dict[Partition, int]:
        return dict(self._positions)

    def end_offsets(self) -> dict[Partition, int]:
        """The offset after the last committed record of each partition read: at most this less
        `positions()` records are still to come."""
        self._ends = self._patiently(lambda reader: reader.ends(self._positions))
        return dict(self._ends)

    def first_offsets(self) -> dict[Partition, int]:
        """The lowest offset still held by each partition read."""
        return self._patiently(lambda reader: reader.firsts(self._positions))

    def records_at(self, offsets: Mapping[Partition, int]) -> dict[Partition, Polled]:
        """The records at these offsets, without those that are no longer there."""
        wanted = {Partition(*partition): offset for partition, offset in offsets.items()}
        return self._patiently(lambda reader: self._records_at(reader, wanted))

    def _records_at(self, reader: Reader, offsets: dict[Partition, int]) -> dict[Partition, Polled]:
        if not offsets:
            return {}
        firsts, ends = reader.firsts(offsets), reader.ends(offsets)
        for partition, offset in offsets.items():
            check_written(partition, offset + 1, ends[partition])
        reader.assign(self._positions)
        found = reader.records_at({p: at for p, at in offsets.items() if at >= firsts[p]})
        reader.seek(self._positions)
        reader.assign(self._readable())
        return found

    def known_ends(self) -> dict[Partition, int]:
        """The same as far as known from what the brokers have sent: they are not asked. After an
        aborted transaction the last record counts. May be called from any thread."""
        return self._known_ends

    def trouble(self) -> str | None:
        return self._trouble.said()

    def _know_ends(self, reader: Reader) -> None:
        """Note the ends that the brokers last reported. If the consumer has passed everything up to
        the end, only marks and aborted records follow the last record, and nobody reads those."""
        known, passed = dict(self._known_ends), dict(self._passed)
        for partition, end in reader.known_ends(self._readable()).items():
            position = known[partition] = self._positions[partition]
            if reader.place(partition) >= end:
                passed[partition] = position, end
            else:
                known[partition] = end
        self._known_ends, self._passed = known, passed
        self._ends_known = clock.now()

    def checkpointed(self, positions: Mapping[Partition, int]) -> None:
        if self._group is None:
            return
        if self._told is None:
            self._told = GroupOffsets(self.bootstrap, self._group, self._settings)
        # Tools count marks of transactions as records: behind the last record there are none left.
        passed = self._passed
        ends = {p: passed[p][1] for p, at in positions.items() if passed.get(p, (-1,))[0] == at}
        self._told.tell({**positions, **ends})

    def at_end(self) -> bool:
        return self._patiently(self._is_at_end)

    def _is_at_end(self, reader: Reader) -> bool:
        places = {partition: self._place(reader, partition) for partition in self._positions}
        if all(place >= self._ends.get(partition, 0) for partition, place in places.items()):
            self._ends = reader.ends(places)
        at_end = all(place >= self._ends.get(partition, 0) for partition, place in places.items())
        if at_end:
            self._know_ends(reader)
        return at_end

    def _place(self, reader: Reader, partition: Partition) -> int:
        """The offset fetched next. A partition left unread is not the consumer's to know."""
        if self._only is not None and partition not in self._only:
            return self._positions[partition]
        return reader.place(partition)

    def identity(self) -> Identity:
        def ask(reader: Reader) -> None:
            reader.look_up()
            self._learn(reader)

        self._patiently(ask)
        return self._identity

    def sink(self) -> KafkaSink:
        """A sink to the same cluster, closed with the source."""
        if self._sink is None:
            self._sink = KafkaSink(
                self.bootstrap, settings=self._settings, patience=max(1.0, self.patience),
                outage=self._trouble.outage,
            )  # fmt: skip
        return self._sink

    def writer(self, patience: float) -> KafkaSink:
        """A sink of its own to the same cluster, to be closed by whoever asked for it."""
        return KafkaSink(self.bootstrap, settings=self._settings, patience=max(1.0, patience))

    # Checks of what the brokers say ----------------------------------------------------------

    def _learn(self, reader: Reader) -> None:
        """Check what the brokers last reported about the topics, and read new partitions too."""
        self._identity.check(reader.identity())
        there = reader.partitions()
        self._chosen.check(there)
        if new := {p for p in there if p in self._chosen} - self._positions.keys():
            self._positions |= reader.firsts(sorted(new))
        reader.assign(self._readable())

    def _check(self, reader: Reader, positions: Mapping[Partition, int]) -> None:
        """Raise OffsetError if something cannot be read."""
        if not positions.keys() <= self._positions.keys():
            reader.look_up()
            self._learn(reader)
            if unknown := positions.keys() - self._positions.keys():
                read = ", ".join(self.topics)
                raise OffsetError(f"{min(unknown)}: not a partition of {read} that is read here")
        firsts, ends = reader.firsts(positions), reader.ends(positions)
        for partition, offset in positions.items():
            check_offset(partition, offset, firsts[partition], ends[partition])

    def _look_back(self, reader: Reader) -> None:
        """Check that a new reader finds what was read last: the log may have been rolled back and
        written again in the meantime. Raises RewrittenError, OffsetError."""
        last = {p: r for p, r in self._last.items() if r.offset + 1 == self._positions[p]}
        offsets = {partition: record.offset for partition, record in last.items()}
        for partition, record in self._records_at(reader, offsets).items():
            fingerprint = last[partition].fingerprint
            assert fingerprint is not None
            check_same(partition, record.fingerprint, fingerprint)

    # A reader after the other -----------------------------------------------------------------

    def _explain(self, error: Exception) -> None:
        """Raise IdentityError or OffsetError if the log has lost what is to be read."""
        if isinstance(error, LogTruncationError):
            raise OffsetError(
                f"{', '.join(self.topics)}: the brokers lost records that were read "
                f"({said(error)}): restore the log, or start a new checkpoint"
            ) from None
        assert self._reader is not None
        try:
            self._reader.look_up()
            self._learn(self._reader)
            self._check(self._reader, self._positions)
        except (IdentityError, OffsetError):
            raise
        except Exception:  # noqa: BLE001 - then the next reader is asked
            pass

    def _open(self, timeout: float) -> Reader:
        return Reader(self.bootstrap, self.topics, self._settings, self.max_bytes, timeout)

    def _connect(self, timeout: float) -> None:
        """Connect for the first time: a broker that is away is waited for as it is later."""
        self._trouble.begins(clock.now())  # should there be any
        while self._reader is None:
            try:
                reader = self._reader = self._open(timeout)
                found, topics = reader.identity(), self._chosen.topics(self.topics)
                self._identity = Identity(found.cluster, {t: found.topics[t] for t in topics})
                self._learn(reader)
            except Exception as error:
                if not may_pass(error):
                    self._drop()
                    if isinstance(error, KafkaError):
                        where = f"{', '.join(self.topics)} at {self.bootstrap}"
                        raise SourceError(f"{where}: {said(error)}") from None
                    raise
                self._lost(error)
                self._trouble.rest()
            except BaseException:
                self._drop()
                raise
        self._trouble.ends()
        self._trouble.outage.answered()

    def _patiently(self, ask: Callable[[Reader], T]) -> T:
        """What `ask` returns, asked again after errors until the patience ends."""
        while True:
            answer = self._attempt(lambda reader: [ask(reader)])
            if answer is not None:
                return answer[0]
            self._trouble.rest()

    def _attempt(self, ask: Callable[[Reader], T]) -> T | None:
        """What `ask` returns of a reader, a new one if it was lost; None, and the reader lost,
        after an error. Raises errors that will not pass, SourceError if the patience ends."""
        if self._closed:
            raise SourceError(f"{self!r} is closed")
        if self._reader is None and self._trouble.rests:
            return None
        try:
            if self._reader is None:
                self._reader = self._open(RECONNECT_TIMEOUT_S)
                self._learn(self._reader)
                self._look_back(self._reader)
            answer = ask(self._reader)
        except (IdentityError, OffsetError):
            raise
        except UnsupportedCodecError as error:
            self._drop()
            raise SourceError(
                f"{', '.join(self.topics)} at {self.bootstrap}: {said(error)}"
            ) from None
        except Exception as error:  # noqa: BLE001 - damaged bytes raise anything in kafka-python
            self._lost(error)
            return None
        self._trouble.answered()
        return answer

    def _lost(self, error: Exception) -> None:
        """After an error: close the reader, and let the next one be opened after a pause."""
        if isinstance(error, OffsetOutOfRangeError | LogTruncationError):
            self._explain(error)
        self._drop()
        lasted = self._trouble.fails(said(error), self.patience)
        if lasted is not None:
            raise AwayError(
                f"{', '.join(self.topics)} at {self.bootstrap}: not read for {lasted:.0f} s: "
                f"{said(error)}"
            ) from None

    def _drop(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()
