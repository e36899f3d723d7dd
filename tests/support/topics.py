"""What an embedded log holds, by topic, decoded; and a clock for pipelines."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import ingest
from ingest import DeadLetter, Partition, Reply, SqliteLog

UPDATES = Partition("updates", 0)


def read(log: SqliteLog, topic: str, decode: Callable[[bytes], Any]) -> list[Any]:
    with SqliteLog(log.path, topics=(topic,)) as reader:
        return [decode(r.value) for r in reader.poll(10**6) if isinstance(r.value, bytes)]


def replies(log: SqliteLog) -> list[Reply]:
    return read(log, "replies", ingest.decode_reply)


def dead_letters(log: SqliteLog) -> list[DeadLetter]:
    return read(log, "dead-letters", ingest.decode_dead_letter)


class Ticking:
    """A clock that moves on a little at every look."""

    def __init__(self, ms: int = 1) -> None:
        self.ticks = itertools.count(10**12, ms)

    def __call__(self) -> int:
        return next(self.ticks)
