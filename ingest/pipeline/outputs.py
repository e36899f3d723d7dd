"""What a pipeline sends: replies to queries, and dead letters, to topics of a log or to functions.

A query is an operation of the stream: it has a place there, is answered in its batch as of that
place, and is answered again when the stream is replayed.

A sink is anything with `produce_many(topic, values)` that returns once the values are durable,
as `SqliteLog` does. Both kinds of output may be repeated after a crash and are never lost: the
pipeline sends them before it commits the offsets they came from.

If all the first records of a new stream are bad, the stream is probably not read as it was written:
with the wrong fields, say, or without names. The pipeline then stops, and leaves nothing in the way
of a second try, neither a checkpoint nor dead letters:

    on trial --a good record--> passed: dead letters leave, and checkpoints are taken
             --`limit` bad ones, or the end after fewer--> AllRecordsBad

While on trial, dead letters are held (`Outputs.held`), and so are checkpoints, which come after
them. A record is good if it was decoded: a query, a repeat, and one whose rows are late are, too.

A new stream stops as well where its mapping names a field that none of the first records has. That
is judged once, before the first batch is applied: of `limit` records, or of fewer where the source
ends with them. A stream that began with less goes on, and `mapped_fields.py` says it later.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING

from lpma import Neighbors
from lpma.arrays import first_not_below
from lpma.engine.answers import Answers

from ..errors import AllRecordsBad, PipelineError, RecordError
from ..events import LetterEvents
from ..formats.replies import MAX_REPLY_BYTES, DeadLetter, encode_dead_letter, encode_reply
from ..settings import DeadLetterSink, ReplySink
from ..timers import Delay
from ..types import DEAD_LETTERS, Answer, Partition, Query, Reply, Sink, TopicSink
from .batching import Asked, Refusal
from .mapped_fields import MappedFields

if TYPE_CHECKING:
    from lpma.names import Names

KEPT_LETTERS = 1000
GROUP_BYTES = 32 << 20  # of replies, encoded at once

Output = Reply | DeadLetter


class Outputs:
    """Writes what a pipeline sends.

    dead_letters: a log (topic "dead-letters"), a (log, topic) pair, a function, or None.
    replies: a log, a function, or None. topics: the reply topics a query may name, the first for
    one that names none; a log that can make topics is asked to make them."""

    def __init__(
        self, dead_letters: DeadLetterSink, replies: ReplySink, topics: Sequence[str]
    ) -> None:
        if not topics:
            raise PipelineError("reply_topics: name at least one")
        to = dead_letters if isinstance(dead_letters, tuple) else (dead_letters, DEAD_LETTERS)
        self._letter_sink, self._letter_topic = to
        self._replies = replies
        self.topics = tuple(topics)
        self._max_bytes: dict[str, int] = {}  # of a record, by topic, if a log refused more
        self.letters: list[DeadLetter] = []  # noted, to be sent by `flush`
        self.held = False  # whether they wait: see `FirstRecords`
        self._counted: set[int] = set()  # of `letters`, by id
        self.rejected = 0
        self.rejected_by: Counter[str] = Counter()  # by RecordError.kind
        self.events = LetterEvents()
        self._sending = Delay("replies or dead letters are not written")
        self.kept: deque[DeadLetter] = deque(maxlen=KEPT_LETTERS)
        if isinstance(replies, TopicSink):
            for topic in self.topics:
                replies.create_topic(topic)
        if isinstance(self._letter_sink, TopicSink):
            self._letter_sink.create_topic(self._letter_topic)

    def check_topic(self, topic: str | None) -> None:
        """Raise RecordError if a query's reply could not be sent."""
        if self._replies is None:
            raise RecordError("a query, but this pipeline has nowhere to reply to", "unserved")
        if topic is not None and topic not in self.topics:
            known = ", ".join(self.topics)
            raise RecordError(f"reply topic {topic!r} is not one of {known}", "unserved")

    def reject(self, letter: DeadLetter) -> None:
        """Note a dead letter, to be counted and sent by `flush`; one that is held counts now."""
        self.letters.append(letter)
        if self.held:
            self._count(letter)
            self._counted.add(id(letter))

    def _count(self, letter: DeadLetter) -> None:
        self.rejected += 1
        self.rejected_by[letter.kind] += 1
        self.events.note(letter.kind, letter.topic, letter.partition, letter.offset, letter.reason)
        self.kept.append(letter)

    def flush(self, waiting: Mapping[Partition, int] = MappingProxyType({})) -> None:
        """Send the dead letters noted, unless they are held. waiting: the first record of a
        partition that is not taken yet; its letter and those after it stay, since a stream that
        stops here reads these records again."""
        if self.held:
            self.events.flush()
            return
        letters, self.letters = self.letters, []
        if waiting:
            last = [waiting.get(Partition(each.topic, each.partition)) for each in letters]
            goes = [at is None or each.offset < at for each, at in zip(letters, last, strict=True)]
            self.letters = [each for each, leaves in zip(letters, goes, strict=True) if not leaves]
            letters = [each for each, leaves in zip(letters, goes, strict=True) if leaves]
        for letter in letters:
            if id(letter) not in self._counted:
                self._count(letter)
            self._counted.discard(id(letter))
        sink = self._letter_sink
        if isinstance(sink, Sink):
            self._produce(sink, self._letter_topic, letters)
        elif sink is not None:
            for letter in letters:
                sink(letter)
        self.events.flush()

    def send(self, replies: Iterable[tuple[str | None, Reply]]) -> None:
        """Send replies, those to one topic in order."""
        sink = self._replies
        if isinstance(sink, Sink):
            by_topic = defaultdict(list)
            for topic, reply in replies:
                by_topic[topic or self.topics[0]].append(reply)
            for topic, some in by_topic.items():
                self._produce(sink, topic, some)
        elif sink is not None:
            for _, reply in replies:
                sink(reply)

    def _produce(self, sink: Sink, topic: str, outputs: Iterable[Output]) -> None:
        """Write to a topic, in groups that memory has room for."""
        group: list[Output] = []
        values: list[bytes] = []
        size = 0
        for output in outputs:
            group.append(output)
            values.append(_encoded(self._fitting(topic, output)))
            size += len(values[-1])
            if size >= GROUP_BYTES:
                self._produce_group(sink, topic, group, values)
                group, values, size = [], [], 0
        if values:
            self._produce_group(sink, topic, group, values)

    def _produce_group(
        self, sink: Sink, topic: str, outputs: list[Output], values: list[bytes]
    ) -> None:
        """Write a group. If the log refuses one of them because of its size, they are written one
        by one, and some a second time."""
        with self._sending.under_way():
            try:
                sink.produce_many(topic, values)
            except RecordError:
                for output in outputs:
                    self._produce_one(sink, topic, output)

    def trouble(self) -> str | None:
        """That something waits to be written, if it does for long; None if not. May be called from
        any thread."""
        return self._sending.said()

    def _produce_one(self, sink: Sink, topic: str, output: Output) -> None:
        """Write one, cut until the log accepts it; later ones are cut as short at once. Raises
        RecordError if it cannot be cut further."""
        value = _encoded(self._fitting(topic, output))
        while True:
            try:
                sink.produce_many(topic, [value])
                return
            except RecordError:
                limit = len(value) // 2
                shorter = _encoded(output.within(limit))
                if len(shorter) >= len(value):
                    raise
                self._max_bytes[topic], value = limit, shorter

    def _fitting(self, topic: str, output: Output) -> Output:
        """The output, cut if the topic does not accept as many bytes; then it says there is
        more."""
        return output.within(self._max_bytes.get(topic, MAX_REPLY_BYTES))


class FirstRecords:
    """Judges the first `limit` records of a stream, whose dead letters go to `outputs`. limit 0:
    none is judged."""

    def __init__(self, limit: int, outputs: Outputs) -> None:
        self.limit = limit
        self._outputs = outputs
        self.failed = False  # whether the stream has stopped for them
        self._bad = 0
        self._good = False
        self._begun = limit == 0  # whether a batch was applied, or anything is taken
        self.fields: MappedFields | None = None  # those that no record had so far
        outputs.held = limit > 0

    @property
    def on_trial(self) -> bool:
        """Whether the stream may still stop for its first records."""
        return self._outputs.held

    def good(self) -> None:
        """Note a record that was decoded."""
        self._good = True
        fields = self.fields
        if self._begun or fields is None or (fields.absent(1) is None and not str(fields.changes)):
            self._outputs.held = False

    @property
    def _changes(self) -> str:
        return "" if self.fields is None else str(self.fields.changes)

    def release(self) -> None:
        """Whoever asks for what is held takes it."""
        self._begun, self._outputs.held = True, False

    def bad(self) -> None:
        """Note a record that became a dead letter. Raises AllRecordsBad if it was the last that
        was waited for."""
        if self.on_trial and not self._good:
            self._bad += 1
            if self._bad >= self.limit:
                self.end()

    def end(self) -> None:
        """No other records come. Raises AllRecordsBad if some came, and all were bad."""
        if self.on_trial and self._bad and not self._good:
            count = "record is" if self._bad == 1 else f"{self._bad:,} records are"
            reason = self._outputs.kept[0].reason
            self.failed = True
            if said := self._changes:
                raise AllRecordsBad(f"{said}. Nothing was kept", absent=said)
            raise AllRecordsBad(
                f"the first {count} bad ({reason}): read them as they were written, or leave "
                "stop_if_first_bad out to go on after them. Nothing was kept"
            )

    def tell(self) -> None:
        """Say of a stream that goes on what another would stop for."""
        if self.fields is not None and not self.on_trial:
            self.fields.changes.tell()

    def begin(self, ends: bool) -> None:
        """A batch is about to be applied. ends: whether the source ends with it. Raises
        AllRecordsBad if it is the first, and no record has a field that is named, or records are
        change events that are read as plain rows."""
        absent = None
        if not self._begun and (said := self._changes):
            self.failed = True
            raise AllRecordsBad(
                f"{said}. Leave stop_if_first_bad out to go on. Nothing was kept", absent=said
            )
        if not self._begun and self.fields is not None:
            absent = self.fields.absent(1 if ends else self.limit)
        if absent is None:
            self.release()
            return
        self.failed = True
        raise AllRecordsBad(
            f"{absent}: name the one that means it, or none, or leave stop_if_first_bad out to go "
            "on. Nothing was kept",
            absent=str(absent),
        )


def _encoded(output: Output) -> bytes:
    return encode_reply(output) if isinstance(output, Reply) else encode_dead_letter(output)


def unanswered(queries: Sequence[Asked]) -> list[Asked]:
    """The same queries, refused because there was no memory for their answers."""
    full = Refusal("memory", "no memory for the answers of its batch: ask for less at once")
    return [replace(asked, refusal=asked.refusal or full) for asked in queries]


def replies_to(
    queries: Sequence[Asked],
    answers: Answers | Sequence[Answer],
    version: int,
    max_rows: int,
    vertices: Names | None = None,
) -> Iterator[tuple[str | None, Reply]]:
    """(reply topic, reply) of each query; `answers` are those of the ones not refused, in order,
    from a batch that made `version`. A reply has at most `max_rows` rows, and a query for the rest
    is a query of its own. `vertices` turns ids into names, if vertices go by names."""
    if isinstance(answers, Answers):
        answers = answers.on_host()  # they are read one by one: copied once, not each
    numbers = count()
    for asked in queries:
        query, refused = asked.query, asked.refusal
        reply = Reply(query.id, query.kind, version, asked.stamp)
        if refused is not None:
            yield query.reply, replace(reply, **vars(refused))  # of the same names
        else:
            answer = _rows_asked_for(query, answers[next(numbers)])
            reply = replace(reply, answer=answer).first_rows(max_rows)
            if vertices is not None and isinstance(reply.answer, Neighbors):
                names = vertices.of(reply.answer.ids)
                reply = replace(reply, answer=replace(reply.answer, ids=names))
            yield query.reply, reply


def _rows_asked_for(query: Query, answer: Answer) -> Answer:
    """The answer without the rows that the asker has already."""
    if query.after is None or not isinstance(answer, Neighbors):
        return answer
    assert not isinstance(query.after, str), "names have been looked up"
    first = first_not_below(answer.ids, query.after + 1)  # the ids of one query rise
    return answer.rows(first, len(answer.ids))
