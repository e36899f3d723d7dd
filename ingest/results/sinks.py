"""Where results and the edge feed go: a topic of a log, a file of JSON lines, a function. What is
said of results here holds of the feed.

A sink sends the results of a version, or of several in order, and returns when they are durable, so
one that is slow holds the stream back. `newest` says what a sink holds already: a replay after a
crash passes over that (`publisher.py`), so a topic or a file has each result once. Where it can be
looked at and holds less than was told, or something else behind it, a new run begins.

    topic       partition 0, so that readers meet results in order. An embedded log and a Kafka take
                what is sent together in one transaction, so all or none. With Kafka a pipeline that
                was taken for dead can write no more once another one goes on; in an embedded log,
                who finds that another one has written there stops. A transaction that
                fails, because brokers are away, may have been committed: so the topic is looked at
                before its results are sent again, for as long as the log has patience. A record
                that the topic refuses as too large is cut into smaller ones. The topic is for
                nothing else: a pipeline that read it would take its results for bad records, and
                among replies or dead letters the newest result would not be found after a crash.
    file        lines at its end. Half a line that a crash left is cut off when it is opened. A user
                may name another file by mistake, so nothing else is cut off, and only plain files
                are taken. It is locked while it is open. Whether it
                was moved away or cut is looked at before each batch is told; one that was is made
                anew.
    function    holds nothing that could be looked at: after a crash it may be given results again.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from lpma.host import sync_data

from ..errors import (
    AwayError,
    LockedError,
    PipelineError,
    RecordError,
    SourceError,
)
from ..formats.records import decode_record
from ..formats.replies import decode_dead_letter, decode_reply
from ..sources.base import Log, LogWriter, Source
from ..sources.sqlite.file import MEMORY
from ..sources.sqlite.log import SqliteLog
from ..types import DEAD_LETTERS, Partition, Record, Sink
from .forms import CHANGES, RESULTS, Form, Part
from .reading import parts_in

if TYPE_CHECKING:
    from ..settings import Settings

LOOK_BACK = (1, 16, 1024)  # offsets from a topic's end, in which its newest record is looked for
READ_PATIENCE_S = 10.0  # of one look at a topic, which is tried again
FIRST_PIECE_BYTES = 1 << 16  # of a file's end, in which its last line is looked for, and
_PIECES_GROW = 8  # times as much, until that lies in it

T = TypeVar("T")
_KNOWN: dict[str, Callable[[bytes], Any]] = {
    "a result": RESULTS.decode, "part of an edge feed": CHANGES.decode, "a reply": decode_reply,
    "a dead letter": decode_dead_letter, "an update": partial(decode_record, names=True),
}  # fmt: skip


class Destination(ABC):
    """A place for results."""

    visible = False  # whether it can be looked at
    beside = False  # whether another thread than the pipeline's may send to it
    problem: str | None = None  # why what is being sent is not there yet, where that is known

    def newest(self) -> Part | None:
        """The result that was sent last, as far as the place can be looked at."""
        return None

    def check_alike(self) -> None:  # noqa: B027  (others may hold nothing else)
        """Raise PipelineError if the place holds something else. REQUIRES: no `newest`."""

    def made_anew(self) -> bool:
        """Whether what was sent is no longer in the place; then this has made it anew."""
        return False

    @abstractmethod
    def send(self, results: Sequence[Any]) -> None:
        """Send all, which are those of whole versions, in order; they are durable when this
        returns."""

    def close(self) -> None:  # noqa: B027  (a function has nothing to close)
        """Release what was opened here."""


def opened(
    sink: Any, form: Form = RESULTS, before_retry: Callable[[], object] = lambda: None
) -> Destination:
    """The place that the setting `results` names, or `changes`. Makes its topic or file.
    before_retry: called before results are sent again; what it raises, `send` raises. Raises
    SourceError."""
    if isinstance(sink, str | os.PathLike):
        return _File(Path(sink), form)
    log, topic = _log_and_topic(sink, form.what)
    return _Topic(log, topic, form, before_retry) if isinstance(log, Sink) else _Function(sink)


class _Function(Destination):
    """It is the user's, who may not expect another thread."""

    def __init__(self, function: Callable[[Any], object]) -> None:
        self._function = function

    def send(self, results: Sequence[Any]) -> None:
        for result in results:
            self._function(result)


class _Topic(Destination):
    beside = True

    def __init__(
        self, log: Sink, topic: str, form: Form, before_retry: Callable[[], object]
    ) -> None:
        self._log = log
        self._form = form
        self._place = Partition(topic, 0)
        self._before_retry = before_retry
        self._max_bytes = form.max_bytes  # of a record, unless the topic has refused one
        self._own: LogWriter | None = None
        self._end: int | None = None  # of an embedded log's topic, once it is known
        self.visible = _visible(log)
        if isinstance(log, LogWriter):
            log.create_topic(topic, 1)
            self._own = log.in_transactions(f"lpma-{form.what}-{topic}")
            self._log = self._own or log

    def newest(self) -> Part | None:
        return self._patiently(lambda again: self._look())

    def check_alike(self) -> None:
        value = self._patiently(lambda again: self._look(bytes))
        if value is not None:
            what, topic = self._form.what, self._place.topic
            raise PipelineError(
                f"{what} would go to the topic {topic!r}, whose newest record is {what_is(value)}: "
                f"name another topic, as {what}=(log, topic) or --{what}-topic TOPIC"
            )

    def _look(self, decode: Callable[[bytes], Any] | None = None) -> Any:
        if self._own is not None:
            self._own.partitions_of(self._place.topic)  # connects: now nobody else writes
        if not self.visible:
            return None
        with _reader_of(self._log, self._place.topic) as reader:
            if isinstance(self._log, SqliteLog):
                self._end = reader.end_offsets()[self._place]
            return newest_in(reader, self._place, decode or self._form.decode)

    def send(self, results: Sequence[Any]) -> None:
        def attempt(again: bool) -> None:
            if again and self._has(results[-1]):
                return  # they are there, although nobody said so
            self._write(results)

        self._patiently(attempt)

    def _has(self, result: Part) -> bool:
        """Whether the topic holds this version of the run, all of it."""
        newest = self._look()
        return newest is not None and newest.run == result.run and newest.version >= result.version

    def _patiently(self, ask: Callable[[bool], T]) -> T:
        """What `ask` returns, asked again while brokers are away; it is told whether it is asked
        again."""
        began, again = time.monotonic(), False
        while True:
            try:
                answer = ask(again)
            except AwayError as error:
                if self._own is None or time.monotonic() - began >= self._own.patience:
                    raise
                self.problem = str(error)
                self._before_retry()
                again = True
            else:
                self.problem = None
                return answer

    def _write(self, results: Sequence[Any]) -> None:
        """Send results, cut into records that the topic takes. Raises RecordError if one that it
        refuses cannot be cut."""
        while True:
            refused = self._max_bytes < self._form.max_bytes
            parts = list(self._cut(results)) if refused else results
            values = [self._form.encode(part) for part in parts]
            try:
                if isinstance(self._log, SqliteLog):
                    self._append(self._log, values)
                elif isinstance(self._log, LogWriter):
                    self._log.produce_parts({self._place: values})
                else:
                    self._log.produce_many(self._place.topic, values)
                return
            except RecordError:
                largest = max(range(len(values)), key=lambda i: len(values[i]))
                if parts[largest].pieces <= 1:
                    raise
                self._max_bytes = len(values[largest]) // 2

    def _append(self, log: SqliteLog, values: Sequence[bytes]) -> None:
        """Raises LockedError if another one has written there: before anything is written, unless
        both write at this moment."""
        end = log.end_of(self._place.topic)
        if self._end in (None, end):
            written = log.produce_parts({self._place: values})[self._place]
            self._end = written.stop
            if written.start == end:
                return
        raise LockedError(
            f"{log.path}: another pipeline writes its {self._form.what} to the topic "
            f"{self._place.topic!r}: stop it, or name another topic"
        )

    def _cut(self, results: Sequence[Any]) -> Iterator[Any]:
        for _, of_version in groupby(results, attrgetter("version")):
            yield from self._form.within(list(of_version), self._max_bytes)

    def close(self) -> None:
        if self._own is not None:  # the log is its owner's
            self._own.close()


def check_results_topic(source: Source, settings: Settings) -> None:
    """Raise PipelineError if results or the edge feed would go to a topic that this pipeline uses
    otherwise."""
    used = list(_used(source, settings))
    for form, sink in ((RESULTS, settings.results), (CHANGES, settings.changes)):
        log, topic = _log_and_topic(sink, form.what)
        if not isinstance(log, Sink):
            continue
        for use, other, name in used:
            if name == topic and _same(log, other):
                raise PipelineError(
                    f"{form.what} is the topic {topic!r}, which is {use}: name another one, as "
                    f"{form.what}=(log, {form.what!r})"
                )
        used.append((f"for {form.what}", log, topic))


def _used(source: Source, settings: Settings) -> Iterator[tuple[str, Any, str]]:
    """(use, log, topic) of what is read and written besides. Where no log is named for replies or
    dead letters, the source's own takes them."""
    # `topics` has those that are not there yet, too.
    for topic in source.topics or {partition.topic for partition in source.positions()}:
        yield "read", source, topic
    for topic in settings.reply_topics:
        yield "for replies", settings.replies or source, topic
    yield "for dead letters", *_log_and_topic(settings.dead_letters or source, DEAD_LETTERS)


def _log_and_topic(sink: Any, default: str) -> tuple[Any, str]:
    return sink if isinstance(sink, tuple) else (sink, default)


def _same(one: Any, other: Any) -> bool:
    """Whether these are one log: the same object, file, or a Kafka with a broker in common."""
    if one is other:
        return True
    if isinstance(one, SqliteLog) and isinstance(other, SqliteLog):
        return MEMORY not in (one.path, other.path) and _real(one) == _real(other)
    return bool(_brokers(one) & _brokers(other))


def _real(log: SqliteLog) -> str:
    return os.path.realpath(log.path)


def _brokers(log: Any) -> set[str]:
    return set(getattr(log, "bootstrap", "").split(",")) - {""}


def _visible(log: Sink) -> bool:
    """Whether the log has a reader: one in memory ends with its process."""
    if isinstance(log, SqliteLog):
        return log.path != MEMORY
    return getattr(log, "bootstrap", None) is not None


def _reader_of(log: Any, topic: str) -> Any:
    """A reader of a topic, to be closed. REQUIRES: a log that is visible."""
    if isinstance(log, SqliteLog):
        return SqliteLog(log.path, [topic])
    from ..sources.kafka.source import KafkaSource

    settings, patience = getattr(log, "settings", None), getattr(log, "patience", READ_PATIENCE_S)
    return KafkaSource(
        log.bootstrap, [topic], settings=settings, patience=min(patience, READ_PATIENCE_S)
    )


def newest_in(reader: Log, place: Partition, decode: Callable[[bytes], Any]) -> Any:
    """The last part in a partition, None if there is none. What is none is passed over, and so are
    offsets without a record, which transactions leave."""
    first, end = reader.first_offsets()[place], reader.end_offsets()[place]
    for back in LOOK_BACK:
        start = max(first, end - back)
        reader.seek({place: start})
        found = list(parts_in(reader, decode))
        if found or start == first:
            return found[-1] if found else None
    return None


def what_is(value: bytes) -> str:
    """What a record seems to be, in words."""
    for words, decode in _KNOWN.items():
        with suppress(RecordError):
            record = decode(value)
            return "a query" if isinstance(record, Record) and record.queries else words
    return "an object of JSON" if value[:1] == b"{" else "of no form known here"


# Files ---------------------------------------------------------------------------------------


class _File(Destination):
    """Lines are synced as they are written: those before a checkpoint survive a power cut."""

    visible = beside = True

    def __init__(self, path: Path, form: Form) -> None:
        self.path = path
        self._form = form
        self._open()

    def _open(self) -> None:
        check_plain(self.path, self._form)
        with _place(self.path, self._form):
            self._file = open(self.path, "a+b")  # noqa: SIM115  (closed by close)
        try:
            with _place(self.path, self._form):
                self._lock()
                self._newest, lines_end, size = end_of(self._file, self._form)
                if lines_end < size:
                    self._file.truncate(lines_end)
                self._left = self._mark(os.fstat(self._file.fileno()))
        except BaseException:
            self._file.close()
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockedError(
                f"{self.path}: another pipeline writes its {self._form.what} here: stop it, or "
                "name another file"
            ) from None

    @staticmethod
    def _mark(found: os.stat_result) -> tuple[int, int, int]:
        """Which file it is, and how long."""
        return found.st_dev, found.st_ino, found.st_size

    def made_anew(self) -> bool:
        with suppress(OSError):
            if self._mark(os.stat(self.path)) == self._left:
                return False
        self.close()
        self._open()
        return True

    def newest(self) -> Part | None:
        return self._newest

    def send(self, results: Sequence[Any]) -> None:
        with _place(self.path, self._form):
            self._file.write(b"".join(self._form.line(result) + b"\n" for result in results))
            self._file.flush()
            sync_data(self._file.fileno())
            self._left = self._mark(os.fstat(self._file.fileno()))
        self._newest = results[-1]

    def close(self) -> None:
        with suppress(OSError):
            self._file.close()


@contextmanager
def _place(path: Path, form: Form) -> Iterator[None]:
    """What goes wrong within, as SourceError."""
    try:
        yield
    except RecordError as error:
        raise SourceError(
            f"{path}: this is no file of {form.what} ({error}): name another one"
        ) from None
    except OSError as error:
        raise SourceError(f"{path}: {form.what} cannot be written there: {error}") from error


def check_plain(path: Path, form: Form = RESULTS) -> None:
    """Raise SourceError if something other than a plain file is at `path`. Nothing may be there."""
    with _place(path, form), suppress(FileNotFoundError):
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise SourceError(
                f"{path}: is not a plain file, and {form.what} are kept in one: name another file"
            )


def check_holds(path: Path, form: Form) -> None:
    """Raise SourceError if something other than a file of results is at `path`, or of what the form
    is of. Nothing may be there, and half a line at the end."""
    check_plain(path, form)
    with _place(path, form), suppress(FileNotFoundError), open(path, "rb") as file:
        end_of(file, form)


def end_of(file: BinaryIO, form: Form = RESULTS) -> tuple[Any, int, int]:
    """The last result in a file, None if there is none; where its whole lines end; and its size.
    Raises RecordError if its last whole line is no result, or what follows begins none."""
    size = file.seek(0, os.SEEK_END)
    length = FIRST_PIECE_BYTES
    most = 2 * (form.max_line_bytes + 1)  # a whole line, and half of one behind it
    while True:
        length = min(length, size, most)
        file.seek(size - length)
        tail = file.read(length)
        end = tail.rfind(b"\n") + 1
        start = tail.rfind(b"\n", 0, end - 1) + 1 if end else 0
        if start or length == size:
            break
        if length == most:
            raise RecordError(f"its last line has more than {form.max_line_bytes:,} bytes")
        length *= _PIECES_GROW
    if not form.begins_line(tail[end:]):
        raise RecordError(f"its end is not the beginning of a line of {form.what}")
    newest = form.decode_line(tail[start:end]) if end else None
    return newest, size - len(tail) + end, size
