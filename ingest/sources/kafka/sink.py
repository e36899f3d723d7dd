"""Writing to Kafka: values that are all acknowledged by all replicas, or an error.

Idea: kafka-python's producer accepts values without bound while a broker stalls, so what is
in flight is bounded here: a window of values is sent, and acknowledged, before the next. Retries
within a window neither repeat nor reorder (the producer is idempotent); a window that failed may
still have been written, and a resume then repeats it.

In transactions (`in_transactions`) all values of one call are seen by readers, or none, and a
producer of the same name that came before can write no more once this one is connected: what it
left open is aborted. A transaction that met the end of a broker may never end, though the broker is
back. So it is given up after `ATTEMPT_S`, with AwayError: whoever asked looks at what is there,
which connects anew, and sends what is not (`results/sinks.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from ...errors import AwayError, RecordError, SourceError
from ...formats.replies import MAX_REPLY_BYTES
from ...types import Closing, Partition
from ..base import LogWriter
from . import clock
from .client import (
    CONNECT_TIMEOUT_S,
    NoTransactionsError,
    checked_bootstrap,
    checked_settings,
    checked_topics,
    connect,
    create_topic,
    look_up,
    may_pass,
    said,
)
from .outage import Outage

from kafka import KafkaProducer  # isort: skip
from kafka.errors import (  # isort: skip
    InvalidProducerIdMappingError,
    InvalidTxnStateError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    OutOfOrderSequenceNumberError,
    RecordListTooLargeError,
    TransactionAbortableError,
    TransactionAbortedError,
    UnknownProducerIdError,
)

T = TypeVar("T")

MAX_RECORD_BYTES = MAX_REPLY_BYTES  # if the brokers accept it: message.max.bytes
MAX_WINDOW_BYTES = 32 << 20
MAX_WINDOW_RECORDS = 10_000
_OVERHEAD_BYTES = 1 << 10
_BATCH_BYTES = 256 << 10
_CLOSE_TIMEOUT_S = 5.0
_SILENCE_S = 4.0  # without acknowledgement, then an outage is reported
_PAUSE_S = 0.5  # before brokers that are away are asked again
_GONE_S = 5.0  # for which brokers may not know a topic that is there: they have just started
ATTEMPT_S = 10.0  # for a transaction, then it is given up

_CONFIG: Mapping[str, Any] = {
    "acks": "all",
    "batch_size": _BATCH_BYTES,
    "enable_idempotence": True,
    "linger_ms": 0,
    "max_request_size": MAX_RECORD_BYTES + _OVERHEAD_BYTES,
}
# A transaction that ends so can be begun anew: nobody else writes under its name.
_ABORTED = (
    InvalidProducerIdMappingError,
    InvalidTxnStateError,
    OutOfOrderSequenceNumberError,
    TransactionAbortableError,
    TransactionAbortedError,
    UnknownProducerIdError,
)
# A broker that is still ending the last transaction asks for patience, each time for so long.
_TRANSACTIONS: Mapping[str, Any] = {"retry_backoff_ms": 5}


class KafkaSink(Closing, LogWriter):
    """A log to write to, with the cluster at `bootstrap`; see `KafkaSource` for the settings.

    patience: seconds after which it stops waiting for a broker that is away, and gives up values
    that were not acknowledged. outage: what to report trouble to; None: one of its own.
    transactional_id: write in transactions under this name. Connects when first used. Methods may
    be called from any thread, one at a time."""

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        settings: Mapping[str, Any] | None = None,
        patience: float = 60.0,
        outage: Outage | None = None,
        transactional_id: str | None = None,
    ) -> None:
        if not patience >= 1:
            raise SourceError("patience is at least 1 second")
        self.bootstrap = checked_bootstrap(bootstrap)
        self.patience = patience
        self.settings = checked_settings(settings)
        self.transactional_id = transactional_id
        self._outage = outage or Outage(self.bootstrap)
        self._producer: Any = None
        self._client: Any = None
        self._attempt_s = patience if transactional_id is None else min(patience, ATTEMPT_S)
        self._known: set[str] = set()  # topics that this producer has seen
        self._seen: set[str] = set()  # and those before it
        self._closed = False

    def __repr__(self) -> str:
        return f"KafkaSink({self.bootstrap!r})"

    def close(self) -> None:
        self._closed = True
        self._drop()
        self._outage.end(self._caller)

    def in_transactions(self, name: str) -> KafkaSink:
        """Another sink of the same brokers, to be closed by whoever asked for it, which writes in
        transactions under this name."""
        return KafkaSink(
            self.bootstrap, settings=self.settings, patience=self.patience, outage=self._outage,
            transactional_id=name,
        )  # fmt: skip

    @property
    def _caller(self) -> KafkaSink | None:
        """Who fails, where others of the same outage may be answered meanwhile."""
        return None if self.transactional_id is None else self

    def create_topic(self, name: str, partitions: int | None = None) -> None:
        """Make a topic with so many partitions, None for the brokers' default; does nothing if it
        exists. Raises SourceError if that is not allowed, or no broker is reached."""
        checked_topics([name])

        def make(client: Any) -> None:
            if look_up(client, [name], grace=0):
                create_topic(client, name, partitions)

        absent = f"topic {name!r} is not there and could not be made ({{why}}): create it"
        self._asked(make, self.patience, absent)

    def partitions_of(self, topic: str) -> int:
        """How many partitions a topic has. Raises SourceError if there is no such topic, or no
        broker is reached."""
        checked_topics([topic])

        def ask(client: Any) -> int:
            self._check_topics(client, [topic], again=True)
            return len(client.cluster.partitions_for_topic(topic))

        found = self._asked(ask, self._attempt_s, f"topic {topic!r}: {{why}}")
        self._outage.answered(self._caller)
        return found

    def topic_names(self) -> set[str]:
        """The names of all topics that may be seen. Raises SourceError if no broker is reached."""

        def ask(client: Any) -> set[str]:
            client.cluster.need_all_topic_metadata = True
            try:
                look_up(client, [], grace=0)
                return set(client.cluster.topics())
            finally:
                client.cluster.need_all_topic_metadata = False

        return self._asked(ask, self.patience, "its topics: {why}")

    def _asked(self, ask: Callable[[Any], T], seconds: float, failed: str) -> T:
        """What `ask` returns, asked patiently. failed: what to say otherwise, of {why}."""
        try:
            return self._patiently(ask, clock.now() + seconds)
        except KafkaError as error:
            why = self._said(error)
            self._drop()
            raise self._failed(error, f"{self.bootstrap}: {failed.format(why=why)}") from None

    def produce_many(
        self, topic: str, values: Sequence[bytes], partition: int | None = None
    ) -> list[tuple[int, int]]:
        """Append values to a topic: in order and to one partition if `partition` says which,
        else wherever the producer chooses. All are acknowledged by all replicas when this returns:
        the partition and the offset of each.

        Raises RecordError if one is larger than the brokers accept, SourceError otherwise; then
        others may have been written."""
        return self._produce([_Outgoing(topic, partition, value) for value in values])

    def produce_parts(
        self, parts: Mapping[Partition, Sequence[bytes]]
    ) -> dict[Partition, list[int]]:
        """As `produce_many`, to several partitions, each in order; the offsets. If it raises, some
        partitions may have been written and others not."""
        outgoing = [_Outgoing(*place, value) for place, values in parts.items() for value in values]
        offsets = iter([offset for _, offset in self._produce(outgoing)])
        return {place: list(islice(offsets, len(values))) for place, values in parts.items()}

    def _produce(self, outgoing: Sequence[_Outgoing]) -> list[tuple[int, int]]:
        """Send all, and wait for them; where they lie. Raises RecordError, SourceError."""
        places: list[tuple[int, int]] = []
        windows = list(_windows(outgoing))
        for number, window in enumerate(windows):
            topics = ", ".join(map(repr, dict.fromkeys(record.topic for record in window)))
            try:
                places += self._send(window, number == 0, number == len(windows) - 1)
            except (MessageSizeTooLargeError, RecordListTooLargeError) as error:
                self._drop()  # it would raise the same error for the next values
                raise RecordError(
                    f"topic {topics}: the brokers take no record so large ({said(error)}): raise "
                    "max.message.bytes, or ask for less"
                ) from None
            except (KafkaError, ValueError) as error:
                why = self._said(error)
                self._drop()
                text = f"topic {topics} at {self.bootstrap}: could not be written: {why}"
                raise self._failed(error, text) from None
            except SourceError:
                self._drop()
                raise
        return places

    def _failed(self, error: Exception, text: str) -> SourceError:
        """An AwayError if it is worth asking again."""
        transacts = self.transactional_id is not None
        passes = may_pass(error) or (transacts and isinstance(error, _ABORTED))
        return AwayError(text) if passes else SourceError(text)

    def _send(self, window: Sequence[_Outgoing], first: bool, last: bool) -> list[tuple[int, int]]:
        """Send a window, and wait for all of it; where it lies. In transactions the first window
        begins one, and the last one commits it. Raises KafkaError."""
        deadline = clock.now() + self._attempt_s
        topics = {record.topic for record in window}
        self._patiently(lambda client: self._check_topics(client, topics), deadline)
        transacts = self.transactional_id is not None
        if transacts and first:
            self._producer.begin_transaction()
        send = self._producer.send
        futures = [send(topic, value, partition=number) for topic, number, value in window]
        sent = clock.now()
        places = []
        for future in futures:
            try:
                written = future.get(max(0.0, sent + self._silence_s - clock.now()))
            except KafkaTimeoutError:
                if future.is_done:
                    raise
                self._silent("what was sent is not acknowledged", topics, sent)
                written = future.get(max(0.0, deadline - clock.now()) + _CLOSE_TIMEOUT_S)
            places.append((written.partition, written.offset))
        if transacts and last:
            self._commit(topics, deadline)
        self._outage.answered(self._caller)
        return places

    def _commit(self, topics: Iterable[str], deadline: float) -> None:
        """Commit the transaction, which may have happened where this raises KafkaError."""
        began = clock.now()
        ended = self._producer._transaction_manager.begin_commit()
        self._producer._sender.wakeup()
        # kafka-python's own commit_transaction waits for ever.
        if not ended.wait(self._silence_s * 1000):
            self._silent("a transaction is not ended", topics, began)
            if not ended.wait(max(0.0, deadline - clock.now()) * 1000):
                raise KafkaTimeoutError("a transaction is not ended")

    @property
    def _silence_s(self) -> float:
        return min(_SILENCE_S, self._attempt_s)

    def _silent(self, what: str, topics: Iterable[str], since: float) -> None:
        """Report that the brokers have not answered for a while; or raise SourceError where it is a
        topic's fault."""
        with suppress(KafkaError, AwayError):
            self._check_topics(self._client, topics, again=True)
        self._outage.fails(what, self.patience, since, self._caller)

    def _check_topics(self, client: Any, topics: Iterable[str], again: bool = False) -> None:
        """Raise SourceError if one of them is not there."""
        if unknown := [topic for topic in topics if again or topic not in self._known]:
            were_there = not self._seen.isdisjoint(unknown)
            if missing := look_up(client, unknown, *([_GONE_S] if were_there else [])):
                gone = f"topic {missing[0]!r} is gone: was it deleted?"
                absent = f"no topic {missing[0]!r}: create it"
                why = gone if missing[0] in self._seen else absent
                raise SourceError(f"{self.bootstrap}: {why}")
            self._known.update(unknown)
            self._seen.update(unknown)

    def _patiently(self, ask: Callable[[Any], T], deadline: float) -> T:
        """What `ask` returns of a connected client, asked again while brokers are away, until
        `deadline`. Nothing has been sent. Raises KafkaError, SourceError."""
        while True:
            try:
                return ask(self._connected())
            except (KafkaError, SourceError) as error:
                if not may_pass(error) or clock.now() + _PAUSE_S >= deadline:
                    raise
                self._drop()
                self._outage.fails(said(error), self.patience, caller=self._caller)
                clock.sleep(_PAUSE_S)

    def _connected(self) -> Any:
        """The client of the producer, which is made if there is none."""
        if self._closed:
            raise SourceError(f"{self!r} is closed")
        if self._producer is None:
            timeout_ms = round(self._attempt_s * 1000)
            named = self.transactional_id
            own = {} if named is None else {"transactional_id": named, **_TRANSACTIONS}
            self._producer, self._client = connect(
                KafkaProducer,
                self.bootstrap,
                {"request_timeout_ms": min(10_000, timeout_ms), **self.settings},
                min(CONNECT_TIMEOUT_S, self.patience),
                delivery_timeout_ms=timeout_ms,
                max_block_ms=timeout_ms,
                compression_type=self.settings.get("compression_type"),
                **_CONFIG,
                **own,
            )
            if named is not None:
                try:
                    self._producer.init_transactions()
                except KafkaTimeoutError as error:
                    raise NoTransactionsError(str(error)) from None
        return self._client

    def _said(self, error: Exception) -> str:
        """What an error says; where it only repeats the one that ended the transactions, that."""
        manager = self._producer and self._producer._transaction_manager
        ended_by = manager and manager.last_error
        return said(ended_by if ended_by and type(error) is KafkaError else error)

    def _drop(self) -> None:
        """Close the producer, and give up what it still holds."""
        producer, self._producer, self._client = self._producer, None, None
        self._known.clear()
        if producer is None:
            return
        # Its own close waits for what is in flight, and closes nothing if that takes too long.
        producer._sender.force_close()
        producer.close(_CLOSE_TIMEOUT_S)


class _Outgoing(NamedTuple):
    topic: str
    partition: int | None  # None: the producer chooses
    value: bytes


def _windows(outgoing: Sequence[_Outgoing]) -> Iterator[list[_Outgoing]]:
    """The records in order, in windows of as many as may be in flight."""
    window: list[_Outgoing] = []
    size = 0
    for record in outgoing:
        length = len(record.value)
        if window and (size + length > MAX_WINDOW_BYTES or len(window) == MAX_WINDOW_RECORDS):
            yield window
            window, size = [], 0
        window.append(record)
        size += length
    if window:
        yield window
