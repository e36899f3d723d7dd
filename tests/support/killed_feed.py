"""A pipeline that publishes its edge feed, and a copy that follows it, both to be killed at places
of their code."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import ingest
import lpma
from ingest import Pipeline, SqliteLog, has_checkpoint
from ingest.feed import writer
from ingest.results.publisher import Publisher
from tests.support.fed_stream import State, state_of
from tests.support.killed_stream import make_checkpoints_steady
from tests.support.kills import Ended, Place, run

OPTIONS: dict[str, Any] = {
    "poll_records": 9,
    "batch_size": 10,
    # Batches close by size, in every run alike: also where long after a kill the next one goes on.
    "batch_interval": 1e6,
    "query_interval": 1e6,
    "checkpoint_interval": 1e6,
    "checkpoint_operations": 60,
    "clock": lambda: 1000,  # the times of what has none
}
WINDOW = 120  # times rise by 10 a record: what expires is in the feed, too
_OF_BOTH = (
    "ingest.state.journal:Journal.append",
    "lpma:Graph.apply",
    "ingest.state.checkpointer:Checkpointer.begin",
    "ingest.state.directory:CheckpointDirectory.commit",
    "os:rename",
)
OF_WRITER = (
    *_OF_BOTH,
    "os:fdatasync",
    "ingest.state.journal:Journal.sync",
    "ingest.results.publisher:Publisher.begin",
    "ingest.results.publisher:Publisher.make",
    "ingest.results.publisher:Publisher.send",
    "ingest:SqliteLog.produce_parts",
    "ingest.results.sinks:_File.send",
    "ingest.feed.writer:FeedWriter.follow",
    "lpma:Watch.look",
    "lpma:Watch.finish",
)
OF_COPY = (
    *_OF_BOTH,
    "ingest.feed.source:FeedSource.poll",
    "ingest.feed.source:FeedSource.decoder",
    "ingest.feed.source:updates_of",
)


def feed_of(kind: str, log: str) -> Any:
    """What a copy reads."""
    return f"{log}.feed" if kind == "file" else SqliteLog(log, ["changes"])


def write_all(log: str, checkpoint: Path, kind: str, names: bool) -> State:
    """Start, or go on, to the end of the log; the graph then."""
    with SqliteLog(log) as source:
        to: Any = f"{log}.feed" if kind == "file" else source
        form = "json" if kind == "file" else "columns"
        given: Any = {**OPTIONS, "changes": to, "changes_format": form}
        if has_checkpoint(checkpoint):
            pipeline = Pipeline.resume(checkpoint, source, device="cpu", **given)
        else:
            graph = lpma.Graph(device="cpu", names=names)
            given |= {"window": WINDOW, "names": names}
            pipeline = Pipeline(source, graph, checkpoint, **given)
        with pipeline:
            pipeline.run("end")
        return state_of(pipeline.graph)  # type: ignore[arg-type]


def follow_all(log: str, checkpoint: Path, kind: str, start: Path | None) -> State:
    """Start, or go on, to the end of the feed; the copy then."""
    given: Any = {"checkpoint_interval": 1e6, "checkpoint_operations": 60, "poll_records": 9}
    with ingest.follow(feed_of(kind, log), checkpoint, start=start, device="cpu", **given) as copy:
        copy.run("end")
    return state_of(copy.graph)  # type: ignore[arg-type]


def writing(
    log: str, checkpoint: Path, kind: str, names: bool, waiting: int, place: Place | None = None
) -> Ended:
    """`write_all` in a process of its own, where so many versions wait to be published: of more
    than one, some are sent together, how many is for the machine to say."""
    work = log, checkpoint, kind, names, waiting
    return run(write_steadily, *work, points=OF_WRITER, place=place)


def write_steadily(log: str, checkpoint: Path, kind: str, names: bool, waiting: int) -> None:
    make_checkpoints_steady(checkpoint)
    writer.MOST_WAITING = waiting
    if waiting > 1:
        _send_slowly()
    write_all(log, checkpoint, kind, names)


def _send_slowly() -> None:
    send = Publisher.send

    def slowly(self: Publisher, results: Any) -> None:
        time.sleep(0.005)
        send(self, results)

    Publisher.send = slowly  # type: ignore[method-assign]


def following(
    log: str, checkpoint: Path, kind: str, start: Path | None, place: Place | None = None
) -> Ended:
    """`follow_all` in a process of its own."""
    return run(follow_steadily, log, checkpoint, kind, start, points=OF_COPY, place=place)


def follow_steadily(log: str, checkpoint: Path, kind: str, start: Path | None) -> None:
    make_checkpoints_steady(checkpoint)
    follow_all(log, checkpoint, kind, start)
