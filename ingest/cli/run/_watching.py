"""`lpma run` on a live stream: the algorithm on a graph of its own, run again and again as that
grows.

The stream may have other readers: nothing is committed, no query is answered, no dead letter is
written.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from ...state.vertex_names import VertexNames
from .._console import Screen, telling_outages
from .._file_options import FileOptions
from .._options import KAFKA, KafkaConfig
from .._origin import Origin
from .._pipeline import Progress, run
from .._targets import KAFKA as SCHEME
from .._typer import option

if TYPE_CHECKING:
    import lpma

    from ...settings import BatchStats

_option = partial(option, panel="A live stream")


@dataclass(frozen=True)
class WatchOptions:
    """The options of a command that can watch a live stream."""

    every: int = _option(
        "--every", default=10, min=1, show_default=True, help="Run again after this many batches."
    )
    batch_size: int = _option(
        "--batch-size", default=100_000, min=1, show_default=True, help="Operations per batch."
    )
    follow: bool = _option("--follow", "-f", default=False, help="Wait for more at the end.")
    topics: list[str] | None = option(
        "--topic", panel=KAFKA, help="A topic of updates; may be repeated. (default: updates)"
    )
    kafka_config: KafkaConfig = None


def watch(
    target: str,
    graph: lpma.Graph,
    watching: WatchOptions,
    screen: Screen,
    look: Callable[[int, VertexNames], None],
    reading: dict[str, Any],
) -> dict[str, Any]:
    """Apply the stream's updates to the graph, and call `look` after every so many batches and at
    the end, which with `follow` is when it is interrupted. `look` gets the operations so far and
    what vertices go by. reading: settings that say how records are read. Returns counts."""
    from ...pipeline.pipeline import Pipeline

    batches = looks = 0
    with telling_outages(), ExitStack() as opened:
        pipeline = opened.enter_context(
            Pipeline(
                _source(target, graph, watching, opened), graph, replies=_nowhere,
                dead_letters=_nowhere, batch_size=watching.batch_size, **reading,
            )
        )  # fmt: skip
        progress = Progress(pipeline, screen)
        names = VertexNames(pipeline.vertices)

        def on_batch(batch: BatchStats) -> None:
            nonlocal batches, looks
            progress(batch)
            batches += 1
            if batches % watching.every == 0:
                looks += 1
                look(batch.total_operations, names)

        run(pipeline, None, watching.follow, on_batch, progress.look)
        if batches % watching.every or not looks:
            looks += 1
            look(pipeline.stats.operations, names)
        return {
            "operations": pipeline.stats.operations,
            "rejected": pipeline.outputs.rejected,
            "batches": batches,
            "times_run": looks,
        }


def _source(target: str, graph: lpma.Graph, watching: WatchOptions, opened: ExitStack) -> Any:
    """The source of the updates alone: queries are left to others."""
    from ...sources import SqliteLog
    from ...types import UPDATES

    topics, config = watching.topics, watching.kafka_config
    if target.startswith(SCHEME):
        server = target.removeprefix(SCHEME)
        origin = Origin(None, server, topics or [UPDATES], config, FileOptions(), None)
        return origin.open(graph.directed, opened)
    if topics is not None or config is not None:
        raise typer.BadParameter(f"{target} needs none", param_hint="--topic and --kafka-config")
    return opened.enter_context(SqliteLog(target, [UPDATES]))


def _nowhere(_: Any) -> None:
    """Discards replies and dead letters."""
