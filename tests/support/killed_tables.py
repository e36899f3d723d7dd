"""`lpma ingest` on a table's topic in an embedded log or in Kafka, to be killed at places of its
code, and what its checkpoints hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import lpma
from ingest.cli import app
from ingest.state.checkpoint import GRAPH
from ingest.state.directory import checkpoint_path
from ingest.state.inspection import find_checkpoints
from ingest.types import Partition
from tests.support.cdc.cases import weights_of
from tests.support.cdc.expected import Weights
from tests.support.killed_stream import make_checkpoints_steady

POINTS = (
    "ingest.state.journal:Journal.append",
    "ingest.state.journal:Journal.sync",
    "ingest.pipeline.outputs:Outputs.flush",
    "lpma:Graph.apply",
    "ingest.state.checkpointer:Checkpointer.begin",
    "ingest.state.journal:Journal.rotate",
    "ingest.state.directory:CheckpointDirectory.commit",
    "ingest.state.journal:Fence.check",
    "os:write",
    "os:fsync",
    "os:mkdir",
    "os:rename",
    "os:unlink",
    "shutil:rmtree",
)
SETTINGS = {
    "checkpoints.operations": 40,
    "checkpoints.interval": 1e6,
    "checkpoints.keep": "1s=100000",
    "batches.interval": 1e6,
}


def command(source: list[Any], state: Path, *more: Any) -> list[str]:
    """`lpma ingest` with batches and checkpoints by size alone."""
    said = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
    line = ["ingest", *source, "--checkpoint", state, "--device", "cpu", *said, *more]
    return [str(word) for word in line]


def as_command(state: Path, *arguments: str) -> None:
    """Run it in this process, which takes the same checkpoints whenever it does."""
    make_checkpoints_steady(state)
    result = CliRunner().invoke(app, list(arguments))
    if result.exception is not None:
        raise result.exception


def kept(state: Path) -> Iterator[tuple[dict[Partition, int], Weights]]:
    """The offsets and the edges of each good checkpoint; others were being removed. None of them
    stands within a change, which would leave a row half moved."""
    for found in find_checkpoints(state, every_byte=True):
        if found.checkpoint is not None and found.problem is None:
            positions = found.checkpoint.state.positions
            assert not any(position.row for position in positions.values())
            graph = lpma.Graph.load(checkpoint_path(state, found.number) / GRAPH, device="cpu")
            yield {partition: at.offset for partition, at in positions.items()}, weights_of(graph)
