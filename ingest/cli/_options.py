"""Options that several commands share: how a graph is made, how edges and records are read, how
often checkpoints are taken."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpma.backend import check_device

from ._config import Table, in_file
from ._console import failing_in_one_line

if TYPE_CHECKING:
    from ..fields import Fields

GRAPH = "The graph"
FILE = "The edge file"
KAFKA = "Kafka"
RESULTS = "Figures and results"
CHECKPOINTS = "Checkpoints"
JSON = "JSON, of a log or of a .jsonl file"


class Weight(StrEnum):
    float32 = "float32"
    float64 = "float64"
    none = "none"


class Ids(StrEnum):
    dense = "dense"
    mapped = "mapped"


class Strategy(StrEnum):
    hybrid = "hybrid"
    bottom_up = "bottom-up"
    top_down = "top-down"


class UpdateKind(StrEnum):
    append = "append"
    delete = "delete"
    add_vertex = "add_vertex"
    remove_vertex = "remove_vertex"
    expire = "expire"


def _graph_option(*names: str, help: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=GRAPH, show_default=False)


def kafka_option(*names: str, metavar: str | None = None, help: str) -> Any:
    return typer.Option(
        *names, metavar=metavar, help=help, rich_help_panel=KAFKA, show_default=False
    )


def _name(text: str) -> str:
    if not text:
        raise typer.BadParameter("a name is missing")
    return text


_PARSERS: dict[str, Any] = {"TOPIC": _name, "FILE": lambda text: Path(_name(text))}


def results_option(name: str, *, metavar: str, help: str) -> Any:
    """A TOPIC and a FILE have a name."""
    return typer.Option(
        name, metavar=metavar, help=help, parser=_PARSERS.get(metavar), rich_help_panel=RESULTS,
        show_default=False,
    )  # fmt: skip


def checkpoint_option(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=CHECKPOINTS, show_default=False, **more)


def _json_option(name: str, help: str) -> Any:
    return typer.Option(name, help=help, rich_help_panel=JSON, show_default=False)


def _is_device(value: str) -> str:
    """Refuse a device that is not on this machine, before a command reads or writes anything."""
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", value):
        raise typer.BadParameter("use auto, cpu, cuda or cuda:N")
    failing_in_one_line(check_device)(value)
    return value


Device = Annotated[
    str,
    typer.Option(
        "--device", callback=_is_device, rich_help_panel=GRAPH,
        help="Where the graph lives: cpu, cuda, cuda:N, or auto: a GPU if one is usable, else cpu.",
    ),
]  # fmt: skip
ReadingDevice = Annotated[
    str,
    typer.Option(
        "--device", callback=_is_device,
        help="Where to load the graph: cpu (ready soonest), cuda, cuda:N or auto.",
    ),
]  # fmt: skip
Directed = Annotated[
    bool | None,
    _graph_option(
        "--directed/--undirected",
        help="Whether edges have a direction. (default: directed, or what the dataset is)",
    ),
]
KafkaServers = Annotated[
    str | None,
    kafka_option(
        "--kafka", metavar="HOST:PORT,…", help="Read from these brokers instead of a SOURCE."
    ),
]
KafkaConfig = Annotated[
    Path | None,
    kafka_option(
        "--kafka-config",
        metavar="FILE",
        help="Settings by their names in kafka-python, TLS and SASL for example: 'name = value' "
        "lines or JSON. ${NAME} is taken from the environment; 'sasl_plain_password_file = PATH' "
        "reads the password from a file.",
    ),
]


def _without_secret(table: Table) -> Table:
    from ..sources.kafka.config import secret_in

    if said := secret_in(table.content):
        raise typer.BadParameter(said)
    return table


KAFKA_TABLE = {  # metadata of a field for a file's table of the same settings
    "help": "What --kafka-config says, here; ${NAME} is taken from the environment, and a secret "
    "only from there or from a file: sasl_plain_password_file = PATH.",
    "check": _without_secret,
}


def kafka_settings(config: Path | None, table: Table | None) -> dict[str, Any]:
    """The settings of a file of their own, and of a table of the command's file."""
    from ..sources.kafka.config import read_settings, settings_of

    settings = {} if config is None else read_settings(config)
    if table is not None:
        settings |= settings_of(table.content, table.path, table.key)
    return settings


CheckpointInterval = Annotated[
    float | None,
    checkpoint_option(
        "--checkpoint-interval",
        metavar="SECONDS",
        min=0.0,
        help="Take one this long after the last, if anything came since. (default: 60)",
    ),
]
CheckpointOperations = Annotated[
    int | None,
    checkpoint_option(
        "--checkpoint-operations",
        metavar="N",
        min=1,
        help="Take one after this many operations. (default: 5,000,000)",
    ),
]


RARE_OF_GRAPH = "times", "strategy", "segment_size"  # keys of `lpma ingest` without an option


@in_file(
    directed="graph.directed", predecessors="graph.predecessors", times="graph.times",
    weight_dtype="graph.weight_dtype", strategy="graph.strategy",
    segment_size="graph.segment_size", device="graph.device",
)  # fmt: skip
@dataclass(frozen=True)
class GraphOptions:
    """How a graph is made; None: the default of `lpma.Graph`."""

    directed: Directed = None
    predecessors: Annotated[
        bool | None,
        _graph_option(
            "--predecessors/--no-predecessors",
            help="Keep an in-neighbour store, which predecessor queries need. (default: no)",
        ),
    ] = None
    weight_dtype: Annotated[
        Weight | None,
        _graph_option(
            "--weight-dtype",
            help="The type of weights: float32 counts exactly up to 2^24, float64 up to 2^53 with "
            "a sixth more memory. (default: float32)",
        ),
    ] = None
    times: Annotated[
        bool | None,
        _graph_option(
            "--times/--no-times",
            help="Keep the time of each edge's last operation. (default: yes)",
        ),
    ] = None
    strategy: Annotated[
        Strategy | None,
        _graph_option("--strategy", help="How batches are rebalanced. (default: hybrid)"),
    ] = None
    segment_size: Annotated[
        int | None,
        _graph_option(
            "--segment-size", help="Slots per segment, a power of two from 2 to 1024. (default: 32)"
        ),
    ] = None
    device: Device = "auto"

    def arguments(self, weight_column: str | None = None) -> dict[str, Any]:
        """The arguments of `lpma.Graph` that were given, except the device. weight_column: what
        --weight says, which until the next release may be a type.

        Raises typer.BadParameter on a segment size that is not allowed."""
        size = self.segment_size
        if size is not None and size not in [1 << i for i in range(1, 11)]:
            raise typer.BadParameter("a power of two from 2 to 1024", param_hint="--segment-size")
        weight = self.weight_dtype
        if weight is None and weight_column in list(Weight):
            weight = Weight(weight_column)
        arguments = given(
            {
                "directed": self.directed,
                "predecessors": self.predecessors,
                "times": self.times,
                "strategy": self.strategy,
                "segment_size": size,
                "weight_dtype": weight,
            }
        )
        if weight is Weight.none:
            arguments["weight_dtype"] = None
        return arguments


@in_file(
    src_field="fields.source", dst_field="fields.target", weight_field="fields.weight",
    time_field="fields.time", kind_field="fields.kind", default_weight="fields.default_weight",
    default_kind="fields.default_kind",
)  # fmt: skip
@dataclass(frozen=True)
class JsonOptions:
    """Which field of JSON means what; None: the default of `Fields`."""

    src_field: Annotated[str | None, _json_option("--src-field", "The field of the source.")] = None
    dst_field: Annotated[str | None, _json_option("--dst-field", "The field of the target.")] = None
    weight_field: Annotated[
        str | None, _json_option("--weight-field", "The field of the weight.")
    ] = None
    time_field: Annotated[
        str | None, _json_option("--time-field", "The field of the event time.")
    ] = None
    kind_field: Annotated[
        str | None,
        _json_option("--kind-field", "The field of the kind of operation. (default: none)"),
    ] = None
    default_weight: Annotated[
        float | None,
        _json_option("--default-weight", "The weight if JSON has none. (default: 1)"),
    ] = None
    default_kind: Annotated[
        UpdateKind | None,
        _json_option("--default-kind", "The kind if JSON has none. (default: append)"),
    ] = None

    def json(self) -> Fields | None:
        """The fields, or None if no option was given."""
        from ..fields import Fields

        named = {
            "source": self.src_field, "target": self.dst_field, "weight": self.weight_field,
            "time": self.time_field, "kind": self.kind_field,
            "default_weight": self.default_weight, "default_kind": self.default_kind,
        }  # fmt: skip
        fields = given(named)
        return Fields(**fields) if fields else None


def checkpoint_settings(interval: float | None, operations: int | None) -> dict[str, Any]:
    """What was given of how often checkpoints are taken, as settings."""
    return given({"checkpoint_interval": interval, "checkpoint_operations": operations})


def given(options: dict[str, Any]) -> dict[str, Any]:
    """Those that are not None, as plain values."""
    return {
        name: value.value if isinstance(value, StrEnum) else value
        for name, value in options.items()
        if value is not None
    }
