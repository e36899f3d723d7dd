"""`lpma run`: an algorithm on a saved store, a checkpoint, an edge file, a dataset; diversity also
on a live stream.

One command an algorithm, with options of its own; what all take alike is `Running`.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .console import JsonOption, Screen, emit, failing_in_one_line, said, show
from .sharing import sharing
from .store import load_graph
from .targets import is_store, open_store
from .watching import Watching, is_stream, watch

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
class Running:
    """What every algorithm's command takes."""

    top: Annotated[int, typer.Option(min=0, help="How many of the largest values to show.")] = 5
    out: Annotated[
        Path | None, typer.Option(help="A .npz or .csv file to write all values to.")
    ] = None
    plot: Annotated[
        Path | None,
        typer.Option(
            help="A .png file to draw the values' distribution in, or what the command says."
        ),
    ] = None
    directed: options.Directed = None
    columns: options.Columns = None
    device: options.ReadingDevice = "cpu"
    as_json: JsonOption = False


PICTURES = (".png", ".svg")  # of an ego network


class Model(StrEnum):
    component = "component"
    core = "core"
    truss = "truss"


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


@app.command("diversity")
@failing_in_one_line
@sharing(Watching)
@sharing(Running)
def diversity(
    target: Annotated[
        str,
        typer.Argument(
            help="A saved store, a checkpoint directory, an edge file, a dataset's name, a "
            "generator as 'rmat:scale=18', or a live stream: its embedded log or kafka://HOST:PORT."
        ),
    ],
    running: Running,
    watching: Watching,
    model: Annotated[Model, typer.Option(help="What a social context is.")] = Model.truss,
    k: Annotated[int, typer.Option(min=1, help="How large or dense a context is at least.")] = 4,
) -> None:
    """Structural diversity: the vertices whose neighbours form the most social contexts.

    Directions do not count. --plot draws the best vertex's neighbours and their contexts, as .png
    or .svg. On a live stream all is done again as the graph grows."""
    given = {"model": model.value, "k": k}
    aside = {"top": running.top, "every": running.out is not None}
    if not is_stream(target):
        if watching != Watching():
            raise typer.BadParameter(
                f"{target} is no stream, which --every, --batch-size, --follow and --kafka-config "
                "are for: give an embedded log or kafka://HOST:PORT"
            )
        _run("diversity", target, running, aside, PICTURES, **given)
        return
    _check_names(running.out, running.plot, PICTURES)
    if running.columns is not None:
        raise typer.BadParameter(f"{target} is a stream", param_hint="--columns")
    import lpma

    with Screen() as screen:
        task = _Task("diversity", target, running, given, aside, screen)
        directed = running.directed is not False
        graph = lpma.Graph(device=running.device, directed=directed, times=False)

        def look(operations: int) -> None:
            task.run_on(graph)
            figures = [f"{name.replace('_', ' ')} {v}" for name, v in task.found.summary.items()]
            best = [f"vertex {row['vertex']}" for row in task.found.top(1)]
            screen.say(f"after {operations:,} operations: {', '.join(figures + best)}")

        counts = watch(target, graph, watching, screen, look)
    task.tell(counts)


def _run(
    algorithm: str,
    target: str,
    running: Running,
    aside: dict[str, Any] | None = None,
    pictures: tuple[str, ...] = (".png",),
    **given: Any,
) -> None:
    """Compute and tell. `given` goes to the algorithm and is told, `aside` just goes to it."""
    _check_names(running.out, running.plot, pictures)
    with Screen() as screen:
        task = _Task(algorithm, target, running, given, aside or {}, screen)
        screen.progress("read the graph", 0, None)
        task.run_on(_graph(target, running, screen))
    task.tell({})


@dataclass
class _Task:
    """An algorithm to run; and what was found when it ran last. A vertex is what the graph holds:
    an id that is in no edge and was not added is none."""

    algorithm: str
    target: str
    running: Running
    given: dict[str, Any]
    aside: dict[str, Any]
    screen: Screen
    found: Found = field(init=False)
    facts: dict[str, Any] = field(init=False)

    def run_on(self, graph: lpma.Graph) -> None:
        """Run, and write the files that were asked for."""
        from .. import analyses, outcomes

        self.screen.progress(f"run {self.algorithm}", 0, None)
        started = time.perf_counter()
        s = graph.snapshot(compact=True)
        snapshot_seconds = time.perf_counter() - started
        with warnings.catch_warnings(record=True) as said_meanwhile:
            started = time.perf_counter()
            self.found = analyses.ANALYSES[self.algorithm](s, **self.given, **self.aside)
            seconds = time.perf_counter() - started
        for warning in said_meanwhile:
            self.screen.say(f"lpma: {warning.message}")
        if self.running.out is not None:
            outcomes.write(self.running.out, self.found.columns)
        if self.running.plot is not None:
            self.found.plot(self.running.plot, f"{self.algorithm} of {self.target}")
        self.facts = {
            "target": self.target,
            "algorithm": self.algorithm,
            "device": graph.device,
            "vertices": s.num_vertices,
            "edges": s.num_edges,
            "directed": s.directed,
            "version": s.version,
            **self.given,
            **self.found.summary,
            "snapshot_seconds": round(snapshot_seconds, 4),
            "seconds": round(seconds, 4),
        }

    def tell(self, more: dict[str, Any]) -> None:
        """Print what was found, with `more` facts."""
        written = {"out": self.running.out, "plot": self.running.plot}
        files = {name: str(path) for name, path in written.items() if path is not None}
        facts = {**self.facts, **more}
        if self.running.as_json:
            emit({**facts, "top": self.found.top(self.running.top), **files})
        else:
            _tell(self.found, facts, self.running.top, files)


def _check_names(out: Path | None, plot: Path | None, pictures: tuple[str, ...]) -> None:
    """Names that cannot be written are told before anything is computed."""
    from lpma.files import check_writable

    for path, suffixes, option in ((out, (".npz", ".csv"), "--out"), (plot, pictures, "--plot")):
        if path is None:
            continue
        if path.suffix not in suffixes:
            raise typer.BadParameter(
                f"the name must end with {' or '.join(suffixes)}", param_hint=option
            )
        check_writable(path)


def _graph(target: str, running: Running, screen: Screen) -> lpma.Graph:
    """The graph of a store, or one made of edges for this run alone."""
    path, directed, columns = Path(target), running.directed, running.columns
    if not path.is_dir() and not is_store(path):
        return load_graph(target, directed, columns, running.device, screen)
    for option, value in (("--directed/--undirected", directed), ("--columns", columns)):
        if value is not None:
            raise typer.BadParameter(f"{target} is a store already", param_hint=option)
    return open_store(path, running.device).graph


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
        table = Table(*rows[0], box=None, padding=(0, 2))
        for row in rows:
            table.add_row(*(_cell(value, name == found.value) for name, value in row.items()))
        Console(highlight=False).print(table)


def _cell(value: Any, is_value: bool) -> str:
    """Of lists, such as contexts, their lengths."""
    if isinstance(value, list):
        return "of " + ", ".join(str(len(part)) for part in value) if value else ""
    # An id is a name, not a count: no commas in it.
    return said(value) if is_value else str(value)
