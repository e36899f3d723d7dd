"""`lpma query`: queries to a saved store, a checkpoint, or a running pipeline."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from lpma import Kind

from ..state.vertex_names import name_of, word_of
from ..types import QUERIES, REPLIES, Name
from ._answering import Live, Stored, Target, answering
from ._as_of import AsOfOptions, part_of
from ._console import JsonOption, emit, failing_in_one_line
from ._options import KAFKA, KafkaConfig, ReadingDevice
from ._typer import App, option, sharing

Graph = Stored | Live


@dataclass(frozen=True)
class QueryOptions(AsOfOptions):
    """How a query is sent, and its answer printed."""

    as_json: JsonOption = False
    device: ReadingDevice = "cpu"
    kafka_config: KafkaConfig = None
    query_topic: str = option(
        "--query-topic", panel=KAFKA, default=QUERIES,
        help="Where the pipeline reads queries. (default: queries)",
    )  # fmt: skip
    reply_topic: str = option(
        "--reply-topic", panel=KAFKA, default=REPLIES, help="Where it answers. (default: replies)"
    )
    token_file: Path | None = option(
        "--token-file",
        help="A file that holds the token of an http:// service, if it asks for one.",
    )

    def of(self, store: str) -> AbstractContextManager[Graph]:
        """What answers for `store`."""
        topics = self.query_topic, self.reply_topic
        past = part_of(self)
        return answering(store, self.device, self.kafka_config, *topics, self.token_file, past)


_NEIGHBORS = "successors are where a vertex's edges lead, predecessors where they come from"
_MEANT = {"neighbors": _NEIGHBORS, "neighbours": _NEIGHBORS}


class _Queries(TyperGroup):
    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in _MEANT:
            ctx.fail(f"No such command '{cmd_name}': {_MEANT[cmd_name]}")
        return super().get_command(ctx, cmd_name)


app = App(
    cls=_Queries,
    help="Ask a saved store, a checkpoint or a running pipeline for edges, neighbours, degrees.",
    no_args_is_help=True,
)

_NAMES = "an id or, if vertices go by names, a name: '\"5\"' is text, 5 an integer"
Word = Annotated[str, typer.Argument(help=f"A vertex: {_NAMES}.")]
Words = Annotated[list[str], typer.Argument(help=f"Vertices, each by {_NAMES}.")]
_NOT_THERE = " (there is no such vertex)"
Limit = Annotated[
    int, typer.Option(min=0, help="Rows shown per vertex (0: all); --json prints them all.")
]


def _tell(
    options: QueryOptions,
    graph: Graph,
    query: str,
    results: list[dict[str, Any]],
    lines_of: Callable[[dict[str, Any]], list[str]],
) -> None:
    """Print the results: one JSON document, or the lines of each."""
    if options.as_json:
        emit({"query": query, "version": graph.version, "time": graph.time, "results": results})
        return
    for result in results:
        print(*lines_of(result), sep="\n")


def _facts(result: dict[str, Any]) -> list[str]:
    """An edge's weight and time, where it has them."""
    return [f"{name} {value!s}" for name in ("weight", "time")
            if (value := result.get(name)) is not None]  # fmt: skip


@app.command("edge")
@failing_in_one_line
@sharing(QueryOptions)
def edge(store: Target, src: Word, dst: Word, options: QueryOptions) -> None:
    """Whether an edge is there, with its weight and the time of its last operation."""
    u, v = name_of(src), name_of(dst)

    def lines_of(result: dict[str, Any]) -> list[str]:
        said = ", ".join(["present", *_facts(result)]) if result["found"] else "absent"
        return [f"({word_of(u)}, {word_of(v)}): {said}"]

    with options.of(store) as graph:
        answer = graph.edge(u, v)
        found = bool(answer.found[0])
        result = {
            "src": u,
            "dst": v,
            "found": found,
            "weight": answer.weights[0] if found and answer.weights is not None else None,
            "time": int(answer.times[0]) if found and answer.times is not None else None,
        }
        _tell(options, graph, "edge", [result], lines_of)


def _neighbors(
    store: str,
    options: QueryOptions,
    query: str,
    kind: Kind,
    words: list[str],
    limit: int,
    steps: int = 1,
) -> None:
    """Ask for the neighbourhoods of the vertices, and print them, one a vertex."""

    def lines_of(result: dict[str, Any]) -> list[str]:
        ids = result["ids"]
        there = "" if result["present"] else _NOT_THERE
        shown = len(ids) if limit == 0 else min(limit, len(ids))
        lines = [f"{query} of {word_of(result['vertex'])}: {len(ids):,}{there}"]
        for row in range(shown):
            edge: dict[str, Any] = {
                name: result[name][row] for name in ("weight", "time") if name in result
            }
            lines.append("  ".join([f"  {word_of(ids[row])}", *_facts(edge)]))
        more = [f"  … {len(ids) - shown:,} more (--limit 0 shows all)"] if shown < len(ids) else []
        return lines + more

    with options.of(store) as graph:
        names = [name_of(word) for word in words]
        answers = graph.neighbors(kind, names, steps)
        results: list[dict[str, Any]] = [
            {"vertex": v, **found} for v, found in zip(names, answers, strict=True)
        ]
        absent = _absent(graph, [result["vertex"] for result in results if not result["ids"]])
        for result in results:
            result["present"] = result["vertex"] not in absent
        _tell(options, graph, query, results, lines_of)


def _absent(graph: Graph, vertices: list[Name]) -> set[Name]:
    """Which of these are no vertices."""
    found = graph.values(Kind.VERTEX, vertices) if vertices else []
    return {v for v, is_there in zip(vertices, found, strict=True) if not is_there}


@app.command("successors")
@failing_in_one_line
@sharing(QueryOptions)
def successors(store: Target, vertices: Words, options: QueryOptions, limit: Limit = 20) -> None:
    """The targets of each vertex's edges."""
    _neighbors(store, options, "successors", Kind.SUCCESSORS, vertices, limit)


@app.command("predecessors")
@failing_in_one_line
@sharing(QueryOptions)
def predecessors(store: Target, vertices: Words, options: QueryOptions, limit: Limit = 20) -> None:
    """The sources of each vertex's edges. Needs a store made with --predecessors."""
    _neighbors(store, options, "predecessors", Kind.PREDECESSORS, vertices, limit)


@app.command("hops")
@failing_in_one_line
@sharing(QueryOptions)
def hops(
    store: Target,
    vertices: Words,
    options: QueryOptions,
    k: Annotated[
        int, typer.Option("-k", "--steps", min=1, max=255, help="At most this many steps.")
    ] = 2,
    limit: Limit = 20,
) -> None:
    """The distinct vertices within 1 … k steps of each vertex: -k says how many, and what stands
    after STORE are vertices."""
    _neighbors(store, options, f"{k}-hop", Kind.HOPS, vertices, limit, k)


def _values(
    store: str, options: QueryOptions, kind: Kind, name: str, words: list[str],
    said: Callable[[Any], str],
) -> None:  # fmt: skip
    """Ask for a value of each vertex, called `name` in a document, and print them, one a vertex.
    said: the value in words."""
    query = kind.name.lower()

    def lines_of(result: dict[str, Any]) -> list[str]:
        there = "" if result.get("present", True) else _NOT_THERE
        return [f"{query} {word_of(result['vertex'])}: {said(result[name])}{there}"]

    with options.of(store) as graph:
        names = [name_of(word) for word in words]
        values = graph.values(kind, names)
        results = [{"vertex": v, name: value} for v, value in zip(names, values, strict=True)]
        if kind is Kind.DEGREE:
            absent = _absent(graph, [v for v, n in zip(names, values, strict=True) if n == 0])
            results = [{**result, "present": result["vertex"] not in absent} for result in results]
        _tell(options, graph, query, results, lines_of)


@app.command("degree")
@failing_in_one_line
@sharing(QueryOptions)
def degree(store: Target, vertices: Words, options: QueryOptions) -> None:
    """How many successors each vertex has; an absent vertex has 0, and is marked."""
    _values(store, options, Kind.DEGREE, "degree", vertices, "{:,}".format)


@app.command("vertex")
@failing_in_one_line
@sharing(QueryOptions)
def vertex(store: Target, vertices: Words, options: QueryOptions) -> None:
    """Whether each vertex is there: added by itself, or as an end of an edge."""
    words = {True: "present", False: "absent"}
    _values(store, options, Kind.VERTEX, "found", vertices, words.__getitem__)
