"""Where results go: a topic of a log, a file of JSON lines, a function.

A sink sends the results of one version in order and returns when they are durable, so one that is
slow holds the stream back. `newest` says what a sink holds already: a replay after a crash passes
over that (`publisher.py`), so a topic or a file has each result once. Where it can be looked at and
holds less than was told, or something else behind it, a new run begins.

    topic       partition 0, so that readers meet results in order. An embedded log and a Kafka take
                those of a version in one transaction, so all or none. With Kafka a pipeline that
                was taken for dead can write no more once another one goes on. A transaction that
                fails, because brokers are away, may have been committed: so the topic is looked at
                before its results are sent again, for as long as the log has patience. What the
                topic takes no record as large for is cut into smaller ones.
    file        lines at its end. Half a line that a crash left is cut off when it is opened. It is
                locked while it is open. Whether it was moved away or cut is looked at before each
                batch is told; one that was is made anew.
    function    holds nothing that could be looked at: after a crash it may be given results again.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

from lpma.host import sync_data

from ..errors import AwayError, LockedError, RecordError, SourceError
from ..formats.results import MAX_RESULT_BYTES, Result, encode_result, result_line
from ..sources.base import Log, LogWriter
from ..sources.sqlite.file import MEMORY
from ..sources.sqlite.log import SqliteLog
from ..types import RESULTS, Partition, Sink
from .changes import within
from .reading import results_in
from .tail import check_plain, end_of, no_results

LOOK_BACK = (1, 16, 1024)  # offsets from a topic's end, in which its newest record is looked for
READ_PATIENCE_S = 10.0  # of one look at a topic, which is tried again

T = TypeVar("T")


class Sends(Protocol):
    """A place for results. `visible`: it can be looked at. `beside`: results may be sent to it by
    another thread than the pipeline's, one at a time. `problem`: why what is being sent is not
    there yet, where that is known; may be read from any thread."""

    visible: bool
    beside: bool
    problem: str | None

    def newest(self) -> Result | None:
        """The result that was sent last, as far as the place can be looked at."""
        ...

    def made_anew(self) -> bool:
        """Whether what was sent is no longer in the place; then this has made it anew."""
        ...

    def send(self, results: Sequence[Result]) -> None:
        """Send all, which are of one version; they are durable when this returns."""
        ...

    def close(self) -> None: ...


def opened(sink: Any, before_retry: Callable[[], object] = lambda: None) -> Sends:
    """The place that the setting `results` names. Makes its topic or file. before_retry: called
    before results are sent again; what it raises, `send` raises. Raises SourceError."""
    if isinstance(sink, str | os.PathLike):
        return _File(Path(sink))
    log, topic = sink if isinstance(sink, tuple) else (sink, RESULTS)
    return _Topic(log, topic, before_retry) if isinstance(log, Sink) else _Function(sink)


class _Function:
    visible = False
    beside = False  # the function is the user's, who may not expect another thread
    problem: str | None = None

    def __init__(self, function: Callable[[Result], object]) -> None:
        self._function = function

    def newest(self) -> None:
        return None

    def made_anew(self) -> bool:
        return False

    def send(self, results: Sequence[Result]) -> None:
        for result in results:
            self._function(result)

    def close(self) -> None:
        pass


class _Topic:
    beside = True

    def __init__(self, log: Sink, topic: str, before_retry: Callable[[], object]) -> None:
        self.problem: str | None = None
        self._log = log
        self._place = Partition(topic, 0)
        self._before_retry = before_retry
        self._max_bytes = MAX_RESULT_BYTES  # of a record, unless the topic has refused one
        self._own: LogWriter | None = None
        self.visible = _visible(log)
        if isinstance(log, LogWriter):
            log.create_topic(topic, 1)
            self._own = log.in_transactions(f"lpma-results-{topic}")
            self._log = self._own or log

    def newest(self) -> Result | None:
        return self._patiently(lambda again: self._look())

    def _look(self) -> Result | None:
        if self._own is not None:
            self._own.partitions_of(self._place.topic)  # connects: now nobody else writes
        if not self.visible:
            return None
        with _reader_of(self._log, self._place.topic) as reader:
            return _newest_in(reader, self._place)

    def made_anew(self) -> bool:
        return False

    def send(self, results: Sequence[Result]) -> None:
        def attempt(again: bool) -> None:
            if again and self._has(results[-1]):
                return  # they are there, although nobody said so
            self._write(results)

        self._patiently(attempt)

    def _has(self, result: Result) -> bool:
        """Whether the topic holds this version of the run, all of it."""
        newest = self._look()
        if newest is None or newest.run != result.run:
            return False
        return newest.version >= result.version

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

    def _write(self, results: Sequence[Result]) -> None:
        """Send results, cut into records that the topic takes. Raises RecordError if one that it
        refuses cannot be cut."""
        while True:
            refused = self._max_bytes < MAX_RESULT_BYTES
            parts = within(results, self._max_bytes) if refused else results
            values = [encode_result(part) for part in parts]
            try:
                if isinstance(self._log, LogWriter):
                    self._log.produce_parts({self._place: values})
                else:
                    self._log.produce_many(self._place.topic, values)
                return
            except RecordError:
                largest = max(range(len(values)), key=lambda i: len(values[i]))
                if parts[largest].rows == 1:
                    raise
                self._max_bytes = len(values[largest]) // 2

    def close(self) -> None:
        if self._own is not None:  # the log is its owner's
            self._own.close()


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


def _newest_in(reader: Log, place: Partition) -> Result | None:
    """The last result in a partition. What is no result is passed over, and so are offsets without
    a record, which transactions leave."""
    first, end = reader.first_offsets()[place], reader.end_offsets()[place]
    for back in LOOK_BACK:
        start = max(first, end - back)
        reader.seek({place: start})
        found = list(results_in(reader))
        if found or start == first:
            return found[-1] if found else None
    return None


class _File:
    """Lines are synced as they are written: those before a checkpoint survive a power cut."""

    visible = beside = True
    problem: str | None = None

    def __init__(self, path: Path) -> None:
        self.path = path
        self._open()

    def _open(self) -> None:
        path = self.path
        check_plain(path)
        try:
            self._file = open(path, "a+b")  # noqa: SIM115  (closed by close)
        except OSError as error:
            raise SourceError(f"{path}: results cannot be written there: {error}") from error
        try:
            self._lock()
            self._newest = self._cut_to_lines()
            self._left = self._mark(os.fstat(self._file.fileno()))
        except BaseException:
            self._file.close()
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockedError(
                f"{self.path}: another pipeline writes its results here: stop it, or name "
                "another file"
            ) from None
        except OSError as error:
            raise SourceError(f"{self.path}: cannot be locked: {error}") from error

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

    def _cut_to_lines(self) -> Result | None:
        """Cut off half a line; the last result. Raises SourceError if this is no file of results,
        which is left as it is."""
        try:
            newest, lines_end, size = end_of(self._file)
            if lines_end < size:
                self._file.truncate(lines_end)
        except RecordError as error:
            raise no_results(self.path, error) from None
        except OSError as error:
            raise SourceError(f"{self.path}: results cannot be written there: {error}") from error
        return newest

    def newest(self) -> Result | None:
        return self._newest

    def send(self, results: Sequence[Result]) -> None:
        try:
            self._file.write(b"".join(result_line(result) + b"\n" for result in results))
            self._file.flush()
            sync_data(self._file.fileno())
            self._left = self._mark(os.fstat(self._file.fileno()))
        except OSError as error:
            raise SourceError(f"{self.path}: results cannot be written: {error}") from error
        self._newest = results[-1]

    def close(self) -> None:
        with suppress(OSError):
            self._file.close()
