"""Fields that a mapping names, and no record has: probably a name that is misspelt.

Source and target must be there, so a wrong name of theirs makes bad records. The other fields may
be absent from any record: a wrong `kind` would read every deletion as an insertion, a wrong `time`
every event as of now. So they are looked for until some record has them; a field that is rare is
found late, and is none of these.

A record at a time costs as much as reading it. Once JUDGED of them were looked at, the bytes of a
field's name are searched in many records at once first, and records in Confluent's envelope, which
must be decoded, are looked at no more.
"""

from __future__ import annotations

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec import Raw

from ..errors import RecordError
from ..events import log_event
from ..formats.mapped import MAX_MAPPED_BYTES, REFUSED, Codec, codec_of
from ..registry.envelope import id_of
from ..types import Polled, Rejected, Values
from .topics.rows import RowTopic

JUDGED = 1000  # records without a field, before it is told
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
    """Which fields of the mappings no record had so far, since this start."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()  # records without it, by "topic: field", once told
        self._missing: dict[str, dict[str, str]] = {}  # by topic: field → role
        self._looked: Counter[str] = Counter()  # records of a mapping, by topic
        self._found: dict[str, dict[str, None]] = defaultdict(dict)  # what they have, by topic

    def look(self, reader: RowTopic, polled: Polled, stamp: int) -> None:
        """See which fields these records have. Says once of a field that none of JUDGED has.
        reader: of their topic."""
        topic, fields = polled.partition.topic, reader.fields
        if fields is None:
            return
        missing = self._missing.get(topic)
        if missing is None:
            missing = self._missing[topic] = {
                name: role for role, name in fields.named().items() if role not in _REQUIRED
            }
        if not missing or isinstance(polled.value, Rejected):
            return
        is_told = self._looked[topic] >= JUDGED
        if isinstance(polled.value, Values):
            if is_told and not _may_have(polled.value.data, missing):
                self._count(topic, missing, len(polled.value))
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

    def absent(self, least: int) -> Absent | None:
        """A field that no record of its topic had so far, of which there were `least`."""
        for topic, missing in self._missing.items():
            if missing and self._looked[topic] >= max(1, least):
                return self._absent(topic, *next(iter(missing.items())))
        return None

    def _absent(self, topic: str, field: str, role: str) -> Absent:
        return Absent(topic, role, field, self._looked[topic], (*self._found[topic],))

    def _look(
        self, reader: RowTopic, topic: str, value: bytes, missing: dict[str, str], stamp: int
    ) -> None:
        """At one record. A bad one, and one in our own forms, says nothing."""
        try:
            value, fields = reader.envelope.inner(value, stamp)
            codec = None if fields is None else codec_of(value, fields)
            if codec is None or len(value) > MAX_MAPPED_BYTES:
                return
            codec.check_depth(value)
            there = [name for name in missing if codec.find(value, name) != codec.null]
        except RecordError:
            return
        for name in there:
            del missing[name]
        if len(found := self._found[topic]) < MOST_FIELDS and missing:
            found |= dict.fromkeys(islice(_paths(codec, value), MOST_FIELDS - len(found)))
        self._count(topic, missing, 1)

    def _count(self, topic: str, missing: Mapping[str, str], records: int) -> None:
        before = self._looked[topic]
        self._looked[topic] = now = before + records
        for field, role in missing.items():
            if before < JUDGED <= now:
                advice = (
                    f"{self._absent(topic, field, role)}: if the name is wrong, begin anew with "
                    "another; each record is read as one without it"
                )
                log_event("field absent", logging.WARNING, topic=topic, field=field, advice=advice)
            if now >= JUDGED:
                self.counts[f"{topic}: {field}"] = now


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
