"""`lpma export`: a snapshot of a store in a format that other programs read."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, get_args

import numpy as np
import typer

from lpma.arrays import to_host
from lpma.batch.columns import MAX_WEIGHT
from lpma.display.words import count_of, size_of
from lpma.file.atomic import check_writable
from lpma.snapshot import presence
from lpma.snapshot.export import edge_chunks
from lpma.snapshot.snapshot import Snapshot

from ..state.vertex_names import check_table_writable, table_path, write_table
from ._as_of import AsOfOptions, open_as_of
from ._console import JsonOption, Screen, failing_in_one_line, report
from ._options import ReadingDevice
from ._recent import ViewOptions
from ._targets import STDIN, Store
from ._typer import sharing


@dataclass(frozen=True)
class ExportOptions(AsOfOptions, ViewOptions):
    """Which state, and what of it."""


KEEPS_LEFT = ("npz", "parquet")
Format = Literal["npz", "parquet", "csv", "mtx", "graphml", "gexf"]


@failing_in_one_line
@sharing(ExportOptions)
def export(
    store: Store,
    options: ExportOptions,
    path: Annotated[
        Path,
        typer.Argument(
            readable=False,
            help="The file to write: .csv, .parquet, .npz, .mtx, .graphml, .gexf; '-' for stdout, "
            "which needs --format.",
        ),
    ],
    format: Annotated[
        Format | None, typer.Option("--format", help="(default: by the name)", show_default=False)
    ] = None,
    compact: Annotated[
        bool, typer.Option("--compact", help="Renumber the vertices present, keeping their ids.")
    ] = False,
    device: ReadingDevice = "cpu",
    as_json: JsonOption = False,
) -> None:
    """Export a snapshot: a table of its edges, its matrix, or a graph to be drawn.

    A table is .csv or .parquet; a matrix .npz, with the CSR arrays, or .mtx for Matrix Market; a
    graph .graphml or .gexf, of up to two million vertices and edges.

    If vertices have names, the file holds them; Matrix Market has no place for them, and
    PATH.names.csv next to it says which row belongs to which vertex."""
    piped = path == Path(STDIN)
    if piped and (format is None or as_json):
        raise typer.BadParameter("stdout takes --format, and no --json", param_hint="PATH")
    chosen = str(format) if piped else _format_of(path, format)
    started = time.perf_counter()
    with Screen() as screen, tempfile.TemporaryDirectory(prefix="lpma-") as folder:
        opened = open_as_of(store, device, options, contents=True)
        options.check_view(opened.graph.has_times)
        if piped:
            path = Path(folder) / f"stdout.{chosen}"
        beside = table_path(path) if opened.names.count is not None and chosen == "mtx" else None
        if beside is not None and piped:
            raise typer.BadParameter(
                "Matrix Market has no place for names: give a file, beside which they go",
                param_hint="PATH",
            )
        if beside is not None:
            check_table_writable(path, opened.names)
        s = options.snapshot(opened.graph, screen, compact)
        screen.progress(f"write {path.name}", 0, None)
        write_snapshot(s, path, chosen)
        for loss in _losses(s, chosen):
            screen.say(f"{path}: {loss}")
        if beside is not None:
            ids = np.arange(s.num_rows) if s._ids is None else np.asarray(to_host(s._ids))
            write_table(path, opened.names, ids, first=1)
        elif table_path(path).exists():
            screen.say(f"{table_path(path)} is not from this export: remove it")
        if piped:
            with open(path, "rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
            return
    size = {"vertices": s.num_vertices, "rows": s.num_rows, "edges": s.num_edges}
    size_bytes = path.stat().st_size
    document = {
        "store": str(store),
        "path": str(path),
        "names": None if beside is None else str(beside),
        "format": chosen,
        **size,
        "version": s.version,
        "compact": compact,
        "bytes": size_bytes,
        "seconds": round(time.perf_counter() - started, 4),
    }
    names = {} if beside is None else {"names of its rows in": beside}
    rows = {**size, "file": size_of(size_bytes), **names}
    report(as_json, document, f"exported to {path}", rows)


def _format_of(path: Path, format: Format | None) -> str:
    """The format that the name promises. Raises BadParameter, PathError."""
    known = get_args(Format)
    chosen = format or path.suffix.removeprefix(".")
    if chosen not in known or path.suffix != f".{chosen}":
        raise typer.BadParameter(
            f"the name must end with .{chosen if format else ', .'.join(known)}", param_hint="PATH"
        )
    check_writable(path)
    return chosen


def _losses(s: Snapshot, format: str) -> list[str]:
    """What `lpma load` would not read back from this format as it was, and what to do."""
    told = []
    if s.left is not None and format not in KEEPS_LEFT:
        told.append(
            f"{format} cannot say which vertices are the left side, here the first {s.left:,}: "
            ".npz and .parquet keep it"
        )
    if format in ("csv", "mtx"):
        weights = np.empty(0) if s._weights is None else np.asarray(to_host(s._weights))
        zeros = large = 0
        if weights.min(initial=1) <= 0 or weights.max(initial=0) > MAX_WEIGHT:
            for table in edge_chunks(s):
                zeros += int((table["weight"] == 0).sum())
                large += int((table["weight"] > MAX_WEIGHT).sum())
        if zeros:
            told.append(
                f"{count_of(zeros, 'edge', 'edges')} of weight 0, which `lpma load` takes for no "
                "edge: .npz and .parquet keep them"
            )
        if large:
            told.append(
                f"{count_of(large, 'edge', 'edges')} of a weight above {MAX_WEIGHT:g}, which `lpma "
                "load` leaves out: .npz and .parquet keep them"
            )
    if format in ("csv", "parquet") and (s._added is None or len(s._added)):
        rows = np.asarray(to_host(s._indptr)), np.asarray(to_host(s._indices))
        is_end = presence.of_rows(*rows, not s.directed, np.empty(0, np.uint32))
        if alone := s.num_vertices - int(is_end.sum()):
            told.append(
                f"{count_of(alone, 'vertex', 'vertices')} without an edge left out: .npz keeps them"
            )
    if format == "csv" and not s.directed:
        told.append("a csv cannot say that its graph is undirected: `lpma load --undirected` does")
    return told


def write_snapshot(s: Snapshot, path: Path, format: str) -> None:
    """Write it in the format of that name, one of `Format`."""
    method = "matrix_market" if format == "mtx" else format
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # `_losses` tells it
        getattr(s, f"write_{method}")(path)
