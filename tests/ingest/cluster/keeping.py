"""What the tests of kept checkpoints share: a stream, and what comes of it after a restore."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np

import ingest
import lpma
from ingest import Pipeline, SqliteLog
from ingest.state.checkpoint import MANIFEST
from tests.support.object_store import ObjectStore

OPTIONS: dict[str, Any] = {
    "batch_size": 7, "batch_interval": 10.0, "poll_records": 3, "checkpoint_operations": 10**6,
}  # fmt: skip


def fill(log: SqliteLog, rng: np.random.Generator, records: int) -> None:
    """Edges that come and go, in records of a few each, some of a numbered source."""
    for number in range(records):
        src, dst = rng.integers(0, 12, (2, 5))
        kind = lpma.Kind.INSERT if number % 3 else lpma.Kind.DELETE
        log.produce("updates", ingest.encode_updates(src, dst, kind=kind, producer="a", seq=number))


def edges(graph: Any) -> list[tuple[int, int]]:
    s = graph.snapshot()
    src = np.repeat(np.arange(s.num_rows), np.diff(s.indptr))
    return list(zip(src.tolist(), s.indices.tolist(), strict=True))


def unbroken(log: SqliteLog) -> list[tuple[int, int]]:
    """What all of the log makes of an empty graph."""
    with SqliteLog(log.path) as again:
        pipeline = Pipeline(again, lpma.Graph(device="cpu"), dead_letters=print, replies=print)
        pipeline.run("end")
        return edges(pipeline.graph)


def gone_on(stream: Pipeline, tmp_path: Path, batches: int = 1) -> Path:
    """Take a checkpoint after some more batches; the directory."""
    for _ in range(batches):
        stream.step()
    stream.checkpoint_now()
    return tmp_path / "state"


def resumed(log: SqliteLog, directory: Path, lost: bool) -> list[tuple[int, int]]:
    """The edges after all of the log, of a stream that goes on from `directory`."""
    with (
        SqliteLog(log.path) as again,
        Pipeline.resume(directory, again, accept_journal_loss=lost, **OPTIONS) as pipeline,
    ):
        pipeline.run("end")
        assert pipeline.stats.operations == 150, "each record once"
        return edges(pipeline.graph)


def event_of(record: logging.LogRecord) -> str:
    event: Any = record.msg
    return str(event.name)


def whole(store: ObjectStore) -> list[int]:
    copies = {name.split("/")[-2] for name in store.objects if name.endswith(MANIFEST)}
    return sorted(int(copy.split("-")[1]) for copy in copies)
