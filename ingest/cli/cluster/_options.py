"""The options of `lpma cluster run`, by subject."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from lpma.backend import check_device

from ...types import QUERIES, UPDATES
from .._config import Table, in_file
from .._console import JsonOption, failing_in_one_line
from .._options import (
    KAFKA_TABLE,
    CheckpointInterval,
    CheckpointOperations,
    KafkaConfig,
    KafkaServers,
    checkpoint_option,
    checkpoint_settings,
    given,
    kafka_settings,
)

SHARDS = "The shards"
STREAM = "The stream"


class EngineName(StrEnum):
    local = "local"
    ray = "ray"


def _option(panel: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, show_default=False, **more)


@in_file(engine="cluster.engine", devices="cluster.devices")
@dataclass(frozen=True)
class ShardOptions:
    """Where the shards live."""

    engine: Annotated[
        EngineName,
        _option(SHARDS, "--engine", help="Threads of this process, or actors of Ray. "
                "(default: local)"),
    ] = EngineName.local  # fmt: skip
    devices: Annotated[
        list[str] | None,
        _option(
            SHARDS,
            "--device",
            help="Of a shard: cpu, cuda or cuda:N; may be repeated: the shards take them in turn. "
            "With Ray, cuda is the GPU that a shard gets. (default: cpu)",
        ),
    ] = None

    def arguments(self) -> dict[str, Any]:
        """The arguments of `Cluster`. Raises typer.BadParameter on what is no device."""
        for device in self.devices or ():
            if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
                raise typer.BadParameter("use cpu, cuda or cuda:N", param_hint="--device")
            if self.engine is EngineName.local:  # Ray's machines may have what this one lacks
                failing_in_one_line(check_device)(device)
        return {"engine": self.engine.value, "devices": self.devices}


@in_file(
    directed="graph.directed", predecessors="graph.predecessors", names="records.names",
    topic="cluster.topic", queries="cluster.query_topic", epoch_interval="cluster.epoch_interval",
    batch_size="batches.size", batch_interval="batches.interval", kafka="kafka.servers",
    kafka_config="kafka.config", kafka_settings="kafka.settings",
)  # fmt: skip
@dataclass(frozen=True)
class GraphStreamOptions:
    """What the topics hold: as they were written."""

    directed: Annotated[
        bool,
        _option(
            STREAM,
            "--directed/--undirected",
            help="Whether edges have a direction, as for the sink that writes the topic. "
            "(default: directed)",
        ),
    ] = True
    predecessors: Annotated[
        bool,
        _option(
            STREAM,
            "--predecessors",
            help="Read the edges turned round, too, from the topic TOPIC.in: then shards answer "
            "for in-neighbours.",
        ),
    ] = False
    names: Annotated[
        bool, _option(STREAM, "--names", help="Vertices go by names: any integer, or text.")
    ] = False
    topic: Annotated[
        str, _option(STREAM, "--topic", help="The sharded topic of updates. (default: updates)")
    ] = UPDATES
    queries: Annotated[
        str, _option(STREAM, "--query-topic", help="That of queries. (default: queries)")
    ] = QUERIES
    epoch_interval: Annotated[
        float | None,
        _option(
            STREAM,
            "--epoch-interval",
            metavar="SECONDS",
            min=0.01,
            help="Take an epoch this often, too, not only when one is asked for.",
        ),
    ] = None
    batch_size: Annotated[
        int | None, _option(STREAM, "--batch-size", min=1, help="Operations per batch.")
    ] = None
    batch_interval: Annotated[
        float | None,
        _option(STREAM, "--batch-interval", min=0.0, help="Close a batch after so many seconds."),
    ] = None
    kafka: KafkaServers = None
    kafka_config: KafkaConfig = None
    kafka_settings: Table | None = field(default=None, metadata=KAFKA_TABLE)

    def source(self, given: str | None) -> str | None:
        """The log to read, of which SOURCE is `given`. Raises typer.BadParameter on two."""
        if self.kafka is None:
            return given
        if given is not None:
            raise typer.BadParameter("say kafka.servers or a source, not both", param_hint="SOURCE")
        return f"kafka://{self.kafka}"

    def arguments(self) -> dict[str, Any]:
        """The arguments of `Cluster`."""
        return {
            "directed": self.directed,
            "predecessors": self.predecessors,
            "names": self.names,
            "topic": self.topic,
            "queries": self.queries,
            "epoch_interval_s": self.epoch_interval,
            "kafka_settings": kafka_settings(self.kafka_config, self.kafka_settings) or None,
            **given({"batch_size": self.batch_size, "batch_interval": self.batch_interval}),
        }


@in_file(
    keep="cluster.keep", checkpoint_interval="checkpoints.interval",
    checkpoint_operations="checkpoints.operations", log_json="run.log_json",
)  # fmt: skip
@dataclass(frozen=True)
class KeepingOptions:
    """How checkpoints are taken and kept, and how the command speaks."""

    keep: Annotated[
        str | None,
        checkpoint_option(
            "--keep",
            metavar="PLACE",
            help="Copy each shard's checkpoints there: a path, or a URI as s3://bucket/folder. "
            "A shard whose directory is lost begins with them.",
        ),
    ] = None
    checkpoint_interval: CheckpointInterval = None
    checkpoint_operations: CheckpointOperations = None
    log_json: Annotated[
        bool, typer.Option("--log-json", help="Log what happens to stderr, as JSON lines.")
    ] = False
    as_json: JsonOption = False

    def arguments(self) -> dict[str, Any]:
        """The arguments of `Cluster`."""
        often = checkpoint_settings(self.checkpoint_interval, self.checkpoint_operations)
        return {"keep": self.keep, **often}


CheckpointOption = Annotated[
    Path | None,
    checkpoint_option(
        "--checkpoint", "-c",
        help="The directory of all shards, and of the socket that other commands reach it by. The "
        "stream resumes if it holds checkpoints.",
    ),
]  # fmt: skip
