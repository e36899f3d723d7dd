"""Reading results: from a file or a topic, each once, and totals as series over the stream's time.

A topic may hold a result twice after a crash. Within a run places rise, so a reader that keeps the
last one drops repeats without a list of what it has seen.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, TypeVar

from ..errors import RecordError, SourceError
from ..formats.results import Result, decode_result, decode_result_line

if TYPE_CHECKING:
    from ..sources.base import Log

POLL_RECORDS = 1000
T = TypeVar("T")
# By figure: versions, or their stamps in ms, and the values from then on.
Series = dict[str, tuple[list[int], list[int]]]
Over = Literal["time", "version"]


def read_results(path: str | os.PathLike[str]) -> Iterator[Result]:
    """The results in a file, in order, without half a line at its end. Raises SourceError if it
    cannot be read, RecordError if a line is no result.

    >>> log = ingest.SqliteLog("log")
    >>> _ = log.produce("updates", ingest.encode_updates([1, 2, 3], [2, 3, 1]))
    >>> with ingest.Pipeline(log, lpma.Graph(device="cpu"), track=["triangles"],
    ...                      results="results.jsonl") as pipeline:
    ...     _ = pipeline.run("end")
    >>> [(r.version, r.figure, r.old, r.new) for r in ingest.read_results("results.jsonl")]
    [(1, 'triangles', 0, 1)]
    """
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n"):
                    try:
                        yield decode_result_line(line)
                    except RecordError as error:
                        raise RecordError(f"{path}: line {number}: {error}") from None
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error}") from error


def results_in(log: Log) -> Iterator[Result]:
    """The results from where a log stands to its end; what is none is passed over."""
    return parts_in(log, decode_result)


def parts_in(log: Log, decode: Callable[[bytes], T]) -> Iterator[T]:
    """What `decode` reads from where a log stands to its end; what it refuses is passed over."""
    while not log.at_end():
        for record in log.poll(POLL_RECORDS, 1.0):
            with suppress(RecordError):
                if isinstance(record.value, bytes):
                    yield decode(record.value)


def once(results: Iterable[Result]) -> Iterator[Result]:
    """Those that are no repeats.

    >>> from ingest.results.reading import once
    >>> told = [ingest.Result("5f0c", v, 0, 1, 9, "triangles", new=v) for v in (1, 2, 1, 2, 3)]
    >>> [result.version for result in once(told)]
    [1, 2, 3]
    """
    run, place = None, (-1, -1)
    for result in results:
        if result.run != run or result.place > place:
            run, place = result.run, result.place
            yield result


def totals(results: Iterable[Result], over: Over = "time") -> Series:
    """How totals went in the newest run: from 0 at its beginning, a point wherever one changed, and
    the last value at its end, as far as results tell. By versions it begins at the one before the
    first result. REQUIRES: no repeats."""
    run, found, begin, end = None, Series(), 0, 0
    for result in results:
        end = result.time if over == "time" else result.version
        if result.run != run:
            run, found = result.run, {}
            begin = end if over == "time" else max(0, end - 1)
        if result.vertex is None and result.alert is None:
            places, values = found.setdefault(result.figure, ([begin], [0]))
            places.append(end)
            values.append(result.new)
    for places, values in found.values():
        places.append(end)
        values.append(values[-1])
    return found
