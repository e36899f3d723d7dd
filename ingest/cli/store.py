"""`lpma load` and `lpma export`: stores as files."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ..state.name_table import check_table_writable, save_store, table_path, write_table
from . import _options
from ._console import (
    JsonOption,
    Screen,
    bytes_said,
    counts_said,
    emit,
    failing_in_one_line,
    show,
)
from ._edges import BATCH_SIZE, fill, find_edges
from ._records import Json
from ._sharing import sharing
from ._targets import Store, graph_facts, open_store


@dataclass(frozen=True)
class Loading(_options.Making, Json):
    """How a graph is made, and the file read that it is made of."""

    columns: _options.Columns = None
    ids: _options.MappedIds = None


@failing_in_one_line
@sharing(Loading)
def load(
    loading: Loading,
    source: Annotated[
        str,
        typer.Argument(
            help="An edge file (SNAP text, .csv, .jsonl, .mtx, .npz, all but that .gz, too), a "
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
    from lpma.files import check_apart, check_writable

    asked = loading.asked()
    check_writable(store)
    for written in (store, table_path(store)):
        check_apart(written, source)
    with Screen() as screen:
        edges = find_edges(
            source,
            loading.directed,
            loading.columns,
            loading.ids,
            screen,
            download,
            verify,
            loading.json(),
        )
        check_table_writable(store, edges.names)
        graph = lpma.Graph(device=loading.device, **{"directed": edges.directed, **asked})
        operations, seconds = fill(graph, edges, batch_size, strict, screen)
        names = save_store(graph, store, edges.names)
    document = {
        "source": edges.what,
        "store": str(store),
        "names": None if names is None else str(names),
        "named": edges.names.count,
        "operations": operations,
        **edges.told(),
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
            **{name: document[name] for name in ("vertices", "rows", "edges")},
            "seconds": seconds,
            "operations / s": operations / seconds if seconds else None,
            "file": bytes_said(store.stat().st_size),
            **({} if names is None else {"names in": names}),
        },
    )


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
    device: _options.ReadingDevice = "cpu",
    as_json: JsonOption = False,
) -> None:
    """Export a snapshot: CSR arrays (.npz), an edge table (.parquet) or Matrix Market (.mtx).

    Where vertices go by names, a .parquet has these; beside another file, PATH.names.csv says which
    row is whose."""
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
        beside = None if names.count is None or chosen == "parquet" else table_path(path)
        if beside is not None:
            check_table_writable(path, names)
        s = graph.snapshot(compact=compact)
        screen.progress(f"write {path.name}", 0, None)
        if chosen == "parquet":
            s.write_parquet(path, None if names.count is None else names)
        else:
            {"npz": s.write_npz, "mtx": s.write_matrix_market}[chosen](path)
        if beside is None and table_path(path).exists():
            screen.say(f"{table_path(path)} is not of this export: remove it")
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
            "file": bytes_said(size_bytes),
            **({} if beside is None else {"names of its rows in": beside}),
        },
    )
