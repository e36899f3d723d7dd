"""`lpma ingest`: a stream into a graph."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import PipelineError
from ..state.name_table import save_store, table_path
from ..state.vertex_names import VertexNames
from . import _dry_run
from ._console import JsonOption, Screen, emit, failing_in_one_line, show, telling_in_json
from ._edges import noticed_told
from ._keeping import Keeping
from ._left_out import LeftOut
from ._opening import Ends, check_holds_edges
from ._options import Making
from ._records import Records
from ._running import Progress, open_pipeline, reading_kept, run
from ._sharing import sharing
from ._targets import size_of

if TYPE_CHECKING:
    from ..pipeline import Pipeline
    from ..settings import BatchStats
    from ..sources import FileSource


@failing_in_one_line
@sharing(Making)
@sharing(Records)
@sharing(Ends)
@sharing(Keeping)
def ingest(
    keeping: Keeping,
    ends: Ends,
    records: Records,
    making: Making,
    source: Annotated[
        Path | None, typer.Argument(help="An edge file, or an embedded log (SqliteLog).")
    ] = None,
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
    from lpma.files import check_apart, check_writable

    asked, reading = making.asked(), records.settings()
    origin, starts = ends.origin(source, rate), ends.starts()
    checkpoint, intervals = keeping.checkpoint, keeping.settings()
    if checkpoint is None and save is None and not dry_run:
        raise typer.BadParameter(
            "or --save: without either, nothing would remain", param_hint="--checkpoint"
        )
    if origin.path is not None:
        for written in (save, statistics, None if save is None else table_path(save)):
            if written is not None:
                check_apart(written, origin.path)
    if metrics is not None:
        _check_address(metrics)
    with telling_in_json(log_json), Screen(quiet=log_json) as screen, ExitStack() as opened:
        if save is not None and not dry_run:
            check_writable(save)
        kept = None if checkpoint is None else reading_kept(checkpoint)
        ids = reading.get("ids", kept.ids if kept else "dense")
        json = reading.get("records", kept.records if kept else None)
        if save is not None and ids == "mapped":
            check_writable(table_path(save))
        stream = origin.open(
            asked.get("directed", True), opened, ids, None if json == "msgpack" else json
        )
        left_out = LeftOut()
        if dry_run:
            document = _dry_run.count(
                origin, stream, checkpoint, starts, asked, limit, follow,
                keeping.from_store, keeping.accept_gap, **reading,
            )  # fmt: skip
        else:
            outputs = ends.outputs(origin, stream)
            if not origin.is_log:
                if kept is None:
                    check_holds_edges(stream)
                outputs["dead_letters"] = left_out.take
            pipeline, resumed = open_pipeline(
                stream, checkpoint, starts, asked, making.device, keeping.from_store,
                keeping.accept_gap, keeping.accept_journal_loss, batch_size=batch_size,
                batch_interval=batch_interval, **intervals, **reading, **outputs,
            )  # fmt: skip
            opened.enter_context(pipeline)
            if resumed:
                screen.say(f"resumed at {pipeline.operations:,} operations")
            for gap in pipeline.gaps:
                screen.say(f"{gap}: accepted, the stream goes on behind them")
            if pipeline.journal_loss is not None:
                screen.say(
                    f"{pipeline.journal_loss}: what the journal said from there on is given up; "
                    "the log is read again, and replies that are repeated may differ"
                )
            told = _teller(pipeline, screen, statistics, metrics, opened)
            started = time.perf_counter()
            operations = run(pipeline, limit, follow, told)
            seconds = time.perf_counter() - started
            graph: Any = pipeline.graph
            names = save and save_store(graph, save, VertexNames(pipeline.vertices))
            document = {
                "source": str(origin),
                "resumed": resumed,
                "gaps": _dry_run.gaps_said(pipeline.gaps),
                "journal_loss": pipeline.journal_loss,
                "operations": operations,
                **_figures(pipeline, seconds),
                "checkpoint": None if checkpoint is None else str(checkpoint),
                "store": None if save is None else str(save),
                "names": None if names is None else str(names),
            }
        if not origin.is_log:
            document |= _file_told(stream, left_out, screen, dry_run)
    if as_json:
        emit(document)
    else:
        show(f"{'counted' if dry_run else 'ingested'} {origin}", _dry_run.readable(document))


def _check_address(metrics: str) -> None:
    from ..metrics import parse_address

    try:
        parse_address(metrics)
    except PipelineError as error:
        raise typer.BadParameter(str(error), param_hint="--metrics") from error


def _file_told(
    source: FileSource, left_out: LeftOut, screen: Screen, dry_run: bool
) -> dict[str, Any]:
    """What is told of a file's lines, on the screen too."""
    for note in source.noticed.notes():
        screen.say(f"{source.path}: {note}")
    told = noticed_told(source.noticed)
    if dry_run:  # has examples of its own
        return told
    if left_out.count:
        screen.say(f"{source.path}: {left_out}")
    # Late operations are rejected, too, but are not bad lines.
    return {name: value for name, value in left_out.told().items() if name != "rejected"} | told


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
        "lag": _dry_run.lag_said(pipeline.lag()),
        "named": None if pipeline.vertices is None else len(pipeline.vertices),
        "seconds": round(seconds, 4),
        "stages": {name: round(s, 4) for name, s in pipeline.stages.seconds().items()},
        "device": graph.device,
        **size_of(graph),
        "version": graph.version,
        "density": graph.density,
    }
