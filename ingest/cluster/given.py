"""What a sink or a cluster is given, checked before anything is opened or written."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from numbers import Real
from typing import Any, cast

from lpma.batch.columns import Columns

from ..errors import IngestError, PipelineError, RecordError
from ..formats.markers import marker_of
from ..formats.msgpack import short_text
from ..formats.records import decode_record
from ..formats.row_reader import RowReaders, as_columns
from ..sources.base import LogWriter
from ..types import Names, Partition, Polled, Record


def check_flags(error: type[IngestError], **flags: Any) -> None:
    """Raise `error` unless each of these is True or False."""
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise error(f"{name} is {value!r}: expected True or False")


def check_interval(error: type[IngestError], epoch_interval_s: Any) -> None:
    """Raise `error` unless these are seconds that can be waited, or None."""
    if epoch_interval_s is None:
        return
    is_number = isinstance(epoch_interval_s, Real) and not isinstance(epoch_interval_s, bool)
    if not is_number or not 0 < epoch_interval_s <= threading.TIMEOUT_MAX:
        raise error(
            f"epoch_interval_s is {epoch_interval_s!r}: expected a positive number of seconds, or "
            "None for no epochs by the clock"
        )


def check_sink(sink: Any) -> None:
    """Raise PipelineError unless its partitions can be chosen."""
    if not isinstance(sink, LogWriter):
        raise PipelineError(f"sink is {sink!r}: give an ingest.SqliteLog or an ingest.KafkaSink")


def check_producer(producer: Any) -> None:
    """Raise PipelineError unless that can be a producer's name, or is None."""
    if producer is None:
        return
    try:
        short_text({"producer": producer}, "producer").encode()
    except (RecordError, UnicodeEncodeError) as error:
        raise PipelineError(f"producer is {producer!r}, which names no producer: {error}") from None


def columns_of(columns: Any) -> Columns:
    """The same columns. Raises RecordError if they are none."""
    if not isinstance(columns, Columns):
        raise RecordError(
            f"expected columns, as lpma.Batch.from_columns or batch.columns() makes them, not "
            f"{type(columns).__name__}"
        )
    return columns


def records_of(topic: str, values: Any, names: bool) -> Iterator[Record]:
    """Encoded records of updates, decoded; plain rows that follow each other as one. Raises
    RecordError if they are none, or only one that is in no list."""
    if isinstance(values, bytes | bytearray | memoryview | str) or not isinstance(values, Iterable):
        raise RecordError(f"expected a list of encoded records, not {type(values).__name__}")
    polled = []
    for at, value in enumerate(values):
        if not isinstance(value, bytes):
            raise RecordError(
                f"record {at}: expected bytes, as ingest.encode_updates makes them, not "
                f"{type(value).__name__}"
            )
        polled.append(Polled(Partition(topic, 0), at, value))
    for one in as_columns(polled, RowReaders("msgpack", names)):
        if isinstance(one.value, Columns):
            yield Record(one.value, names=Names(one.value.src, one.value.dst) if names else None)
        elif marker_of(one.value) is not None:
            raise RecordError("a marker is no update: `mark` writes them")
        else:
            yield decode_record(cast(bytes, one.value), names=names)
