"""`lpma cluster run`: shards until SIGINT or SIGTERM."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from functools import partial
from typing import Annotated

import typer

from ...errors import ClusterClosed
from .._config import configured
from .._console import Screen, emit, failing_in_one_line, show, telling_in_json
from .._pipeline import on_signals
from ._actions import Actions
from ._ask import readable
from ._options import CheckpointOption, GraphStreamOptions, KeepingOptions, ShardOptions

LOOK_EVERY_S = 1.0  # at the shards, to say what is wrong


@failing_in_one_line
@configured(
    ShardOptions, GraphStreamOptions, KeepingOptions, rare=("kafka",), source="source.path",
    shards="cluster.shards", checkpoint="checkpoints.directory",
)  # fmt: skip
def run(
    keeping: KeepingOptions,
    stream: GraphStreamOptions,
    sharding: ShardOptions,
    source: Annotated[
        str | None, typer.Argument(help="An embedded log, or kafka://HOST:PORT,…")
    ] = None,
    shards: Annotated[
        int | None,
        typer.Option(min=1, help="How many; their number divides that of the partitions."),
    ] = None,
    checkpoint: CheckpointOption = None,
) -> None:
    """Run a graph in shards until Ctrl-C or SIGTERM, then take a last checkpoint of each.

    The topic is one that `ingest.PartitionedSink` or `lpma repartition` writes. A shard that dies
    is started again, and resumes. The other commands of `lpma cluster` ask it meanwhile.

    Exit status 1 if a shard could take no last checkpoint, as on a full disk: it says which."""
    source = stream.source(source)
    for what, value in (("SOURCE", source), ("--shards", shards), ("--checkpoint", checkpoint)):
        if value is None:
            raise typer.BadParameter("needed here, or in a file for --config", param_hint=what)
    assert source is not None
    assert shards is not None
    assert checkpoint is not None
    arguments = {**sharding.arguments(), **stream.arguments(), **keeping.arguments()}
    from ...cluster.control import ControlServer

    actions, stopped = Actions(source, checkpoint), threading.Event()
    quiet, interrupt = keeping.log_json, partial(_interrupt, stopped)
    with (
        telling_in_json(quiet), Screen(quiet=quiet) as screen, on_signals(interrupt),
        ExitStack() as opened,
    ):  # fmt: skip
        control = opened.enter_context(ControlServer(checkpoint, actions.by_name()))
        control.start()
        from ...cluster.cluster import Cluster

        try:
            cluster = Cluster(source, shards, checkpoint=checkpoint, stop=stopped, **arguments)
        except ClusterClosed:
            raise KeyboardInterrupt from None
        opened.enter_context(cluster)
        with on_signals(lambda *_: stopped.set()):
            if stopped.is_set():
                raise KeyboardInterrupt
            actions.cluster = cluster
            screen.say(f"{source} in {shards} shards; `lpma cluster status {checkpoint}` tells")
            _watch(actions, stopped, screen)
            document = {**actions.status(), "state": "stopped"}
            screen.say("stopping, with a last checkpoint of each shard that can take one")
            opened.close()
    if keeping.as_json:
        emit(document)
    else:
        show(f"stopped {source}", readable(document))


def _interrupt(stopped: threading.Event, *_: object) -> None:
    """What a signal does before all shards run. It is noted, too: Python drops what a handler
    raises within a callback, a finalizer say."""
    stopped.set()
    raise KeyboardInterrupt


def _watch(actions: Actions, stopped: threading.Event, screen: Screen) -> None:
    """Say what is wrong with the shards, and when it is over, until the end. Raises EngineLost:
    whoever started this command is to start it again."""
    told: tuple[str, ...] = ()
    while not stopped.wait(LOOK_EVERY_S):
        assert actions.cluster is not None
        problems = actions.cluster.status().problems
        for problem in problems:
            if problem not in told:
                screen.say(f"{time.strftime('%H:%M:%S')} {problem}")
        if told and not problems:
            screen.say(f"{time.strftime('%H:%M:%S')} all shards run again")
        told = problems
        actions.cluster.check()
