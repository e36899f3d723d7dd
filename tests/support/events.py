"""Events that were logged: found in caplog, or caught by a handler."""

from __future__ import annotations

import logging

import pytest

from ingest.events import Event


def events_named(caplog: pytest.LogCaptureFixture, name: str) -> list[Event]:
    """The events of that name, in their order."""
    messages = [record.msg for record in caplog.records]
    return [event for event in messages if isinstance(event, Event) and event.name == name]


class Told(logging.Handler):
    """The events that were told, and what kafka-python's loggers let through."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.events: list[Event] = []
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if isinstance(record.msg, Event):
            self.events.append(record.msg)
        elif record.name.startswith("kafka"):
            self.lines.append(f"{record.name}: {record.getMessage()}")

    @property
    def names(self) -> list[str]:
        return [event.name for event in self.events]
