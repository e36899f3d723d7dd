"""`lpma export`: a snapshot of a store in a format that other programs read."""

from __future__ import annotations

import time
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from lpma.display.words import size_of

from ..state.name_table import check_table_writable, table_path, write_table
from ._console import JsonOption, Screen, emit, failing_in_one_line, show
from ._options import ReadingDevice
from ._targets import Store, open_store


class Format(StrEnum):
    npz = "npz"
    parquet = "parquet"
    csv = "csv"
    mtx = "mtx"
    graphml = "graphml"
    gexf = "gexf"


MATRICES = (Format.npz, Format.mtx)  # which speak of rows, and have no place for names


@failing_in_one_line
def export(
    store: Store,
    path: Annotated[
        Path, typer.Argument(help="The file to write: .csv, .parquet, .npz, .mtx, .graphml, .gexf.")
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
    """Export a snapshot: a table of its edges (.csv, .parquet), its matrix (.npz with the CSR
    arrays, .mtx for Matrix Market), or a graph to be drawn (.graphml, .gexf; up to two million
    vertices and edges).

    If vertices have names, the file holds them; next to a matrix, PATH.names.csv says which row
    belongs to which vertex."""
    from lpma.arrays import to_host
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
        opened = open_store(store, device)
        graph, names = opened.graph, opened.names
        beside = None if names.count is None or chosen not in MATRICES else table_path(path)
        if beside is not None:
            check_table_writable(path, names)
        s = graph.snapshot(compact=compact)
        if s.names is None and names.dictionary is not None:
            s = replace(s, names=names.dictionary.frozen(s.ids, None if compact else s.num_rows))
        screen.progress(f"write {path.name}", 0, None)
        {
            "npz": s.write_npz,
            "parquet": s.write_parquet,
            "csv": s.write_csv,
            "mtx": s.write_matrix_market,
            "graphml": s.write_graphml,
            "gexf": s.write_gexf,
        }[chosen](path)
        if beside is None and table_path(path).exists():
            screen.say(f"{table_path(path)} is not from this export: remove it")
        elif beside is not None:
            ids = np.arange(s.num_rows) if s.ids is None else to_host(s.ids)
            write_table(path, names, ids, first=1 if chosen == "mtx" else 0)
    size = {"vertices": s.num_present, "rows": s.num_rows, "edges": s.num_edges}
    size_bytes = path.stat().st_size
    if as_json:
        emit(
            {
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
        )
        return
    show(
        f"exported to {path}",
        {
            **size,
            "file": size_of(size_bytes),
            **({} if beside is None else {"names of its rows in": beside}),
        },
    )
