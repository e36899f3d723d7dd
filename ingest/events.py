"""What happens to a pipeline, logged through Python's logging under the name "lpma.ingest".

    event := start | resume | checkpoint | dead letters | outage | outage over | error | stop
           | damaged checkpoint | journal loss accepted | unchecked | gap accepted
           | serve | service error | kept | not kept | restored
           | group not told | group told
           | results begin anew | other unit | field absent | schemas unknown
           | sums beside others | changes unread                           and its fields

An event is the message of its log record. Any formatter prints it as words; `JsonLines` prints
one JSON object a line. Without a handler, nothing is printed.
Events carry counts, places and the messages of errors, never a setting or a record, so that no
password is logged.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

LOGGER = logging.getLogger("lpma.ingest")
LOGGER.addHandler(logging.NullHandler())  # or warnings would appear on stderr unasked

LETTERS_EVERY_S = 10.0
RESERVED = frozenset({"time", "level", "event", "traceback"})  # what a line holds for any event


@dataclass(frozen=True)
class Event:
    """Something that happened, with its fields: words for people, fields for programs."""

    name: str
    fields: dict[str, Any]

    def __str__(self) -> str:
        return " ".join([self.name, *(f"{name}={value!r}" for name, value in self.fields.items())])


def log_event(name: str, level: int = logging.INFO, **fields: Any) -> None:
    """Log an event. Fields are plain values. REQUIRES: none has a reserved name."""
    assert not RESERVED & fields.keys(), f"{name}: a field has a reserved name"
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, Event(name, fields))


class LetterEvents:
    """Logs dead letters: the first at once, then how many there were, at most every ten seconds, so
    that a topic full of garbage does not become a log full of it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._unlogged: Counter[str] = Counter()
        self._latest: dict[str, Any] = {}
        self._next = -float("inf")

    def note(self, kind: str, topic: str, partition: int, offset: int, reason: str) -> None:
        self._unlogged[kind] += 1
        self._latest = {
            "topic": topic, "partition": partition, "offset": offset, "reason": reason
        }  # fmt: skip

    def flush(self, *, at_once: bool = False) -> None:
        """Log what was noted and not logged yet, if it is time to, or `at_once`."""
        if not self._unlogged or (self._clock() < self._next and not at_once):
            return
        counts = dict(self._unlogged)
        log_event("dead letters", logging.WARNING, count=sum(counts.values()), kinds=counts,
                  latest=self._latest)  # fmt: skip
        self._unlogged.clear()
        self._next = self._clock() + LETTERS_EVERY_S


class JsonLines(logging.Formatter):
    """One JSON object a line: "time" (UTC, ISO 8601), "level", "event" and the event's fields.

    Records of other libraries have the event "log", with "logger" and "message"."""

    def format(self, record: logging.LogRecord) -> str:
        time_said = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"time": time_said, "level": record.levelname.lower()}
        if isinstance(record.msg, Event):
            line |= {"event": record.msg.name, **record.msg.fields}
        else:
            line |= {"event": "log", "logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)
