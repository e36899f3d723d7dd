"""`lpma plot`: PNG pictures of a run and of a graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from ._console import JsonOption, emit, failing_in_one_line
from ._targets import KAFKA, Store, TargetError, is_log, open_log, open_store
from ._typer import App

if TYPE_CHECKING:
    from ..formats.results import Result

app = App(help="Draw a run's latency and density, figures over time, or a graph's degrees.",
                  no_args_is_help=True)  # fmt: skip

Picture = Annotated[Path, typer.Argument(readable=False, help="The .png file to write.")]
Title = Annotated[str, typer.Option(help="The picture's title.")]


def _is_png(path: Path) -> None:
    if path.suffix != ".png":
        raise typer.BadParameter("the name must end with .png", param_hint="PATH")


def _tell(as_json: bool, document: dict[str, Any], said: str) -> None:
    if as_json:
        emit(document)
    else:
        print(f"{document['path']}: {said}")


@app.command("latency")
@failing_in_one_line
def latency(
    run: Annotated[
        Path, typer.Argument(help="Where `outputs.statistics` was, or the demo's run.jsonl.")
    ],
    path: Picture,
    title: Title = "",
    as_json: JsonOption = False,
) -> None:
    """Latency of each batch and density after it, expansions marked."""
    from .. import plots
    from ..plots.run_log import read_run

    _is_png(path)
    batches = read_run(run)
    plots.plot_latency(batches, path, title)
    milliseconds = 1000 * batches["seconds"]
    document = {
        "path": str(path),
        "batches": len(milliseconds),
        "operations": int(batches["operations"].sum()),
        "median_ms": float(np.median(milliseconds)),
        "slowest_ms": float(milliseconds.max()),
        "expansions": len(plots.expansions(batches["levels"])),
    }
    said = (
        f"{document['batches']:,} batches, {document['expansions']} expansions, "
        f"median {document['median_ms']:.3g} ms, slowest {document['slowest_ms']:.3g} ms"
    )
    _tell(as_json, document, said)


@app.command("results")
@failing_in_one_line
def results(
    results: Annotated[
        str,
        typer.Argument(
            help="What `lpma ingest --results-file` wrote, an embedded log, or kafka://HOST:PORT."
        ),
    ],
    path: Picture,
    topic: Annotated[str, typer.Option(help="The topic of a log.")] = "results",
    over: Annotated[
        Literal["time", "version"],
        typer.Option(help="What runs from left to right: the time of arrival, or versions."),
    ] = "time",
    title: Title = "",
    as_json: JsonOption = False,
) -> None:
    """How the totals of tracked figures went over the stream's time, or from version to version."""
    from .. import plots
    from ..results.reading import once, totals

    _is_png(path)
    with ExitStack() as opened:
        series = totals(once(_results_of(results, topic, opened)), over)
    if not series:
        raise TargetError(f"{results}: it holds no total: was a figure tracked, with results?")
    plots.plot_totals(series, path, title, over)
    newest = {name: values[-1] for name, (_, values) in series.items()}
    points = {name: len(values) - 2 for name, (_, values) in series.items()}  # without the ends
    document = {"path": str(path), "points": points, "newest": newest}
    _tell(as_json, document, ", ".join(f"{name} {value:,}" for name, value in newest.items()))


def _results_of(target: str, topic: str, opened: ExitStack) -> Iterator[Result]:
    from ..results.reading import read_results, results_in

    if target.startswith(KAFKA):
        from ..sources.kafka.source import KafkaSource

        return results_in(opened.enter_context(KafkaSource(target.removeprefix(KAFKA), [topic])))
    if is_log(Path(target)):
        return results_in(open_log(Path(target), [topic], opened))
    return read_results(target)


@app.command("degrees")
@failing_in_one_line
def degrees(store: Store, path: Picture, title: Title = "", as_json: JsonOption = False) -> None:
    """The distribution of degrees in a saved store or a checkpoint."""
    from .. import plots

    _is_png(path)
    s = open_store(store, contents=True).graph.snapshot()
    plots.plot_degrees(s, path, title)
    largest = int(np.diff(s._indptr).max(initial=0))
    document = {
        "path": str(path),
        "vertices": s.num_vertices,
        "rows": s.num_rows,
        "edges": s.num_edges,
        "max_degree": largest,
    }
    said = f"{s.num_vertices:,} vertices, {s.num_edges:,} edges, largest degree {largest:,}"
    _tell(as_json, document, said)
