"""`lpma replica`: a copy of a graph that follows its edge feed."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from ..types import CHANGES
from ._config import configured
from ._console import JsonOption, Screen, report, supervised, telling_in_json
from ._options import KAFKA, Device, KafkaConfig, kafka_settings
from ._pipeline import Progress, run
from ._serve_options import SERVING, TLS_AND_NAMES, ServeOptions, context_of, serving
from ._targets import TargetError, graph_facts, is_log, open_log


@supervised
@configured(ServeOptions, rare=TLS_AND_NAMES)
def replica(
    options: ServeOptions,
    feed: Annotated[
        Path | None, typer.Argument(help="An embedded log, or a file written with --changes-file.")
    ] = None,
    kafka: Annotated[
        str | None,
        typer.Option(
            "--kafka",
            metavar="HOST:PORT,…",
            rich_help_panel=KAFKA,
            show_default=False,
            help="Follow a topic of these brokers instead.",
        ),
    ] = None,
    kafka_config: KafkaConfig = None,
    topic: Annotated[
        str | None,
        typer.Option(
            "--topic",
            metavar="TOPIC",
            rich_help_panel=KAFKA,
            show_default=False,
            help="The feed's topic, in Kafka or in the log. (default: changes)",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            "-c",
            show_default=False,
            help="The replica's own directory of checkpoints. If it holds one, it resumes.",
        ),
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="SNAPSHOT",
            show_default=False,
            help="What a new replica starts from: a saved store, or the writer's checkpoint "
            "directory. (default: an empty graph, if the feed starts with one)",
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Stop at the end of the feed, instead of waiting.")
    ] = False,
    save: Annotated[
        Path | None,
        typer.Option("--save", show_default=False, help="Save the store here at the end."),
    ] = None,
    serve: Annotated[
        str | None,
        typer.Option(
            "--serve",
            metavar="[HOST:]PORT",
            rich_help_panel=SERVING,
            show_default=False,
            help="Serve the replica over HTTP there, for reading; a port alone binds to loopback.",
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            metavar="PORT|HOST:PORT",
            show_default=False,
            help="Serve metrics for Prometheus there; a port alone binds to loopback.",
        ),
    ] = None,
    device: Device = "auto",
    as_json: JsonOption = False,
) -> None:
    """Run a read replica: a copy of a graph that follows its edge feed.

    `lpma ingest --changes-topic` publishes such a feed. The replica can be read like any stream,
    by `lpma query` for example; only the feed changes it. Ctrl-C stops it after a checkpoint."""
    from ..feed.follower import follow

    if (feed is None) == (kafka is None):
        raise typer.BadParameter("give a log, a file, or --kafka", param_hint="FEED")
    if checkpoint is None and save is None and serve is None:
        raise typer.BadParameter(
            "or --save or --serve: without any, nothing would remain", param_hint="--checkpoint"
        )
    if serve is None:
        options.refuse()
    access = None if serve is None else options.access(serve, "--serve")
    title = str(feed) if feed is not None else f"kafka://{kafka}"
    with telling_in_json(False), Screen() as screen, ExitStack() as opened:
        source: Any = _opened(feed, kafka, kafka_config, topic, opened)
        pipeline = follow(source, checkpoint, start=start, device=device)
        opened.enter_context(pipeline)
        graph: Any = pipeline.graph
        screen.say(f"a copy of {title} from version {graph.version:,} on")
        if metrics is not None:
            from ..metrics import MetricsServer

            opened.enter_context(MetricsServer(pipeline, metrics))
        if access is not None and serve is not None:
            context = context_of(pipeline, Path(title).name)
            service = opened.enter_context(serving(context, serve, access))
            screen.say(f"served at {service.url}")
        progress = Progress(pipeline, screen)
        operations = run(pipeline, None, not once, progress, progress.look)
        if save is not None:
            graph.save(save)
        document = {
            "feed": title, "topic": topic or CHANGES, "operations": operations,
            "checkpoint": None if checkpoint is None else str(checkpoint),
            "store": None if save is None else str(save), "version": graph.version,
            **graph_facts(graph),
        }  # fmt: skip
    report(as_json, document, f"followed {title}")


def _opened(
    feed: Path | None,
    kafka: str | None,
    config: Path | None,
    topic: str | None,
    opened: ExitStack,
) -> Any:
    """The log that holds the feed, closed with `opened`, or the path of its file."""
    if kafka is not None:
        from ..sources.kafka.source import KafkaSource

        settings = kafka_settings(config, None)
        name = topic or CHANGES
        source = KafkaSource(kafka, [name], settings=settings, partitions={name: [0]})
        return opened.enter_context(source)
    if config is not None:
        raise typer.BadParameter("--kafka-config needs it", param_hint="--kafka")
    assert feed is not None
    if not feed.exists():
        raise TargetError(f"{feed}: no such file: `lpma ingest --changes-topic` makes a feed")
    if is_log(feed):
        return open_log(feed, [topic or CHANGES], opened)
    if topic is not None:
        raise typer.BadParameter("a file has no topics", param_hint="--topic")
    return feed
