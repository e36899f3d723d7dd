"""`lpma load`: an edge file, a dataset or a generated graph as a saved store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ..state.name_table import check_table_writable, save_store, table_path
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
from ._options import Columns, Json, Making, MappedIds
from ._targets import graph_facts
from ._typer import sharing


@dataclass(frozen=True)
class Loading(Making, Json):
    """How a graph is made, and how the file it is made of is read."""

    columns: Columns = None
    ids: MappedIds = None


@failing_in_one_line
@sharing(Loading)
def load(
    loading: Loading,
    source: Annotated[
        str,
        typer.Argument(
            help="An edge file (SNAP text, .csv, .jsonl, .mtx, .npz; all but .npz also as .gz), a "
            "dataset's name, or a generator such as 'rmat:scale=18'."
        ),
    ],
    store: Annotated[Path, typer.Argument(help="The file to save the store in.")],
    batch_size: Annotated[int, typer.Option(min=1, help="Operations per batch.")] = BATCH_SIZE,
    download: Annotated[
        bool, typer.Option(help="Download a dataset that is not on this machine.")
    ] = True,
    verify: Annotated[bool, typer.Option(help="Check a dataset's checksum.")] = True,
    strict: Annotated[bool, typer.Option("--strict", help="Fail on a bad line.")] = False,
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
