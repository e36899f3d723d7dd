"""A copy of a graph that follows its edge feed: `ingest.follow`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Unpack

import lpma

from ..errors import CheckpointError, IdentityError, OffsetError, PipelineError, SourceError
from ..formats.changes import EdgeChanges, GraphFacts
from ..pipeline.pipeline import Pipeline
from ..settings import Settings, SettingsDict
from ..sources.base import Log
from ..state.checkpoint import GRAPH
from ..state.directory import has_checkpoint
from ..state.inspection import find_checkpoints
from ..types import Position
from .content import digest_of_graph
from .source import AGAIN, FeedFile, FeedSource, follows_feed

# Of a pipeline's settings those that say how records are read, which a feed says itself.
REFUSED = (
    "records", "names", "late", "max_lateness", "window", "window_time", "max_ahead", "replies",
    "dead_letters", "reply_topics", "stop_if_first_bad",
)  # fmt: skip

Start = str | os.PathLike[str] | lpma.Graph | None


def follow(
    feed: Log | str | os.PathLike[str],
    checkpoint: str | os.PathLike[str] | None = None,
    *,
    start: Start = None,
    **settings: Unpack[SettingsDict],
) -> Pipeline:
    """A copy of the graph that `feed` is of, at the writer's versions: a pipeline, whose `run`
    follows the feed. Each snapshot of the copy equals the writer's of that version, bit for bit.

    feed: a log that reads the feed's topic alone, as SqliteLog(path, ["changes"]), or the path of a
    feed's file.
    checkpoint: a directory of the copy's own. If it holds a checkpoint, the copy goes on from
    there, whatever `start` is. None: nothing survives a crash.
    start: what it begins with: a graph, a saved store, or a checkpoint directory of the writer,
    whose version the feed still holds. None: an empty graph, if the feed begins with one.
    settings: as of `Pipeline`, but for those of how records are read.

    Raises SourceError if that is no feed; OffsetError if it was trimmed past the copy;
    IdentityError if it is the feed of another graph, or began anew since: the message says what to
    do. All else as `Pipeline` does.

    >>> with ingest.SqliteLog("log") as log:
    ...     _ = log.produce("updates", ingest.encode_updates([1, 2], [2, 3], time=[5, 6]))
    ...     with ingest.Pipeline(log, lpma.Graph(device="cpu"), changes=log) as pipeline:
    ...         _ = pipeline.run("end")
    >>> with ingest.SqliteLog("log", ["changes"]) as feed:
    ...     with ingest.follow(feed, device="cpu") as copy:
    ...         _ = copy.run("end")
    >>> copy.graph.version, copy.graph.num_edges
    (1, 2)
    """
    own = Settings.given_to(follow, settings, REFUSED)
    for name in REFUSED:
        if name in settings:
            raise PipelineError(f"{name}: a feed says itself how it is read: leave it out")
    source = FeedSource(feed if isinstance(feed, Log) else FeedFile(feed))
    facts = source.newest.graph
    if checkpoint is not None and has_checkpoint(checkpoint):
        _check_is_followed(checkpoint, source)
        return Pipeline.resume(checkpoint, source, **settings)
    found: tuple[EdgeChanges, int] | None
    if start is None:
        graph, found = _empty(facts, own.device), source.find(0)
        if found is None or found[0].edges or found[0].digest:
            raise SourceError(
                f"{source.place.topic}: the feed does not begin with an empty graph: say what the "
                "copy begins with, a saved store or a checkpoint directory of the graph"
            )
    else:
        graph = _started(start, own.device)
        found = source.find(graph.version)
    offset = _checked(graph, source, found)
    return Pipeline(
        source, graph, checkpoint, positions={source.place: Position(offset)}, **settings
    )


def _empty(facts: GraphFacts, device: str) -> lpma.Graph:
    return lpma.Graph(
        facts.directed, weight_dtype=facts.weights, times=facts.times, names=facts.names,
        device=device,
    )  # fmt: skip


def _started(start: Any, device: str) -> lpma.Graph:
    """The graph that a copy begins with; of a directory, that of the newest checkpoint."""
    if isinstance(start, lpma.Graph):
        return start
    if not isinstance(start, str | os.PathLike):
        raise PipelineError(f"start is {start!r}: expected a graph, or the path of a saved one")
    path = Path(start)
    if not path.is_dir():
        return lpma.Graph.load(path, device)
    good = [one.checkpoint for one in find_checkpoints(path, every_byte=False)
            if one.checkpoint and not one.problem]  # fmt: skip
    if not good:
        raise CheckpointError(f"{path}: holds no checkpoint that can be read")
    return lpma.Graph.load(good[-1].path / GRAPH, device)


def _checked(graph: lpma.Graph, source: FeedSource, found: tuple[EdgeChanges, int] | None) -> int:
    """The offset from which the feed leads on from this graph. Raises IdentityError or OffsetError
    if it does not."""
    topic, newest, version = source.place.topic, source.newest, graph.version
    if found is None:
        if version > newest.version:
            raise IdentityError(
                f"{topic}: the feed has come to version {newest.version:,}, and what the copy is "
                f"to begin with is of version {version:,}: wait until the writer has published "
                "that, or begin with an older snapshot; or is it of another graph?"
            )
        raise OffsetError(
            f"{topic}: the feed holds nothing of version {version:,} any more, which the copy is "
            f"to begin with: {AGAIN}"
        )
    part, offset = found
    here, there = GraphFacts.of(graph), part.graph
    if here != there:
        raise IdentityError(f"{topic}: the feed is of a graph that is {there}, this one is {here}")
    said = (part.edges, part.updated, part.digest)
    if said != (graph.num_edges, graph.time, digest_of_graph(graph)):
        raise IdentityError(
            f"{topic}: at version {version:,} the graph of the feed had other edges than this one: "
            "begin with a snapshot of that graph"
        )
    return offset


def _check_is_followed(checkpoint: str | os.PathLike[str], source: FeedSource) -> None:
    """Raise IdentityError if the copy's checkpoint is of another feed, or of a run that is over."""
    for one in reversed(find_checkpoints(Path(checkpoint), every_byte=False)):
        if one.checkpoint is None or one.problem:
            continue
        then, now = one.checkpoint.state.identity, source.identity()
        topic = source.place.topic
        if not follows_feed(then):
            raise IdentityError(
                f"{checkpoint}: is the directory of a pipeline, no copy's: give the copy one of "
                "its own; to begin with the pipeline's newest checkpoint, name its directory by "
                "--from, or start= in Python"
            )
        if (then.cluster, then.topics.get(topic)) != (now.cluster, now.topics[topic]):
            raise IdentityError(
                f"{checkpoint}: this copy follows another feed than {topic}, or one that began "
                f"anew since: {AGAIN}"
            )
        return
