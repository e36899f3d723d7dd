"""`lpma ingest`: a stream into a graph."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import counting
from .console import JsonOption, Screen, emit, failing_in_one_line, show, telling_in_json
from .opening import Ends
from .options import Making
from .records import Records
from .running import FROM_STORE, Progress, open_pipeline, run
from .sharing import sharing

if TYPE_CHECKING:
    from ..pipeline import Pipeline
    from ..settings import BatchStats


@failing_in_one_line
@sharing(Making)
@sharing(Records)
@sharing(Ends)
def ingest(
    ends: Ends,
    records: Records,
    making: Making,
    source: Annotated[
        Path | None, typer.Argument(help="An edge file, or an embedded log (SqliteLog).")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint", "-c", help="A directory for checkpoints; resumed where it has one."
        ),
    ] = None,
    from_store: Annotated[
        Path | None,
        typer.Option(
            FROM_STORE,
            metavar="STORE",
            help="Begin with this saved store, instead of an empty graph. The stream is read from "
            "its earliest record on, unless --from-offsets says where.",
        ),
    ] = None,
    accept_gap: Annotated[
        bool,
        typer.Option(
            "--accept-gap",
            help="Go on from a checkpoint though retention has dropped records that were still to "
            "be read; they are counted.",
        ),
    ] = False,
    save: Annotated[Path | None, typer.Option(help="Save the store here at the end.")] = None,
    statistics: Annotated[
        Path | None, typer.Option(help="Append each batch's figures here, as JSON lines.")
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="PORT|HOST:PORT",
            help="Serve figures for Prometheus there; a port alone is bound to loopback.",
        ),
    ] = None,
    log_json: Annotated[
        bool, typer.Option("--log-json", help="Tell on stderr what happens, as JSON lines.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for more at the end of a log.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many operations.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read and count only; write nothing anywhere.")
    ] = False,
    batch_size: Annotated[int, typer.Option(min=1, help="Operations a batch.")] = 100_000,
    batch_interval: Annotated[
        float, typer.Option(min=0.0, help="Seconds until a batch is closed.")
    ] = 0.1,
    rate: Annotated[
        float | None, typer.Option(min=0.001, help="Operations a second, from a file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Ingest a stream in batches, answering its queries, with checkpoints and resume.

    Ctrl-C ends it after the batch at hand, with a last checkpoint."""
    from lpma.files import check_writable

    asked, reading = making.asked(), records.settings()
    origin, starts = ends.origin(source, rate), ends.starts()
    if checkpoint is None and save is None and not dry_run:
        raise typer.BadParameter(
            "or --save: without either, nothing would remain", param_hint="--checkpoint"
        )
    if accept_gap and checkpoint is None:
        raise typer.BadParameter("needed by --accept-gap", param_hint="--checkpoint")
    with telling_in_json(log_json), Screen(quiet=log_json) as screen, ExitStack() as opened:
        if save is not None and not dry_run:
            check_writable(save)
        stream = origin.open(asked.get("directed", True), opened)
        if dry_run:
            document = counting.count(
                origin, stream, checkpoint, starts, asked, limit, follow, from_store, accept_gap,
                **reading,
            )  # fmt: skip
        else:
            pipeline, resumed = open_pipeline(
                stream, checkpoint, starts, asked, making.device, from_store, accept_gap,
                batch_size=batch_size, batch_interval=batch_interval, **reading,
                **ends.outputs(origin, stream),
            )  # fmt: skip
            opened.enter_context(pipeline)
            if resumed:
                screen.say(f"resumed at {pipeline.operations:,} operations")
            for gap in pipeline.gaps:
                screen.say(f"{gap}: accepted, the stream goes on behind them")
            told = _teller(pipeline, screen, statistics, metrics, opened)
            started = time.perf_counter()
            operations = run(pipeline, limit, follow, told)
            seconds = time.perf_counter() - started
            if save is not None:
                graph: Any = pipeline.graph
                graph.save(save)
            document = {
                "source": str(origin),
                "resumed": resumed,
                "gaps": counting.gaps_said(pipeline.gaps),
                "operations": operations,
                **_figures(pipeline, seconds),
                "checkpoint": None if checkpoint is None else str(checkpoint),
                "store": None if save is None else str(save),
            }
    if as_json:
        emit(document)
    else:
        show(f"{'counted' if dry_run else 'ingested'} {origin}", counting.readable(document))


def _teller(
    pipeline: Pipeline,
    screen: Screen,
    statistics: Path | None,
    metrics: str | None,
    opened: ExitStack,
) -> Callable[[BatchStats], None]:
    """What a batch is told to; metrics are served as long as `opened` is.

    Imported here: only those who ask for metrics need what serves them."""
    progress = Progress(pipeline, screen)
    written: Callable[[BatchStats], None] | None = None
    if statistics is not None:
        from ..run_log import RunLog

        graph: Any = pipeline.graph
        written = opened.enter_context(RunLog(statistics, graph))
    if metrics is not None:
        from ..metrics import MetricsServer

        opened.enter_context(MetricsServer(pipeline, metrics))

    def told(batch: BatchStats) -> None:
        if written is not None:
            written(batch)
        progress(batch)

    return told


def _figures(pipeline: Pipeline, seconds: float) -> dict[str, Any]:
    graph: Any = pipeline.graph
    return {
        "total_operations": pipeline.operations,
        "replayed": pipeline.replayed,
        "queries": pipeline.queries,
        "duplicates": pipeline.duplicates,
        "rejected": pipeline.outputs.rejected,
        "dead_letters": dict(pipeline.outputs.rejected_by),
        "unchanged": pipeline.unchanged.as_dict(),
        "lag": counting.lag_said(pipeline.lag()),
        "named": None if pipeline.vertices is None else len(pipeline.vertices),
        "seconds": round(seconds, 4),
        "stages": {name: round(s, 4) for name, s in pipeline.stages.seconds().items()},
        "device": graph.device,
        "vertices": graph.num_vertices,
        "edges": graph.num_edges,
        "version": graph.version,
        "density": graph.density,
    }
