"""`lpma load`: an edge file, a dataset or a generated graph as a saved store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from lpma.display.words import size_of

from ..graphs import BATCH_SIZE
from ..state.vertex_names import VertexNames
from ._completion import sources
from ._console import JsonOption, Screen, failing_in_one_line, format_counts, report
from ._edges import fill, find_edges
from ._file_options import AcceptBad, FileOptions
from ._options import GraphOptions
from ._recent import RecentOptions
from ._targets import graph_facts, sides_text
from ._typer import sharing


@dataclass(frozen=True)
class LoadOptions(GraphOptions, FileOptions, RecentOptions):
    """How the file is read that a graph is made of, how the graph is made, and which edges stay."""


@failing_in_one_line
@sharing(LoadOptions)
def load(
    options: LoadOptions,
    source: Annotated[
        str,
        typer.Argument(
            autocompletion=sources,
            help="A file of edges (.csv, .tsv, text, .jsonl, .parquet, .mtx, .npz and others; text "
            "also as .gz, .zst, .bz2 or .zip), '-' for stdin, a dataset's name, or a generator "
            "such as 'rmat:scale=18'.",
        ),
    ],
    store: Annotated[Path, typer.Argument(readable=False, help="The file to save the store in.")],
    batch_size: Annotated[
        int, typer.Option(min=1, help="Operations per batch, at the least.")
    ] = BATCH_SIZE,
    download: Annotated[
        bool, typer.Option(help="Download a dataset that is not on this machine.")
    ] = True,
    verify: Annotated[bool, typer.Option(help="Check a dataset's checksum.")] = True,
    strict: Annotated[bool, typer.Option("--strict", help="Fail on a bad line.")] = False,
    accept_bad: AcceptBad = None,
    as_json: JsonOption = False,
) -> None:
    """Load a file of edges, a dataset or a generated graph into a saved store.

    What a file's first rows make plain is guessed (the separator, the header, which column is what,
    whether vertices go by names) and said before the file is read; options override it:

    lpma load own.csv g.lpma --source from --target to --weight amount --time when --names"""
    import lpma
    from lpma.file.atomic import check_apart, check_writable

    asked = options.arguments(options.weight_column)
    check_writable(store)
    check_apart(store, source)
    with Screen() as screen:
        edges = find_edges(source, options.directed, options, screen, download, verify)
        options.check_recent(edges.timed and asked.get("times", True), edges.dated)
        made = {"directed": edges.directed, "names": edges.named, "left": edges.left, **asked}
        graph = lpma.Graph(device=options.device, **made)
        operations, seconds = fill(graph, edges, batch_size, strict, screen, accept_bad)
        options.keep_recent(graph, screen)
        graph.save(store)
    names = VertexNames(graph.names).count
    document = {
        "source": edges.what,
        "store": str(store),
        "named": names,
        "operations": operations,
        **edges.facts(),
        "unchanged": graph.unchanged.as_dict(),
        "expired": graph.expired,
        "seconds": round(seconds, 4),
        "bytes": store.stat().st_size,
        **graph_facts(graph),
    }
    rows = {
        "from": edges.what,
        "on": graph.device,
        "operations": operations,
        "unchanged": format_counts(graph.unchanged.as_dict()),
        **{name: document[name] for name in ("vertices", "rows", "edges")},
        "seconds": seconds,
        "operations / s": operations / seconds if seconds else None,
        "file": size_of(store.stat().st_size),
        **({"names": names} if edges.named else {}),
        **({} if graph.left is None else {"left": sides_text(graph.left, edges.named)}),
    }
    report(as_json, document, f"loaded into {store}", rows)
