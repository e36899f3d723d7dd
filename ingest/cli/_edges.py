"""What `lpma load` and `lpma run` make a graph from: the edges of a file, a dataset, a
generator."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from lpma.batch.columns import Columns
from lpma.interop.edges import lost_weights

from ..fields import Fields
from ..graphs import (
    BATCH_SIZE,
    Rounded,
    add_missing,
    batches_of,
    name_sides,
    with_ids,
)
from ..sources.files.edges import EdgeFile
from ..sources.files.left_out import LeftOut
from ..sources.files.pieces import Vertices
from ..sources.files.reading import Reading
from ..state.vertex_names import VertexNames
from ._console import Screen
from ._file_options import FileOptions, check_json_fields
from ._targets import TargetError, is_stream

if TYPE_CHECKING:
    import lpma


@dataclass
class Edges:
    """The operations that `load` applies, piece by piece, and what is known about them; for a file,
    also what is noticed while it is read. names: the graph's, once it is filled."""

    what: str
    pieces: Iterator[Columns]
    total: int | None
    directed: bool
    names: VertexNames = field(default_factory=VertexNames)
    left_out: LeftOut = field(default_factory=LeftOut)
    reading: Reading | None = None
    vertices: Vertices = lambda: np.empty(0, np.uint32)
    file: EdgeFile | None = None
    held: Any = None  # what goes when this does

    @property
    def named(self) -> bool:
        """Whether vertices go by names, so that the graph has to know them."""
        return self.reading is not None and self.reading.named

    @property
    def left(self) -> int | None:
        """How many vertices the left side has, if there are two kinds."""
        sides = None if self.file is None else self.file.sides
        return None if sides is None else sides.left

    def facts(self) -> dict[str, Any]:
        """What is reported about a file's lines."""
        return {**self.left_out.facts(), **({} if self.reading is None else self.reading.facts())}

    def check(self, operations: int, accepted: float | None, screen: Screen) -> None:
        """Say what was left out of a file, and which names may be none. Raises TargetError if too
        much was left out."""
        if text := self.left_out.too_many(operations, accepted):
            raise TargetError(f"{self.what}: nothing was written: {text}")
        if self.left_out.count:
            screen.say(f"{self.what}: {self.left_out}")
        if self.file is not None and self.file.doubtful:
            said = ", ".join(f"{name} ({count:,})" for name, count in self.file.doubtful.items())
            screen.say(f"{self.what}: read as names of vertices: {said}")


def load_graph(
    source: str,
    directed: bool | None,
    options: FileOptions,
    device: str,
    screen: Screen,
    accept_bad: float | None = None,
) -> tuple[lpma.Graph, VertexNames]:
    """A graph of what `load` takes, with its defaults but for times, and not saved."""
    import lpma

    edges = find_edges(source, directed, options, screen, download=True, verify=True)
    graph = lpma.Graph(
        device=device, directed=edges.directed, times=False, names=edges.named, left=edges.left
    )
    fill(graph, edges, BATCH_SIZE, False, screen, accept_bad)
    return graph, edges.names


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
    seconds, operations = 0.0, 0
    if edges.file is not None:
        name_sides(graph, edges.file)
    edges.names = VertexNames(graph.names)
    pieces = (with_ids(piece, graph.names) for piece in _ahead(edges.pieces))
    if edges.reading is not None and edges.reading.stored and graph.weight_dtype is None:
        pieces = (piece.replace(weight=None) for piece in pieces)  # one of weight 0 is an edge
    rounded = Rounded(graph.weight_dtype)
    for batch in batches_of(pieces, batch_size):
        rounded.count(batch.weight)
        started = time.perf_counter()
        graph.apply(batch)
        seconds += time.perf_counter() - started
        operations += len(batch)
        screen.progress("load", operations, edges.total)
    vertices = edges.vertices()
    add_missing(graph, vertices)
    left_out = edges.left_out
    if edges.total is None and operations == 0 and not len(vertices):
        raise TargetError(left_out.nothing_of(edges.what))
    if left_out.count and strict:
        raise TargetError(f"{edges.what}: {left_out}")
    edges.check(operations, accept_bad, screen)
    if rounded.rows:
        screen.say(f"{edges.what}: {rounded}")
    if graph.unchanged.not_positive:
        screen.say(f"{edges.what}: {lost_weights(graph)}; with --weight none each row is an edge")
    return operations, seconds


def _ahead(pieces: Iterator[Columns]) -> Iterator[Columns]:
    """The same; a thread reads the next piece meanwhile."""
    with ThreadPoolExecutor(1) as beside:
        coming = beside.submit(next, pieces, None)
        while (piece := coming.result()) is not None:
            coming = beside.submit(next, pieces, None)
            yield piece


def find_edges(
    source: str,
    directed: bool | None,
    options: FileOptions,
    screen: Screen,
    download: bool,
    verify: bool,
    json: Fields | None = None,
) -> Edges:
    from .. import datasets
    from ..datasets import generators

    if source == "-":
        folder = tempfile.TemporaryDirectory(prefix="lpma-")
        edges = _file_edges(_of_stdin(Path(folder.name)), directed, options, json, screen)
        edges.held = folder
        return edges
    if is_stream(source):
        raise TargetError(
            f"{source}: a stream is not read here: `lpma ingest` keeps a graph of it, in a "
            "checkpoint or saved, and `lpma run diversity` watches it"
        )
    if Path(source).is_file() or (Path(source).is_dir() and source not in datasets.names()):
        return _file_edges(Path(source), directed, options, json, screen)
    for option, value in ((options.said(), options.said()), ("--src-field", json)):
        if value is not None:
            raise typer.BadParameter(f"{source} is not a file", param_hint=option)
    if source.partition(":")[0] in generators.names():
        try:
            made = generators.from_spec(source)
        except generators.GeneratorError as error:
            raise typer.BadParameter(str(error), param_hint="SOURCE") from error
        road = source.startswith("grid")
        return Edges(source, iter([made]), len(made), not road if directed is None else directed)
    if source not in datasets.names() and ("/" in source or Path(source).suffix):
        raise TargetError(f"{source}: no such file")
    graph = datasets.load(source, download=download, verify=verify, progress=screen.progress)
    made = graph.columns()
    what = f"{source} ({graph.path})"
    return Edges(what, iter([made]), len(made), graph.directed if directed is None else directed)


def _of_stdin(folder: Path) -> Path:
    """What stdin holds, as a file: it is looked at before it is read."""
    path = folder / "stdin"
    with open(path, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


def _file_edges(
    path: Path, directed: bool | None, options: FileOptions, json: Fields | None, screen: Screen
) -> Edges:
    from ..sources.files.edges import open_edges

    check_json_fields(path, json)
    # What a file that is undirected mirrors would count again in a graph that is. Such a file makes
    # one, unless the caller says otherwise.
    file = open_edges(path, options.asked(), options.format, json, mirror=directed is True)
    is_directed = file.reading.directed is not False if directed is None else directed
    screen.say(str(file.reading))
    for note in file.reading.notes(is_directed):
        screen.say(note)
    what = "stdin" if path.name == "stdin" else str(path)
    edges = Edges(what, iter(file), None, is_directed, left_out=file.left_out)
    edges.reading, edges.vertices = file.reading, file.vertices
    edges.file = file
    if file.sides is not None and (note := file.sides.note()):
        screen.say(note)
    return edges
