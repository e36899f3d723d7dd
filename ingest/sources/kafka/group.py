"""Offsets told to a consumer group, so that the tools people have show how far a stream has come.

Idea: nothing here reads what the group holds. The checkpoint alone says where a stream goes on, and
the group is a display: `kafka-consumer-groups.sh` and lag exporters read it. So telling it may
fail, and never stops a stream: a thread with a connection of its own sends the newest offsets after
each checkpoint, and what goes wrong is logged once, as an event, until it works again.

    event := "group not told"   group, error: a warning
           | "group told"       group: it works again

REQUIRES: nobody else consumes in the group. Brokers refuse offsets of a group that has members.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ...errors import RecordError, SourceError
from ...events import log_event
from ...formats.msgpack import topic_name
from ...types import Partition
from .client import connect, said

# `client` is imported first: its error says what is missing.
from kafka import KafkaConsumer, TopicPartition  # isort: skip
from kafka.errors import CommitFailedError  # isort: skip
from kafka.structs import OffsetAndMetadata  # isort: skip

CONNECT_TIMEOUT_S = 4.0
COMMIT_TIMEOUT_S = 5.0
RETRY_S = 5.0  # after a failure, unless newer offsets come first


def _is_no_failed_commit(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("OffsetCommit for group")


# It would say at every try what the event says once.
logging.getLogger("kafka.coordinator.consumer").addFilter(_is_no_failed_commit)


def checked_group(group: str) -> str:
    """The name of a group. Raises SourceError."""
    try:
        return topic_name(group)
    except (RecordError, TypeError) as error:
        raise SourceError(f"group: {error}") from None


class GroupOffsets:
    """Commits to `group` what `tell` says, from a thread of its own."""

    def __init__(self, bootstrap: str, group: str, settings: Mapping[str, Any]) -> None:
        self.group = checked_group(group)
        self._bootstrap = bootstrap
        self._settings = settings
        self._consumer: Any = None
        self._failed = False  # the last time, which was logged
        self._newest: dict[Partition, int] | None = None  # to be committed
        self._wakes = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="lpma-group", daemon=True)
        self._thread.start()

    def tell(self, positions: Mapping[Partition, int]) -> None:
        """Let the group know that records before these offsets are done. Returns at once. May be
        called from any thread."""
        with self._wakes:
            self._newest = {**(self._newest or {}), **positions}
            self._wakes.notify()

    def close(self) -> None:
        """Try once to send what was not sent yet, and end."""
        with self._wakes:
            self._closed = True
            self._wakes.notify()
        self._thread.join(CONNECT_TIMEOUT_S + COMMIT_TIMEOUT_S)

    def _run(self) -> None:
        while True:
            with self._wakes:
                if self._failed and self._newest is not None and not self._closed:
                    self._wakes.wait(RETRY_S)
                while self._newest is None and not self._closed:
                    self._wakes.wait()
                positions, self._newest = self._newest, None
                last = self._closed
            if positions:
                self._try(positions)
            if last:
                self._disconnect()
                return

    def _try(self, positions: dict[Partition, int]) -> None:
        try:
            self._commit(positions)
        except Exception as error:  # noqa: BLE001 - a display never stops a stream
            self._disconnect()
            if not self._failed:
                log_event("group not told", logging.WARNING, group=self.group, error=_why(error))
            self._failed = True
            with self._wakes:
                self._newest = {**positions, **(self._newest or {})}
        else:
            if self._failed:
                log_event("group told", group=self.group)
            self._failed = False

    def _commit(self, positions: Mapping[Partition, int]) -> None:
        if self._consumer is None:
            self._consumer, _ = connect(
                KafkaConsumer, self._bootstrap, self._settings, CONNECT_TIMEOUT_S,
                group_id=self.group, enable_auto_commit=False, auto_offset_reset="none",
            )  # fmt: skip
        offsets = {TopicPartition(*p): OffsetAndMetadata(at) for p, at in positions.items()}
        self._consumer.commit(offsets, timeout_ms=round(COMMIT_TIMEOUT_S * 1000))

    def _disconnect(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            with suppress(Exception):
                consumer.close(autocommit=False, timeout_ms=0)


def _why(error: Exception) -> str:
    if isinstance(error, CommitFailedError):  # of one that is no member
        return "it has members: give this stream a group that nobody consumes in"
    return said(error)
