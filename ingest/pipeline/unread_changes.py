"""Change events of Debezium in a topic that is read as plain rows.

A mapping such as `after.src` does read them, but wrongly, and without a bad record: an update is
appended to what the row was, and a deletion removes nothing. So a new stream stops at them, and one
that is under way says it, once a topic. They are looked for among the first JUDGED records.

A mapping whose `kind` is the operation of the events says itself what that means, and is left
alone.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from itertools import islice

from ..errors import RecordError
from ..events import log_event
from ..fields import Fields
from ..formats.debezium.recognition import is_change_event
from ..registry.envelope import Envelope, id_of
from ..types import Values
from .topics.rows import RowTopic

JUDGED = 1000  # records of a topic
ADVICE = "read them with records=Debezium(Fields(…))"  # `ingest/cli` has it in its own words
_OPERATIONS = ("op", "__op", "__deleted")


class UnreadChanges:
    """The topics in which change events were found so far, since this start."""

    def __init__(self) -> None:
        self._looked: Counter[str] = Counter()  # records, by topic
        self._found: dict[str, bool] = {}  # topics, and whether it was told

    def look(self, reader: RowTopic, topic: str, value: object, stamp: int) -> None:
        """See whether these records are change events. reader: of their topic; value: one record,
        or many."""
        left = JUDGED - self._looked[topic]
        if left <= 0 or topic in self._found or _tells_operations(reader.fields):
            return
        values: Sequence[bytes] = ()
        if isinstance(value, Values):
            values = value
        elif isinstance(value, bytes):
            values = [value]
        self._looked[topic] += len(values)
        if any(_is_change(reader.envelope, each, stamp) for each in islice(values, left)):
            self._found[topic] = False

    def __str__(self) -> str:
        """What was found; "" if nothing was."""
        if not self._found:
            return ""
        topics = ", ".join(self._found)
        return (
            f"the records of {topics} look like Debezium's change events: {ADVICE}, "
            "and name the columns of the table: src, not after.src. Read as plain rows, updates "
            "add up, and deletions remove nothing"
        )

    def tell(self) -> None:
        """Log what was found since the last time, of a stream that goes on all the same."""
        if all(self._found.values()):
            return
        topics = [topic for topic, was_told in self._found.items() if not was_told]
        self._found = dict.fromkeys(self._found, True)
        log_event("changes unread", logging.WARNING, topics=topics, advice=str(self))


def _tells_operations(fields: Fields | None) -> bool:
    """Whether the mapping names the operation of an event as its kind."""
    kind = None if fields is None else fields.kind
    return isinstance(kind, str) and kind.rpartition(".")[2] in _OPERATIONS


def _is_change(envelope: Envelope, value: bytes, stamp: int) -> bool:
    """One that cannot be read is none."""
    if id_of(value) is None:
        return is_change_event(value)
    try:
        return envelope.is_of_changes(value, stamp)
    except RecordError:
        return False
