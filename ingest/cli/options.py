"""Options that several commands share: how a graph is made, how an edge file is read."""

from __future__ import annotations

import re
from enum import StrEnum
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
