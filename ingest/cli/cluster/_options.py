"""The options of `lpma cluster run`, by subject."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from lpma.backend import check_device

from ... import settings
from ...types import QUERIES, UPDATES
from .._config import Table
from .._console import JsonOption, failing_in_one_line
from .._options import CHECKPOINTS, KAFKA_TABLE, KafkaConfig, given, kafka_settings
from .._typer import keyed, option

_shard_option = partial(option, panel="The shards")
_stream_option = partial(option, panel="The stream")


@dataclass(frozen=True)
class ShardOptions:
    """Where the shards live."""

    engine: Literal["local", "ray"] = _shard_option(
        "cluster.engine", "--engine", default="local",
        help="Threads of this process, or actors of Ray. (default: local)",
    )  # fmt: skip
    devices: list[str] | None = _shard_option(
        "cluster.devices", "--device",
        help="Of a shard: cpu, cuda or cuda:N; may be repeated: the shards take them in turn. With "
        "Ray, cuda is the GPU that a shard gets. (default: cpu)",
    )  # fmt: skip

    def arguments(self) -> dict[str, Any]:
        """The arguments of `Cluster`. Raises typer.BadParameter on what is no device."""
        for device in self.devices or ():
            if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
                raise typer.BadParameter("use cpu, cuda or cuda:N", param_hint="--device")
            if self.engine == "local":  # Ray's machines may have what this one lacks
                failing_in_one_line(check_device)(device)
        return {"engine": self.engine, "devices": self.devices}


@dataclass(frozen=True)
class GraphStreamOptions:
    """What the topics hold: as they were written."""

    directed: bool = _stream_option(
        "graph.directed", "--directed/--undirected", default=True,
        help="Whether edges have a direction, as for the sink that writes the topic. (default: "
        "directed)",
    )  # fmt: skip
    predecessors: bool = _stream_option(
        "graph.predecessors", "--predecessors", default=False,
        help="Read the edges turned round, too, from the topic TOPIC.in: then shards answer for "
        "in-neighbours.",
    )  # fmt: skip
    names: bool = _stream_option(
        "records.names", "--names",
        default=False, help="Vertices go by names: any integer, or text.",
    )  # fmt: skip
    topic: str = _stream_option(
        "cluster.topic", "--topic",
        default=UPDATES, help="The sharded topic of updates. (default: updates)",
    )  # fmt: skip
    queries: str = _stream_option(
        "cluster.query_topic", "--query-topic",
        default=QUERIES, help="That of queries. (default: queries)",
    )  # fmt: skip
    epoch_interval: float | None = _stream_option(
        "cluster.epoch_interval", "--epoch-interval", metavar="SECONDS", min=0.01,
        help="Take an epoch this often, too, not only when one is asked for.",
    )  # fmt: skip
    batch_size: int | None = _stream_option("batches.size", min=1, help="Operations per batch.")
    batch_interval: settings.BatchInterval | None = keyed("batches.interval")
    kafka: str | None = _stream_option(
        "kafka.servers", "--kafka",
        metavar="HOST:PORT,…", help="Read from these brokers instead of a SOURCE.",
    )  # fmt: skip
    kafka_config: KafkaConfig = keyed("kafka.config")
    kafka_settings: Table | None = keyed("kafka.settings", **KAFKA_TABLE)

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


@dataclass(frozen=True)
class KeepingOptions:
    """How checkpoints are taken and kept, and how the command speaks."""

    keep: str | None = option(
        "cluster.keep", "--keep", panel=CHECKPOINTS, metavar="PLACE",
        help="Copy each shard's checkpoints there: a path, or a URI as s3://bucket/folder. A shard "
        "whose directory is lost begins with them.",
    )  # fmt: skip
    checkpoint_interval: settings.CheckpointInterval | None = keyed("checkpoints.interval")
    checkpoint_operations: settings.CheckpointOperations | None = keyed("checkpoints.operations")
    log_json: bool = option(
        "run.log_json", "--log-json",
        default=False, help="Log what happens to stderr, as JSON lines.",
    )  # fmt: skip
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
