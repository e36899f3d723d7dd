"""`lpma run diversity`: the vertices with the most social contexts; also of a live stream."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ...state.vertex_names import VertexNames, word_of
from .._algorithm_options import taking
from .._completion import sources
from .._console import Screen, failing_in_one_line
from .._targets import is_stream
from .._typer import Command, sharing
from ._task import AlgorithmOptions, Task, check_names, run
from ._watching import WatchOptions, watch

PICTURES = (".png", ".svg")  # of an ego network
HELP = """Structural diversity: the vertices whose neighbours form the most social contexts.

Edge directions are ignored. --plot draws the best vertex's neighbours and their contexts, as .png
or .svg. On a live stream the algorithm runs again as the graph grows."""


def make() -> Command:
    """The command."""
    from ... import analyses

    @failing_in_one_line
    @taking(analyses.OPTIONS["diversity"])
    @sharing(WatchOptions)
    @sharing(AlgorithmOptions)
    def diversity(
        target: Annotated[
            str,
            typer.Argument(
                metavar="TARGET",
                autocompletion=sources,
                help="A saved store, a checkpoint directory, an edge file, a dataset's name, a "
                "generator such as 'rmat:scale=18', or a live stream: its embedded log or "
                "kafka://HOST:PORT.",
            ),
        ],
        options: AlgorithmOptions,
        watching: WatchOptions,
        **given: Any,
    ) -> None:
        _run(target, options, watching, given)

    return diversity


def _run(
    target: str, options: AlgorithmOptions, watching: WatchOptions, given: dict[str, Any]
) -> None:
    aside = {"top": options.top, "every": options.out is not None}
    if not is_stream(target):
        if watching != WatchOptions():
            raise typer.BadParameter(
                f"{target} is not a stream, which --every, --batch-size, --follow, --topic and "
                "--kafka-config are for: give an embedded log or kafka://HOST:PORT"
            )
        run("diversity", target, options, aside, PICTURES, **given)
        return
    options.check_unused(target)
    check_names(options.out, options.plot, PICTURES)
    if (said := options.said(of_fields=False) or options.names_view) is not None:
        raise typer.BadParameter(f"{target} is a stream", param_hint=said)
    import lpma

    with Screen() as screen:
        task = Task("diversity", target, options, given, aside, screen)
        directed = options.directed is not False
        graph = lpma.Graph(
            device=options.device, directed=directed, times=False, names=options.by_name is True
        )

        def look(operations: int, names: VertexNames) -> None:
            task.run_on(graph, names, growing=True)
            figures = [f"{name.replace('_', ' ')} {v}" for name, v in task.found.summary.items()]
            best = [f"vertex {word_of(row['vertex'])}" for row in task.found.top(1)]
            screen.say(f"after {operations:,} operations: {', '.join(figures + best)}")

        counts = watch(target, graph, watching, screen, look, options.of_records())
        if options.plot is not None and not task.drawn:
            screen.say(f"no picture in {options.plot}: {target} has no vertex yet")
    task.tell(counts)
