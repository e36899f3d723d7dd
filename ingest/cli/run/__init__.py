"""`lpma run`: an algorithm on a saved store, a checkpoint, an edge file, a dataset; diversity also
on a live stream. One command an algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ...state.vertex_names import name_of
from .._console import failing_in_one_line
from .._file_options import column_option
from .._typer import App, sharing
from ._task import AlgorithmOptions, Target, run
from .bicliques import bicliques
from .diversity import diversity

app = App(help="Run an algorithm on a graph.", no_args_is_help=True)


@app.command("core")
@failing_in_one_line
@sharing(AlgorithmOptions)
def core(target: Target, options: AlgorithmOptions) -> None:
    """Core numbers of the vertices; edge directions are ignored."""
    run("core", target, options)


@app.command("truss")
@failing_in_one_line
@sharing(AlgorithmOptions)
def truss(target: Target, options: AlgorithmOptions) -> None:
    """Truss numbers of the edges; edge directions are ignored."""
    run("truss", target, options)


@app.command("triangles")
@failing_in_one_line
@sharing(AlgorithmOptions)
def triangles(target: Target, options: AlgorithmOptions) -> None:
    """Triangles at each vertex; edge directions are ignored."""
    run("triangles", target, options)


@app.command("clustering")
@failing_in_one_line
@sharing(AlgorithmOptions)
def clustering(target: Target, options: AlgorithmOptions) -> None:
    """Clustering coefficients of the vertices; edge directions are ignored."""
    run("clustering", target, options)


@app.command("components")
@failing_in_one_line
@sharing(AlgorithmOptions)
def components(target: Target, options: AlgorithmOptions) -> None:
    """Connected components and their sizes; edge directions are ignored."""
    run("components", target, options)


@app.command("strong-components")
@failing_in_one_line
@sharing(AlgorithmOptions)
def strong_components(target: Target, options: AlgorithmOptions) -> None:
    """Strongly connected components and their sizes, along the edges' directions."""
    run("strong-components", target, options)


@app.command("pagerank")
@failing_in_one_line
@sharing(AlgorithmOptions)
def pagerank(
    target: Target,
    options: AlgorithmOptions,
    damping: Annotated[
        float, typer.Option(min=0, max=1, help="The probability of following an edge.")
    ] = 0.85,
    tol: Annotated[
        float, typer.Option(min=0, help="Stop when every rank changes by less than this.")
    ] = 1e-6,
    max_iter: Annotated[int, typer.Option(min=0, help="At most this many rounds.")] = 100,
    weighted: Annotated[
        bool, typer.Option("--weighted", help="Follow heavier edges more often.")
    ] = False,
    around: Annotated[
        list[str] | None,
        typer.Option(help="Jump to this vertex only (personalised ranks); may be repeated."),
    ] = None,
) -> None:
    """PageRank of the vertices, along the edges' directions."""
    vertices = [name_of(word) for word in around] if around else None
    run(
        "pagerank", target, options, damping=damping, tol=tol, max_iter=max_iter,
        weighted=weighted, around=vertices,
    )  # fmt: skip


@dataclass(frozen=True)
class SourceOptions(AlgorithmOptions):
    """The same, where --source is the vertex to start from."""

    source_column: Annotated[
        str | None, column_option("--source-column", help="The column that edges begin at.")
    ] = None


Source = Annotated[
    str, typer.Option(help="The vertex to start from: its id, or its name; '\"5\"' is text.")
]


@app.command("bfs")
@failing_in_one_line
@sharing(SourceOptions)
def bfs(
    target: Target,
    options: SourceOptions,
    source: Source,
) -> None:
    """Hops from a vertex, along the edges' directions."""
    run("bfs", target, options, source=name_of(source))


@app.command("shortest-paths")
@failing_in_one_line
@sharing(SourceOptions)
def shortest_paths(
    target: Target,
    options: SourceOptions,
    source: Source,
) -> None:
    """Least sums of weights on paths from a vertex, along the edges' directions."""
    run("shortest-paths", target, options, source=name_of(source))


@app.command("similar")
@failing_in_one_line
@sharing(AlgorithmOptions)
def similar(
    target: Target,
    options: AlgorithmOptions,
    vertex: Annotated[
        str, typer.Option(help="The vertex to compare with: its id, or its name; '\"5\"' is text.")
    ],
    unlinked: Annotated[
        bool, typer.Option("--unlinked", help="Leave out its own neighbours.")
    ] = False,
) -> None:
    """The --top vertices whose neighbours are most like a vertex's; edge directions are ignored."""
    aside = {"top": options.top}
    run("similar", target, options, aside, vertex=name_of(vertex), unlinked=unlinked)


app.command("diversity")(diversity)
app.command("bicliques")(bicliques)
