"""`lpma query`: queries to a saved store, a checkpoint, or a running pipeline."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from lpma import Neighbors

from ..state.vertex_names import name_of, word_of
from ..types import QUERIES, REPLIES, Name
from ._answering import Live, Stored, Target, answering
from ._as_of import AsOfOptions, part_of
from ._console import JsonOption, emit, failing_in_one_line
from ._options import KafkaConfig, ReadingDevice, kafka_option
from ._typer import App, sharing

Graph = Stored | Live


@dataclass(frozen=True)
class QueryOptions(AsOfOptions):
    """How a query is sent, and its answer printed."""

    as_json: JsonOption = False
    device: ReadingDevice = "cpu"
    kafka_config: KafkaConfig = None
    query_topic: Annotated[
        str,
        kafka_option("--query-topic", help="Where the pipeline reads queries. (default: queries)"),
    ] = QUERIES
    reply_topic: Annotated[
        str, kafka_option("--reply-topic", help="Where it answers. (default: replies)")
    ] = REPLIES
    token_file: Annotated[
        Path | None,
        typer.Option(help="A file that holds the token of an http:// service, if it asks for one."),
    ] = None

    def of(self, store: str) -> AbstractContextManager[Graph]:
        """What answers for `store`."""
        topics = self.query_topic, self.reply_topic
        past = part_of(self)
        return answering(store, self.device, self.kafka_config, *topics, self.token_file, past)


app = App(
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


def _names(words: list[str]) -> list[Name]:
    return [name_of(word) for word in words]


def _document(graph: Graph, query: str, results: list[dict[str, Any]]) -> dict[str, Any]:
    return {"query": query, "version": graph.version, "time": graph.time, "results": results}


@app.command("edge")
@failing_in_one_line
@sharing(QueryOptions)
def edge(store: Target, src: Word, dst: Word, options: QueryOptions) -> None:
    """Whether an edge is there, with its weight and the time of its last operation."""
    with options.of(store) as graph:
        u, v = name_of(src), name_of(dst)
        answer = graph.edges([u], [v])
        found = bool(answer.found[0])
        result = {
            "src": u,
            "dst": v,
            "found": found,
            "weight": float(answer.weights[0]) if found and answer.weights is not None else None,
            "time": int(answer.times[0]) if found and answer.times is not None else None,
        }
        if options.as_json:
            emit(_document(graph, "edge", [result]))
            return
        facts = [
            f"{name} {result[name]}" for name in ("weight", "time") if result[name] is not None
        ]  # fmt: skip
        said = ", ".join(["present", *facts]) if found else "absent"
        print(f"({word_of(u)}, {word_of(v)}): {said}")


def _neighbors(
    store: str,
    options: QueryOptions,
    query: str,
    vertices: list[str],
    limit: int,
    ask: Callable[[Graph, list[Name]], Neighbors],
) -> None:
    """Ask for the neighbourhoods of the vertices, and print them, one a vertex."""
    with options.of(store) as graph:
        names = _names(vertices)
        results = _rows(names, ask(graph, names))
        absent = _absent(graph, [result["vertex"] for result in results if not result["ids"]])
        for result in results:
            result["present"] = result["vertex"] not in absent
        if options.as_json:
            emit(_document(graph, query, results))
            return
    for result in results:
        ids = result["ids"]
        there = "" if result["present"] else _NOT_THERE
        print(f"{query} of {word_of(result['vertex'])}: {len(ids):,}{there}")
        shown = len(ids) if limit == 0 else min(limit, len(ids))
        columns = [name for name in ("weight", "time") if name in result]
        for row in range(shown):
            facts = [f"{name} {result[name][row]}" for name in columns]
            print("  ".join([f"  {word_of(ids[row])}", *facts]))
        if shown < len(ids):
            print(f"  … {len(ids) - shown:,} more (--limit 0 shows all)")


def _absent(graph: Graph, vertices: list[Name]) -> set[Name]:
    """Which of these are no vertices."""
    found = graph.has_vertices(vertices).tolist() if vertices else []
    return {v for v, is_there in zip(vertices, found, strict=True) if not is_there}


def _rows(vertices: list[Name], answer: Neighbors) -> list[dict[str, Any]]:
    """The neighbours of each vertex, with their weights and times if the graph has them."""
    results = []
    for i, vertex in enumerate(vertices):
        rows = slice(int(answer.indptr[i]), int(answer.indptr[i + 1]))
        result: dict[str, Any] = {"vertex": vertex, "ids": answer.ids[rows].tolist()}
        for name, column in (("weight", answer.weights), ("time", answer.times)):
            if column is not None:
                result[name] = column[rows].tolist()
        results.append(result)
    return results


@app.command("successors")
@failing_in_one_line
@sharing(QueryOptions)
def successors(store: Target, vertices: Words, options: QueryOptions, limit: Limit = 20) -> None:
    """The targets of each vertex's edges."""
    _neighbors(store, options, "successors", vertices, limit, lambda graph, u: graph.successors(u))


@app.command("predecessors")
@failing_in_one_line
@sharing(QueryOptions)
def predecessors(store: Target, vertices: Words, options: QueryOptions, limit: Limit = 20) -> None:
    """The sources of each vertex's edges. Needs a store made with --predecessors."""
    _neighbors(
        store, options, "predecessors", vertices, limit, lambda graph, u: graph.predecessors(u)
    )


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
    _neighbors(store, options, f"{k}-hop", vertices, limit, lambda graph, u: graph.hops(u, k))


@app.command("degree")
@failing_in_one_line
@sharing(QueryOptions)
def degree(store: Target, vertices: Words, options: QueryOptions) -> None:
    """How many successors each vertex has; an absent vertex has 0, and is marked."""
    with options.of(store) as graph:
        names = _names(vertices)
        degrees = graph.degree(names).tolist()
        alone = [v for v, count in zip(names, degrees, strict=True) if count == 0]
        absent = _absent(graph, alone)
        results = [
            {"vertex": v, "degree": count, "present": v not in absent}
            for v, count in zip(names, degrees, strict=True)
        ]
        if options.as_json:
            emit(_document(graph, "degree", results))
            return
        for v, count in zip(names, degrees, strict=True):
            there = _NOT_THERE if v in absent else ""
            print(f"degree {word_of(v)}: {count:,}{there}")


@app.command("vertex")
@failing_in_one_line
@sharing(QueryOptions)
def vertex(store: Target, vertices: Words, options: QueryOptions) -> None:
    """Whether each vertex is there: added by itself, or as an end of an edge."""
    with options.of(store) as graph:
        names = _names(vertices)
        found = graph.has_vertices(names).tolist()
        if options.as_json:
            results = [{"vertex": v, "found": f} for v, f in zip(names, found, strict=True)]
            emit(_document(graph, "vertex", results))
            return
        for v, is_there in zip(names, found, strict=True):
            print(f"vertex {word_of(v)}: {'present' if is_there else 'absent'}")
