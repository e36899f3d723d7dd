"""Options that several commands share: how a graph is made, how an edge file is read."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


class Weight(StrEnum):
    float32 = "float32"
    float64 = "float64"
    none = "none"


class Strategy(StrEnum):
    hybrid = "hybrid"
    bottom_up = "bottom-up"
    top_down = "top-down"


GRAPH = "The graph"
FILE = "The edge file"

Directed = Annotated[
    bool | None,
    typer.Option(
        "--directed/--undirected",
        help="Whether edges have a direction. (default: directed, or what the dataset is)",
        rich_help_panel=GRAPH,
        show_default=False,
    ),
]
Predecessors = Annotated[
    bool | None,
    typer.Option(
        "--predecessors/--no-predecessors",
        help="Keep an in-neighbour store, which predecessor queries need. (default: no)",
        rich_help_panel=GRAPH,
        show_default=False,
    ),
]
WeightOption = Annotated[
    Weight | None,
    typer.Option(
        "--weight", help="The type of weights. (default: float32)", rich_help_panel=GRAPH,
        show_default=False,
    ),
]  # fmt: skip
Times = Annotated[
    bool | None,
    typer.Option(
        "--times/--no-times",
        help="Keep the time of each edge's last operation. (default: yes)",
        rich_help_panel=GRAPH,
        show_default=False,
    ),
]
StrategyOption = Annotated[
    Strategy | None,
    typer.Option(
        "--strategy", help="How batches are rebalanced. (default: hybrid)", rich_help_panel=GRAPH,
        show_default=False,
    ),
]  # fmt: skip
SegmentSize = Annotated[
    int | None,
    typer.Option(
        "--segment-size", help="Slots a segment, a power of two from 2 to 1024. (default: 32)",
        rich_help_panel=GRAPH, show_default=False,
    ),
]  # fmt: skip


def _is_device(value: str) -> str:
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", value):
        raise typer.BadParameter("use auto, cpu, cuda or cuda:N")
    return value


Device = Annotated[
    str,
    typer.Option(
        "--device", callback=_is_device, rich_help_panel=GRAPH,
        help="Where the graph is: cpu, cuda, cuda:N, or auto, a GPU where CuPy and one are there.",
    ),
]  # fmt: skip
ReadingDevice = Annotated[
    str,
    typer.Option(
        "--device", callback=_is_device,
        help="Where to load the graph: cpu, which is ready soonest, cuda, cuda:N or auto.",
    ),
]  # fmt: skip
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="What the columns of a text file are, in order, as 'src dst - time' ('-' skips one).",
        rich_help_panel=FILE,
    ),
]


RECORDS = "The records of a log"


def _record_option(name: str, help: str) -> Any:
    return typer.Option(name, help=help, rich_help_panel=RECORDS, show_default=False)


class Ids(StrEnum):
    dense = "dense"
    mapped = "mapped"


class Late(StrEnum):
    apply = "apply"
    dead_letter = "dead-letter"
    reject = "reject"


class UpdateKind(StrEnum):
    append = "append"
    delete = "delete"
    add_vertex = "add_vertex"
    remove_vertex = "remove_vertex"


SrcField = Annotated[
    str | None, _record_option("--src-field", "Records are JSON; the source is in this field.")
]
DstField = Annotated[
    str | None, _record_option("--dst-field", "Records are JSON; the target is in this field.")
]
WeightField = Annotated[str | None, _record_option("--weight-field", "The weight, in JSON.")]
TimeField = Annotated[str | None, _record_option("--time-field", "The event time, in JSON.")]
KindField = Annotated[
    str | None, _record_option("--kind-field", "The kind of operation, in JSON. (default: none)")
]
DefaultWeight = Annotated[
    float | None, _record_option("--default-weight", "Of JSON without a weight. (default: 1)")
]
DefaultKind = Annotated[
    UpdateKind | None, _record_option("--default-kind", "Of JSON without one. (default: append)")
]
IdsOption = Annotated[
    Ids | None,
    _record_option("--ids", "mapped: any 64-bit integer or text names a vertex. (default: dense)"),
]
LateOption = Annotated[
    Late | None, _record_option("--late", "What becomes of late operations. (default: apply)")
]
MaxLateness = Annotated[
    int | None,
    typer.Option(
        "--max-lateness", min=0, rich_help_panel=RECORDS, show_default=False,
        help="How far behind the newest event time is not late, in its unit. (default: 0)",
    ),
]  # fmt: skip


KAFKA = "Kafka"


def _kafka_option(*names: str, metavar: str | None = None, help: str) -> Any:
    return typer.Option(
        *names, metavar=metavar, help=help, rich_help_panel=KAFKA, show_default=False
    )


Kafka = Annotated[
    str | None,
    _kafka_option("--kafka", metavar="HOST:PORT,…", help="Read from there, instead of a SOURCE."),
]
Topics = Annotated[
    list[str] | None,
    _kafka_option("--topic", help="To read; may be repeated. (default: updates and queries)"),
]
UpdateTopics = Annotated[
    list[str] | None,
    _kafka_option("--topic", help="Of updates; may be repeated. (default: updates)"),
]
KafkaConfig = Annotated[
    Path | None,
    _kafka_option(
        "--kafka-config",
        metavar="FILE",
        help="Settings by kafka-python's names, as TLS and SASL: 'name = value' lines or JSON. "
        "${NAME} is the environment's; 'sasl_plain_password_file = PATH' reads it from there.",
    ),
]
ReplyTopics = Annotated[
    list[str] | None,
    _kafka_option(
        "--reply-topic", help="That queries may name; may be repeated. (default: replies)"
    ),
]
DeadLetterTopic = Annotated[
    str | None,
    _kafka_option("--dead-letter-topic", help="For bad records. (default: dead-letters)"),
]
FromOffsets = Annotated[
    str | None,
    _kafka_option(
        "--from-offsets",
        metavar="WHERE",
        help="Where a new checkpoint begins: earliest, latest, 'updates:0=120,updates:1=latest', "
        "or a JSON file. (default: earliest)",
    ),
]
QueryTopic = Annotated[
    str, _kafka_option("--query-topic", help="Where the pipeline reads queries. (default: queries)")
]
ReplyTopic = Annotated[
    str, _kafka_option("--reply-topic", help="Where it answers. (default: replies)")
]


def reading(
    json: dict[str, str | float | None], ids: Ids | None, late: Late | None, lateness: int | None
) -> dict[str, Any]:
    """The settings of how records are read that were given; `json`: those of `JsonFields`."""
    from ..json_records import JsonFields

    options: dict[str, Any] = {"ids": ids, "late": late, "max_lateness": lateness}
    options = {
        name: value.value if isinstance(value, StrEnum) else value
        for name, value in options.items()
        if value is not None
    }
    if fields := {name: value for name, value in json.items() if value is not None}:
        options["records"] = JsonFields(**fields)  # type: ignore[arg-type]
    return options


def given(
    directed: bool | None,
    predecessors: bool | None,
    weight: Weight | None,
    times: bool | None,
    strategy: Strategy | None,
    segment_size: int | None,
) -> dict[str, Any]:
    """The arguments of `lpma.Graph` that were given on the command line.

    Raises typer.BadParameter on a segment size that no graph has."""
    if segment_size is not None and segment_size not in [1 << i for i in range(1, 11)]:
        raise typer.BadParameter("a power of two from 2 to 1024", param_hint="--segment-size")
    options = {
        "directed": directed,
        "predecessors": predecessors,
        "times": times,
        "strategy": None if strategy is None else strategy.value,
        "segment_size": segment_size,
    }
    options = {name: value for name, value in options.items() if value is not None}
    if weight is not None:
        options["weight"] = None if weight is Weight.none else weight.value
    return options
