"""`lpma run bicliques`: (p, q)-bicliques of a bipartite graph, counted, and the first of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from lpma.errors import BatchError

from ...state.vertex_names import Vertices, word_of
from .._algorithm_options import taking
from .._console import Screen, emit, failing_in_one_line, table
from .._recent import reading_weights
from .._typer import Command, sharing
from ._task import ReadOptions, Target, facts_of, read_graph, show_facts

HELP = "Count (p, q)-bicliques of a bipartite graph; edge directions are ignored."


def make() -> Command:
    """The command."""
    from ... import analyses

    @failing_in_one_line
    @taking(analyses.OPTIONS["bicliques"])
    @sharing(ReadOptions)
    def bicliques(
        target: Target,
        options: ReadOptions,
        *,
        some: Annotated[int, typer.Option("--list", min=0, help="How many bicliques to show.")] = 0,
        **given: Any,
    ) -> None:
        _run(target, options, some, **given)

    return bicliques


def _run(
    target: str, options: ReadOptions, some: int, p: int, q: int, left: int | None, method: str
) -> None:
    from algorithms.biclique import check_method

    from ... import analyses

    if options.half_life is not None:
        reading_weights("bicliques", {})
    try:
        check_method(method, p, q)
    except BatchError as error:
        raise typer.BadParameter(str(error)) from error
    with Screen() as screen:
        screen.progress("read the graph", 0, None)
        graph, names = read_graph(target, options, screen)
        if left is not None and names.count is not None:
            raise typer.BadParameter(
                f"the vertices of {target} go by names, not ids: leave it out; in each component, "
                "the left side is then that of the vertex that was named first",
                param_hint="--left",
            )
        left = graph.left if left is None else left
        s = options.snapshot(graph, screen, compact=True)._with(
            names=None
        )  # by row: `Vertices` has the names
        started = time.perf_counter()
        v = Vertices(s, names)
        count = analyses.bicliques(s, v, p, q, left, method, _telling_time_left(screen))
        seconds = time.perf_counter() - started
        found = analyses.first_bicliques(s, v, p, q, left, some)
    facts = {"p": p, "q": q, "left": left, "method": method, "bicliques": count}
    facts = facts_of("bicliques", target, graph, s, **facts, seconds=round(seconds, 4))
    with _all_digits():
        if options.as_json:
            emit({**facts, "list": [one._asdict() for one in found]})
            return
        show_facts(facts)
    if found:
        table(["left", "right"], [[" ".join(map(word_of, side)) for side in one] for one in found])


@contextmanager
def _all_digits() -> Iterator[None]:
    """Lifts Python's limit on digits for a count. For input the limit stays in force."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(limit)


def _telling_time_left(screen: Screen) -> Callable[[int, int], None]:
    """A callback that moves a bar, with the time left at the pace so far."""
    started = time.perf_counter()

    def tell(done: int, total: int) -> None:
        note = ""
        if 0 < done < total:
            left = (time.perf_counter() - started) * (total - done) / done
            note = f", about {left:,.0f} s left"
        screen.progress("count bicliques", done, total, note)

    return tell
