"""A pipeline that publishes results, in a process of its own, and killed at places of its code.

A process is forked from one that has imported everything, so that dozens of them take seconds."""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import lpma
from ingest import Pipeline, SqliteLog, has_checkpoint
from ingest.results import sinks
from ingest.results.publisher import Publisher
from ingest.state.checkpointer import Checkpointer
from ingest.state.directory import CheckpointDirectory
from ingest.state.journal import Journal
from lpma.expiry import Expiry
from tests.support.compiled import IMPORTED_LATE

OPTIONS: dict[str, Any] = {
    "track": ("core", "triangles", "components"),
    "alerts": ("core >= 2", "triangles > 3", "components == 1"),
    "poll_records": 9,
    # Batches close by size, in every run alike: also where long after a kill the next one goes on.
    "batch_interval": 1000.0,
    "query_interval": 1000.0,
    "checkpoint_operations": 60,
}
WINDOW = 60  # times rise by 1 an operation: what expires changes figures, too
POINTS: dict[str, tuple[Any, str]] = {
    "begin": (Publisher, "begin"),
    "make": (Publisher, "make"),
    "send": (Publisher, "send"),
    "topic": (SqliteLog, "produce_parts"),
    "file": (sinks._File, "send"),
    "line": (os, "fdatasync"),
    "journal": (Journal, "sync"),
    "apply": (lpma.Graph, "apply"),
    "expire": (Expiry, "expanded"),
    "checkpoint": (Checkpointer, "begin"),
    "commit": (CheckpointDirectory, "commit"),
}


class Place(NamedTuple):
    """Before or after a passage of a point, counted from 0."""

    point: str
    passage: int
    after: bool


def sink_of(kind: str, log: SqliteLog) -> Any:
    return log if kind == "topic" else Path(f"{log.path}.results")


def ingest_all(log: str, checkpoint: Path, kind: str, place: Place | None) -> None:
    """Start, or go on, to the end of the log."""
    if place is not None:
        _kill_at(place)
    with SqliteLog(log) as source:
        given = {**OPTIONS, "results": sink_of(kind, source), "batch_size": 10}
        if has_checkpoint(checkpoint):
            pipeline = Pipeline.resume(checkpoint, source, device="cpu", **given)
        else:
            graph = lpma.Graph(device="cpu")
            pipeline = Pipeline(source, graph, checkpoint, window=WINDOW, **given)
        with pipeline:
            pipeline.run("end")


def _kill_at(place: Place) -> None:
    owner, attribute = POINTS[place.point]
    function = getattr(owner, attribute)
    passed: Counter[str] = Counter()

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        number = passed[""]
        passed[""] += 1
        if (number, False) == (place.passage, place.after):
            os.kill(os.getpid(), signal.SIGKILL)
        result = function(*args, **options)
        if (number, True) == (place.passage, place.after):
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, attribute, call)


def in_a_process(log: str, checkpoint: Path, kind: str, place: Place | None) -> bool:
    """The same in a process of its own; whether it was killed."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *IMPORTED_LATE])
    process = context.Process(target=ingest_all, args=(log, checkpoint, kind, place))
    process.start()
    process.join(60)
    assert process.exitcode in (0, -signal.SIGKILL), f"it ended by itself: {process.exitcode}"
    return process.exitcode != 0
