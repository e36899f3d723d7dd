"""`lpma query`: questions to a saved store, a checkpoint, or a pipeline that runs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..sources import QUERIES, REPLIES
from .console import JsonOption, emit, failing_in_one_line
from .live import Live, Target, answering
from .options import KafkaConfig, ReadingDevice, kafka_option
from .sharing import sharing
from .usage import App

if TYPE_CHECKING:
    import lpma

    Graph = lpma.Graph | Live


@dataclass(frozen=True)
class Asking:
    """How a question is put, and its answer shown."""

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

    def of(self, store: str) -> AbstractContextManager[Graph]:
        """What answers for `store`."""
        topics = self.query_topic, self.reply_topic
        return answering(store, self.device, self.kafka_config, *topics)


app = App(
    help="Ask a saved store, a checkpoint or a running pipeline for edges, neighbours, degrees.",
    no_args_is_help=True,
)

Id = Annotated[int, typer.Argument(min=0, max=2**32 - 2, help="A vertex id.")]
Ids = Annotated[list[int], typer.Argument(min=0, max=2**32 - 2, help="Vertex ids.")]
Limit = Annotated[
    int, typer.Option(min=0, help="Rows shown a vertex; --json has them all. 0: all.")
]


def _document(graph: Graph, query: str, results: list[dict[str, Any]]) -> dict[str, Any]:
    return {"query": query, "version": graph.version, "time": graph.time, "results": results}


@app.command("edge")
@failing_in_one_line
@sharing(Asking)
def edge(
    store: Target,
    src: Id,
    dst: Id,
    asking: Asking,
) -> None:
    """Whether an edge is there, with its weight and the time of its last operation."""
    with asking.of(store) as graph:
        answer = graph.edges([src], [dst])
        found = bool(answer.found[0])
        result = {
            "src": src,
            "dst": dst,
            "found": found,
            "weight": float(answer.weight[0]) if found and answer.weight is not None else None,
            "time": int(answer.time[0]) if found and answer.time is not None else None,
        }
        if asking.as_json:
            emit(_document(graph, "edge", [result]))
            return
        facts = [
            f"{name} {result[name]}" for name in ("weight", "time") if result[name] is not None
        ]  # fmt: skip
        print(f"({src}, {dst}): {', '.join(['present', *facts]) if found else 'absent'}")


def _neighbors(
    graph: Graph,
    query: str,
    vertices: list[int],
    answer: Any,
    limit: int,
    as_json: bool,
) -> None:
    """Print the answer to neighbourhood queries, one a vertex."""
    results = []
    for i, vertex in enumerate(vertices):
        rows = slice(int(answer.indptr[i]), int(answer.indptr[i + 1]))
        result: dict[str, Any] = {"vertex": vertex, "ids": answer.ids[rows].tolist()}
        for name in ("weight", "time"):
            column = getattr(answer, name)
            if column is not None:
                result[name] = column[rows].tolist()
        results.append(result)
    if as_json:
        emit(_document(graph, query, results))
        return
    for result in results:
        ids = result["ids"]
        print(f"{query} of {result['vertex']}: {len(ids):,}")
        shown = len(ids) if limit == 0 else min(limit, len(ids))
        columns = [name for name in ("weight", "time") if name in result]
        for row in range(shown):
            print("  ".join([f"  {ids[row]}", *(f"{c} {result[c][row]}" for c in columns)]))
        if shown < len(ids):
            print(f"  … {len(ids) - shown:,} more (--limit 0 shows all)")


@app.command("successors")
@failing_in_one_line
@sharing(Asking)
def successors(
    store: Target,
    vertices: Ids,
    asking: Asking,
    limit: Limit = 20,
) -> None:
    """The targets of each vertex's edges."""
    with asking.of(store) as graph:
        answer = graph.successors(vertices)
        _neighbors(graph, "successors", vertices, answer, limit, asking.as_json)


@app.command("predecessors")
@failing_in_one_line
@sharing(Asking)
def predecessors(
    store: Target,
    vertices: Ids,
    asking: Asking,
    limit: Limit = 20,
) -> None:
    """The sources of each vertex's edges. Needs a store made with --predecessors."""
    with asking.of(store) as graph:
        answer = graph.predecessors(vertices)
        _neighbors(graph, "predecessors", vertices, answer, limit, asking.as_json)


@app.command("hops")
@failing_in_one_line
@sharing(Asking)
def hops(
    store: Target,
    vertices: Ids,
    asking: Asking,
    k: Annotated[int, typer.Option("-k", "--steps", min=1, max=255, help="Steps at most.")] = 2,
    limit: Limit = 20,
) -> None:
    """The distinct vertices within 1 … k steps of each vertex."""
    with asking.of(store) as graph:
        _neighbors(graph, f"{k}-hop", vertices, graph.hops(vertices, k), limit, asking.as_json)


@app.command("degree")
@failing_in_one_line
@sharing(Asking)
def degree(
    store: Target,
    vertices: Ids,
    asking: Asking,
) -> None:
    """How many successors each vertex has."""
    with asking.of(store) as graph:
        _values(graph, "degree", vertices, graph.degree(vertices).tolist(), asking.as_json)


@app.command("vertex")
@failing_in_one_line
@sharing(Asking)
def vertex(
    store: Target,
    vertices: Ids,
    asking: Asking,
) -> None:
    """Whether each vertex is there: added by itself, or an end of an edge."""
    with asking.of(store) as graph:
        _values(graph, "vertex", vertices, graph.has_vertices(vertices).tolist(), asking.as_json)


def _values(
    graph: Graph, query: str, vertices: list[int], values: list[Any], as_json: bool
) -> None:
    name = "found" if query == "vertex" else query
    results = [{"vertex": v, name: value} for v, value in zip(vertices, values, strict=True)]
    if as_json:
        emit(_document(graph, query, results))
        return
    for v, value in zip(vertices, values, strict=True):
        text = ("present" if value else "absent") if isinstance(value, bool) else f"{value:,}"
        print(f"{query} {v}: {text}")
