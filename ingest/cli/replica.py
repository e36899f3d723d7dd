"""`lpma replica`: a copy of a graph that follows its edge feed."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import settings
from ..types import CHANGES
from ._config import configured
from ._console import JsonOption, Screen, failing_in_one_line, report, telling_in_json
from ._options import KAFKA, Device, KafkaConfig, Metrics, Save, given, kafka_settings
from ._pipeline import Progress, run
from ._serve_options import SERVING, TLS_AND_NAMES, ServeOptions, context_of, serving
from ._targets import TargetError, graph_facts, is_log, open_log
from ._typer import keyed, option

_kafka_option = partial(option, panel=KAFKA)


@dataclass(frozen=True)
class ReplicaOptions:
    """Where the feed is, and where the replica of its graph goes."""

    kafka: str | None = _kafka_option(
        "--kafka", metavar="HOST:PORT,…", help="Follow a topic of these brokers instead."
    )
    kafka_config: KafkaConfig = None
    topic: str | None = _kafka_option(
        "--topic", metavar="TOPIC",
        help="The feed's topic, in Kafka or in the log. (default: changes)",
    )  # fmt: skip
    checkpoint: Path | None = option(
        "--checkpoint", "-c",
        help="The replica's own directory of checkpoints. If it holds one, it resumes.",
    )  # fmt: skip
    start: Path | None = option(
        "--from", metavar="SNAPSHOT",
        help="What a new replica starts from: a saved store, or the writer's checkpoint "
        "directory. (default: an empty graph, if the feed starts with one)",
    )  # fmt: skip
    once: bool = option(
        "--once", default=False, help="Stop at the end of the feed, instead of waiting."
    )
    save: Save = None
    serve: str | None = option(
        "--serve", metavar="[HOST:]PORT", panel=SERVING,
        help="Serve the replica over HTTP there, for reading; a port alone binds to loopback.",
    )  # fmt: skip
    checkpoint_interval: settings.CheckpointInterval | None = keyed("checkpoints.interval")
    checkpoint_operations: settings.CheckpointOperations | None = keyed("checkpoints.operations")
    keep_checkpoints: settings.KeepCheckpoints | None = keyed("checkpoints.keep")
    metrics: Metrics = None
    device: Device = "auto"
    as_json: JsonOption = False

    def check(self, feed: Path | None) -> None:
        """Raise typer.BadParameter unless there is one feed, and something remains of it."""
        if (feed is None) == (self.kafka is None):
            raise typer.BadParameter("give a log, a file, or --kafka", param_hint="FEED")
        if self.checkpoint is None and self.save is None and self.serve is None:
            raise typer.BadParameter(
                "or --save or --serve: without any, nothing would remain",
                param_hint="--checkpoint",
            )
        if self.checkpoint is None and self.settings():
            raise typer.BadParameter(
                "needed by checkpoints.interval, checkpoints.operations and checkpoints.keep",
                param_hint="--checkpoint",
            )

    def settings(self) -> dict[str, Any]:
        """How checkpoints are taken and kept, as arguments of `follow`."""
        return given({
            "checkpoint_interval": self.checkpoint_interval,
            "checkpoint_operations": self.checkpoint_operations,
            "keep_checkpoints": self.keep_checkpoints,
        })  # fmt: skip

    def open(self, feed: Path | None, opened: ExitStack) -> Any:
        """The log that holds the feed, closed with `opened`, or the path of its file."""
        name = self.topic or CHANGES
        if self.kafka is not None:
            from ..sources.kafka.source import KafkaSource

            settings = kafka_settings(self.kafka_config, None)
            source = KafkaSource(self.kafka, [name], settings=settings, partitions={name: [0]})
            return opened.enter_context(source)
        if self.kafka_config is not None:
            raise typer.BadParameter("--kafka-config needs it", param_hint="--kafka")
        assert feed is not None
        if not feed.exists():
            raise TargetError(f"{feed}: no such file: `lpma ingest --changes-topic` makes a feed")
        if is_log(feed):
            return open_log(feed, [name], opened)
        if self.topic is not None:
            raise typer.BadParameter("a file has no topics", param_hint="--topic")
        return feed


@failing_in_one_line
@configured(ServeOptions, ReplicaOptions, rare=TLS_AND_NAMES)
def replica(
    options: ReplicaOptions,
    serve_options: ServeOptions,
    feed: Annotated[
        Path | None, typer.Argument(help="An embedded log, or a file written with --changes-file.")
    ] = None,
) -> None:
    """Run a read replica: a copy of a graph that follows its edge feed.

    `lpma ingest --changes-topic` publishes such a feed. The replica can be read like any stream,
    by `lpma query` for example; only the feed changes it. Ctrl-C stops it after a checkpoint."""
    from ..feed.follower import follow

    options.check(feed)
    checkpoint, save = options.checkpoint, options.save
    access = None
    if options.serve is None:
        serve_options.refuse()
    else:
        access = serve_options.access(options.serve, "--serve")
    title = str(feed) if feed is not None else f"kafka://{options.kafka}"
    with telling_in_json(False), Screen() as screen, ExitStack() as opened:
        source = options.open(feed, opened)
        pipeline = follow(
            source, checkpoint, start=options.start, device=options.device, **options.settings()
        )
        opened.enter_context(pipeline)
        graph: Any = pipeline.graph
        screen.say(f"a copy of {title} from version {graph.version:,} on")
        if options.metrics is not None:
            from ..metrics import MetricsServer

            opened.enter_context(MetricsServer(pipeline, options.metrics))
        if access is not None and options.serve is not None:
            context = context_of(pipeline, Path(title).name)
            service = opened.enter_context(serving(context, options.serve, access))
            screen.say(f"served at {service.url}")
        progress = Progress(pipeline, screen)
        operations = run(pipeline, None, not options.once, progress, progress.look)
        if save is not None:
            graph.save(save)
        document = {
            "feed": title, "topic": options.topic or CHANGES, "operations": operations,
            "checkpoint": None if checkpoint is None else str(checkpoint),
            "store": None if save is None else str(save), "version": graph.version,
            **graph_facts(graph),
        }  # fmt: skip
    report(options.as_json, document, f"followed {title}")
