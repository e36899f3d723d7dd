"""`lpma run`: an algorithm on a saved store, a checkpoint, an edge file, a dataset."""

from __future__ import annotations

import time
import warnings
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .console import JsonOption, Screen, emit, failing_in_one_line, said, show
from .store import load_graph
from .targets import is_store, open_store

if TYPE_CHECKING:
    import lpma

    from ..analyses import Found


class Algorithm(StrEnum):
    core = "core"
    truss = "truss"
    triangles = "triangles"
    components = "components"
    pagerank = "pagerank"
    bfs = "bfs"


BFS, PAGERANK = "bfs", "pagerank"
OF_ONE = "Of one algorithm"


@failing_in_one_line
def run(
    algorithm: Annotated[Algorithm, typer.Argument(help="What to compute.")],
    target: Annotated[
        str,
        typer.Argument(
            help="A saved store, a checkpoint directory (of a running stream, too), an edge file, "
            "a dataset's name, or a generator as 'rmat:scale=18'."
        ),
    ],
    source: Annotated[
        int | None,
        typer.Option(min=0, help="bfs: the vertex to start from.", rich_help_panel=OF_ONE),
    ] = None,
    damping: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="pagerank: how likely an edge is followed. (default: 0.85)",
            rich_help_panel=OF_ONE,
            show_default=False,
        ),
    ] = None,
    tol: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="pagerank: stop when all ranks change by less. (default: 1e-6)",
            rich_help_panel=OF_ONE,
            show_default=False,
        ),
    ] = None,
    max_iter: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="pagerank: rounds at most. (default: 100)",
            rich_help_panel=OF_ONE,
            show_default=False,
        ),
    ] = None,
    weighted: Annotated[
        bool,
        typer.Option(
            "--weighted", help="pagerank: follow heavier edges more often.", rich_help_panel=OF_ONE
        ),
    ] = False,
    top: Annotated[int, typer.Option(min=0, help="How many of the largest values to show.")] = 5,
    out: Annotated[
        Path | None, typer.Option(help="A .npz or .csv file to write all values to.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="A .png file to draw the values' distribution in.")
    ] = None,
    directed: options.Directed = None,
    columns: options.Columns = None,
    device: options.ReadingDevice = "cpu",
    as_json: JsonOption = False,
) -> None:
    """Run an algorithm on a graph: core, truss, triangles, components, pagerank or bfs.

    Directions count for bfs and pagerank alone. A vertex is what the graph holds: an id that is in
    no edge and was not added is none."""
    from .. import analyses, outcomes, plots

    given = _arguments(algorithm, source, damping, tol, max_iter, weighted)
    _check_names(out, plot)
    with Screen() as screen:
        screen.progress("read the graph", 0, None)
        graph = _graph(target, directed, columns, device, screen)
        screen.progress(f"run {algorithm}", 0, None)
        started = time.perf_counter()
        s = graph.snapshot(compact=True)
        snapshot_seconds = time.perf_counter() - started
        with warnings.catch_warnings(record=True) as said_meanwhile:
            started = time.perf_counter()
            found = analyses.ANALYSES[algorithm](s, **given)
            seconds = time.perf_counter() - started
        for warning in said_meanwhile:
            screen.say(f"lpma: {warning.message}")
        if out is not None:
            outcomes.write(out, found.columns)
        if plot is not None:
            plots.plot_distribution(found.values, found.value, plot, f"{algorithm} of {target}")
    facts = {
        "target": target,
        "algorithm": algorithm.value,
        "device": graph.device,
        "vertices": s.num_vertices,
        "edges": s.num_edges,
        "directed": s.directed,
        "version": s.version,
        **given,
        **found.summary,
        "snapshot_seconds": round(snapshot_seconds, 4),
        "seconds": round(seconds, 4),
    }
    written = {"out": out, "plot": plot}
    files = {name: str(path) for name, path in written.items() if path is not None}
    if as_json:
        emit({**facts, "top": found.top(top), **files})
    else:
        _tell(found, facts, top, files)


def _arguments(
    algorithm: Algorithm,
    source: int | None,
    damping: float | None,
    tol: float | None,
    max_iter: int | None,
    weighted: bool,
) -> dict[str, Any]:
    """What the algorithm is called with. Raises typer.BadParameter on another's option."""
    of_pagerank: dict[str, Any] = {
        "damping": damping, "tol": tol, "max_iter": max_iter, "weighted": weighted or None
    }  # fmt: skip
    given: dict[str, dict[str, Any]] = {BFS: {"source": source}, PAGERANK: of_pagerank}
    for name, values in given.items():
        for option, value in values.items():
            if algorithm != name and value is not None:
                raise typer.BadParameter(
                    f"is for {name} alone", param_hint=f"--{option.replace('_', '-')}"
                )
    if algorithm == BFS and source is None:
        raise typer.BadParameter("bfs needs a vertex to start from", param_hint="--source")
    if algorithm == PAGERANK:
        defaults = {"damping": 0.85, "tol": 1e-6, "max_iter": 100, "weighted": False}
        return defaults | {k: v for k, v in of_pagerank.items() if v is not None}
    return given.get(algorithm, {})


def _check_names(out: Path | None, plot: Path | None) -> None:
    """Names that cannot be written are told before anything is computed."""
    from lpma.files import check_writable

    for path, suffixes, option in ((out, (".npz", ".csv"), "--out"), (plot, (".png",), "--plot")):
        if path is None:
            continue
        if path.suffix not in suffixes:
            raise typer.BadParameter(
                f"the name must end with {' or '.join(suffixes)}", param_hint=option
            )
        check_writable(path)


def _graph(
    target: str, directed: bool | None, columns: str | None, device: str, screen: Screen
) -> lpma.Graph:
    """The graph of a store, or one made of edges for this run alone."""
    path = Path(target)
    if not path.is_dir() and not is_store(path):
        return load_graph(target, directed, columns, device, screen)
    for option, value in (("--directed/--undirected", directed), ("--columns", columns)):
        if value is not None:
            raise typer.BadParameter(f"{target} is a store already", param_hint=option)
    return open_store(path, device).graph


def _tell(found: Found, facts: dict[str, Any], top: int, files: dict[str, str]) -> None:
    from rich.console import Console
    from rich.table import Table

    show(
        f"{facts['algorithm']} of {facts['target']}",
        {name.replace("_", " "): value for name, value in {**facts, **files}.items()
         if name not in ("target", "algorithm")},
    )  # fmt: skip
    rows = found.top(top)
    if rows:
        table = Table(*found.ranking, box=None, padding=(0, 2))
        for row in rows:
            # An id is a name, not a count: no commas in it.
            table.add_row(*(str(v) if name != found.value else said(v) for name, v in row.items()))
        Console(highlight=False).print(table)
