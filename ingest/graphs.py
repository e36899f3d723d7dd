"""Graphs made of files of edges: `read_csv`, `read_parquet`, `read_json`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import lpma
from lpma.arrays import to_host
from lpma.batch.columns import Columns
from lpma.names import Names as Dictionary

from .errors import SourceError
from .pipeline.record_decoder import ends_of, mapped
from .sources.files.edges import EdgeFile, open_edges
from .sources.files.kinds import CALLED, LISTS
from .sources.files.reading import Asked, Column
from .sources.files.recognition import format_of
from .types import Names

BATCH_SIZE = 1_000_000  # operations
_OF_FILES = (
    "header", "separator", "names", "kind", "kinds", "decimal", "thousands", "time_unit",
    "bipartite",
)  # fmt: skip


def read_csv(
    path: str | os.PathLike[str],
    source: Column | None = None,
    target: Column | None = None,
    weight: Column | None = None,
    time: Column | None = None,
    *,
    accept_bad: float | None = None,
    **options: Any,
) -> lpma.Graph:
    """A graph of a file of text with an edge a line, read as `lpma load` reads it.

    source, target, weight, time: the columns, by name or number; what is not said is guessed, as
    `read_edges` does. accept_bad: the share of the rows that may be left out; None: one in a
    hundred, or ten. options: those of `read_edges` (header, separator, names, kind, kinds, decimal,
    thousands, time_unit, bipartite), and of `lpma.Graph` (device, directed, weight_dtype …).

    A warning says what was left out, which weights were rounded, and what may be wrong with the
    reading. Raises SourceError.

    >>> _ = Path("own.csv").write_text("from,to,amount\\nalice,bob,3\\nbob,carol,1.5\\n")
    >>> ingest.read_csv("own.csv", device="cpu").edge("bob", "carol").weight
    1.5
    """
    form = format_of(Path(path))
    if form not in LISTS:
        raise SourceError(f"{path}: {CALLED[form]}: ingest.read_edges reads it")
    return _read(path, form, (source, target, weight, time), accept_bad, options)


def read_parquet(
    path: str | os.PathLike[str],
    source: Column | None = None,
    target: Column | None = None,
    weight: Column | None = None,
    time: Column | None = None,
    *,
    accept_bad: float | None = None,
    **options: Any,
) -> lpma.Graph:
    """A graph of a Parquet file with an edge a row; the arguments are those of `read_csv`.

    >>> import pyarrow
    >>> from pyarrow import parquet
    >>> parquet.write_table(pyarrow.table({"from": [1, 2], "to": [2, 3]}), "own.parquet")
    >>> ingest.read_parquet("own.parquet", device="cpu").num_edges
    2
    """
    return _read(path, "parquet", (source, target, weight, time), accept_bad, options)


def read_json(
    path: str | os.PathLike[str],
    source: Column | None = None,
    target: Column | None = None,
    weight: Column | None = None,
    time: Column | None = None,
    *,
    accept_bad: float | None = None,
    **options: Any,
) -> lpma.Graph:
    """A graph of JSON lines, an object an edge; the arguments are those of `read_csv`. A field may
    be a dotted path.

    >>> _ = Path("own.jsonl").write_text('{"after": {"from": 1, "to": 2}}')
    >>> ingest.read_json("own.jsonl", "after.from", "after.to", device="cpu").num_edges
    1
    """
    return _read(path, "jsonl", (source, target, weight, time), accept_bad, options)


def _read(
    path: str | os.PathLike[str],
    form: str,
    columns: tuple[Column | None, ...],
    accept_bad: float | None,
    options: dict[str, Any],
) -> lpma.Graph:
    of_file = {name: options.pop(name) for name in _OF_FILES if name in options}
    of_file["kinds"] = of_file.get("kinds") or {}
    roles: dict[str, Any] = dict(zip(("source", "target", "weight", "time"), columns, strict=True))
    asked = Asked(**roles, **of_file)
    directed = options.pop("directed", None)
    file = open_edges(Path(path), asked, form, None, mirror=directed is True)
    if directed is None:
        directed = file.reading.directed is not False
    left = None if file.sides is None else file.sides.left
    graph = lpma.Graph(directed, names=file.reading.named, left=left, **options)
    name_sides(graph, file)
    rounded, operations = Rounded(graph.weight_dtype), 0
    for batch in batches_of(with_ids(piece, graph.names) for piece in file):
        rounded.count(batch.weight)
        graph.apply(batch)
        operations += len(batch)
    add_missing(graph, file.vertices())
    if not operations:
        raise SourceError(file.left_out.nothing_of(path))
    if text := file.left_out.too_many(operations, accept_bad):
        raise SourceError(f"{path}: {text}")
    told = [*file.reading.notes(directed), str(rounded) if rounded.rows else ""]
    told += [str(file.left_out)] if file.left_out.count else []
    for text in filter(None, told):
        warnings.warn(f"{path}: {text}", stacklevel=3)
    return graph


# -- steps that the command line has, too ---------------------------------------------------------


def name_sides(graph: lpma.Graph, file: EdgeFile) -> None:
    """Add the vertices of a file with two kinds of them, those of the left side first."""
    if file.sides is not None and graph.names is not None:
        graph.add_vertices([name for side in file.sides.names for name in side])


def add_missing(graph: lpma.Graph, vertices: Any) -> None:
    """Add those of the vertices that are not there."""
    if len(vertices):
        graph.add_vertices(vertices[~np.asarray(to_host(graph.has_vertices(vertices)))])


def with_ids(batch: Columns, names: Dictionary | None) -> Columns:
    """The operations with ids for names."""
    if names is None:
        return batch
    ids = mapped(names, batch, ends_of(Names(batch.src, batch.dst)))
    return ids.replace(ids_resolved=True)


def batches_of(pieces: Iterator[Columns], batch_size: int = BATCH_SIZE) -> Iterator[Columns]:
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
