"""What `lpma load` and `lpma run` make a graph from: the edges of a file, a dataset, a
generator."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from lpma.arrays import to_host
from lpma.batch.columns import Columns
from lpma.interop.edges import lost_weights

from ..fields import Fields
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
    doubtful: Counter[str] = field(default_factory=Counter)

    @property
    def named(self) -> bool:
        """Whether vertices go by names, so that the graph has to know them."""
        return self.reading is not None and self.reading.named

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
        if self.doubtful:
            named = ", ".join(f"{name} {count:,} times" for name, count in self.doubtful.items())
            screen.say(f"{self.what}: read as names of vertices: {named}")


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
    graph = lpma.Graph(device=device, directed=edges.directed, times=False, names=edges.named)
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
    edges.names = VertexNames(graph.names)
    pieces = (_with_ids(piece, edges.names) for piece in edges.pieces)
    if edges.reading is not None and edges.reading.stored and graph.weight_dtype is None:
        pieces = (piece.replace(weight=None) for piece in pieces)  # one of weight 0 is an edge
    rounded = Rounded(graph.weight_dtype)
    for batch in _batches(pieces, batch_size):
        rounded.count(batch.weight)
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
    edges.check(operations, accept_bad, screen)
    if rounded.rows:
        screen.say(f"{edges.what}: {rounded}")
    if graph.unchanged.not_positive:
        screen.say(f"{edges.what}: {lost_weights(graph)}; with --weight none each row is an edge")
    return operations, seconds


class Rounded:
    """The weights that a store of this type rounds: how many, and the largest error. One that comes
    back as the same decimal number, as 0.1 of a float32, is not."""

    def __init__(self, dtype: np.dtype[Any] | None) -> None:
        self._dtype = dtype if dtype == np.float32 else None
        self.rows = 0
        self._most, self._at = 0.0, 0.0

    def count(self, weights: Any) -> None:
        """Count those of a batch."""
        if self._dtype is None or weights is None:
            return
        errors = np.abs(weights.astype(self._dtype) - weights)
        unequal = np.flatnonzero(errors)
        given = np.abs(weights[unequal])
        # Seven digits come back, as a rule; and so do six always.
        digits = 10.0 ** (6 - np.floor(np.log10(given)))
        unequal = unequal[np.abs(np.rint(given * digits) / digits - given) > 1e-14 * given]
        self.rows += len(unequal)
        if len(unequal) and (most := errors[unequal].max()) > self._most:
            self._most = float(most)
            self._at = float(weights[unequal[errors[unequal].argmax()]])

    def __str__(self) -> str:
        held = float(np.float32(self._at))
        weights = "weight was" if self.rows == 1 else "weights were"
        return (
            f"{self.rows:,} {weights} rounded to float32, by {self._most:.3g} at most "
            f"({self._at!r} to {held!r}): --weight-dtype float64 keeps them"
        )


def _with_ids(batch: Columns, names: VertexNames) -> Columns:
    if names.dictionary is None:
        return batch
    from ..pipeline.record_decoder import mapped

    ids = mapped(names.dictionary, batch, Names(batch.src, batch.dst))
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
    json: Fields | None = None,
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
    edges = Edges(str(path), iter(file), None, is_directed, left_out=file.left_out)
    edges.reading, edges.vertices, edges.doubtful = file.reading, file.vertices, file.doubtful
    return edges
