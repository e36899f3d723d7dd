"""`lpma ingest` and `lpma demo`: streams into a graph."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .console import (
    JsonOption,
    Screen,
    emit,
    failing_in_one_line,
    show,
    telling_in_json,
)
from .targets import TargetError, is_log

if TYPE_CHECKING:
    from ..metrics import MetricsServer
    from ..pipeline import Pipeline
    from ..settings import BatchStats


@failing_in_one_line
def ingest(
    source: Annotated[Path, typer.Argument(help="An edge file, or an embedded log (SqliteLog).")],
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint", "-c", help="A directory for checkpoints; resumed where it has one."
        ),
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
    batch_size: Annotated[int, typer.Option(min=1, help="Operations a batch.")] = 100_000,
    batch_interval: Annotated[
        float, typer.Option(min=0.0, help="Seconds until a batch is closed.")
    ] = 0.1,
    rate: Annotated[
        float | None, typer.Option(min=0.001, help="Operations a second, from a file.")
    ] = None,
    columns: options.Columns = None,
    src_field: options.SrcField = None,
    dst_field: options.DstField = None,
    weight_field: options.WeightField = None,
    time_field: options.TimeField = None,
    kind_field: options.KindField = None,
    default_weight: options.DefaultWeight = None,
    default_kind: options.DefaultKind = None,
    ids: options.IdsOption = None,
    late: options.LateOption = None,
    max_lateness: options.MaxLateness = None,
    directed: options.Directed = None,
    predecessors: options.Predecessors = None,
    weight: options.WeightOption = None,
    times: options.Times = None,
    strategy: options.StrategyOption = None,
    segment_size: options.SegmentSize = None,
    device: options.Device = "auto",
    as_json: JsonOption = False,
) -> None:
    """Ingest a stream in batches, answering its queries, with checkpoints and resume.

    Ctrl-C ends it after the batch at hand, with a last checkpoint."""
    from lpma.files import check_writable

    from ..run_log import RunLog

    asked = options.given(directed, predecessors, weight, times, strategy, segment_size)
    json = {
        "src": src_field, "dst": dst_field, "weight": weight_field, "time": time_field,
        "kind": kind_field, "default_weight": default_weight, "default_kind": default_kind,
    }  # fmt: skip
    reading = options.reading(json, ids, late, max_lateness)
    if checkpoint is None and save is None:
        raise typer.BadParameter(
            "or --save: without either, nothing would remain", param_hint="--checkpoint"
        )
    with telling_in_json(log_json), Screen(quiet=log_json) as screen, ExitStack() as opened:
        if save is not None:
            check_writable(save)
        stream = _open_source(source, columns, rate, asked.get("directed", True), opened)
        pipeline, resumed = _open_pipeline(
            stream, checkpoint, asked, device, batch_size=batch_size,
            batch_interval=batch_interval, **reading,
        )  # fmt: skip
        opened.enter_context(pipeline)
        if resumed:
            screen.say(f"resumed at {pipeline.operations:,} operations")
        graph: Any = pipeline.graph
        written = opened.enter_context(RunLog(statistics, graph)) if statistics else None
        if metrics is not None:
            opened.enter_context(_metrics_server(pipeline, metrics))

        def told(batch: BatchStats) -> None:
            if written is not None:
                written(batch)
            screen.progress("ingest", batch.total_operations, None)

        started = time.perf_counter()
        operations = _run(pipeline, limit, follow, told)
        seconds = time.perf_counter() - started
        if save is not None:
            graph.save(save)
        document = {
            "source": str(source),
            "resumed": resumed,
            "operations": operations,
            "total_operations": pipeline.operations,
            "replayed": pipeline.replayed,
            "queries": pipeline.queries,
            "rejected": pipeline.outputs.rejected,
            "named": None if pipeline.vertices is None else len(pipeline.vertices),
            "seconds": round(seconds, 4),
            "stages": {name: round(s, 4) for name, s in pipeline.stages.seconds().items()},
            "device": graph.device,
            "vertices": graph.num_vertices,
            "edges": graph.num_edges,
            "version": graph.version,
            "density": graph.density,
            "checkpoint": None if checkpoint is None else str(checkpoint),
            "store": None if save is None else str(save),
        }
    if as_json:
        emit(document)
    else:
        show(f"ingested {source}", {**document, "stages": _stages_said(document["stages"])})


def _metrics_server(pipeline: Pipeline, address: str) -> MetricsServer:
    """Imported here: only those who ask for metrics need what serves them."""
    from ..metrics import MetricsServer

    return MetricsServer(pipeline, address)


def _run(
    pipeline: Pipeline, limit: int | None, follow: bool, told: Callable[[BatchStats], None]
) -> int:
    """Run to the end of what is there, or on with `follow`; at most `limit` operations."""
    stopped = threading.Event()

    def stop(*_: Any) -> None:
        stopped.set()
        pipeline.stop()

    with _on_signals(stop):
        if limit is None or follow:
            return pipeline.run(limit if follow else "end", told)
        done = 0
        while done < limit and not stopped.is_set():
            operations = pipeline.step(limit - done, drain=True)
            if operations:
                told(pipeline.history[-1])
            elif pipeline.source.at_end():
                break
            done += operations
        return done


def _stages_said(seconds: dict[str, float]) -> str:
    return ", ".join(f"{name} {s:.3g} s" for name, s in seconds.items())


@contextmanager
def _on_signals(stop: Callable[..., None]) -> Iterator[None]:
    """Within, SIGINT and SIGTERM call `stop`; outside the main thread they do what they did."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _open_source(
    path: Path, columns: str | None, rate: float | None, directed: bool, opened: ExitStack
) -> Any:
    from ..sources import FileSource, SqliteLog
    from ..sources.edge_lists import format_of

    if not path.is_file():
        raise TargetError(f"{path}: no such file: name an edge file or an embedded log")
    if is_log(path):
        if columns is not None or rate is not None:
            raise typer.BadParameter("a log has neither --columns nor --rate", param_hint="SOURCE")
        return opened.enter_context(SqliteLog(path))
    # How a file is read is part of its identity, so the choice is made only where it counts.
    mirror = directed or format_of(path) != "mtx"
    return FileSource(path, columns=columns, rate=rate, mirror=mirror)


def _open_pipeline(
    source: Any, checkpoint: Path | None, asked: dict[str, Any], device: str, **settings: Any
) -> tuple[Pipeline, bool]:
    import lpma

    from ..pipeline import Pipeline, has_checkpoint

    if checkpoint is not None and has_checkpoint(checkpoint):
        pipeline = Pipeline.resume(checkpoint, source, device=device, **settings)
        try:
            _check_same(pipeline.graph, asked, checkpoint)
        except typer.BadParameter:
            pipeline.close(checkpoint=False)
            raise
        return pipeline, True
    graph = lpma.Graph(device=device, **asked)
    return Pipeline(source, graph, checkpoint, device=device, **settings), False


def _check_same(graph: Any, asked: dict[str, Any], checkpoint: Path) -> None:
    """A checkpoint's graph is what it is: refuse options that say otherwise."""
    has = {
        "directed": graph.directed,
        "predecessors": graph.has_predecessors,
        "weight": None if graph.weight_dtype is None else graph.weight_dtype.name,
        "times": graph.has_times,
        "strategy": graph.strategy,
        "segment_size": graph.segment_size,
    }
    for name, value in asked.items():
        if has[name] != value:
            raise typer.BadParameter(
                f"the graph in {checkpoint} has {has[name]}, which a resume cannot change",
                param_hint=f"--{name.replace('_', '-')}",
            )


@failing_in_one_line
def demo(
    out: Annotated[Path, typer.Option(help="Where its files go.")] = Path("demo-output"),
    operations: Annotated[
        int | None, typer.Option(min=1000, help="Only so many interactions of the stream.")
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0.0, help="How long the stream takes to be produced.")
    ] = 12.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the deletions and the queries.")] = 1,
    device: options.Device = "auto",
    as_json: JsonOption = False,
) -> None:
    """Stream a graph through the log into the store, kill and resume it, and analyse it.

    Takes half a minute, and up to a minute more after an installation, for compiling."""
    from .. import demo as story

    with Screen() as screen:
        summary = story.run(
            out, screen.say, screen.progress, operations=operations, produce_s=seconds, seed=seed,
            device=device,
        )  # fmt: skip
    if as_json:
        emit(summary)
        return
    show(f"the demo, in {summary['seconds']:.0f} s", _demo_rows(summary))


def _demo_rows(summary: dict[str, Any]) -> dict[str, Any]:
    latency, asked = summary["batch_latency_ms"], summary["query_latency_ms"]
    files = summary["files"]
    return {
        "stream": summary["stream"],
        "device": summary["device"],
        "operations": f"{summary['operations']:,}, {summary['deletions']:,} of them deletions",
        "killed, resumed": f"after {summary['killed_at']:,} operations, "
        f"{summary['replayed']:,} replayed",
        "same state and replies": summary["same_state"] and summary["same_replies"],
        "queries answered": f"{summary['queries']:,} while it ran, median {asked['median']:.0f} ms",
        "graph": f"{summary['vertices']:,} vertices, {summary['edges']:,} edges",
        "batches": f"{summary['batches']:,} of {summary['batch_operations']:,}: median "
        f"{latency['median']:.1f} ms, slowest {latency['slowest']:.1f} ms, "
        f"{summary['expansions']} expansions",
        "throughput": f"{summary['operations_per_second']:,} operations a second",
        "snapshot": f"{summary['snapshot_ms']:.1f} ms",
        "core numbers": f"largest {summary['max_core']:,}, of {summary['max_core_vertices']:,} "
        f"vertices ({summary['core_ms']:.0f} ms)",
        "triangles": f"{summary['triangles']:,} ({summary['triangles_ms']:.0f} ms)",
        "plot": files["plot"],
        "snapshot file": files["snapshot"],
        "store": f"{files['graph']} (lpma query successors {files['graph']} 0)",
    }
