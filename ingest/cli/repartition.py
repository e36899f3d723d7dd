"""`lpma repartition`: a stream keyed otherwise, written to the partitions of its owners."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..sources.files.left_out import LeftOut
from ..types import QUERIES, UPDATES
from ._console import JsonOption, Screen, failing_in_one_line, report, telling_outages
from ._file_options import DEBEZIUM, FileOptions
from ._ingest_report import noting
from ._options import (
    Follow,
    KafkaConfig,
    SchemaRegistryConfig,
    SchemaRegistryUrl,
    given,
    kafka_settings,
    schema_registry,
)
from ._origin import Origin, check_holds_edges
from ._pipeline import on_signals
from ._targets import KAFKA, TargetError, is_log
from ._typer import option, sharing

if TYPE_CHECKING:
    from ..cluster.repartition import Repartition

_option = partial(option, panel="What is written")


@dataclass(frozen=True)
class ShardedOptions:
    """Where the stream goes, and for which cluster."""

    to: str | None = _option(
        "--to", metavar="LOG|kafka://HOST:PORT,…",
        help="Where the topic is: an embedded log, which is made, or a Kafka. (default: the log or "
        "the Kafka that is read)",
    )  # fmt: skip
    partitions: int | None = _option(
        "--partitions", min=1,
        help="Of the topics, which are made: a multiple of the shards. (default: those that the "
        "topic has)",
    )  # fmt: skip
    shards: int | None = _option(
        "--shards", min=1, help="Of the cluster that reads it. (default: one a partition)"
    )
    directed: bool = _option(
        "--directed/--undirected", default=True,
        help="Whether edges have a direction; if not, each is written for both ends. (default: "
        "directed)",
    )  # fmt: skip
    predecessors: bool = _option(
        "--predecessors", default=False,
        help="Write edges to TOPIC.in, too, turned round: who asks for predecessors needs it.",
    )  # fmt: skip
    queries: str = _option(
        "--queries", default=QUERIES, help="The query topic, made beside it. (default: queries)"
    )
    epoch_interval: float | None = _option(
        "--epoch-interval", metavar="SECONDS", min=0.001,
        help="End an epoch this often. A cluster whose edges are written twice has no others. "
        "(default: never)",
    )  # fmt: skip


@dataclass(frozen=True)
class ReadOptions(FileOptions):
    """How the records of a log, or the rows of a file, are read."""

    kafka_config: KafkaConfig = None
    schema_registry: SchemaRegistryUrl = None
    registry_config: SchemaRegistryConfig = None


Source = Annotated[
    str, typer.Argument(help="An edge file, an embedded log, or kafka://HOST:PORT,…")
]
Topic = Annotated[str, typer.Argument(help="The topic to write.")]
CheckpointOption = Annotated[
    Path,
    typer.Option(
        "--checkpoint", "-c",
        help="A directory for how far it has come; it goes on from there.",
    ),
]  # fmt: skip
FromTopics = Annotated[
    list[str] | None,
    typer.Option(
        "--from-topic", show_default=False,
        help="A topic of the log to read; may be repeated. (default: updates)",
    ),
]  # fmt: skip


@failing_in_one_line
@sharing(ShardedOptions)
@sharing(ReadOptions)
def repartition(
    sharded: ShardedOptions,
    reading: ReadOptions,
    source: Source,
    topic: Topic,
    checkpoint: CheckpointOption,
    from_topic: FromTopics = None,
    follow: Follow = False,
    as_json: JsonOption = False,
) -> None:
    """Write a stream to the partitions of its vertices' owners, as a cluster reads it.

    Each update counts once, whenever this command is stopped or killed: run again with the same
    checkpoint, it goes on, and what it then writes a second time bears the same number, by which a
    cluster drops it. So does an update that its producer sent twice. What is no update becomes a
    dead letter, queries stay where they are, and both are counted. Ctrl-C stops it after the
    current chunk.

    lpma repartition own.csv updates --to log --partitions 4 -c progress"""
    from ..cluster.repartition import Repartition

    with telling_outages(), Screen() as screen, ExitStack() as opened:
        kafka = kafka_settings(reading.kafka_config, None)
        stream, settings = _source(source, from_topic, sharded, reading, kafka, opened)
        left_out = LeftOut()
        if stream.bounded:
            for said in (str(stream.reading), *stream.reading.notes(sharded.directed)):
                screen.say(said)
            if stream.reading.bipartite:
                which = "" if stream.left is None else f", here the first {stream.left:,},"
                screen.say(f"which vertices are the left side{which} is not kept by a cluster")
            check_holds_edges(stream)
            settings["dead_letters"] = noting(stream, left_out)
        sink = _sink(sharded.to or source, kafka, opened)
        task = opened.enter_context(
            Repartition(
                stream, sink, topic, checkpoint, partitions=sharded.partitions,
                shards=sharded.shards, directed=sharded.directed,
                predecessors=sharded.predecessors, queries=sharded.queries,
                epoch_interval_s=sharded.epoch_interval, **settings,
            )
        )  # fmt: skip
        if task.resumed:
            screen.say(f"resumed at {task.done.records:,} records")
        before = task.done.operations
        figures = _run(task, follow, screen)
        if left_out.count:
            screen.say(f"{source}: {left_out}")
    document = {
        "source": source,
        "target": sharded.to or source,
        "topic": topic,
        "partitions": task.partitions,
        "resumed": task.resumed,
        **figures,
    }
    seconds = figures["seconds"]
    rate = (figures["operations"] - before) / seconds if seconds else None
    report(as_json, document, f"repartitioned {source}", {**document, "operations / s": rate})


def _run(task: Repartition, follow: bool, screen: Screen) -> dict[str, Any]:
    """Do the work until its end or a signal; what was done since its beginning, whether it was
    stopped, and the seconds of this run."""
    stop, started = threading.Event(), time.perf_counter()
    with on_signals(lambda *_: stop.set()):
        done = task.run(
            follow=follow,
            stop=stop,
            on_chunk=lambda done: screen.progress("repartition", done.operations, None),
        )
    seconds = time.perf_counter() - started
    return {**asdict(done), "stopped": stop.is_set(), "seconds": round(seconds, 4)}


def _source(
    source: str,
    from_topic: list[str] | None,
    sharded: ShardedOptions,
    reading: ReadOptions,
    kafka: dict[str, Any],
    opened: ExitStack,
) -> tuple[Any, dict[str, Any]]:
    """What is read, closed with `opened`, and how its records are."""
    if source.startswith(KAFKA) or is_log(Path(source)):
        if (said := reading.said(of_fields=False)) is not None:
            raise typer.BadParameter(f"a log has no {said}", param_hint="SOURCE")
        if reading.format == DEBEZIUM:
            raise typer.BadParameter(
                "changes of a table are repartitioned from Python, by ingest.Repartition(…, "
                "records=ingest.Debezium(…))",
                param_hint="--format debezium",
            )
        stream = _log(source, from_topic or [UPDATES], kafka, opened)
        registry = schema_registry(reading.schema_registry, reading.registry_config)
        settings = given({"schema_registry": registry})
        return stream, {
            "names": False, "records": "msgpack", **reading.of_records(), **settings
        }  # fmt: skip
    if not Path(source).exists():
        raise TargetError(f"{source}: no such file: name an edge file, an embedded log or a Kafka")
    if from_topic is not None:
        raise typer.BadParameter("a file has no topics", param_hint="--from-topic")
    if reading.schema_registry is not None or reading.registry_config is not None:
        raise typer.BadParameter("a file has no schemas", param_hint="--schema-registry")
    if sharded.to is None:
        raise typer.BadParameter("a file cannot be written to: name a log", param_hint="--to")
    origin = Origin(Path(source), None, None, None, reading, None)
    json = reading.fields() if origin.has_records else None
    stream = origin.open(sharded.directed, opened, reading.by_name, json)
    return stream, {"names": stream.names}


def _log(source: str, topics: list[str], kafka: dict[str, Any], opened: ExitStack) -> Any:
    """The log or the Kafka that is read. kafka: its settings."""
    if not source.startswith(KAFKA):
        from ..sources import SqliteLog

        return opened.enter_context(SqliteLog(source, topics))
    from ..sources.kafka.source import KafkaSource

    address = source.removeprefix(KAFKA)
    return opened.enter_context(KafkaSource(address, topics, settings=kafka))


def _sink(target: str, kafka: dict[str, Any], opened: ExitStack) -> Any:
    """The log or the Kafka that is written."""
    if not target.startswith(KAFKA):
        from ..sources import SqliteLog

        if Path(target).exists() and not is_log(Path(target)):
            raise TargetError(f"{target}: is no embedded log: name another, which is made")
        return opened.enter_context(SqliteLog(target))
    from ..sources.kafka.sink import KafkaSink

    address = target.removeprefix(KAFKA)
    return opened.enter_context(KafkaSink(address, settings=kafka))
