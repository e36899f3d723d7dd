"""Fields that a mapping names, and no record has: probably a name that is misspelt.

Source and target must be there, so a wrong name of theirs makes bad records. The other fields may
be absent from any record: a wrong `kind` would read every deletion as an insertion, a wrong `time`
every event as of now. So they are looked for until some record has them; a field that is rare is
found late, and is none of these.

Of tables, too, a field may be in none: a column that is null in every row, or a time of the event
that a transform leaves out. A row without a column that is mapped becomes a dead letter besides.

It is told of JUDGED records, or, where a stream is slow, of those that came in PATIENCE_S.

A record at a time costs as much as reading it. Once JUDGED of them were looked at, the bytes of a
field's name are searched in many records at once first, of a table one record of many is looked at,
and records in Confluent's envelope, which must be decoded, are looked at no more.
"""

from __future__ import annotations

import logging
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec import Raw

from ..errors import RecordError
from ..events import log_event
from ..fields import Fields
from ..formats.debezium.changes import Event
from ..formats.mapped import MAX_MAPPED_BYTES, REFUSED, Codec, codec_of
from ..registry.envelope import id_of
from ..types import Polled, Rejected, Values
from .topics.base import TopicReader
from .topics.rows import RowTopic
from .topics.tables import TableTopic
from .unread_changes import UnreadChanges

JUDGED = 1000  # records without a field, before it is told
PATIENCE_S = 30.0  # since the first of fewer
MOST_FIELDS = 12  # of the first records, that are named
_EMPTY = 2  # bytes of an object without a field, at most
_REQUIRED = ("source", "target")
_PLAIN = re.compile(r"[A-Za-z0-9_]+")  # no encoder writes such a key with escapes


class Absent(NamedTuple):
    """A field that none of the first `records` of a topic has. found: fields that they have."""

    topic: str
    role: str  # as `Fields` calls it
    field: str
    records: int
    found: tuple[str, ...]

    def __str__(self) -> str:
        of = f"the first {self.records:,} records" if self.records > 1 else "the first record"
        have = f"{self.topic} has {', '.join(self.found)}" if self.found else "it has none"
        return f"none of {of} has the field {self.field!r} ({self.role}): {have}"


class MappedFields:
    """Which fields of the mappings no record had so far, since this start. changes: events of
    Debezium that are read as plain rows."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.changes = UnreadChanges()
        self.counts: Counter[str] = Counter()  # records without it, by "topic: field", once told
        self._clock = clock  # seconds
        self._missing: dict[str, dict[str, str]] = {}  # by topic: field → role
        self._looked: Counter[str] = Counter()  # records of a mapping, by topic
        self._since: dict[str, float] = {}  # when the first of them was looked at, until it is told
        self._told: set[str] = set()  # topics
        self._found: dict[str, dict[str, None]] = defaultdict(dict)  # what they have, by topic

    def look(self, reader: TopicReader, polled: Polled, stamp: int) -> None:
        """See which fields these records have. Says once of a field that none of JUDGED has.
        reader: of their topic."""
        if not isinstance(reader, RowTopic | TableTopic):
            return
        topic = polled.partition.topic
        if isinstance(reader, RowTopic):
            self.changes.look(reader, topic, polled.value, stamp)
        missing = self._missing.get(topic)
        if missing is None:
            missing = self._missing[topic] = _optional(reader)
        if not missing or isinstance(polled.value, Rejected):
            return
        is_told = self._looked[topic] >= JUDGED
        if isinstance(polled.value, Values):
            count = len(polled.value)
            if is_told and isinstance(reader, TableTopic):
                if id_of(last := polled.value[count - 1]) is None:
                    self._look(reader, topic, last, missing, stamp)
                    self._count(topic, missing, count - 1)
                return
            if is_told and not _may_have(polled.value.data, missing):
                self._count(topic, missing, count)
                return
            values: Sequence[bytes] = polled.value
        elif isinstance(polled.value, bytes):
            values = [polled.value]
        else:
            return
        for value in values:
            if not missing:
                return
            if not (is_told and id_of(value) is not None):
                self._look(reader, topic, value, missing, stamp)

    def tell(self) -> None:
        """Say of a field that none of the records has which came in PATIENCE_S. To be called now
        and then, also when nothing comes."""
        for topic, since in list(self._since.items()) if self._since else ():
            if self._clock() - since >= PATIENCE_S:
                self._tell(topic, self._missing[topic])

    def _tell(self, topic: str, missing: Mapping[str, str]) -> None:
        self._since.pop(topic, None)
        self._told.add(topic)
        for field, role in missing.items():
            advice = (
                f"{self._absent(topic, field, role)}: if the name is wrong, begin anew with "
                "another; each record is read as one without it"
            )
            log_event("field absent", logging.WARNING, topic=topic, field=field, advice=advice)
            self.counts[f"{topic}: {field}"] = self._looked[topic]

    def absent(self, least: int) -> Absent | None:
        """A field that no record of its topic had so far, of which there were `least`."""
        for topic, missing in self._missing.items():
            if missing and self._looked[topic] >= max(1, least):
                return self._absent(topic, *next(iter(missing.items())))
        return None

    def _absent(self, topic: str, field: str, role: str) -> Absent:
        return Absent(topic, role, field, self._looked[topic], (*self._found[topic],))

    def _look(
        self, reader: RowTopic | TableTopic, topic: str, value: bytes, missing: dict[str, str],
        stamp: int,
    ) -> None:  # fmt: skip
        """At one record. A bad one, one in our own forms and one about no row say nothing."""
        try:
            value, fields = reader.envelope.inner(value, stamp)
            codec = None if fields is None else codec_of(value, fields)
            if codec is None or len(value) > MAX_MAPPED_BYTES:
                return
            codec.check_depth(value)
            if isinstance(reader, TableTopic):
                event = reader.reader.event(value, b"")
                if not isinstance(event, Event) or event.after is None:
                    return
                there = [name for name in missing if reader.reader.has(event, name)]
                value = reader.reader.fields_of(value)
            else:
                there = [name for name in missing if codec.find(value, name) != codec.null]
        except RecordError:
            return
        for name in there:
            del missing[name]
        if len(found := self._found[topic]) < MOST_FIELDS and missing:
            found |= dict.fromkeys(islice(_paths(codec, value), MOST_FIELDS - len(found)))
        self._count(topic, missing, 1)

    def _count(self, topic: str, missing: Mapping[str, str], records: int) -> None:
        self._looked[topic] += records
        if topic in self._told:
            self.counts.update({f"{topic}: {field}": records for field in missing})
        elif self._looked[topic] >= JUDGED:
            self._tell(topic, missing)
        else:
            self._since.setdefault(topic, self._clock())


def _optional(reader: RowTopic | TableTopic) -> dict[str, str]:
    """The fields of a topic's mapping that records may lack: field → role."""
    fields: Fields | None
    if isinstance(reader, RowTopic):
        fields = reader.fields
    else:
        table = reader.reader.table
        fields = table.fields
        named = fields.named()
        if table.are_vertices:  # which have no weight
            named = {role: name for role, name in named.items() if role in ("source", "time")}
        # The ends too: where one is NULL, the row is no edge, and of MongoDB any field may lack.
        return {name: role for role, name in reversed(named.items())}
    if fields is None:
        return {}
    return {name: role for role, name in fields.named().items() if role not in _REQUIRED}


def _may_have(data: bytes, fields: Iterable[str]) -> bool:
    """Whether these bytes may hold one of the fields: what stands there may be a value, too."""
    ends = [name.rpartition(".")[2] for name in fields]
    return any(not _PLAIN.fullmatch(end) or end.encode() in data for end in ends)


def _paths(codec: Codec, value: bytes) -> Iterator[str]:
    """The fields of a record, of objects within it as dotted paths."""
    for name, within in _fields_in(codec, value).items():
        inner = bytes(within)
        nested = _fields_in(codec, inner) if inner[0] in codec.maps and len(inner) > _EMPTY else ()
        yield from (f"{name}.{each}" for each in nested) if nested else (name,)


def _fields_in(codec: Codec, value: bytes) -> dict[str, Raw]:
    """{} of an object whose keys are no text, which may stand where no mapping looks."""
    try:
        found: dict[str, Raw] = codec.decoder(dict[str, Raw]).decode(value)
    except REFUSED:
        return {}
    return found
