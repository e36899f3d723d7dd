"""A pipeline that publishes results, to be killed at places of its code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lpma
from ingest import Pipeline, SqliteLog, has_checkpoint
from tests.support.killed_stream import make_checkpoints_steady
from tests.support.kills import Ended, Place, run

OPTIONS: dict[str, Any] = {
    "track": ("core", "triangles", "components"),
    "alerts": ("core >= 2", "triangles > 3", "components == 1"),
    "poll_records": 9,
    "batch_size": 10,
    # Batches close by size, in every run alike: also where long after a kill the next one goes on.
    "batch_interval": 1e6,
    "query_interval": 1e6,
    "checkpoint_interval": 1e6,
    "checkpoint_operations": 60,
}
WINDOW = 60  # times rise by 1 an operation: what expires changes figures, too
POINTS = (
    "ingest.results.publisher:Publisher.begin",
    "ingest.results.publisher:Publisher.make",
    "ingest.results.publisher:Publisher.send",
    "ingest:SqliteLog.produce_parts",
    "ingest.results.sinks:_File.send",
    "os:fdatasync",
    "ingest.state.journal:Journal.sync",
    "lpma:Graph.apply",
    "lpma.engine.expiry:Expiry.expanded",
    "ingest.state.checkpointer:Checkpointer.begin",
    "ingest.state.directory:CheckpointDirectory.commit",
)


def sink_of(kind: str, log: SqliteLog) -> Any:
    return log if kind == "topic" else Path(f"{log.path}.results")


def ingest_all(log: str, checkpoint: Path, kind: str) -> None:
    """Start, or go on, to the end of the log."""
    with SqliteLog(log) as source:
        given = {**OPTIONS, "results": sink_of(kind, source)}
        if has_checkpoint(checkpoint):
            pipeline = Pipeline.resume(checkpoint, source, device="cpu", **given)
        else:
            graph = lpma.Graph(device="cpu")
            pipeline = Pipeline(source, graph, checkpoint, window=WINDOW, **given)
        with pipeline:
            pipeline.run("end")


def in_a_process(log: str, checkpoint: Path, kind: str, place: Place | None = None) -> Ended:
    """The same in a process of its own."""
    return run(ingest_steadily, log, checkpoint, kind, points=POINTS, place=place)


def ingest_steadily(log: str, checkpoint: Path, kind: str) -> None:
    make_checkpoints_steady(checkpoint)
    ingest_all(log, checkpoint, kind)
