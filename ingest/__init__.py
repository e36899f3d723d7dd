"""Streams of graph operations: records, sources, and the pipeline that applies them to a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import installation as installation  # first: it refuses an `lpma` that is not ours
from .cluster.partitioned import PartitionedSink, create_sharded
from .cluster.repartition import Repartition, Repartitioned
from .errors import (
    CheckpointError,
    ClusterClosed,
    ClusterError,
    EngineLost,
    EpochsUsedUp,
    IdentityError,
    IngestError,
    JournalError,
    LockedError,
    OffsetError,
    PastError,
    PipelineError,
    QueryError,
    QueryRefused,
    QueryTimeout,
    RecordError,
    RewrittenError,
    SnapshotRefused,
    SourceError,
    UnknownSetting,
    VertexLimitError,
)
from .formats.encode import encode_expire, encode_query, encode_row, encode_updates
from .formats.json import JsonFields
from .formats.records import decode, decode_record
from .formats.replies import (
    DeadLetter,
    decode_dead_letter,
    decode_reply,
    encode_dead_letter,
    encode_reply,
)
from .formats.results import Result, decode_result, encode_result
from .past import as_of
from .pipeline import Pipeline
from .queries.base import Ask
from .queries.client import Client
from .results.reading import read_results
from .settings import BatchStats, CheckpointFigures, Settings, SettingsDict
from .sources import (
    DEAD_LETTERS,
    QUERIES,
    REPLIES,
    UPDATES,
    FileSource,
    Identity,
    Partition,
    Polled,
    Rejected,
    Source,
    SqliteLog,
)
from .sources.files.edges import EdgeFile, read_edges
from .state.directory import has_checkpoint
from .types import RESULTS, Query, Record, Reply

if TYPE_CHECKING:
    from .cluster.cluster import Cluster as Cluster
    from .sources.kafka.sink import KafkaSink as KafkaSink
    from .sources.kafka.source import KafkaSource as KafkaSource

__all__ = [
    "DEAD_LETTERS",
    "QUERIES",
    "REPLIES",
    "RESULTS",
    "UPDATES",
    "Ask",
    "BatchStats",
    "CheckpointError",
    "CheckpointFigures",
    "Client",
    "Cluster",
    "ClusterClosed",
    "ClusterError",
    "DeadLetter",
    "EdgeFile",
    "EngineLost",
    "EpochsUsedUp",
    "FileSource",
    "Identity",
    "IdentityError",
    "IngestError",
    "JournalError",
    "JsonFields",
    "LockedError",
    "OffsetError",
    "Partition",
    "PartitionedSink",
    "PastError",
    "Pipeline",
    "PipelineError",
    "Polled",
    "Query",
    "QueryError",
    "QueryRefused",
    "QueryTimeout",
    "Record",
    "RecordError",
    "Rejected",
    "Repartition",
    "Repartitioned",
    "Reply",
    "Result",
    "RewrittenError",
    "Settings",
    "SettingsDict",
    "SnapshotRefused",
    "Source",
    "SourceError",
    "SqliteLog",
    "UnknownSetting",
    "VertexLimitError",
    "as_of",
    "create_sharded",
    "decode",
    "decode_dead_letter",
    "decode_record",
    "decode_reply",
    "decode_result",
    "encode_dead_letter",
    "encode_expire",
    "encode_query",
    "encode_reply",
    "encode_result",
    "encode_row",
    "encode_updates",
    "has_checkpoint",
    "read_edges",
    "read_results",
]


def __getattr__(name: str) -> Any:
    """Cluster, KafkaSource and KafkaSink, imported on first access: most have no need of them. The
    last two need kafka-python, and raise SourceError without it."""
    if name == "Cluster":
        from .cluster.cluster import Cluster

        return Cluster
    if name == "KafkaSource":
        from .sources.kafka.source import KafkaSource

        return KafkaSource
    if name == "KafkaSink":
        from .sources.kafka.sink import KafkaSink

        return KafkaSink
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
