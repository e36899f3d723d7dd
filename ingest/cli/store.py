"""`lpma load` and `lpma export`: stores as files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .console import (
    JsonOption,
    Screen,
    bytes_said,
    counts_said,
    emit,
    failing_in_one_line,
    show,
)
from .sharing import sharing
from .targets import Store, TargetError, graph_facts, is_stream, open_store

if TYPE_CHECKING:
    import lpma


BATCH_SIZE = 1_000_000  # operations


@dataclass
class _Edges:
    """What `load` loads: operations, piece by piece, and what is known before reading them."""

    what: str
    pieces: Iterator[lpma.Columns]
    total: int | None
    directed: bool
    rejected: int = 0
    first_rejected: str = ""


@dataclass(frozen=True)
class Loading(options.Making):
    """How a graph is made, and the file read that it is made of."""

    columns: options.Columns = None


@failing_in_one_line
@sharing(Loading)
def load(
    loading: Loading,
    source: Annotated[
        str,
        typer.Argument(
            help="An edge file (SNAP text, .csv, .mtx, .npz, each but the last also .gz), a "
            "dataset's name, or a generator as 'rmat:scale=18'."
        ),
    ],
    store: Annotated[Path, typer.Argument(help="The file to save the store in.")],
    batch_size: Annotated[int, typer.Option(min=1, help="Operations a batch.")] = BATCH_SIZE,
    download: Annotated[bool, typer.Option(help="Fetch a dataset that is not here.")] = True,
    verify: Annotated[bool, typer.Option(help="Compare a dataset's checksum.")] = True,
    strict: Annotated[bool, typer.Option("--strict", help="Fail on a line that is bad.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Load an edge file, a dataset or a generated graph into a saved store."""
    import lpma
    from lpma.files import check_writable

    asked = loading.asked()
    check_writable(store)
    with Screen() as screen:
        edges = _find_edges(source, loading.directed, loading.columns, screen, download, verify)
        graph = lpma.Graph(device=loading.device, **{"directed": edges.directed, **asked})
        operations, seconds = _fill(graph, edges, batch_size, strict, screen)
        graph.save(store)
    document = {
        "source": edges.what,
        "store": str(store),
        "operations": operations,
        "rejected": edges.rejected,
        "unchanged": graph.unchanged.as_dict(),
        "seconds": round(seconds, 4),
        "bytes": store.stat().st_size,
        **graph_facts(graph),
    }
    if as_json:
        emit(document)
        return
    show(
        f"loaded into {store}",
        {
            "from": edges.what,
            "on": graph.device,
            "operations": operations,
            "unchanged": counts_said(graph.unchanged.as_dict()),
            "vertices": graph.num_vertices,
            "edges": graph.num_edges,
            "seconds": seconds,
            "operations / s": operations / seconds if seconds else None,
            "file": bytes_said(store.stat().st_size),
        },
    )


def load_graph(
    source: str, directed: bool | None, columns: str | None, device: str, screen: Screen
) -> lpma.Graph:
    """A graph of what `load` takes, with its defaults but for times, and not saved."""
    import lpma

    edges = _find_edges(source, directed, columns, screen, download=True, verify=True)
    graph = lpma.Graph(device=device, directed=edges.directed, times=False)
    _fill(graph, edges, BATCH_SIZE, False, screen)
    return graph


def _fill(
    graph: lpma.Graph, edges: _Edges, batch_size: int, strict: bool, screen: Screen
) -> tuple[int, float]:
    """Apply the edges in batches: how many operations, and the seconds that took.

    Raises TargetError on a bad line where `strict`, else says how many were left out."""
    seconds, operations = 0.0, 0
    for batch in _batches(edges.pieces, batch_size):
        started = time.perf_counter()
        graph.apply(batch)
        seconds += time.perf_counter() - started
        operations += len(batch)
        screen.progress("load", operations, edges.total)
    if edges.rejected:
        bad = f"bad lines: {edges.rejected:,}, the first: {edges.first_rejected}"
        if strict:
            raise TargetError(bad)
        screen.say(f"left out {bad}")
    return operations, seconds


def _batches(pieces: Iterator[lpma.Columns], batch_size: int) -> Iterator[lpma.Columns]:
    for piece in pieces:
        for first in range(0, len(piece), batch_size):
            yield piece.rows(first, min(first + batch_size, len(piece)))


def _find_edges(
    source: str,
    directed: bool | None,
    columns: str | None,
    screen: Screen,
    download: bool,
    verify: bool,
) -> _Edges:
    from .. import datasets, generators

    if is_stream(source):
        raise TargetError(
            f"{source}: a stream is not read here: `lpma ingest` keeps a graph of it, in a "
            "checkpoint or saved, and `lpma run diversity` watches it"
        )
    if Path(source).is_file():
        return _file_edges(Path(source), directed, columns)
    if columns is not None:
        raise typer.BadParameter(f"{source} is no file", param_hint="--columns")
    if source.partition(":")[0] in generators.names():
        try:
            made = generators.from_spec(source)
        except generators.GeneratorError as error:
            raise typer.BadParameter(str(error), param_hint="SOURCE") from error
        road = source.startswith("grid")
        return _Edges(source, iter([made]), len(made), not road if directed is None else directed)
    if source not in datasets.names() and ("/" in source or Path(source).suffix):
        raise TargetError(f"{source}: no such file")
    graph = datasets.load(source, download=download, verify=verify, progress=screen.progress)
    made = graph.columns()
    what = f"{source} ({graph.path})"
    return _Edges(what, iter([made]), len(made), graph.directed if directed is None else directed)


def _file_edges(path: Path, directed: bool | None, columns: str | None) -> _Edges:
    from lpma import Columns

    from ..sources.edge_lists import format_of, read_edge_list

    edges = _Edges(str(path), iter([]), None, directed is not False)

    def pieces() -> Iterator[Columns]:
        mirror = edges.directed  # an undirected graph would count the mirrored entry again
        for value in read_edge_list(path, format_of(path), columns, mirror=mirror):
            if isinstance(value, Columns):
                yield value
            else:
                edges.rejected += 1
                text = value.value[:60].decode(errors="replace")
                edges.first_rejected = edges.first_rejected or f"{text!r}: {value.reason}"

    edges.pieces = pieces()
    return edges


class Format(StrEnum):
    npz = "npz"
    parquet = "parquet"
    mtx = "mtx"


@failing_in_one_line
def export(
    store: Store,
    path: Annotated[Path, typer.Argument(help="The file to write: .npz, .parquet or .mtx.")],
    format: Annotated[
        Format | None, typer.Option("--format", help="(default: by the name)", show_default=False)
    ] = None,
    compact: Annotated[
        bool, typer.Option("--compact", help="Renumber the vertices present, keeping their ids.")
    ] = False,
    device: options.ReadingDevice = "cpu",
    as_json: JsonOption = False,
) -> None:
    """Export a snapshot: CSR arrays (.npz), an edge table (.parquet) or Matrix Market (.mtx)."""
    from lpma.files import check_writable

    known = [f.value for f in Format]
    chosen = format.value if format is not None else path.suffix.removeprefix(".")
    if chosen not in known or path.suffix != f".{chosen}":
        raise typer.BadParameter(
            f"the name must end with .{chosen if format else ', .'.join(known)}", param_hint="PATH"
        )
    check_writable(path)
    started = time.perf_counter()
    with Screen() as screen:
        s = open_store(store, device).graph.snapshot(compact=compact)
        screen.progress(f"write {path.name}", 0, None)
        {"npz": s.write_npz, "parquet": s.write_parquet, "mtx": s.write_matrix_market}[chosen](path)
    size = path.stat().st_size
    if as_json:
        emit(
            {
                "store": str(store),
                "path": str(path),
                "format": chosen,
                "vertices": s.num_vertices,
                "edges": s.num_edges,
                "version": s.version,
                "compact": compact,
                "bytes": size,
                "seconds": round(time.perf_counter() - started, 4),
            }
        )
        return
    show(
        f"exported to {path}",
        {"vertices": s.num_vertices, "edges": s.num_edges, "file": bytes_said(size)},
    )
