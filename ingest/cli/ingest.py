"""`lpma ingest`: apply a stream to a graph."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import PipelineError
from ..events import log_event
from ..sources.files.left_out import LeftOut
from ..types import QUERIES
from . import _dry_run
from ._alerting import shared_out, tracked
from ._config import configured
from ._console import (
    Screen,
    emit,
    failing_in_one_line,
    show,
    telling_in_json,
)
from ._ingest_options import (
    BatchSettings,
    CheckpointOptions,
    EndpointOptions,
    RecordOptions,
    StreamOptions,
)
from ._ingest_report import (
    figures_of,
    file_facts,
    noting,
    readable,
    tell_unit,
    tell_untimed,
)
from ._options import RARE_OF_GRAPH, GraphOptions
from ._origin import Origin, begin_log, check_holds_edges
from ._pipeline import Progress, list_gaps, open_pipeline, reading_kept, run
from ._rejected import explaining_bad, tell_rejected
from ._results_place import check_results_place
from ._serve_options import TLS_AND_NAMES, ServeOptions, context_of, serving

if TYPE_CHECKING:
    from ..pipeline.pipeline import Pipeline
    from ..service.security import Access
    from ..settings import BatchStats


# Options of other commands, or of earlier releases, that are keys of the file here.
RARE = (
    *RARE_OF_GRAPH, "header", "separator", "columns", "ids", "default_weight",
    "default_kind", "late", "max_lateness", "window_time", "reply_topics", "dead_letter_topic",
    "checkpoint_interval", "checkpoint_operations", "keep_checkpoints", "statistics", "metrics",
    "updates_topic", "batch_interval", "rate", *TLS_AND_NAMES,
)  # fmt: skip


@failing_in_one_line
@configured(
    GraphOptions, RecordOptions, EndpointOptions, CheckpointOptions, StreamOptions, ServeOptions,
    BatchSettings, rare=RARE, source="source.path",
)  # fmt: skip
def ingest(
    options: StreamOptions,
    serve_options: ServeOptions,
    batches: BatchSettings,
    checkpointing: CheckpointOptions,
    endpoints: EndpointOptions,
    record_options: RecordOptions,
    graph_options: GraphOptions,
    source: Annotated[
        Path | None, typer.Argument(help="An edge file, or an embedded log (SqliteLog).")
    ] = None,
    *,
    remember: Callable[[], None],
) -> None:
    """Ingest a stream in batches, answering its queries, with checkpoints and resume.

    With --checkpoint alone, a stream goes on as it was last run. Ctrl-C stops it after the current
    batch, with a last checkpoint."""
    asked = graph_options.arguments(record_options.weight_column)
    reading = record_options.settings()
    if options.serve is not None and options.follow:
        begin_log(source, checkpointing.checkpoint)
    origin, starts = endpoints.origin(source, record_options, options.rate), endpoints.starts()
    intervals = checkpointing.settings()
    _check(options, checkpointing, endpoints, origin, graph_options.device)
    track, published, watched = _asked_of_figures(options, endpoints)
    if options.serve is None:
        serve_options.refuse()
    quiet = options.log_json
    with telling_in_json(quiet), Screen(quiet=quiet) as screen, ExitStack() as opened:
        access = None if options.serve is None else serve_options.access(options.serve)
        kept = None if checkpointing.checkpoint is None else reading_kept(checkpointing.checkpoint)
        json = reading.get("records", kept.records if kept else None)
        json = None if json == "msgpack" else json
        names = reading.get("names", kept.names if kept else None)
        _check_save(options)
        directed = asked.get("directed", True)
        stream = origin.open(directed, opened, names, json)
        if names is None:
            reading["names"] = stream.names  # a log's vertices go by ids
        if not origin.is_log:
            for said in (str(stream.reading), *stream.reading.notes(directed)):
                screen.say(said)
            tell_unit(stream.reading, record_options.window, reading.get("window"), screen)
        left_out = LeftOut()
        settings = {**intervals, **reading, **batches.settings()}
        if origin.is_log:
            settings["stop_if_first_bad"] = options.first_records
        elif kept is None:
            check_holds_edges(stream, options.first_records)
        if options.dry_run:
            document = _dry_run.count(
                origin, stream, options, checkpointing, starts, asked, settings
            )
        else:
            settings |= endpoints.outputs(stream)
            if not origin.is_log:
                settings["dead_letters"] = noting(stream, left_out)
            pipeline, resumed = open_pipeline(
                stream, checkpointing, starts, asked, graph_options.device,
                batch_size=options.batch_size, batch_interval=options.batch_interval,
                track=track, alerts=published, **settings,
            )  # fmt: skip
            opened.enter_context(pipeline)
            if access is not None:
                _serve(pipeline, origin, options, watched, access, screen, opened)
            document = _ingested(
                pipeline, resumed, origin, options, checkpointing, screen, opened, remember
            )
        if not origin.is_log:
            document |= file_facts(stream, left_out, screen, options.dry_run)
    if options.as_json:
        emit(document)
    else:
        show(
            f"{'counted' if options.dry_run else 'ingested'} {origin}",
            readable(document, options.verbose),
        )


def _check(
    options: StreamOptions,
    checkpointing: CheckpointOptions,
    endpoints: EndpointOptions,
    origin: Origin,
    device: str,
) -> None:
    """Refuse options that do not go together, and files that would overwrite what is read."""
    from lpma.backend import check_device
    from lpma.file.atomic import check_apart

    check_device(device)
    endpoints.check(origin)
    save = options.save
    if checkpointing.checkpoint is None and save is None and not options.dry_run:
        raise typer.BadParameter(
            "or --save: without either, nothing would remain", param_hint="--checkpoint"
        )
    if options.follow and origin.path is not None and origin.path.exists() and not origin.is_log:
        raise typer.BadParameter(
            "a file of edges is read to its end; a log and topics are followed",
            param_hint="--follow",
        )
    if origin.path is not None:
        for written in (save, options.statistics):
            if written is not None:
                check_apart(written, origin.path)
    if options.updates_topic is not None:
        _check_updates_topic(options.updates_topic, options, origin)
    check_results_place(options, checkpointing, endpoints, origin.path)
    if options.metrics is not None:
        _check_address(options.metrics)


def _check_updates_topic(topic: str, options: StreamOptions, origin: Origin) -> None:
    """Refuse a topic that nothing is written to, or whose records would not be read."""
    if options.serve is None:
        why = "updates are posted to a service: it needs --serve"
    elif not origin.is_log:
        why = "a file is not written to: serve a log"
    elif topic not in (read := [name for name in origin.read if name != QUERIES]):
        why = f"{topic} is not read for updates: name one of {', '.join(read)}"
    else:
        return
    raise typer.BadParameter(why, param_hint="serve.updates_topic")


def _asked_of_figures(
    options: StreamOptions, endpoints: EndpointOptions
) -> tuple[tuple[str, ...], list[str], list[str]]:
    """The figures to track, and the rules for the results and for watchers. Refuses what is not
    known, before anything is opened."""
    track, publishes = tracked(options.track), endpoints.publishes
    if publishes and not track:
        raise typer.BadParameter(
            "results are of tracked figures: name some, as core,triangles", param_hint="--track"
        )
    serves = options.serve is not None
    return track, *shared_out(options.alerts or (), track, publishes=publishes, serves=serves)


def _check_save(options: StreamOptions) -> None:
    """Refuse a store that cannot be written at the end."""
    from lpma.file.atomic import check_writable

    if options.save is not None:
        check_writable(options.save)


def _ingested(
    pipeline: Pipeline,
    resumed: bool,
    origin: Origin,
    options: StreamOptions,
    checkpointing: CheckpointOptions,
    screen: Screen,
    opened: ExitStack,
    remember: Callable[[], None],
) -> dict[str, Any]:
    """Run an open pipeline, save the store if requested, and report what was done. remember: called
    when a good record has come, or a stream of bad ones alone would leave something."""
    if resumed:
        screen.say(f"resumed at {pipeline.stats.operations:,} operations")
    for gap in pipeline.stats.gaps:
        screen.say(f"{gap}: accepted, the stream goes on after them")
    if pipeline.stats.journal_loss is not None:
        screen.say(
            f"{pipeline.stats.journal_loss}: what the journal said from there on is given up; "
            "the log is read again, and replies that are repeated may differ"
        )
    if pipeline.results is not None and pipeline.results.begun:
        screen.say(f"results begin anew: {pipeline.results.begun}")
    progress = Progress(pipeline, screen)
    note = _once_there(pipeline, checkpointing.checkpoint, remember)
    note()
    on_batch = _after_each_batch(pipeline, progress, options, opened, note)
    started = time.perf_counter()
    with explaining_bad(origin, pipeline.outputs, pipeline.settings):
        operations = run(pipeline, options.limit, options.follow, on_batch, progress.look)
        pipeline.check_first_records()
    seconds = time.perf_counter() - started
    tell_untimed(pipeline, screen)
    if origin.is_log:  # a file's lines are told with its facts
        tell_rejected(pipeline, origin, screen, fails=not options.goes_on)
    graph: Any = pipeline.graph
    save, checkpoint = options.save, checkpointing.checkpoint
    if checkpoint is not None and not pipeline.stats.operations and pipeline.source.at_end():
        pipeline.checkpoint_now()  # so that whoever reads it knows that nothing comes
    note()
    if save is not None:
        graph.save(save)
    return {
        "source": str(origin),
        "resumed": resumed,
        "gaps": list_gaps(pipeline.stats.gaps),
        "journal_loss": pipeline.stats.journal_loss,
        "operations": operations,
        **figures_of(pipeline, seconds),
        "checkpoint": None if checkpoint is None else str(checkpoint),
        "store": None if save is None else str(save),
    }


def _serve(
    pipeline: Pipeline,
    origin: Origin,
    options: StreamOptions,
    alerts: Sequence[str],
    access: Access,
    screen: Screen,
    opened: ExitStack,
) -> None:
    """Serve a pipeline over HTTP until `opened` is closed."""
    assert options.serve is not None
    title = ", ".join(origin.read) if origin.path is None else origin.path.name
    context = context_of(pipeline, title, alerts, options.updates_topic)
    service = opened.enter_context(serving(context, options.serve, access))
    log_event("serve", url=service.url)
    screen.say(f"served at {service.url}")


def _check_address(metrics: str) -> None:
    from ..arguments import parse_address
    from ..metrics import MetricsServer as MetricsServer  # which says what to install

    try:
        parse_address(metrics)
    except PipelineError as error:
        raise typer.BadParameter(str(error), param_hint="outputs.metrics") from error


def _after_each_batch(
    pipeline: Pipeline,
    progress: Progress,
    options: StreamOptions,
    opened: ExitStack,
    note: Callable[[], None],
) -> Callable[[BatchStats], None]:
    """A function to call after each batch: it logs figures, moves the bar and calls `note`.
    Metrics are served until `opened` is closed.

    Imported here: only outputs.metrics needs the library that serves them."""
    written: Callable[[BatchStats], None] | None = None
    if options.statistics is not None:
        from ..plots.run_log import RunLog

        graph: Any = pipeline.graph
        written = opened.enter_context(RunLog(options.statistics, graph))
    if options.metrics is not None:
        from ..metrics import MetricsServer

        opened.enter_context(MetricsServer(pipeline, options.metrics))

    def on_batch(batch: BatchStats) -> None:
        if written is not None:
            written(batch)
        progress(batch)
        note()

    return on_batch


def _once_there(
    pipeline: Pipeline, directory: Path | None, remember: Callable[[], None]
) -> Callable[[], None]:
    """A function that remembers, once, when it is sure that the checkpoints will stay."""
    done = directory is None

    def note() -> None:
        nonlocal done
        if not done and not pipeline.outputs.held:
            remember()
            done = True

    return note
