"""`lpma ingest`: apply a stream to a graph."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from ..sources.files.left_out import LeftOut
from . import _dry_run
from ._config import configured
from ._console import Screen, failing_in_one_line, report, telling_in_json
from ._ingest_options import (
    OF_SETTINGS,
    CheckpointOptions,
    EndpointOptions,
    PipelineOptions,
    RecordOptions,
    StreamOptions,
)
from ._ingest_report import file_facts, noting, readable
from ._options import RARE_OF_GRAPH, GraphOptions
from ._origin import begin_log
from ._pipeline import open_pipeline
from ._results import shared_out, tracked
from ._serve_options import TLS_AND_NAMES, ServeOptions
from ._stream import Stream
from ._targets import STDIN, spooled

# Options of other commands, or of earlier releases, that are keys of the file here. What is left is
# what somebody types in a first week.
RARE = (
    *RARE_OF_GRAPH, "header", "separator", "columns", "ids", "default_weight", "default_kind",
    "max_ahead", "group", "reply_topics", "dead_letter_topic", "from_store", "accept_gap",
    "accept_journal_loss", "statistics", "metrics", "updates_topic", "rate", "log_json", "kind_map",
    "registry_config", "decimal", "thousands", "bipartite", "token_file",
    "write_token_file", "insecure", *TLS_AND_NAMES,
)  # fmt: skip


@failing_in_one_line
@configured(
    GraphOptions, RecordOptions, EndpointOptions, CheckpointOptions, StreamOptions, ServeOptions,
    OF_SETTINGS, rare=RARE, source="source.path",
)  # fmt: skip
def ingest(
    options: StreamOptions,
    serve_options: ServeOptions,
    pipeline_options: PipelineOptions,
    checkpointing: CheckpointOptions,
    endpoints: EndpointOptions,
    record_options: RecordOptions,
    graph_options: GraphOptions,
    source: Annotated[
        Path | None,
        typer.Argument(help="An edge file, an embedded log (SqliteLog), or '-' for stdin."),
    ] = None,
    *,
    remember: Callable[[], None],
) -> None:
    """Ingest a stream in batches, answering its queries, with checkpoints and resume.

    With --checkpoint alone, or with the same source, a stream goes on as it was last run; options
    given win. Ctrl-C stops it after the current batch, with a last checkpoint."""
    asked = graph_options.arguments(record_options.weight_column)
    settings = pipeline_options.settings()
    checkpointing.check(settings)
    if options.serve is not None and options.follow:
        begin_log(source, checkpointing.checkpoint)
    if source == Path(STDIN):
        source = spooled()
    origin = endpoints.origin(source, record_options, options.rate)
    stream = Stream(
        options, checkpointing, endpoints, record_options, origin, asked, graph_options.device,
        remember,
    )  # fmt: skip
    settings |= record_options.settings(origin)
    settings |= endpoints.records(settings.get("records", "msgpack"))
    settings |= endpoints.registry(origin)
    starts = endpoints.starts()
    stream.check()
    track, published, watched = _asked_of_figures(options, endpoints)
    if options.serve is None:
        serve_options.refuse()
    quiet = options.log_json
    with telling_in_json(quiet), Screen(quiet=quiet) as screen, ExitStack() as opened:
        access = None if options.serve is None else serve_options.access(options.serve, "--serve")
        log = stream.open(settings, screen, opened)
        left_out = LeftOut()
        if options.dry_run:
            document = _dry_run.count(stream, log, starts, settings)
        else:
            settings |= endpoints.outputs(log)
            if not origin.is_log:
                settings["dead_letters"] = noting(log, left_out)
            pipeline, resumed = open_pipeline(
                log, checkpointing, starts, stream.asked, stream.device,
                track=track, alerts=published, **settings,
            )  # fmt: skip
            opened.enter_context(pipeline)
            if access is not None:
                stream.serve(pipeline, watched, access, screen, opened)
            document = stream.run(pipeline, resumed, screen, opened)
        if not origin.is_log:
            document |= file_facts(log, left_out, screen, options.dry_run)
    did = "counted" if options.dry_run else "ingested"
    report(options.as_json, document, f"{did} {origin}", readable(document))


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
