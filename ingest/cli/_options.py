"""Options that several commands share: how a graph is made, how edges and records are read, how
often checkpoints are taken."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from lpma.backend import check_device

from ..errors import PipelineError
from ._config import Table
from ._console import failing_in_one_line
from ._typer import keyed, option

if TYPE_CHECKING:
    from ..registry.client import SchemaRegistry

GRAPH = "The graph"
KAFKA = "Kafka"
CHECKPOINTS = "Checkpoints"


WeightType = Literal["float32", "float64", "none"]
Strategy = Literal["hybrid", "bottom-up", "top-down"]
UpdateKind = Literal["append", "delete", "add_vertex", "remove_vertex", "expire", "set"]
_graph_option = partial(option, panel=GRAPH)


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
    typer.Option(
        "--directed/--undirected", rich_help_panel=GRAPH, show_default=False,
        help="Whether edges have a direction. (default: directed, or what the dataset is)",
    ),
]  # fmt: skip
Follow = Annotated[
    bool,
    typer.Option(
        "--follow", "-f", show_default=False, help="Wait for more at the end of a log."
    ),
]  # fmt: skip
Save = Annotated[
    Path | None,
    typer.Option(
        "--save", show_default=False, readable=False, help="Save the store here at the end."
    ),
]
Metrics = Annotated[
    str | None,
    typer.Option(
        "--metrics", metavar="PORT|HOST:PORT", show_default=False,
        help="Serve metrics for Prometheus there; a port alone binds to loopback.",
    ),
]  # fmt: skip
KafkaConfig = Annotated[
    Path | None,
    typer.Option(
        "--kafka-config", metavar="FILE", rich_help_panel=KAFKA, show_default=False,
        help="Settings by their names in kafka-python, TLS and SASL for example: 'name = value' "
        "lines or JSON. ${NAME} is taken from the environment; 'sasl_plain_password_file = PATH' "
        "reads the password from a file.",
    ),
]  # fmt: skip


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


SchemaRegistryUrl = Annotated[
    str | None,
    typer.Option(
        "--schema-registry", metavar="URL", rich_help_panel="The records of a log",
        show_default=False,
        help="Read records in Confluent's envelope, of JSON and Avro, by the schemas of this "
        "registry.",
    ),
]  # fmt: skip
SchemaRegistryConfig = Annotated[
    Path | None,
    typer.Option(
        "--schema-registry-config", metavar="FILE", rich_help_panel="The records of a log",
        show_default=False,
        help="How to sign in to it, as --kafka-config: user and password, or token; ssl_cafile, "
        "ssl_certfile, ssl_keyfile, ssl_password. 'password_file = PATH' reads one from a file.",
    ),
]  # fmt: skip
_REGISTRY_SECRET = re.compile("password|^token")


def _registry_without_secret(table: Table) -> Table:
    from ..registry.client import SETTINGS
    from ..sources.kafka.config import secret_in

    if said := secret_in(table.content, _REGISTRY_SECRET):
        raise typer.BadParameter(said)
    for name in table.content:
        if name.removesuffix("_file") not in SETTINGS:
            raise typer.BadParameter(f"{name}: no such setting; it knows {', '.join(SETTINGS)}")
    return table


REGISTRY_TABLE = {
    "help": "What registry.config says, here: user and password, or token; ssl_cafile, "
    "ssl_certfile, ssl_keyfile, ssl_password. ${NAME} is taken from the environment, and a secret "
    "only from there or from a file: password_file = PATH.",
    "check": _registry_without_secret,
}


def schema_registry(
    url: str | None, config: Path | None, table: Table | None = None
) -> SchemaRegistry | None:
    """The registry of a command's options; None: it has none. config, table: how to sign in, in a
    file of its own and in the command's file. Raises typer.BadParameter."""
    from ..registry.client import SchemaRegistry
    from ..sources.kafka.config import read_settings, settings_of

    if url is None:
        if config is not None or table is not None:
            raise typer.BadParameter(
                "registry.config and registry.settings need it", param_hint="--schema-registry"
            )
        return None
    settings = {} if config is None else read_settings(config)
    if table is not None:
        settings |= settings_of(table.content, table.path, table.key, _REGISTRY_SECRET)
    try:
        return SchemaRegistry(url, settings=settings)
    except PipelineError as error:
        raise typer.BadParameter(str(error), param_hint="--schema-registry") from error


# Keys of `lpma ingest` without an option.
RARE_OF_GRAPH = "weight_dtype", "times", "strategy", "segment_size"


@dataclass(frozen=True)
class GraphOptions:
    """How a graph is made; None: the default of `lpma.Graph`."""

    directed: Directed = keyed("graph.directed")
    predecessors: bool | None = _graph_option(
        "graph.predecessors", "--predecessors/--no-predecessors",
        help="Keep an in-neighbour store, which predecessor queries need. (default: no)",
    )  # fmt: skip
    weight_dtype: WeightType | None = _graph_option(
        "graph.weight_dtype", "--weight-dtype",
        help="The type of weights: float32 counts exactly up to 2^24, float64 up to 2^53 with a "
        "sixth more memory. (default: float32)",
    )  # fmt: skip
    times: bool | None = _graph_option(
        "graph.times",
        "--times/--no-times",
        help="Keep the time of each edge's last operation. (default: yes)",
    )
    strategy: Strategy | None = _graph_option(
        "graph.strategy", "--strategy", help="How batches are rebalanced. (default: hybrid)"
    )
    segment_size: int | None = _graph_option(
        "graph.segment_size", "--segment-size",
        help="Slots per segment, a power of two from 2 to 1024. (default: 32)",
    )  # fmt: skip
    device: Device = keyed("graph.device", "auto")

    def arguments(self, weight_column: str | None = None) -> dict[str, Any]:
        """The arguments of `lpma.Graph` that were given, except the device. weight_column: what
        --weight says, which until the next release may be a type.

        Raises typer.BadParameter on a segment size that is not allowed."""
        size = self.segment_size
        if size is not None and size not in [1 << i for i in range(1, 11)]:
            raise typer.BadParameter("a power of two from 2 to 1024", param_hint="--segment-size")
        arguments = given(
            {
                "directed": self.directed, "predecessors": self.predecessors, "times": self.times,
                "strategy": self.strategy, "segment_size": size,
                "weight_dtype": self.weight_dtype
                or (weight_column if weight_column in get_args(WeightType) else None),
            }
        )  # fmt: skip
        if arguments.get("weight_dtype") == "none":
            arguments["weight_dtype"] = None
        return arguments


def given(options: dict[str, Any]) -> dict[str, Any]:
    """Those that are not None."""
    return {name: value for name, value in options.items() if value is not None}
