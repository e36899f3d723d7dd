"""Streams of graph operations: records, sources, and the pipeline that applies them to a graph.

A public name is imported when it is first used: a client needs no compiler, and Ctrl-C finds the
command line ready for it. `KafkaSource` and `KafkaSink` need kafka-python, and raise SourceError
without it.
"""

# ruff: noqa: I001 - imports with `as` would stand in a line each

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import installation as installation  # first: it refuses an `lpma` that is not ours

if TYPE_CHECKING:
    from .cluster.cluster import Cluster as Cluster
    from .cluster.partitioned import (
        PartitionedSink as PartitionedSink,
        create_sharded as create_sharded,
    )
    from .cluster.repartition import Repartition as Repartition
    from .errors import (
        CheckpointError as CheckpointError,
        ClusterError as ClusterError,
        EngineLost as EngineLost,
        IngestError as IngestError,
        LockedError as LockedError,
        OffsetError as OffsetError,
        PastError as PastError,
        PipelineError as PipelineError,
        QueryError as QueryError,
        QueryRefused as QueryRefused,
        QueryTimeout as QueryTimeout,
        RecordError as RecordError,
        SourceError as SourceError,
    )
    from .feed.follower import follow as follow
    from .fields import Debezium as Debezium, Fields as Fields
    from .formats.changes import EdgeChanges as EdgeChanges, decode_changes as decode_changes
    from .formats.encode import (
        encode_expire as encode_expire,
        encode_query as encode_query,
        encode_row as encode_row,
        encode_updates as encode_updates,
    )
    from .formats.records import decode as decode, decode_record as decode_record
    from .formats.replies import (
        DeadLetter as DeadLetter,
        decode_dead_letter as decode_dead_letter,
        decode_reply as decode_reply,
    )
    from .formats.results import (
        Result as Result,
        decode_result as decode_result,
    )
    from .graphs import (
        read_csv as read_csv,
        read_json as read_json,
        read_parquet as read_parquet,
    )
    from .past import as_of as as_of
    from .pipeline.pipeline import Pipeline as Pipeline
    from .queries.base import Ask as Ask
    from .queries.client import Client as Client
    from .registry.client import SchemaRegistry as SchemaRegistry
    from .results.reading import read_results as read_results
    from .settings import (
        BatchStats as BatchStats,
        Settings as Settings,
        SettingsDict as SettingsDict,
    )
    from .sources import (
        FileSource as FileSource,
        Partition as Partition,
        Source as Source,
        SqliteLog as SqliteLog,
    )
    from .sources.files.edges import read_edges as read_edges
    from .sources.kafka.sink import KafkaSink as KafkaSink
    from .sources.kafka.source import KafkaSource as KafkaSource
    from .state.directory import has_checkpoint as has_checkpoint
    from .types import Record as Record, Reply as Reply

_NAMES = {  # by the module that has them; type checkers read the same above
    "cluster.cluster": "Cluster",
    "cluster.partitioned": "PartitionedSink create_sharded",
    "cluster.repartition": "Repartition",
    "errors": """
        CheckpointError ClusterError EngineLost IngestError LockedError OffsetError PastError
        PipelineError QueryError QueryRefused QueryTimeout RecordError SourceError""",
    "feed.follower": "follow",
    "fields": "Debezium Fields",
    "formats.changes": "EdgeChanges decode_changes",
    "formats.encode": "encode_expire encode_query encode_row encode_updates",
    "formats.records": "decode decode_record",
    "formats.replies": "DeadLetter decode_dead_letter decode_reply",
    "formats.results": "Result decode_result",
    "graphs": "read_csv read_json read_parquet",
    "past": "as_of",
    "pipeline.pipeline": "Pipeline",
    "queries.base": "Ask",
    "queries.client": "Client",
    "registry.client": "SchemaRegistry",
    "results.reading": "read_results",
    "settings": "BatchStats Settings SettingsDict",
    "sources": "FileSource Partition Source SqliteLog",
    "sources.files.edges": "read_edges",
    "sources.kafka.sink": "KafkaSink",
    "sources.kafka.source": "KafkaSource",
    "state.directory": "has_checkpoint",
    "types": "Record Reply",
}
_HOME = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_HOME.keys() - {"KafkaSink", "KafkaSource"})  # those need kafka-python


def __getattr__(name: str) -> Any:
    """A public name, or a module of this package, imported on first access."""
    if name in _HOME:
        value = getattr(import_module(f".{_HOME[name]}", __name__), name)
        globals()[name] = value
        return value
    try:
        return import_module(f".{name}", __name__)
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """What a user can use: not the modules that it is made of."""
    return sorted(_HOME)
