"""The options of `lpma cluster run`, by subject."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from lpma.backend import check_device

from ... import settings
from ...types import QUERIES, UPDATES
from .._config import Table, in_file
from .._console import JsonOption, failing_in_one_line
from .._options import CHECKPOINTS, KAFKA_TABLE, KafkaConfig, given, kafka_settings
from .._typer import option

_shard_option = partial(option, panel="The shards")
_stream_option = partial(option, panel="The stream")


@in_file(engine="cluster.engine", devices="cluster.devices")
@dataclass(frozen=True)
class ShardOptions:
    """Where the shards live."""

    engine: Literal["local", "ray"] = _shard_option(
        "--engine", default="local",
        help="Threads of this process, or actors of Ray. (default: local)",
    )  # fmt: skip
    devices: list[str] | None = _shard_option(
        "--device",
        help="Of a shard: cpu, cuda or cuda:N; may be repeated: the shards take them in turn. With "
        "Ray, cuda is the GPU that a shard gets. (default: cpu)",
    )

    def arguments(self) -> dict[str, Any]:
        """The arguments of `Cluster`. Raises typer.BadParameter on what is no device."""
        for device in self.devices or ():
            if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
                raise typer.BadParameter("use cpu, cuda or cuda:N", param_hint="--device")
            if self.engine == "local":  # Ray's machines may have what this one lacks
                failing_in_one_line(check_device)(device)
        return {"engine": self.engine, "devices": self.devices}


@in_file(
    directed="graph.directed", predecessors="graph.predecessors", names="records.names",
    topic="cluster.topic", queries="cluster.query_topic", epoch_interval="cluster.epoch_interval",
    batch_size="batches.size", batch_interval="batches.interval", kafka="kafka.servers",
    kafka_config="kafka.config", kafka_settings="kafka.settings",
)  # fmt: skip
@dataclass(frozen=True)
class GraphStreamOptions:
    """What the topics hold: as they were written."""

    directed: bool = _stream_option(
        "--directed/--undirected", default=True,
        help="Whether edges have a direction, as for the sink that writes the topic. (default: "
        "directed)",
    )  # fmt: skip
    predecessors: bool = _stream_option(
        "--predecessors", default=False,
        help="Read the edges turned round, too, from the topic TOPIC.in: then shards answer for "
        "in-neighbours.",
    )  # fmt: skip
    names: bool = _stream_option(
        "--names", default=False, help="Vertices go by names: any integer, or text."
    )
    topic: str = _stream_option(
        "--topic", default=UPDATES, help="The sharded topic of updates. (default: updates)"
    )
    queries: str = _stream_option(
        "--query-topic", default=QUERIES, help="That of queries. (default: queries)"
    )
    epoch_interval: float | None = _stream_option(
        "--epoch-interval", metavar="SECONDS", min=0.01,
        help="Take an epoch this often, too, not only when one is asked for.",
    )  # fmt: skip
    batch_size: int | None = _stream_option("--batch-size", min=1, help="Operations per batch.")
    batch_interval: settings.BatchInterval | None = None
    kafka: str | None = _stream_option(
        "--kafka", metavar="HOST:PORT,…", help="Read from these brokers instead of a SOURCE."
    )
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

    keep: str | None = option(
        "--keep", panel=CHECKPOINTS, metavar="PLACE",
        help="Copy each shard's checkpoints there: a path, or a URI as s3://bucket/folder. A shard "
        "whose directory is lost begins with them.",
    )  # fmt: skip
    checkpoint_interval: settings.CheckpointInterval | None = None
    checkpoint_operations: settings.CheckpointOperations | None = None
    log_json: bool = option(
        "--log-json", default=False, help="Log what happens to stderr, as JSON lines."
    )
    as_json: JsonOption = False

    def arguments(self) -> dict[str, Any]:
        """The arguments of `Cluster`."""
        often = ("checkpoint_interval", "checkpoint_operations")
        return {"keep": self.keep, **given({name: getattr(self, name) for name in often})}


CheckpointOption = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint", "-c", rich_help_panel=CHECKPOINTS, show_default=False,
        help="The directory of all shards, and of the socket that other commands reach it by. The "
        "stream resumes if it holds checkpoints.",
    ),
]  # fmt: skip
