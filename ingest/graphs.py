"""Graphs made of files of edges: `read_csv`, `read_parquet`, `read_json`."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import lpma
from lpma.arrays import to_host
from lpma.batch.columns import Columns
from lpma.names import Names as Dictionary

from .errors import SourceError
from .fields import Field as Column
from .pipeline.record_decoder import ends_of, mapped
from .sources.files.edges import EdgeFile, format_in, open_edges
from .sources.files.formats import CALLED, LISTS
from .sources.files.reading import Arguments, Asked
from .types import Names

BATCH_SIZE = 1_000_000  # operations, at the least
SHARE = 4  # of the edges there are, batches are no smaller: else most time goes into moving these


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
    form = format_in(Path(path))
    if form not in LISTS:
        raise SourceError(f"{path}: {CALLED[form]}: ingest.read_edges reads it")
    return _read(form, path, source, target, weight, time, accept_bad=accept_bad, **options)


def read_parquet(path: str | os.PathLike[str], *columns: Any, **options: Any) -> lpma.Graph:
    """A graph of a Parquet file with an edge a row; the arguments are those of `read_csv`.

    >>> import pyarrow
    >>> from pyarrow import parquet
    >>> parquet.write_table(pyarrow.table({"from": [1, 2], "to": [2, 3]}), "own.parquet")
    >>> ingest.read_parquet("own.parquet", device="cpu").num_edges
    2
    """
    return _read(format_in(Path(path), "parquet"), path, *columns, **options)


def read_json(path: str | os.PathLike[str], *columns: Any, **options: Any) -> lpma.Graph:
    """A graph of JSON lines, an object an edge; the arguments are those of `read_csv`. A field may
    be a dotted path.

    >>> _ = Path("own.jsonl").write_text('{"after": {"from": 1, "to": 2}}')
    >>> ingest.read_json("own.jsonl", "after.from", "after.to", device="cpu").num_edges
    1
    """
    return _read(format_in(Path(path), "jsonl"), path, *columns, **options)


def _read(
    form: str,
    path: str | os.PathLike[str],
    *columns: Column | None,
    accept_bad: float | None = None,
    **options: Any,
) -> lpma.Graph:
    _refuse_unknown(options)
    roles = dict(zip(("source", "target", "weight", "time"), columns, strict=False))
    said = {name: options.pop(name) for name in Arguments.__annotations__ if name in options}
    directed = options.pop("directed", None)
    asked = Asked.of({**roles, **said})
    file = open_edges(Path(path), asked, form, mirror=directed is True)
    if directed is None:
        directed = file.reading.directed is not False
    graph = lpma.Graph(directed, names=file.reading.named, left=file.left, **options)
    *_, filled = fill(graph, iter(file), file)
    if filled.is_empty:
        raise SourceError(file.left_out.nothing_of(path))
    if text := file.left_out.too_many(filled.operations, accept_bad):
        raise SourceError(f"{path}: {text}")
    told = [*file.reading.notes(directed), str(filled.rounded) if filled.rounded.rows else ""]
    told += [str(file.left_out)] if file.left_out.count else []
    for text in filter(None, told):
        warnings.warn(f"{path}: {text}", stacklevel=3)
    return graph


def _refuse_unknown(options: dict[str, Any]) -> None:
    """Raise TypeError for an option that neither `read_edges` nor `lpma.Graph` has."""
    known = {*Arguments.__annotations__, *inspect.signature(lpma.Graph).parameters} - {"left"}
    for name in options:
        if name not in known:
            near = get_close_matches(name, sorted(known), 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}"
            raise TypeError(f"unexpected keyword argument {name!r}: {hint}")


# -- filling a graph, which the command line does, too --------------------------------------------


@dataclass
class Filled:
    """What has come into a graph so far. seconds: in which it was applied; vertices: how many it
    was said to have besides those of edges."""

    rounded: Rounded
    operations: int = 0
    seconds: float = 0.0
    vertices: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing came."""
        return not self.operations and not self.vertices


def fill(
    graph: lpma.Graph,
    pieces: Iterator[Columns],
    file: EdgeFile | None = None,
    batch_size: int = BATCH_SIZE,
) -> Iterator[Filled]:
    """Apply operations, those of `file` if it is given, in batches of that size, and larger ones
    as the graph grows; yields after each, and at the end, what has come so far."""
    filled = Filled(Rounded(graph.weight_dtype))
    if (
        file is not None and file.sides is not None and graph.names is not None
    ):  # the left side first
        graph.add_vertices([name for side in file.sides.names for name in side])
    pieces = (_with_ids(piece, graph.names) for piece in _ahead(pieces))
    if file is not None and file.reading.stored and graph.weight_dtype is None:
        pieces = (piece.replace(weight=None) for piece in pieces)  # one of weight 0 is an edge
    for batch in _batches_of(pieces, lambda: max(batch_size, graph.num_edges // SHARE)):
        filled.rounded.count(batch.weight)
        started = perf_counter()
        graph.apply(batch)
        filled.seconds += perf_counter() - started
        filled.operations += len(batch)
        yield filled
    if file is not None and (count := len(vertices := file.vertices())):
        filled.vertices = count
        graph.add_vertices(vertices[~np.asarray(to_host(graph.has_vertices(vertices)))])
    yield filled


def _ahead(pieces: Iterator[Columns]) -> Iterator[Columns]:
    """The same; a thread reads the next piece meanwhile."""
    with ThreadPoolExecutor(1) as beside:
        coming = beside.submit(next, pieces, None)
        while (piece := coming.result()) is not None:
            coming = beside.submit(next, pieces, None)
            yield piece


def _with_ids(batch: Columns, names: Dictionary | None) -> Columns:
    """The operations with ids for names."""
    if names is None:
        return batch
    ids = mapped(names, batch, ends_of(Names(batch.src, batch.dst)))
    return ids.replace(ids_resolved=True)


def _batches_of(pieces: Iterator[Columns], size: Callable[[], int]) -> Iterator[Columns]:
    """The operations, so many at a time; size: asked for each batch."""
    waiting: list[Columns] = []
    count, most = 0, size()
    for piece in pieces:
        if waiting and (piece.time is None) != (waiting[0].time is None):
            yield Columns.joined(waiting)
            waiting, count, most = [], 0, size()
        first = 0
        while first < len(piece):
            last = min(len(piece), first + most - count)
            waiting.append(piece.rows(first, last))
            count += last - first
            first = last
            if count == most:
                yield Columns.joined(waiting)
                waiting, count, most = [], 0, size()
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
