"""What `lpma load` and `lpma run` make a graph from: the edges of a file, a dataset, a
generator."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from lpma.arrays import to_host
from lpma.batch.columns import Columns
from lpma.interop.edges import lost_weights

from ..formats.json import JsonFields
from ..sources.files.left_out import LeftOut
from ..sources.files.pieces import Vertices
from ..sources.files.reading import Reading
from ..state.vertex_names import VertexNames
from ..types import Names
from ._console import Screen
from ._file_options import FileOptions, check_json_fields
from ._targets import TargetError, is_stream

if TYPE_CHECKING:
    import lpma
    from lpma.names import Names as Dictionary

BATCH_SIZE = 1_000_000  # operations


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

    @property
    def named(self) -> bool:
        """Whether vertices go by names, so that the graph has to know them."""
        return self.reading is not None and self.reading.named

    def facts(self) -> dict[str, Any]:
        """What is reported about a file's lines."""
        return {**self.left_out.facts(), **({} if self.reading is None else self.reading.facts())}


def load_graph(
    source: str,
    directed: bool | None,
    options: FileOptions,
    device: str,
    screen: Screen,
) -> tuple[lpma.Graph, VertexNames]:
    """A graph of what `load` takes, with its defaults but for times, and not saved."""
    import lpma

    edges = find_edges(source, directed, options, screen, download=True, verify=True)
    graph = lpma.Graph(device=device, directed=edges.directed, times=False, names=edges.named)
    fill(graph, edges, BATCH_SIZE, False, screen)
    return graph, edges.names


def fill(
    graph: lpma.Graph, edges: Edges, batch_size: int, strict: bool, screen: Screen
) -> tuple[int, float]:
    """Apply the edges in batches, and add what vertices have none. Returns the number of operations
    and the seconds that this took. The screen says which lines were left out, and how many made no
    edge for their weight.

    Raises TargetError on a bad line if `strict`, or if a file's lines are all bad."""
    seconds, operations = 0.0, 0
    edges.names = VertexNames(graph.names)
    pieces = (_with_ids(piece, graph.names) for piece in _ahead(edges.pieces))
    if edges.reading is not None and edges.reading.stored and graph.weight_dtype is None:
        pieces = (piece.replace(weight=None) for piece in pieces)  # one of weight 0 is an edge
    for batch in _batches(pieces, batch_size):
        started = time.perf_counter()
        graph.apply(batch)
        seconds += time.perf_counter() - started
        operations += len(batch)
        screen.progress("load", operations, edges.total)
    vertices = edges.vertices()
    if len(vertices):
        graph.add_vertices(vertices[~np.asarray(to_host(graph.has_vertices(vertices)))])
    left_out = edges.left_out
    if edges.total is None and operations == 0 and not len(vertices):
        raise TargetError(left_out.nothing_of(edges.what))
    if left_out.count and strict:
        raise TargetError(f"{edges.what}: {left_out}")
    if left_out.count:
        screen.say(f"{edges.what}: {left_out}")
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


def _with_ids(batch: Columns, names: Dictionary | None) -> Columns:
    if names is None:
        return batch
    from ..pipeline.record_decoder import mapped

    ids = mapped(names, batch, Names(batch.src, batch.dst))
    return ids.replace(ids_resolved=True)


def _batches(pieces: Iterator[Columns], batch_size: int) -> Iterator[Columns]:
    """The operations, so many at a time."""
    waiting: list[Columns] = []
    count = 0
    for piece in pieces:
        if waiting and (piece.time is None) != (waiting[0].time is None):
            yield Columns.joined(waiting)
            waiting, count = [], 0
        first = 0
        while first < len(piece):
            last = min(len(piece), first + batch_size - count)
            waiting.append(piece.rows(first, last))
            count += last - first
            first = last
            if count == batch_size:
                yield Columns.joined(waiting)
                waiting, count = [], 0
    if waiting:
        yield Columns.joined(waiting)


def find_edges(
    source: str,
    directed: bool | None,
    options: FileOptions,
    screen: Screen,
    download: bool,
    verify: bool,
    json: JsonFields | None = None,
) -> Edges:
    from .. import datasets
    from ..datasets import generators

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


def _file_edges(
    path: Path, directed: bool | None, options: FileOptions, json: JsonFields | None, screen: Screen
) -> Edges:
    from ..sources.files.edges import open_edges

    check_json_fields(path, json)
    # What a file that is undirected mirrors would count again in a graph that is. Such a file makes
    # one, unless the caller says otherwise.
    file = open_edges(path, options.asked(), None, json, mirror=directed is True)
    is_directed = file.reading.directed is not False if directed is None else directed
    screen.say(str(file.reading))
    for note in file.reading.notes(is_directed):
        screen.say(note)
    edges = Edges(str(path), iter(file), None, is_directed, left_out=file.left_out)
    edges.reading, edges.vertices = file.reading, file.vertices
    return edges
