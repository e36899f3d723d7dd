"""What `lpma load` and `lpma run` make a graph from: the edges of a file, a dataset, a
generator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from lpma.batch.columns import Columns
from lpma.interop.edges import lost_weights

from .. import graphs
from ..errors import SourceError
from ..graphs import BATCH_SIZE
from ..sources.files.edges import EdgeFile
from ..sources.files.left_out import LeftOut
from ..sources.files.unpacking import is_pipe, share_read
from ..state.vertex_names import VertexNames
from ._console import Screen
from ._file_options import FileOptions
from ._recent import ALL, ViewOptions
from ._targets import STDIN, TargetError, is_stream, spooled

if TYPE_CHECKING:
    import lpma


@dataclass
class Edges:
    """The operations that `load` applies, piece by piece, and what is known about them."""

    what: str
    pieces: Iterator[Columns]
    total: int | None
    directed: bool
    timed: bool  # whether it says when an operation was
    file: EdgeFile | None = None

    @property
    def named(self) -> bool:
        """Whether vertices go by names, so that the graph has to know them."""
        return self.file is not None and self.file.reading.named

    @property
    def dated(self) -> bool:
        """Whether its times are dates, which became milliseconds."""
        return self.file is not None and self.file.reading.times == "dates"

    @property
    def left(self) -> int | None:
        """How many vertices the left side has, if there are two kinds."""
        return None if self.file is None else self.file.left

    @property
    def share(self) -> float | None:
        """How much of a file has been read."""
        return None if self.file is None else share_read(self.file.path)

    @property
    def left_out(self) -> LeftOut:
        """What has been left out so far."""
        return LeftOut() if self.file is None else self.file.left_out

    def facts(self) -> dict[str, Any]:
        """What is reported about a file's lines."""
        return {**self.left_out.facts(), **(self.file.reading.facts() if self.file else {})}


def load_graph(
    source: str,
    directed: bool | None,
    options: FileOptions,
    device: str,
    screen: Screen,
    accept_bad: float | None = None,
    view: ViewOptions = ALL,
) -> tuple[lpma.Graph, VertexNames]:
    """A graph of what `load` takes, with its defaults, and not saved; with times only where a
    view is asked for, which is then to be taken."""
    import lpma

    edges = find_edges(source, directed, options, screen, download=True, verify=True)
    view.check_view(edges.timed, edges.dated)
    graph = lpma.Graph(
        device=device, directed=edges.directed, times=view.names_view is not None,
        names=edges.named, left=edges.left,
    )  # fmt: skip
    fill(graph, edges, BATCH_SIZE, False, screen, accept_bad)
    return graph, VertexNames(graph.names)


def fill(
    graph: lpma.Graph,
    edges: Edges,
    batch_size: int,
    strict: bool,
    screen: Screen,
    accept_bad: float | None = None,
) -> tuple[int, float]:
    """Apply the edges in batches, and add what vertices have none. Returns the number of operations
    and the seconds that this took. The screen says which lines were left out, and how many made no
    edge for their weight.

    Raises TargetError on a bad line if `strict`, or if too many of a file's are bad: more than the
    share accept_bad, None: one in a hundred, and ten."""
    for filled in graphs.fill(graph, edges.pieces, edges.file, batch_size):
        screen.progress("load", filled.operations, edges.total, share=edges.share)
    left_out, operations, rounded = edges.left_out, filled.operations, filled.rounded
    if edges.total is None and filled.is_empty:
        raise TargetError(left_out.nothing_of(edges.what))
    if left_out.count and strict:
        raise TargetError(f"{edges.what}: {left_out}")
    if text := left_out.too_many(operations, accept_bad):
        raise TargetError(f"{edges.what}: nothing was written: {text}")
    if left_out.count:
        screen.say(f"{edges.what}: {left_out}")
    if edges.file is not None and (doubtful := edges.file.doubtful):
        said = ", ".join(f"{name} ({count:,})" for name, count in doubtful.items())
        screen.say(f"{edges.what}: read as names of vertices: {said}")
    if rounded.rows:
        screen.say(f"{edges.what}: {rounded}")
    if graph.unchanged.not_positive:
        screen.say(f"{edges.what}: {lost_weights(graph)}; with --weight none each row is an edge")
    return operations, filled.seconds


def find_edges(
    source: str,
    directed: bool | None,
    options: FileOptions,
    screen: Screen,
    download: bool,
    verify: bool,
) -> Edges:
    from .. import datasets
    from ..datasets import generators

    if source == STDIN or is_pipe(Path(source)):
        path, what = spooled(source), "stdin" if source == STDIN else source
        try:
            return _file_edges(path, directed, options, screen, what)
        except SourceError as error:
            raise SourceError(str(error).replace(str(path), what)) from error
    if is_stream(source):
        raise TargetError(
            f"{source}: a stream is not read here: `lpma ingest` keeps a graph of it, in a "
            "checkpoint or saved, and `lpma run diversity` watches it"
        )
    if Path(source).is_file() or (Path(source).exists() and source not in datasets.names()):
        return _file_edges(Path(source), directed, options, screen)
    if (said := options.said()) is not None:
        raise typer.BadParameter(f"{source} is not a file", param_hint=said)
    if source.partition(":")[0] in generators.names():
        try:
            made = generators.from_spec(source)
        except generators.GeneratorError as error:
            raise typer.BadParameter(str(error), param_hint="SOURCE") from error
        road = source.startswith("grid")
        is_directed = not road if directed is None else directed
        return Edges(source, iter([made]), len(made), is_directed, made.time is not None)
    if source not in datasets.names() and ("/" in source or Path(source).suffix):
        raise TargetError(f"{source}: no such file")
    graph = datasets.load(source, download=download, verify=verify, progress=screen.progress)
    made = graph.columns()
    is_directed = graph.directed if directed is None else directed
    what = f"{source} ({graph.path})"
    return Edges(what, iter([made]), len(made), is_directed, made.time is not None)


def _file_edges(
    path: Path, directed: bool | None, options: FileOptions, screen: Screen, what: str | None = None
) -> Edges:
    from ..sources.files.by_networkx import said_before
    from ..sources.files.edges import format_in, open_edges

    format = format_in(path, options.format)
    if (said := said_before(path, format)) is not None:
        screen.say(said)
    # What a file that is undirected mirrors would count again in a graph that is. Such a file makes
    # one, unless the caller says otherwise.
    file = open_edges(path, options.asked(), format, mirror=directed is True)
    is_directed = file.reading.directed is not False if directed is None else directed
    screen.say(str(file.reading))
    for note in file.reading.notes(is_directed):
        screen.say(note)
    if file.sides is not None and (note := file.sides.note()):
        screen.say(note)
    timed = "time" in file.reading.places
    return Edges(what or str(path), iter(file), None, is_directed, timed, file)
