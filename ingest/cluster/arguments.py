"""What a sink or a cluster is given, checked before anything is opened or written."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, cast

from lpma.batch.columns import Columns

from ..errors import ClusterError, IngestError, PipelineError, RecordError
from ..formats.markers import marker_of
from ..formats.msgpack import short_text
from ..formats.records import decode_record
from ..formats.row_reader import RowReader, as_columns
from ..sources.base import LogWriter
from ..types import Names, Partition, Polled, Record

REFUSED = (  # of a pipeline's settings
    "records", "device", "changes", "changes_format", "schema_registry", "enveloped",
)  # fmt: skip


def check(
    shards: int,
    settings: Mapping[str, Any],
    interval_s: float | None,
    kafka_settings: Mapping[str, Any] | None,
    directed: bool,
    predecessors: bool,
    names: bool,
) -> None:
    """Raise ClusterError for what no cluster can have."""
    if type(shards) is not int or shards < 1:
        raise ClusterError(f"shards is {shards!r}: expected a whole number, at least 1")
    check_interval(ClusterError, interval_s)
    check_flags(ClusterError, directed=directed, predecessors=predecessors, names=names)
    if kafka_settings is not None and not isinstance(kafka_settings, Mapping):
        raise ClusterError(
            f"kafka_settings is {kafka_settings!r}: expected a dictionary, as of KafkaSource"
        )
    if predecessors and not directed:
        raise ClusterError("predecessors: an undirected graph has them anyway: leave it out")
    if settings.get("records", "msgpack") != "msgpack":
        raise ClusterError("records: a sharded topic has what PartitionedSink writes: leave it out")
    if settings.get("schema_registry") is not None or settings.get("enveloped"):
        raise ClusterError(
            "schema_registry: a sharded topic has what PartitionedSink writes: leave it out, and "
            "give it to `lpma repartition`"
        )
    if settings.get("late", "apply") != "apply" and (predecessors or not directed):
        raise ClusterError(
            "late: the two rows of an edge lie in two partitions, each with an event time of its "
            "own, so one might be late alone: leave it out, or keep each edge once"
        )
    if settings.get("window") is not None:
        raise ClusterError(
            "window: a shard sees the times of its own partitions alone, so each has its own "
            "bound: leave it out, and write expiries with PartitionedSink.expire"
        )
    if settings.get("changes") is not None:
        raise ClusterError(
            "changes: each shard has versions of its own, of which no copy of the whole graph can "
            "be made: leave it out, and publish the feed of a graph that one pipeline keeps"
        )
    if "device" in settings:
        raise ClusterError("device: say devices, one for all shards or one for each")


def check_places(checkpoint: str | os.PathLike[str], keep: str | None) -> None:
    """Raise ClusterError or CheckpointError if these can hold no checkpoints."""
    path = os.fspath(checkpoint) if isinstance(checkpoint, str | os.PathLike) else None
    if not isinstance(path, str):
        raise ClusterError(f"checkpoint is {checkpoint!r}: name a directory, as text or a Path")
    if not path:
        raise ClusterError("checkpoint is empty: name a directory, which is made")
    if os.path.exists(path) and not os.path.isdir(path):
        raise ClusterError(f"checkpoint: {path} is a file: name a directory, which is made")
    if keep is not None:
        if not isinstance(keep, str):
            raise ClusterError(f"keep is {keep!r}: name a directory or a URI, as text")
        if not keep:
            raise ClusterError("keep is empty: name a directory or a URI, or leave it out")
        if os.path.isfile(keep):
            raise ClusterError(f"keep: {keep} is a file: checkpoints are kept in a directory")
        from .storage import Storage

        Storage.of(keep)


def device_of(devices: str | Sequence[str] | None, number: int) -> str:
    """The device of a shard. Raises ClusterError if none is named."""
    if devices is None or isinstance(devices, str):
        return devices or "cpu"
    if not isinstance(devices, Sequence) or not all(isinstance(name, str) for name in devices):
        raise ClusterError(
            f"devices is {devices!r}: expected 'cpu', 'cuda' or 'cuda:N', or a list of them"
        )
    if not devices:
        raise ClusterError("devices is empty: name one, or leave it out")
    return devices[number % len(devices)]


def check_flags(error: type[IngestError], **flags: Any) -> None:
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
    for one in as_columns(polled, RowReader(None, names)):
        if isinstance(one.value, Columns):
            yield Record(one.value, names=Names(one.value.src, one.value.dst) if names else None)
        elif marker_of(one.value) is not None:
            raise RecordError("a marker is no update: `mark` writes them")
        else:
            yield decode_record(cast(bytes, one.value), names=names)
