"""In which order records are read: as they were written, or queries first.

Idea: a log is read in the order of writing, so a query sees what its asker wrote before it. Where
much waits, that order would let a client wait until the whole backlog is applied. So queries that
stand first in their partition are read first, unless no more than `AHEAD_BYTES` of other partitions
lie before them: they would be reached soon in any case, and keep their place. Order within a
partition is never touched. Whoever needs a query behind certain updates whatever waits puts it into
their partition.

Only the first bytes of a record are looked at: a query is recognised as `encode_query` writes it.
Others are read in their turn.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import numpy as np

from ...formats.records import MAX_QUERY_BYTES, is_query
from ...types import NO_VALUE, Partition, Polled, Values
from .file import Execute

AHEAD_BYTES = 1 << 20  # some 130,000 operations in columns
SMALL_BYTES = 4096  # of a record that is read with others
RECORD_BYTES = 64  # what a record counts for besides its value: a row takes as long as 8 in columns

Start = tuple[int, int]  # (key of a partition, offset read next)


def polled(partition: Partition, offset: int, value: Any, time: int, key: Any = None) -> Polled:
    """A record as `poll` returns it, of what lies in the file: see `file.py`."""
    return Polled(partition, offset, NO_VALUE if value == "" else value, time, key or b"")


def records_from(
    run: Execute, starts: Mapping[Partition, Start], max_records: int, max_bytes: int, keyed: bool
) -> list[Polled]:
    """The next records of these partitions in the order of their commits. keyed: whether they may
    have keys."""
    partitions = {key: partition for partition, (key, _) in starts.items()}
    cursors = [
        run(
            f"SELECT id, part, offset, value, time, {'key' if keyed else 'NULL'} FROM records "
            "WHERE part = ? AND offset >= ? ORDER BY offset LIMIT ?",
            (*start, max_records),
        )
        for start in starts.values()
    ]
    found: list[Polled] = []
    size = 0
    for _, part, offset, value, written, key in heapq.merge(*cursors):
        if len(found) == max_records or (found and size + len(value) > max_bytes):
            break
        size += len(value)
        found.append(polled(partitions[part], offset, value, written, key))
    for cursor in cursors:
        cursor.close()
    return found


def run_from(
    run: Execute, partition: Partition, start: Start, most: int, keyed: bool
) -> Polled | None:
    """At most so many of the next records of this partition together, up to one that is not small,
    or has no value; None if there are less than two. keyed: whether they may have keys.

    Idea: SQLite is asked for the bytes of all, in lines, and for their lengths: to ask for each
    takes three times as long. Ids and offsets rise together, so whichever it goes by, it comes by
    the records in order."""
    key, first = start
    lengths_of = "group_concat(length(value))"
    columns = ["CAST(group_concat(CASE WHEN length(value) <= ?1 THEN value END, x'0A') AS BLOB)"]
    if keyed:
        length = "CASE typeof(value) WHEN 'text' THEN ?1 + 1 ELSE length(value) END"
        lengths_of = f"group_concat({length})"
        columns += ["CAST(group_concat(ifnull(key, x''), x'0A') AS BLOB)",
                    "group_concat(ifnull(length(key), 0))"]  # fmt: skip
    columns.insert(1, lengths_of)
    data, lengths, *of_keys = run(
        f"SELECT {', '.join(columns)} FROM records WHERE part = ?2 AND offset BETWEEN ?3 AND ?4",
        (SMALL_BYTES, key, first, first + most - 1),
    ).fetchone()
    if lengths is None:
        return None
    sizes = np.fromstring(lengths, np.int64, sep=",")
    large = np.flatnonzero(sizes > SMALL_BYTES)
    sizes = sizes[: large[0]] if len(large) else sizes
    if len(sizes) < 2:
        return None
    last = run(
        "SELECT time FROM records WHERE part = ? AND offset = ?", (key, first + len(sizes) - 1)
    ).fetchone()
    values = Values.in_lines(data or b"", sizes)
    if of_keys:
        values.keys = Values.in_lines(of_keys[0], np.fromstring(of_keys[1], np.int64, sep=","))
        values.keys = values.keys[: len(sizes)] if values.keys.longest else None
    return Polled(partition, first, values, *last)


def queries_ahead(
    run: Execute, starts: Mapping[Partition, Start], max_records: int
) -> list[Polled]:
    """The queries to be read now, at most `max_records`, in the order of writing. `starts`: of the
    partitions that have something to read."""
    first = {p: id for p, start in starts.items() if (id := _query_at(run, *start)) is not None}
    others = [start for p, start in starts.items() if p not in first]
    if not first or not others or not _is_much(run, others, min(first.values())):
        return []
    rows = heapq.merge(*(_queries(run, p, *starts[p], max_records) for p in first))
    return [polled for _, polled in rows][:max_records]


def _query_at(run: Execute, key: int, offset: int) -> int | None:
    """The id of the record at or after `offset`, if it is a query."""
    found = run(
        "SELECT id, CASE WHEN length(value) <= ? THEN value END FROM records "
        "WHERE part = ? AND offset >= ? ORDER BY offset LIMIT 1",
        (MAX_QUERY_BYTES, key, offset),
    ).fetchone()
    return found[0] if found and found[1] is not None and is_query(found[1]) else None


def _is_much(run: Execute, starts: list[Start], before: int) -> bool:
    """Whether more than AHEAD_BYTES lie there that were written before the record of that id."""
    size = 0
    for key, offset in starts:
        with closing(run(
            "SELECT id, length(value) FROM records WHERE part = ? AND offset >= ? ORDER BY offset",
            (key, offset),
        )) as rows:  # fmt: skip
            for id, length in rows:
                if id > before:
                    break
                size += length + RECORD_BYTES
                if size > AHEAD_BYTES:
                    return True
    return False


def _queries(
    run: Execute, partition: Partition, key: int, offset: int, limit: int
) -> Iterator[tuple[int, Polled]]:
    """(id, query) from `offset` on, up to the first record that is none."""
    with closing(run(
        "SELECT id, offset, value, time FROM records WHERE part = ? AND offset >= ? "
        "ORDER BY offset LIMIT ?",
        (key, offset, limit),
    )) as rows:  # fmt: skip
        for id, at, value, written in rows:
            if not is_query(value):
                return
            yield id, Polled(partition, at, value, written)
