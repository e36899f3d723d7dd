"""The embedded log: topics and partitions with rising offsets, in one SQLite file.

Idea: a laptop, a test or a small service gets the semantics of a broker (durable append, offsets
per topic-partition, any number of readers that keep their own positions, retention by trimming)
from the standard library alone.

Tricks: `records.id` rises over all partitions in the order of commits, so a reader of several
partitions sees them in the order of writing, so a query between two updates keeps its place.
Offsets start at 0 and rise by one; an offset is never reused, even after trimming. Whoever writes
makes the log, by the first record or topic; a reader of one that is not there gets an error, and
leaves no file.
Waiting: whoever has written touches the log's file (`os.utime`: its time of change, nothing else),
and a reader that waits has asked the kernel to be told: inotify, on Linux. A reply is then read
some tens of microseconds after it was written. Nothing rests on it: a writer may die before it
touches the file, so a reader looks every `LOOK_S` all the same; and every `SLEEP_S` where the
kernel tells nothing. The file is named, not opened: closing a second handle would release SQLite's
locks.
Durability: write-ahead log with `synchronous=FULL`: when `produce` returns, the records survive
a kill and a power cut; many records in one `produce_many` share one sync.
Processes: one writes at a time (others wait up to `timeout` seconds), readers never wait. The file
must be on a local file system, as SQLite's write-ahead log requires.
"""

from __future__ import annotations

import os
import select
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from lpma.host import open_watch, wake

from ...errors import OffsetError, RecordError, SourceError
from ...formats.msgpack import topic_name
from ...formats.replies import MAX_REPLY_BYTES
from ...types import (
    DEAD_LETTERS,
    QUERIES,
    REPLIES,
    UPDATES,
    Closing,
    Partition,
    Polled,
    Values,
)
from ..base import Identity, Log, LogWriter, check_offset, check_written
from ..chosen import Chosen, readable
from .file import MEMORY, Execute, LogFile, NoLog, make_log
from .order import SMALL_BYTES, Start, polled, queries_ahead, records_from, run_from

MAX_PARTITIONS = 1024
MAX_RECORD_BYTES = MAX_REPLY_BYTES  # replies are the largest records there are

Bounds = dict[Partition, tuple[int, int, int]]  # (key, first, next), for the topics read
Starts = dict[Partition, Start]  # of the partitions that have something to read
Read = Callable[[Execute, Starts], list[Polled]]


class SqliteLog(Closing, Log, LogWriter):
    """A log in the file `path`: to produce into, and as a Source of `topics`, read from their first
    record on until `seek` says otherwise. partitions: only these are read, as {topic: numbers}; a
    topic that is not named is read whole.

    The first `produce`, `produce_many` or `create_topic` makes the file if there is none; until
    then all other methods raise SourceError. `max_bytes` bounds what one poll brings (one record
    may pass it); `timeout` is how long, in seconds, to wait for another process that is writing.
    writable=False writes nothing and needs no permission to; within a process all handles on a file
    are of one kind. Methods may be called from any thread.
    Raises SourceError if the file is not such a log or cannot be used, or a partition is not there.

    >>> with ingest.SqliteLog("log") as log:
    ...     log.produce_many("updates", [ingest.encode_row(1, 2), ingest.encode_row(2, 3)])
    ...     len(log.poll())
    range(0, 2)
    2
    """

    can_wake = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        topics: Sequence[str] = (UPDATES, QUERIES),
        *,
        partitions: Mapping[str, Collection[int]] | None = None,
        max_bytes: int = 16 << 20,
        timeout: float = 30.0,
        writable: bool = True,
    ) -> None:
        self.path = os.fspath(path)
        self.max_bytes = max_bytes
        self._longest = SMALL_BYTES  # of the records of the last poll of many
        self.topics = tuple(dict.fromkeys(topics))
        for topic in self.topics:
            _check_topic(topic, 1)
        self._chosen = Chosen(self.topics, partitions)
        self._only: frozenset[Partition] | None = None  # read for the time being; None: all
        self._select_bounds = (
            "SELECT topic, number, key, first, next FROM partitions "
            f"WHERE topic IN ({', '.join('?' for _ in self.topics)})"
        )
        self._timeout = timeout
        self._writable = writable
        self._lock = threading.Lock()
        self._opened: LogFile | None = None  # none: not there yet
        self._watch: Watch | None = None  # none: never waited
        self._awake = False  # whether the next wait ends at once
        self._positions: dict[Partition, int] = {}
        if not os.path.isdir(os.path.dirname(os.path.abspath(self.path))):
            raise SourceError(f"{self.path}: cannot be opened as a log (no such directory)")
        with suppress(NoLog):
            self._open()

    def __repr__(self) -> str:
        return f"SqliteLog({self.path!r}, {list(self.topics)!r})"

    @property
    def _file(self) -> LogFile:
        """The log, which another process may have made since. Raises SourceError if there
        is none."""
        return self._opened or self._open()

    def _open(self) -> LogFile:
        with self._lock:
            if self._opened is None:
                file = LogFile(self.path, self._timeout, self._writable)
                try:
                    if self._writable:
                        for topic in (UPDATES, QUERIES, REPLIES, DEAD_LETTERS, *self.topics):
                            _create_topic(file, topic, 1)
                    rows = file.all(self._select_bounds, *self.topics)
                    self._chosen.check(Partition(topic, number) for topic, number, *_ in rows)
                    bounds = self._read_of(rows)
                    self._positions = {p: first for p, (_, first, _) in bounds.items()}
                except BaseException:
                    file.close()
                    raise
                self._opened = file
            return self._opened

    def _made(self) -> LogFile:
        if self._opened is None and self._writable:
            make_log(self.path, self._timeout)
        return self._file

    def close(self) -> None:
        with self._lock:
            if self._opened is None:  # closed all the same, and never to be opened
                self._opened = LogFile(MEMORY, self._timeout)
            self._opened.close()
            self._watch = None

    # Topics ----------------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Make a topic, and the log if there is none. One that exists stays as it is; if it was
        never written to, it gets the partitions that it lacks. Raises SourceError on a bad name or
        number."""
        _check_topic(name, partitions)
        _create_topic(self._made(), name, partitions)

    def partitions_of(self, topic: str) -> int:
        """How many partitions a topic has. Raises SourceError if there is no such topic."""
        found = _count(self._file, topic)
        if found is None:
            raise SourceError(f"{self.path}: no topic {topic!r}: make it with create_topic")
        return found

    def topic_names(self) -> set[str]:
        """The names of all topics, none if the log is still to be made."""
        with suppress(NoLog):
            return {name for (name,) in self._file.all("SELECT name FROM topics")}
        return set()

    def end_of(self, topic: str, partition: int = 0) -> int:
        """The offset of the next record of a topic, read or not. Raises SourceError if there is no
        such partition."""
        with self._file.transaction("BEGIN") as run:
            _, _, end = bounds_of(run, topic, partition)
            return end

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records; does nothing if there is none."""
        with self._file.transaction() as run:
            run(
                "DELETE FROM records WHERE part IN (SELECT key FROM partitions WHERE topic = ?)",
                (name,),
            )
            run("DELETE FROM partitions WHERE topic = ?", (name,))
            run("DELETE FROM topics WHERE name = ?", (name,))

    # Writing ---------------------------------------------------------------------------------

    def produce(
        self, topic: str, value: bytes | None, partition: int = 0, *, key: bytes | None = None
    ) -> int:
        """Append one record durably; its offset. See `produce_many`."""
        keys = None if key is None else [key]
        return self.produce_many(topic, [value], partition, keys=keys).start

    def produce_many(
        self,
        topic: str,
        values: Sequence[bytes | None],
        partition: int = 0,
        *,
        keys: Sequence[bytes | None] | None = None,
    ) -> range:
        """Append records in one transaction, so all or none, durable when this returns; their
        offsets. A value may be None, as in Kafka; keys: one for each, or None.
        Raises SourceError on an unknown topic or partition, a record above 32 MiB, and
        when the file cannot be written (then nothing was)."""
        place = Partition(topic, partition)
        return self.produce_parts({place: values}, None if keys is None else {place: keys})[place]

    def produce_parts(
        self,
        parts: Mapping[Partition, Sequence[bytes | None]],
        keys: Mapping[Partition, Sequence[bytes | None]] | None = None,
    ) -> dict[Partition, range]:
        """As `produce_many`, to several partitions in one transaction: a reader sees all of it or
        nothing. It is read in the order of `parts`."""
        keyed = bool(keys)
        for partition, values in parts.items():
            for value in values:
                keyed = keyed or value is None
                if value is not None and not _is_record(value):
                    raise SourceError(f"a record is bytes, at most {MAX_RECORD_BYTES} of them")
            own = (keys or {}).get(partition, ())
            if own and len(own) != len(values):
                raise SourceError(f"{len(own)} keys of {len(values)} records: give one for each")
            if not all(key is None or _is_record(key) for key in own):
                raise SourceError(f"a key is bytes, at most {MAX_RECORD_BYTES} of them")
        file, places = self._made(), {}
        now = time.time_ns() // 1_000_000
        with file.transaction() as run:
            if keyed:
                file.add_keys(run)
            columns = f"part, offset, value, time{', key' * keyed}"
            marks = "?, ?, ?, ?, ?" if keyed else "?, ?, ?, ?"
            for partition, values in parts.items():
                key, _, start = bounds_of(run, *partition)
                offsets = range(start, start + len(values))
                own = (keys or {}).get(partition) or [None] * len(values)
                rows = (
                    (key, at, "" if value is None else value, now, *([its_key] if keyed else ()))
                    for at, value, its_key in zip(offsets, values, own, strict=True)
                )
                file.database.executemany(f"INSERT INTO records ({columns}) VALUES ({marks})", rows)
                run("UPDATE partitions SET next = ? WHERE key = ?", (offsets.stop, key))
                places[partition] = offsets
        with suppress(OSError):
            os.utime(file.path)  # wakes who waits: see above
        return places

    def writer(self, patience: float) -> SqliteLog:
        """Another handle on the file, to be closed by whoever asked for it. patience: as
        `timeout`. Raises SourceError for a log in memory, which has one."""
        if self.path == MEMORY:
            raise SourceError("a log in memory has no second handle: keep it in a file")
        return SqliteLog(self.path, self.topics, timeout=patience)

    def trim(self, topic: str, partition: int, before: int) -> int:
        """Drop records with offsets below `before`; returns how many. Their space is reused."""
        with self._file.transaction() as run:
            key, first, end = bounds_of(run, topic, partition)
            start = min(max(before, first), end)
            run("DELETE FROM records WHERE part = ? AND offset < ?", (key, start))
            run("UPDATE partitions SET first = ? WHERE key = ?", (start, key))
            return start - first

    # Reading ---------------------------------------------------------------------------------

    def poll(self, max_records: int = 500, timeout: float = 0.0) -> list[Polled]:
        return self._waited(timeout, lambda run, starts: self._one_by_one(run, starts, max_records))

    def poll_many(self, max_records: int, timeout: float) -> list[Polled]:
        return self._waited(timeout, lambda run, starts: self._many(run, starts, max_records))

    def poll_one(self, partition: Partition, max_records: int) -> list[Polled]:
        def read(run: Execute, starts: Starts) -> list[Polled]:
            its = {place: start for place, start in starts.items() if place == partition}
            return self._one_by_one(run, its, max_records)

        return self._read(read)

    def queries_ahead(self, max_records: int) -> list[Polled]:
        return self._read(lambda run, starts: queries_ahead(run, starts, max_records))

    def _waited(self, timeout: float, read: Read) -> list[Polled]:
        """What is read, as soon as that is something."""
        file = self._file
        deadline = time.monotonic() + timeout
        seen = None  # the state in which nothing was found
        while not (polled := self._read(read)):
            while (state := file.state()) == seen:
                left = deadline - time.monotonic()
                if left <= 0 or self._awake:
                    self._awake = False
                    return []
                self._watch = watch = self._watch or Watch(self.path)
                watch.wait(left)
            seen = state
        return polled

    def wake(self) -> None:
        self._awake = True
        if self._watch is not None:
            self._watch.wake()

    def _read(self, read: Read) -> list[Polled]:
        """What is read from where reading goes on, which moves past it."""
        with self._file.transaction("BEGIN") as run:
            polled = read(run, self._starts(run))
            for record in polled:
                self._positions[record.partition] = record.last + 1
            return polled

    def _one_by_one(self, run: Execute, starts: Starts, max_records: int) -> list[Polled]:
        keyed = self._file.has_keys(run)
        return records_from(run, starts, max_records, self.max_bytes, keyed)

    def _many(self, run: Execute, starts: Starts, max_records: int) -> list[Polled]:
        """As a list where a single partition has something to read."""
        if len(starts) == 1:
            ((partition, start),) = starts.items()
            most = min(max_records, self.max_bytes // self._longest)
            found = run_from(run, partition, start, most, self._file.has_keys(run))
            if found is not None:
                assert isinstance(found.value, Values)
                self._longest = max(1, found.value.longest)
                return [found]
        return self._one_by_one(run, starts, max_records)

    def _starts(self, run: Execute) -> Starts:
        """Where reading goes on, for each partition that has something to read."""
        starts: Starts = {}
        bounds = self._read_of(run(self._select_bounds, self.topics))
        if gone := self._positions.keys() - bounds.keys():
            raise OffsetError(f"topic {min(gone).topic!r} was deleted while it was read")
        for partition, (key, first, end) in bounds.items():
            start = self._positions.setdefault(partition, first)
            if not first <= start <= end:
                check_offset(partition, start, first, end)
            if start < end and (self._only is None or partition in self._only):
                starts[partition] = key, start
        return starts

    def read_only(self, partitions: Iterable[Partition] | None) -> None:
        """Let `poll` read these partitions alone, until it is told otherwise; None: all again."""
        self._only = readable(partitions, self._positions)

    def seek(self, positions: Mapping[Partition, int]) -> None:
        bounds = self._partitions()
        for partition, offset in positions.items():
            if partition not in bounds:
                read = ", ".join(self.topics)
                raise OffsetError(f"{partition}: not a partition of {read} that is read here")
            _, first, end = bounds[partition]
            check_offset(partition, offset, first, end)
        self._positions.update({Partition(*p): offset for p, offset in positions.items()})

    def positions(self) -> dict[Partition, int]:
        self._file  # noqa: B018 - raises if there is no log
        return dict(self._positions)

    def end_offsets(self) -> dict[Partition, int]:
        """The offset the next record of each partition read will have."""
        return {partition: end for partition, (_, _, end) in self._partitions().items()}

    def first_offsets(self) -> dict[Partition, int]:
        """The lowest offset still held by each partition read."""
        return {partition: first for partition, (_, first, _) in self._partitions().items()}

    def records_at(self, offsets: Mapping[Partition, int]) -> dict[Partition, Polled]:
        found = {}
        bounds = self._partitions()
        for partition, offset in offsets.items():
            key, _, end = bounds[partition]
            check_written(partition, offset + 1, end)
            row = self._file.one(
                "SELECT value, time FROM records WHERE part = ? AND offset = ?", key, offset
            )
            if row is not None:
                found[partition] = polled(partition, offset, *row)
        return found

    def known_ends(self) -> dict[Partition, int]:
        return self.end_offsets()

    def trouble(self) -> str | None:
        """Why the file cannot be read; None if it can."""
        try:
            self.end_offsets()
        except SourceError as error:
            return str(error)
        return None

    def at_end(self) -> bool:
        return self._positions == self.end_offsets()

    def identity(self) -> Identity:
        (cluster,) = self._file.one("SELECT value FROM info WHERE key = 'cluster'")
        found = dict(self._file.all("SELECT name, id FROM topics"))
        topics = self._chosen.topics(self.topics)
        return Identity(cluster, {name: found[name] for name in topics if name in found})

    def sink(self) -> SqliteLog:
        return self

    def _partitions(self) -> Bounds:
        return self._read_of(self._file.all(self._select_bounds, *self.topics))

    def _read_of(self, rows: Iterable[tuple[str, int, int, int, int]]) -> Bounds:
        """Of the partitions that are read."""
        bounds = {Partition(topic, n): (key, first, end) for topic, n, key, first, end in rows}
        if self._chosen.are_all:
            return bounds
        return {place: bound for place, bound in bounds.items() if place in self._chosen}


def _is_record(value: object) -> bool:
    return isinstance(value, bytes) and len(value) <= MAX_RECORD_BYTES


def _check_topic(name: str, partitions: int) -> None:
    try:
        topic_name(name)
    except RecordError as error:
        raise SourceError(str(error)) from None
    if not 1 <= partitions <= MAX_PARTITIONS:
        raise SourceError(f"{partitions} partitions: a topic has 1 to {MAX_PARTITIONS}")


def _create_topic(file: LogFile, name: str, partitions: int) -> None:
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


def _count(file: LogFile, name: str) -> int | None:
    """How many partitions a topic has; None: there is no such topic."""
    found = file.one("SELECT partitions FROM topics WHERE name = ?", name)
    return None if found is None else int(found[0])


def bounds_of(run: Execute, topic: str, number: int) -> tuple[int, int, int]:
    """(key, first, next) of one partition. Raises SourceError if there is none."""
    statement = "SELECT key, first, next FROM partitions WHERE topic = ? AND number = ?"
    found = run(statement, (topic, number)).fetchone()
    if found is None:
        raise SourceError(f"no partition {number} of topic {topic!r}: make it with create_topic")
    key, first, end = found
    return key, first, end


LOOK_S = 0.01
SLEEP_S = 0.001
REST_S = 0.0005  # between two wakes, or a busy writer of another topic would keep a reader busy too
_EVENT_BYTES = 4096


class Watch:
    """Waits for the file `path` to be touched. One thread at a time, or others wake later."""

    def __init__(self, path: str) -> None:
        self._file, self._waker = open_watch(path) or (-1, -1)
        self._poll = select.poll() if self._file >= 0 else None
        if self._poll is not None:
            self._poll.register(self._file, select.POLLIN)
            self._poll.register(self._waker, select.POLLIN)
        self._woken = 0.0  # when last

    def wait(self, seconds: float) -> None:
        """Return when the file was touched or `wake` called since the last call, or after LOOK_S or
        `seconds`."""
        if self._poll is None:
            time.sleep(min(SLEEP_S, seconds))
        elif ready := self._poll.poll(1000 * min(LOOK_S, seconds)):
            if any(file == self._waker for file, _ in ready):
                with suppress(BlockingIOError):
                    os.read(self._waker, 8)
                return
            with suppress(BlockingIOError):
                os.read(self._file, _EVENT_BYTES)
            if time.monotonic() - self._woken < REST_S:
                time.sleep(REST_S)
            self._woken = time.monotonic()

    def wake(self) -> None:
        """Let a `wait`, or the next one, return. May be called from any thread."""
        if self._waker >= 0:
            wake(self._waker)

    def __del__(self) -> None:
        # Not before the last thread has stopped waiting: the number may be another file's then.
        if self._file >= 0:
            os.close(self._file)
        if self._waker >= 0:
            os.close(self._waker)
