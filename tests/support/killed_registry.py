"""A stream of records in Confluent's envelope, to be killed at places of its code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lpma
from ingest import Fields, Pipeline, SqliteLog, has_checkpoint
from tests.support.killed_stream import make_checkpoints_steady
from tests.support.kills import Ended, Place, run

FIELDS = Fields("user", "item", "stars")
OPTIONS: dict[str, Any] = {
    "poll_records": 9, "batch_size": 10, "batch_interval": 1e6, "query_interval": 1e6,
    "checkpoint_interval": 1e6, "checkpoint_operations": 40, "device": "cpu",
}  # fmt: skip
POINTS = (
    "ingest.registry.schemas:Schemas._learn",
    "ingest.registry.schemas:Schemas._keep",
    "ingest.state.journal:Journal.append",
    "ingest.pipeline.outputs:Outputs.flush",
    "lpma:Graph.apply",
    "ingest.state.directory:CheckpointDirectory.commit",
    "os:fsync",
    "os:replace",
    "os:mkdir",
)


def ingest_all(log: Path, checkpoint: Path, url: str) -> None:
    """Start, or go on, to the end of the log."""
    with SqliteLog(log) as source:
        if has_checkpoint(checkpoint):
            pipeline = Pipeline.resume(checkpoint, source, schema_registry=url, **OPTIONS)
        else:
            graph = lpma.Graph(names=True, device="cpu")
            pipeline = Pipeline(
                source, graph, checkpoint, names=True, records=FIELDS, schema_registry=url,
                **OPTIONS,
            )  # fmt: skip
        with pipeline:
            pipeline.run("end")


def ingest_steadily(log: Path, checkpoint: Path, url: str) -> None:
    make_checkpoints_steady(checkpoint)
    ingest_all(log, checkpoint, url)


def in_a_process(log: Path, checkpoint: Path, url: str, place: Place | None = None) -> Ended:
    """The same in a process of its own."""
    return run(ingest_steadily, log, checkpoint, url, points=POINTS, place=place)
