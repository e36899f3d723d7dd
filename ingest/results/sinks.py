"""Where results go: a topic of a log, a file of JSON lines, a function.

A sink sends the results of one version in order and returns when they are durable, so one that is
slow holds the stream back. `newest` says what a sink holds already: a replay after a crash passes
over that (`publisher.py`), so a topic or a file has each result once.

    topic       partition 0, so that readers meet results in order. An embedded log and a Kafka take
                those of a version in one transaction, so all or none. With Kafka a pipeline that
                was taken for dead can write no more once another one goes on.
    file        lines at its end. Half a line that a crash left is cut off when it is opened.
    function    holds nothing that could be looked at: after a crash it may be given results again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ..errors import RecordError, SourceError
from ..formats.results import Result, encode_result, result_line
from ..sources.base import Inspectable, Log, PartedSink
from ..sources.sqlite.file import MEMORY
from ..sources.sqlite.log import SqliteLog
from ..types import RESULTS, Partition, Sink
from .reading import results_in
from .tail import check_plain, end_of

LOOK_BACK = (1, 16, 1024)  # offsets from a topic's end, in which its newest record is looked for


class Transacted(Sink, Protocol):
    """A sink that writes in transactions."""

    def partitions_of(self, topic: str, /) -> int: ...

    def close(self) -> None: ...


@runtime_checkable
class Transacts(Protocol):
    """A sink that can write in transactions: `KafkaSink`."""

    def in_transactions(self, name: str, /) -> Transacted: ...


class Sends(Protocol):
    """A place for results."""

    def newest(self) -> Result | None:
        """The result that was sent last, as far as the place can be looked at."""
        ...

    def send(self, results: Sequence[Result]) -> None:
        """Send all; they are durable when this returns."""
        ...

    def close(self) -> None: ...


def opened(sink: Any) -> Sends:
    """The place that the setting `results` names. Makes its topic or file. Raises SourceError."""
    if isinstance(sink, str | os.PathLike):
        return _File(Path(sink))
    log, topic = sink if isinstance(sink, tuple) else (sink, RESULTS)
    return _Topic(log, topic) if isinstance(log, Sink) else _Function(sink)


class _Function:
    def __init__(self, function: Callable[[Result], object]) -> None:
        self._function = function

    def newest(self) -> None:
        return None

    def send(self, results: Sequence[Result]) -> None:
        for result in results:
            self._function(result)

    def close(self) -> None:
        pass


class _Topic:
    def __init__(self, log: Sink, topic: str) -> None:
        self._log = log
        self._place = Partition(topic, 0)
        self._own: Transacted | None = None
        if isinstance(log, PartedSink):
            log.create_topic(topic, 1)
        if isinstance(log, Transacts):
            self._log = self._own = log.in_transactions(f"lpma-results-{topic}")

    def newest(self) -> Result | None:
        if self._own is not None:
            self._own.partitions_of(self._place.topic)  # connects: now nobody else writes
        reader = _reader_of(self._log, self._place.topic)
        if reader is None:
            return None
        with reader:
            return _newest_in(reader, self._place)

    def send(self, results: Sequence[Result]) -> None:
        values = [encode_result(result) for result in results]
        if isinstance(self._log, PartedSink):
            self._log.produce_parts({self._place: values})
        else:
            self._log.produce_many(self._place.topic, values)

    def close(self) -> None:
        if self._own is not None:  # the log is its owner's
            self._own.close()


class _Reader(Log, Inspectable, Protocol):
    """A log whose end can be looked at."""


def _reader_of(log: Sink, topic: str) -> Any:
    """A reader of a topic, to be closed; None if the log has none."""
    if isinstance(log, SqliteLog):
        return None if log.path == MEMORY else SqliteLog(log.path, [topic])
    bootstrap = getattr(log, "bootstrap", None)
    if bootstrap is None:
        return None
    from ..sources.kafka.source import KafkaSource

    return KafkaSource(bootstrap, [topic], settings=getattr(log, "settings", None))


def _newest_in(reader: _Reader, place: Partition) -> Result | None:
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

    def __init__(self, path: Path) -> None:
        self.path = path
        check_plain(path)
        try:
            self._file = open(path, "a+b")  # noqa: SIM115  (closed by close)
        except OSError as error:
            raise SourceError(f"{path}: results cannot be written there: {error}") from error
        try:
            self._newest = self._cut_to_lines()
        except BaseException:
            self._file.close()
            raise

    def _cut_to_lines(self) -> Result | None:
        """Cut off half a line; the last result. Raises SourceError if this is no file of results,
        which is left as it is."""
        try:
            newest, lines_end, size = end_of(self._file)
            if lines_end < size:
                self._file.truncate(lines_end)
        except RecordError as error:
            raise SourceError(
                f"{self.path}: this is no file of results ({error}): name another one"
            ) from None
        except OSError as error:
            raise SourceError(f"{self.path}: results cannot be written there: {error}") from error
        return newest

    def newest(self) -> Result | None:
        return self._newest

    def send(self, results: Sequence[Result]) -> None:
        try:
            self._file.write(b"".join(result_line(result) + b"\n" for result in results))
            self._file.flush()
            os.fdatasync(self._file.fileno())
        except OSError as error:
            raise SourceError(f"{self.path}: results cannot be written: {error}") from error

    def close(self) -> None:
        with suppress(OSError):
            self._file.close()
