"""What the commands of `lpma run` share: read a graph, run an algorithm, report the result."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from ...state.vertex_names import VertexNames, Vertices, word_of
from .. import _options
from .._as_of import AsOfOptions, open_as_of
from .._completion import sources
from .._console import JsonOption, Screen, emit, format_value, show, table
from .._edges import load_graph
from .._file_options import AcceptBad, FileOptions
from .._recent import ViewOptions, reading_weights
from .._targets import is_store
from .._typer import option

if TYPE_CHECKING:
    import lpma
    from lpma.snapshot.stored import StoredGraph

    from ...analyses import Result

T = TypeVar("T")

FIRST_LENGTHS = 10  # of the lists in a cell of a table

Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        autocompletion=sources,
        help="A saved store, a checkpoint directory (of a running stream, too), an edge file, "
        "a dataset's name, or a generator such as 'rmat:scale=18'.",
    ),
]


Top = Annotated[int, typer.Option("--top", min=0, help="How many of the largest values to show.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", show_default=False, help="A .npz or .csv file to write all values to."),
]


@dataclass(frozen=True)
class ReadOptions(AsOfOptions, FileOptions, ViewOptions):
    """How the graph is read, and the result printed."""

    directed: _options.Directed = None
    accept_bad: AcceptBad = None
    device: _options.ReadingDevice = "cpu"
    as_json: JsonOption = False


@dataclass(frozen=True)
class AlgorithmOptions(ReadOptions):
    """What every command takes whose algorithm gives values to vertices or edges."""

    top: Top = 5
    out: Out = None
    plot: Path | None = option(
        "--plot",
        help="A .png file for a plot of the values' distribution, or of what the command names.",
    )


def run(
    algorithm: str,
    target: str,
    options: AlgorithmOptions,
    aside: dict[str, Any] | None = None,
    pictures: tuple[str, ...] = (".png",),
    **given: Any,
) -> None:
    """Run and report. `given` are arguments of the algorithm that are reported, `aside` those that
    are not."""
    check_names(options.out, options.plot, pictures)
    if options.half_life is not None:
        given = reading_weights(algorithm, given)
    with Screen() as screen:
        task = Task(algorithm, target, options, given, aside or {}, screen)
        screen.progress("read the graph", 0, None)
        task.run_on(*read_graph(target, options, screen))
    task.tell({})


@dataclass
class Task:
    """An algorithm to run, and what it found last. Its vertices are those the graph holds: an id
    that is in no edge and was not added is not a vertex."""

    algorithm: str
    target: str
    options: AlgorithmOptions
    given: dict[str, Any]
    aside: dict[str, Any]
    screen: Screen
    found: Result = field(init=False)
    facts: dict[str, Any] = field(init=False)
    drawn: bool = False

    def run_on(
        self, graph: lpma.Graph | StoredGraph, names: VertexNames, growing: bool = False
    ) -> None:
        """Run, and write the requested files. `names` are what vertices go by. If the
        graph is `growing`, a picture waits for its first vertex."""
        from lpma.cpu.jit import telling

        from ... import analyses
        from . import _result_files

        self.screen.progress(f"run {self.algorithm}", 0, None)
        before = telling.seconds
        taken, snapshot_seconds = analyses.timed(
            lambda: self.options.snapshot(graph, self.screen, compact=True)
        )
        s = taken._with(names=None)  # by row: `Vertices` has the names
        with warnings.catch_warnings(record=True) as said_meanwhile:
            given, vertices = {**self.given, **self.aside}, Vertices(s, names)
            analysis = analyses.ANALYSES[self.algorithm]
            self.found, seconds = analyses.timed(lambda: analysis(s, vertices, **given))
        for warning in said_meanwhile:
            self.screen.say(f"lpma: {warning.message}")
        if self.options.out is not None:
            _result_files.write(self.options.out, self.found.columns)
        if self.options.plot is not None and not (growing and s.num_rows == 0):
            self.found.plot(self.options.plot, self.title)
            self.drawn = True
        self.facts = facts_of(
            self.algorithm, self.target, graph, s, **self.given, **self.found.summary,
            snapshot_seconds=round(snapshot_seconds, 4),
            compile_seconds=round(telling.seconds - before, 4), seconds=round(seconds, 4),
        )  # fmt: skip

    @property
    def title(self) -> str:
        """Of the picture: the algorithm and its arguments, and the target without its folder."""
        target = Path(self.target)
        of = target.stem if target.exists() else self.target
        given = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in self.given.items()
                          if value is not None)  # fmt: skip
        return f"{self.algorithm}{f' ({given})' if given else ''} of {of}"

    def tell(self, more: dict[str, Any]) -> None:
        """Print what was found, with `more` facts."""
        written = {"out": self.options.out, "plot": self.options.plot if self.drawn else None}
        files = {name: str(path) for name, path in written.items() if path is not None}
        facts = {**self.facts, **more}
        if self.options.as_json:
            emit({**facts, "top": self.found.top(self.options.top), **files})
        else:
            show_facts({**facts, **files})
            show_rows(self.found.top(self.options.top), self.found.value)


def check_names(out: Path | None, plot: Path | None, pictures: tuple[str, ...]) -> None:
    """Refuse files that cannot be written, before anything is computed."""
    from lpma.file.atomic import check_writable

    for path, suffixes, name in ((out, (".npz", ".csv"), "--out"), (plot, pictures, "--plot")):
        if path is None:
            continue
        if path.suffix not in suffixes:
            raise typer.BadParameter(
                f"the name must end with {' or '.join(suffixes)}", param_hint=name
            )
        check_writable(path)


def read_graph(target: str, options: ReadOptions, screen: Screen) -> tuple[Any, VertexNames]:
    """The graph of a store, or one made of edges for this run alone; what its vertices go by."""
    path, directed = Path(target), options.directed
    if not path.is_dir() and not is_store(path):
        options.check_unused(target)
        return load_graph(
            target, directed, options, options.device, screen, options.accept_bad, options
        )
    said = options.said() if directed is None else "--directed/--undirected"
    if said is not None:
        raise typer.BadParameter(f"{target} is a store already", param_hint=said)
    opened = open_as_of(path, options.device, options, contents=True)
    options.check_view(opened.graph.has_times)
    return opened.graph, opened.names


def facts_of(
    algorithm: str, target: str, graph: lpma.Graph | StoredGraph, s: lpma.Snapshot, **more: Any
) -> dict[str, Any]:
    return {
        "target": target,
        "algorithm": algorithm,
        "device": graph.device,
        "vertices": s.num_vertices,
        "rows": graph.num_rows,
        "edges": s.num_edges,
        "directed": s.directed,
        "version": s.version,
        **more,
    }


def show_rows(rows: list[dict[str, Any]], value: str) -> None:
    """A table of rows; `value` is the column that is no vertex."""
    if rows:
        cells = [[_cell(it, name == value) for name, it in row.items()] for row in rows]
        table(list(rows[0]), cells)


def show_facts(facts: dict[str, Any]) -> None:
    show(
        f"{facts['algorithm']} of {facts['target']}",
        {name.replace("_", " "): value for name, value in facts.items()
         if name not in ("target", "algorithm")},
    )  # fmt: skip


def _cell(value: Any, is_value: bool) -> str:
    """A cell's text: for lists, such as contexts, the lengths of the first ones."""
    if isinstance(value, list):
        lengths = ", ".join(str(len(part)) for part in value[:FIRST_LENGTHS])
        more = len(value) - FIRST_LENGTHS
        return (f"of {lengths}" + (f" and {more:,} more" if more > 0 else "")) if value else ""
    # What a vertex goes by is not a count, even if it is an integer: no commas in it.
    return format_value(value) if is_value else word_of(value)
