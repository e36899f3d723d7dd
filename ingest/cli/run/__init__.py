"""`lpma run`: an algorithm on a saved store, a checkpoint, an edge file, a dataset; diversity also
on a live stream. One command an algorithm.
"""

from __future__ import annotations

from typing import Annotated

import typer

from ...state.vertex_names import name_of
from .._console import failing_in_one_line
from .._typer import App, sharing
from ._task import Running, Target, run
from .bicliques import bicliques
from .diversity import diversity

app = App(help="Run an algorithm on a graph.", no_args_is_help=True)


@app.command("core")
@failing_in_one_line
@sharing(Running)
def core(target: Target, running: Running) -> None:
    """Core numbers of the vertices; edge directions are ignored."""
    run("core", target, running)


@app.command("truss")
@failing_in_one_line
@sharing(Running)
def truss(target: Target, running: Running) -> None:
    """Truss numbers of the edges; edge directions are ignored."""
    run("truss", target, running)


@app.command("triangles")
@failing_in_one_line
@sharing(Running)
def triangles(target: Target, running: Running) -> None:
    """Triangles at each vertex; edge directions are ignored."""
    run("triangles", target, running)


@app.command("components")
@failing_in_one_line
@sharing(Running)
def components(target: Target, running: Running) -> None:
    """Connected components and their sizes; edge directions are ignored."""
    run("components", target, running)


@app.command("pagerank")
@failing_in_one_line
@sharing(Running)
def pagerank(
    target: Target,
    running: Running,
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
) -> None:
    """PageRank of the vertices, along the edges' directions."""
    run("pagerank", target, running, damping=damping, tol=tol, max_iter=max_iter, weighted=weighted)


@app.command("bfs")
@failing_in_one_line
@sharing(Running)
def bfs(
    target: Target,
    running: Running,
    source: Annotated[
        str, typer.Option(help="The vertex to start from: its id, or its name; '\"5\"' is text.")
    ],
) -> None:
    """Hops from a vertex, along the edges' directions."""
    run("bfs", target, running, source=name_of(source))


app.command("diversity")(diversity)
app.command("bicliques")(bicliques)
