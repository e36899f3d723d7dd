"""`lpma run`: an algorithm on a saved store, a checkpoint, an edge file, a dataset.

One command an algorithm, with options of its own; what all take alike is `Running`.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .console import JsonOption, Screen, emit, failing_in_one_line, said, show, table
from .sharing import sharing
from .store import load_graph
from .targets import is_store, open_store

if TYPE_CHECKING:
    import lpma

    from ..analyses import Found

app = typer.Typer(help="Run an algorithm on a graph.", no_args_is_help=True)

Target = Annotated[
    str,
    typer.Argument(
        help="A saved store, a checkpoint directory (of a running stream, too), an edge file, "
        "a dataset's name, or a generator as 'rmat:scale=18'."
    ),
]


@dataclass(frozen=True)
class Reading:
    """How the graph is read, and the answer told."""

    directed: options.Directed = None
    columns: options.Columns = None
    device: options.ReadingDevice = "cpu"
    as_json: JsonOption = False


@dataclass(frozen=True)
class Running(Reading):
    """What every command takes whose algorithm gives values to vertices or edges."""

    top: Annotated[int, typer.Option(min=0, help="How many of the largest values to show.")] = 5
    out: Annotated[
        Path | None, typer.Option(help="A .npz or .csv file to write all values to.")
    ] = None
    plot: Annotated[
        Path | None, typer.Option(help="A .png file to draw the values' distribution in.")
    ] = None


@app.command("core")
@failing_in_one_line
@sharing(Running)
def core(target: Target, running: Running) -> None:
    """Core numbers of the vertices; directions do not count."""
    _run("core", target, running)


@app.command("truss")
@failing_in_one_line
@sharing(Running)
def truss(target: Target, running: Running) -> None:
    """Truss numbers of the edges; directions do not count."""
    _run("truss", target, running)


@app.command("triangles")
@failing_in_one_line
@sharing(Running)
def triangles(target: Target, running: Running) -> None:
    """Triangles at each vertex; directions do not count."""
    _run("triangles", target, running)


@app.command("components")
@failing_in_one_line
@sharing(Running)
def components(target: Target, running: Running) -> None:
    """Connected components and their sizes; directions do not count."""
    _run("components", target, running)


@app.command("pagerank")
@failing_in_one_line
@sharing(Running)
def pagerank(
    target: Target,
    running: Running,
    damping: Annotated[
        float, typer.Option(min=0, max=1, help="How likely an edge is followed.")
    ] = 0.85,
    tol: Annotated[float, typer.Option(min=0, help="Stop when all ranks change by less.")] = 1e-6,
    max_iter: Annotated[int, typer.Option(min=0, help="Rounds at most.")] = 100,
    weighted: Annotated[
        bool, typer.Option("--weighted", help="Follow heavier edges more often.")
    ] = False,
) -> None:
    """PageRank of the vertices, along the edges' directions."""
    _run(
        "pagerank", target, running, damping=damping, tol=tol, max_iter=max_iter, weighted=weighted
    )


@app.command("bfs")
@failing_in_one_line
@sharing(Running)
def bfs(
    target: Target,
    running: Running,
    source: Annotated[int, typer.Option(min=0, help="The vertex to start from.")],
) -> None:
    """Hops from a vertex, along the edges' directions."""
    _run("bfs", target, running, source=source)


@app.command("bicliques")
@failing_in_one_line
@sharing(Reading)
def bicliques(
    target: Target,
    reading: Reading,
    p: Annotated[int, typer.Option(min=1, help="Vertices of the left side.")],
    q: Annotated[int, typer.Option(min=1, help="Vertices of the right side.")],
    left: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Vertices with ids below this are the left side. (default: in each component, "
            "the side of the smallest id)",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        str, typer.Option(help="closed, wedges, gbc, pivot, or auto, the one that fits.")
    ] = "auto",
    some: Annotated[int, typer.Option("--list", min=0, help="How many bicliques to show.")] = 0,
) -> None:
    """Count (p, q)-bicliques of a bipartite graph; directions do not count."""
    from lpma import LpmaError

    from .. import analyses

    sys.set_int_max_str_digits(0)  # a count has as many digits as it has
    if method not in analyses.BICLIQUE_METHODS:
        known = ", ".join(analyses.BICLIQUE_METHODS)
        raise typer.BadParameter(f"choose one of {known}", param_hint="--method")
    with Screen() as screen:
        screen.progress("read the graph", 0, None)
        graph = _graph(target, reading, screen)
        s = graph.snapshot(compact=True)
        started = time.perf_counter()
        try:
            count = analyses.bicliques(s, p, q, left, method, _telling_time_left(screen))
        except ValueError as error:
            if isinstance(error, LpmaError):
                raise
            raise typer.BadParameter(str(error), param_hint="--method") from error
        seconds = time.perf_counter() - started
        found = analyses.first_bicliques(s, p, q, left, some)
    facts = {"p": p, "q": q, "left": left, "method": method, "bicliques": count}
    facts = _facts("bicliques", target, graph, s, **facts, seconds=round(seconds, 4))
    if reading.as_json:
        emit({**facts, "list": [one._asdict() for one in found]})
        return
    _show(facts)
    if found:
        table(["left", "right"], [[" ".join(map(str, side)) for side in one] for one in found])


def _telling_time_left(screen: Screen) -> Callable[[int, int], None]:
    """A callback that moves a bar, with what is left at the pace so far."""
    started = time.perf_counter()

    def tell(done: int, total: int) -> None:
        note = ""
        if 0 < done < total:
            left = (time.perf_counter() - started) * (total - done) / done
            note = f", about {left:,.0f} s left"
        screen.progress("count bicliques", done, total, note)

    return tell


def _run(algorithm: str, target: str, running: Running, **given: Any) -> None:
    """Compute and tell. A vertex is what the graph holds: an id that is in no edge and was not
    added is none."""
    from .. import analyses, outcomes, plots

    _check_names(running.out, running.plot)
    with Screen() as screen:
        screen.progress("read the graph", 0, None)
        graph = _graph(target, running, screen)
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
        if running.out is not None:
            outcomes.write(running.out, found.columns)
        if running.plot is not None:
            title = f"{algorithm} of {target}"
            plots.plot_distribution(found.values, found.value, running.plot, title)
    facts = _facts(
        algorithm, target, graph, s, **given, **found.summary,
        snapshot_seconds=round(snapshot_seconds, 4), seconds=round(seconds, 4),
    )  # fmt: skip
    written = {"out": running.out, "plot": running.plot}
    files = {name: str(path) for name, path in written.items() if path is not None}
    if running.as_json:
        emit({**facts, "top": found.top(running.top), **files})
    else:
        _tell(found, facts, running.top, files)


def _facts(
    algorithm: str, target: str, graph: lpma.Graph, s: lpma.Snapshot, **more: Any
) -> dict[str, Any]:
    return {
        "target": target,
        "algorithm": algorithm,
        "device": graph.device,
        "vertices": s.num_vertices,
        "edges": s.num_edges,
        "directed": s.directed,
        "version": s.version,
        **more,
    }


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


def _graph(target: str, reading: Reading, screen: Screen) -> lpma.Graph:
    """The graph of a store, or one made of edges for this run alone."""
    path, directed, columns = Path(target), reading.directed, reading.columns
    if not path.is_dir() and not is_store(path):
        return load_graph(target, directed, columns, reading.device, screen)
    for option, value in (("--directed/--undirected", directed), ("--columns", columns)):
        if value is not None:
            raise typer.BadParameter(f"{target} is a store already", param_hint=option)
    return open_store(path, reading.device).graph


def _tell(found: Found, facts: dict[str, Any], top: int, files: dict[str, str]) -> None:
    from rich.console import Console
    from rich.table import Table

    _show({**facts, **files})
    rows = found.top(top)
    if rows:
        table = Table(*found.ranking, box=None, padding=(0, 2))
        for row in rows:
            # An id is a name, not a count: no commas in it.
            table.add_row(*(str(v) if name != found.value else said(v) for name, v in row.items()))
        Console(highlight=False).print(table)


def _show(facts: dict[str, Any]) -> None:
    show(
        f"{facts['algorithm']} of {facts['target']}",
        {name.replace("_", " "): value for name, value in facts.items()
         if name not in ("target", "algorithm")},
    )  # fmt: skip
