"""`lpma run bicliques`: (p, q)-bicliques of a bipartite graph, counted, and the first of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from ...state.vertex_names import Vertices, word_of
from .._console import Screen, emit, failing_in_one_line, table
from .._typer import sharing
from ._task import ReadOptions, Target, facts_of, read_graph, show_facts


@failing_in_one_line
@sharing(ReadOptions)
def bicliques(
    target: Target,
    options: ReadOptions,
    p: Annotated[int, typer.Option(min=1, help="Vertices of the left side.")],
    q: Annotated[int, typer.Option(min=1, help="Vertices of the right side.")],
    left: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Vertices with ids below this are the left side. (default: in each component, "
            "the side of the smallest id)",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        str, typer.Option(help="closed, wedges, gbc, pivot, or auto: whichever fits.")
    ] = "auto",
    some: Annotated[int, typer.Option("--list", min=0, help="How many bicliques to show.")] = 0,
) -> None:
    """Count (p, q)-bicliques of a bipartite graph; edge directions are ignored."""
    from ... import analyses

    _check_method(method, p, q)
    with Screen() as screen:
        screen.progress("read the graph", 0, None)
        graph, names = read_graph(target, options, screen)
        if left is not None and names.count is not None:
            raise typer.BadParameter(
                f"the vertices of {target} go by names, not ids: leave it out; in each component, "
                "the left side is then that of the vertex that was named first",
                param_hint="--left",
            )
        s = graph.snapshot(compact=True)._with(names=None)  # by row: `Vertices` has the names
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


def _check_method(method: str, p: int, q: int) -> None:
    from ... import analyses

    if method not in analyses.BICLIQUE_METHODS:
        known = ", ".join(analyses.BICLIQUE_METHODS)
        raise typer.BadParameter(f"choose one of {known}", param_hint="--method")
    needed = analyses.BICLIQUE_METHOD_NEEDS.get(method, p)
    if needed not in (p, q):
        raise typer.BadParameter(
            f"{method} is for p or q = {needed}, not ({p}, {q})", param_hint="--method"
        )


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
