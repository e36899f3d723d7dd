"""`lpma run`: an algorithm on a saved store, a checkpoint, an edge file, a dataset; diversity also
on a live stream. One command an algorithm, whose options are those that the algorithm declares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ...state.vertex_names import name_of
from .._algorithm_options import taking
from .._console import failing_in_one_line
from .._file_options import column_option
from .._typer import App, Command, lazily, sharing
from . import bicliques, diversity
from ._task import AlgorithmOptions, Target, run


@dataclass(frozen=True)
class SourceOptions(AlgorithmOptions):
    """The same, where --source is the vertex to start from."""

    source_column: str | None = column_option("--source-column", "The column that edges begin at.")


def _command(
    algorithm: str, kind: type[AlgorithmOptions], aside: tuple[str, ...] = ()
) -> Callable[[], Command]:
    """The command of an algorithm. aside: options of every command that are arguments of it."""

    def make() -> Command:
        from ... import analyses

        @failing_in_one_line
        @taking(analyses.OPTIONS[algorithm])
        @sharing(kind)
        def command(target: Target, options: AlgorithmOptions, **given: Any) -> None:
            own = {name: getattr(options, name) for name in aside}
            run(algorithm, target, options, own, **given)

        return command

    return make


def _pagerank() -> Command:
    from ... import analyses

    @failing_in_one_line
    @taking(analyses.OPTIONS["pagerank"])
    @sharing(AlgorithmOptions)
    def pagerank(
        target: Target,
        options: AlgorithmOptions,
        *,
        around: Annotated[
            list[str] | None,
            typer.Option(help="Jump to this vertex only (personalised ranks); may be repeated."),
        ] = None,
        **given: Any,
    ) -> None:
        vertices = [name_of(word) for word in around] if around else None
        run("pagerank", target, options, **given, around=vertices)

    return pagerank


_PLAIN = (
    ("core", AlgorithmOptions, "Core numbers of the vertices; edge directions are ignored."),
    ("truss", AlgorithmOptions, "Truss numbers of the edges; edge directions are ignored."),
    ("triangles", AlgorithmOptions, "Triangles at each vertex; edge directions are ignored."),
    ("clustering", AlgorithmOptions,
     "Clustering coefficients of the vertices; edge directions are ignored."),
    ("components", AlgorithmOptions,
     "Connected components and their sizes; edge directions are ignored."),
    ("strong-components", AlgorithmOptions,
     "Strongly connected components and their sizes, along the edges' directions."),
    ("bfs", SourceOptions, "Hops from a vertex, along the edges' directions."),
    ("shortest-paths", SourceOptions,
     "Least sums of weights on paths from a vertex, along the edges' directions."),
)  # fmt: skip
_COMMANDS = {
    **{name: (help, _command(name, kind)) for name, kind, help in _PLAIN},
    "pagerank": ("PageRank of the vertices, along the edges' directions.", _pagerank),
    "similar": (
        "The --top vertices whose neighbours are most like a vertex's; edge directions are "
        "ignored.",
        _command("similar", AlgorithmOptions, ("top",)),
    ),
    "diversity": (diversity.HELP, diversity.make),
    "bicliques": (bicliques.HELP, bicliques.make),
}
app = App(cls=lazily(_COMMANDS), help="Run an algorithm on a graph.", no_args_is_help=True)
app.callback()(lambda: None)
