"""The topics of the embedded log, and appending to their partitions.

Idea: whatever is appended by one call is one transaction, so a reader sees all of it or none,
whichever partitions it went to.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from ...errors import RecordError, SourceError
from ...formats.msgpack import topic_name
from ...formats.replies import MAX_REPLY_BYTES
from ...types import DEAD_LETTERS, QUERIES, REPLIES, UPDATES, Partition
from .file import Execute, LogFile

MAX_PARTITIONS = 1024
MAX_RECORD_BYTES = MAX_REPLY_BYTES  # replies are the largest records there are


def check_topic(name: str, partitions: int) -> None:
    """Raise SourceError on a bad name or number."""
    try:
        topic_name(name)
    except RecordError as error:
        raise SourceError(str(error)) from None
    if not 1 <= partitions <= MAX_PARTITIONS:
        raise SourceError(f"{partitions} partitions: a topic has 1 to {MAX_PARTITIONS}")


def create_topic(file: LogFile, name: str, partitions: int) -> None:
    """Make a topic with this many partitions. One that exists stays as it is; if it was never
    written to, it gets those that it lacks."""
    if (_count(file, name) or 0) >= partitions:
        return
    with file.transaction() as run:
        run("INSERT OR IGNORE INTO topics VALUES (?, ?, 0)", (name, str(uuid.uuid4())))
        if run("SELECT 1 FROM partitions WHERE topic = ? AND next > 0", (name,)).fetchone():
            return
        for number in range(partitions):
            run(
                "INSERT OR IGNORE INTO partitions (topic, number, first, next) VALUES (?, ?, 0, 0)",
                (name, number),
            )
        run("UPDATE topics SET partitions = max(partitions, ?) WHERE name = ?", (partitions, name))


def prepare(file: LogFile, names: Iterable[str]) -> None:
    """Make these topics and those that every log has, where they are not there."""
    for name in (UPDATES, QUERIES, REPLIES, DEAD_LETTERS, *names):
        create_topic(file, name, 1)


def partitions_of(file: LogFile, name: str) -> int:
    """How many partitions a topic has. Raises SourceError if there is no such topic."""
    found = _count(file, name)
    if found is None:
        raise SourceError(f"{file.path}: no topic {name!r}: make it with create_topic")
    return found


def _count(file: LogFile, name: str) -> int | None:
    found = file.one("SELECT partitions FROM topics WHERE name = ?", name)
    return None if found is None else int(found[0])


def append(file: LogFile, parts: Mapping[Partition, Sequence[bytes]]) -> dict[Partition, range]:
    """Append records to partitions, in the order of `parts`, as one transaction; their offsets.
    Raises SourceError: then nothing was written."""
    for values in parts.values():
        for value in values:
            if not isinstance(value, bytes) or len(value) > MAX_RECORD_BYTES:
                raise SourceError(f"a record is bytes, at most {MAX_RECORD_BYTES} of them")
    places = {}
    now = time.time_ns() // 1_000_000
    with file.transaction() as run:
        for partition, values in parts.items():
            key, _, start = bounds_of(run, *partition)
            offsets = range(start, start + len(values))
            file.database.executemany(
                "INSERT INTO records (part, offset, value, time) VALUES (?, ?, ?, ?)",
                ((key, at, value, now) for at, value in zip(offsets, values, strict=True)),
            )
            run("UPDATE partitions SET next = ? WHERE key = ?", (offsets.stop, key))
            places[partition] = offsets
    with suppress(OSError):
        os.utime(file.path)  # wakes who waits: see waiting.py
    return places


def trim(file: LogFile, partition: Partition, before: int) -> int:
    """Drop a partition's records with offsets below `before`; how many there were."""
    with file.transaction() as run:
        key, first, end = bounds_of(run, *partition)
        start = min(max(before, first), end)
        run("DELETE FROM records WHERE part = ? AND offset < ?", (key, start))
        run("UPDATE partitions SET first = ? WHERE key = ?", (start, key))
        return start - first


def delete_topic(file: LogFile, name: str) -> None:
    """Delete a topic and its records; does nothing if there is none."""
    with file.transaction() as run:
        run(
            "DELETE FROM records WHERE part IN (SELECT key FROM partitions WHERE topic = ?)",
            (name,),
        )
        run("DELETE FROM partitions WHERE topic = ?", (name,))
        run("DELETE FROM topics WHERE name = ?", (name,))


def bounds_of(run: Execute, topic: str, number: int) -> tuple[int, int, int]:
    """(key, first, next) of one partition. Raises SourceError if there is none."""
    statement = "SELECT key, first, next FROM partitions WHERE topic = ? AND number = ?"
    found = run(statement, (topic, number)).fetchone()
    if found is None:
        raise SourceError(f"no partition {number} of topic {topic!r}: make it with create_topic")
    key, first, end = found
    return key, first, end
