"""Past views: the graph as it was after a version, or at a time.

Idea: nothing is kept for them while the stream flows. What a crash needs is there anyway: the
checkpoints, the log, and the journal, which says in which order and under which stamps its records
were buffered, and where batches were cut. So a past view is a resume that stops sooner: the newest
checkpoint at or before the place asked for is loaded, and what the journal says happened since is
replayed from the log. It costs as much as the stream did over that distance. A
retention policy (`state/retention.py`) keeps the distance short.

A version is the number that replies and snapshots carry: the state after that whole batch. A time
is compared with stamps: the moments at which the pipeline buffered operations, in ms since 1970,
which never fall. The state at a time holds every operation whose stamp is not later, and no other.
It may lie within a batch. Event times in the records do not count.

Nothing is written, and no lock is needed. A pipeline that writes there may remove a checkpoint
meanwhile: then it has others, and the search begins again.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import index
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import lpma
from lpma.arguments.times import numbered
from lpma.errors import FormatError

from ..errors import CheckpointError, OffsetError, PastError, PipelineError
from ..events import LetterEvents, log_event
from ..pipeline import recovery
from ..pipeline.batching import Batcher, StreamBatch
from ..pipeline.pipeline import Pipeline
from ..pipeline.record_decoder import Admission
from ..pipeline.recovery import exact, seek_to
from ..settings import Settings
from ..sources.base import Source
from ..sources.fingerprints import check_fingerprints
from ..state.checkpoint import GRAPH, VERTICES, Checkpoint, State, verify_file
from ..state.directory import directory_path
from ..state.inspection import find_checkpoints
from ..state.journal import Chunk, Entry
from ..state.journal_reader import read_journal
from ..state.stream_state import StreamState
from ..state.table_rows import ROWS
from ..timers import now_ms
from .reach import described, is_of_cluster, moment, reachable

TRIES = 10  # while a pipeline removes what was found


def as_of(
    checkpoint: str | os.PathLike[str],
    source: Source | None = None,
    *,
    version: int | None = None,
    time: int | datetime | np.datetime64 | None = None,
    device: str = "auto",
) -> lpma.Graph:
    """The graph of a stream exactly as it was: edges, weights, times, vertices, names and version.

    checkpoint: the directory of the pipeline, which may be running. source: what it reads; a handle
    of its own, since its positions move. None is enough where a kept checkpoint is just what is
    asked for.
    version: the state after the batch that made this version, as replies carry it.
    time: the state after all operations that were buffered until then, in ms since 1970, or a
    datetime, in UTC if it has no zone; it may lie within a batch. `graph.version` is that of the
    batch which the last operation was part of.

    Raises PastError if it cannot be had, with what can; PipelineError unless one of version and
    time is given; IdentityError if `source` is not the one that was read, RewrittenError if it
    holds other records than were read; CheckpointError on anything else that is wrong with the
    directory; DeviceError and lpma.OutOfMemory.

    >>> log = ingest.SqliteLog("log")
    >>> _ = log.produce("updates", ingest.encode_updates([1, 1, 1, 1], [2, 3, 4, 5]))
    >>> with ingest.Pipeline(log, lpma.Graph(device="cpu"), "state", batch_size=2) as pipeline:
    ...     _ = pipeline.run(until="end")
    >>> ingest.as_of("state", log, version=1, device="cpu").num_edges
    2
    """
    return view(checkpoint, source, version=version, time=time, device=device).graph


@dataclass(frozen=True)
class View:
    """A past view, and how it was had."""

    graph: lpma.Graph
    checkpoint: Checkpoint  # that it began with
    replayed: int  # operations since
    state: State  # of the stream, at the view
    load_s: float  # that the checkpoint took
    replay_s: float  # that the replay took
    problems: list[str]  # of later checkpoints, which are damaged


def view(
    checkpoint: str | os.PathLike[str],
    source: Source | None = None,
    *,
    version: int | None = None,
    time: Any = None,
    device: str = "auto",
) -> View:
    """As `as_of`, with what is worth telling besides."""
    lpma.backend.check_device(device)
    directory, target = directory_path(checkpoint), _target(version, time)
    _check_is_source(source)
    _check_is_ours(directory)
    for _ in range(TRIES):
        try:
            return _view(directory, source, target, device)
        except _Removed:
            continue
    raise PastError(f"{directory}: checkpoints are removed faster than they are read: ask again")


class _Removed(Exception):
    """A checkpoint was removed by the pipeline that writes here while it was read."""


@dataclass(frozen=True)
class _Target:
    """What is asked for: a version, or a time in ms since 1970."""

    version: int | None
    time_ms: int

    def is_before(self, found: Checkpoint) -> bool:
        """Whether that checkpoint holds operations that are not to be there."""
        if self.version is not None:
            return found.state.version > self.version
        return found.state.stamp > self.time_ms

    def __str__(self) -> str:
        return f"time {moment(self.time_ms)}" if self.version is None else f"version {self.version}"


def _target(version: Any, time: Any) -> _Target:
    if (version is None) == (time is None):
        raise PipelineError("as_of: give a version or a time")
    asked = version if time is None else numbered(time, "time")
    try:
        number = None if isinstance(asked, bool) else index(asked)
    except TypeError:
        number = None
    if number is None:
        name, kind = ("time", "ms since 1970 or a datetime") if version is None else ("version", "")
        raise PipelineError(f"as_of: {name} is {asked!r}: expected {kind or 'a whole number'}")
    return _Target(None, number) if version is None else _Target(number, 0)


def _check_is_source(source: Source | None) -> None:
    if source is not None and not isinstance(source, Source):
        raise PipelineError(
            f"as_of: source is {source!r}: expected an open source, as ingest.SqliteLog(path), "
            "ingest.FileSource(path) or ingest.KafkaSource(servers, topics)"
        )


def _check_is_ours(directory: Path) -> None:
    if is_of_cluster(directory):
        raise PastError(
            f"{directory}: belongs to a cluster, whose shards each have versions of their own: "
            "there are no past views of it; Cluster.epoch gives a graph of all shards at one place"
        )


def _view(directory: Path, source: Source | None, target: _Target, device: str) -> View:
    found = find_checkpoints(directory, every_byte=False)
    good = [one.checkpoint for one in found if one.checkpoint and not one.problem]
    problems = [f"checkpoint {one.number}: {one.problem}" for one in found if one.problem]
    for kept in reversed(good):
        if target.is_before(kept):
            continue
        started = perf_counter()
        try:
            graph = _loaded(kept, device)
        except (CheckpointError, FormatError, OSError) as error:
            _check_is_there(kept)
            problems.append(f"checkpoint {kept.number}: {error}")
            log_event("damaged checkpoint", logging.WARNING, problem=problems[-1], used=None)
            continue
        later = [one for one in good if one.number > kept.number and target.is_before(one)]
        last = later[0].segment - 1 if later else None
        loaded = perf_counter()
        way = _Way(directory, source, target, kept, problems, graph)
        state = way.take(last)
        took = loaded - started, perf_counter() - loaded
        return View(graph, kept, way.replayed, state, *took, problems)
    why = "it lies before the oldest checkpoint that is kept"
    raise _refused(directory, source, target, "; ".join([why, *problems]))


def _loaded(kept: Checkpoint, device: str) -> lpma.Graph:
    graph = lpma.Graph.load(kept.path / GRAPH, device)
    for name in kept.files.keys() & {VERTICES, ROWS}:
        verify_file(kept, name)
    recovery.vertices_of(_settings_of(kept.state), graph, kept.path / VERTICES)
    return graph


def _check_is_there(kept: Checkpoint) -> None:
    if not kept.path.exists():
        raise _Removed


@dataclass
class _Way:
    """From a checkpoint, whose graph this is, to what is asked for.

    Idea: a resume builds the batches of the first run from the journal. So does this, with the same
    code; it only stops sooner, and nothing leaves: queries are not asked, no reply and no dead
    letter is written. The version rises all the same for a batch of queries alone, as it did
    then."""

    directory: Path
    source: Source | None
    target: _Target
    kept: Checkpoint
    problems: Sequence[str]
    graph: lpma.Graph
    replayed: int = 0  # operations

    def take(self, last: int | None) -> State:
        """Take the graph there; where the stream stands then. last: the segment of the journal that
        suffices; None: as far as there are any."""
        if self.kept.state.version == self.target.version:
            return self.kept.state
        history = read_journal(self.directory, self.kept.segment, last)
        if history.damage is not None:
            _check_is_there(self.kept)
        entries = [*self.kept.waiting, *history.entries]
        problem = history.damage.problem if history.damage is not None else None
        if self.target.version is None:
            return self._to_time(entries, problem, is_newest=last is None)
        return self._to_version(entries, problem, self.target.version)

    def _to_version(self, entries: list[Entry], problem: str | None, version: int) -> State:
        """A version is a whole batch."""
        pipeline, whole = self._pipeline(entries)
        for batch in self._batches(pipeline, whole):
            self._apply(pipeline, batch)
            if self.graph.version >= version:
                break
        if self.graph.version != version:
            if len(whole) < len(entries):
                problem = "its records are gone from the log"
            raise self._refused(problem or f"the stream has come to version {self.graph.version}")
        return self._stream.state

    def _to_time(self, entries: list[Entry], problem: str | None, is_newest: bool) -> State:
        """A time may lie within a batch: then the operations up to it are applied as a batch of
        their own, whose version is that of the batch they were part of."""
        time_ms = self.target.time_ms
        stamps = [entry.stamp for entry in entries if isinstance(entry, Chunk)]
        newest = max(stamps, default=self.kept.state.stamp)
        if problem is not None and newest <= time_ms:
            raise self._refused(problem)
        if is_newest and time_ms > max(newest, now_ms()):
            raise self._refused("it lies in the future")
        if not any(stamp <= time_ms for stamp in stamps):
            return self.kept.state
        pipeline, whole = self._pipeline(entries)
        if any(isinstance(e, Chunk) and e.stamp <= time_ms for e in entries[len(whole) :]):
            raise self._refused("its records are gone from the log")
        for batch in self._batches(pipeline, self._up_to(time_ms, pipeline.intake.batcher, whole)):
            self._apply(pipeline, batch)
        waiting = pipeline.intake.batcher
        rest = waiting.take(waiting.operations, waiting.operations)
        if rest.operations:
            self._apply(pipeline, rest)
        return self._stream.state

    def _pipeline(self, entries: list[Entry]) -> tuple[Pipeline, list[Entry]]:
        """What replays from the checkpoint, and the entries whose records are still there."""
        if self.source is None:
            raise self._refused("the journal says where its records lie, not what they hold: give "
                                "the source")  # fmt: skip
        state = self.kept.state
        state.identity.check(self.source.identity())
        # A partition that is newer than the checkpoint is read from its beginning.
        firsts = self.source.first_offsets()
        positions = {p: firsts.get(p, 0) for p in self.source.positions()}
        positions |= {partition: at.offset for partition, at in state.positions.items()}
        try:
            gaps = seek_to(self.source, positions, accept_gap=True)
            check_fingerprints(self.source, state.fingerprints)
        except OffsetError as error:
            raise self._refused(str(error)) from error
        settings = _settings_of(state)
        recovery.check_fit(self.source, self.graph, settings)
        opened = recovery.opened(state, self.source)
        self._stream = StreamState(
            self.source, self.graph, settings, self.graph.names, opened,
            rows=recovery.rows_of(settings, self.graph, self.kept.path / ROWS),
            schemas=recovery.schemas_of(settings, self.directory, writes=False),
        )  # fmt: skip
        pipeline = Pipeline._of(self._stream)
        pipeline._admit_as(Admission.then(state, settings))
        pipeline.outputs.events = _Silence()
        return pipeline, list(exact(entries, gaps))

    @staticmethod
    def _up_to(time_ms: int, batcher: Batcher, entries: Iterable[Entry]) -> Iterator[Entry]:
        """The entries without later records, up to the first batch that held one of these."""
        is_later = False
        for entry in entries:
            if isinstance(entry, Chunk):
                is_later = is_later or entry.stamp > time_ms
                if not is_later:
                    yield entry
            elif is_later and entry.operations > batcher.operations:
                return
            else:
                yield entry

    def _batches(self, pipeline: Pipeline, entries: Iterable[Entry]) -> Iterator[StreamBatch]:
        try:
            yield from recovery.replayed(self._stream.source, pipeline.intake, entries)
        except OffsetError as error:
            raise self._refused(str(error)) from error

    def _apply(self, pipeline: Pipeline, batch: StreamBatch) -> None:
        """As a run does, but for the queries. What the batch does to a window depends on them,
        too."""
        pipeline._carry_out(batch, asks=False)
        self.replayed += batch.operations

    def _refused(self, why: str) -> PastError:
        return _refused(self.directory, self.source, self.target, "; ".join([why, *self.problems]))


class _Silence(LetterEvents):
    """Logs nothing: what became a dead letter was logged when it did."""

    def note(self, kind: str, topic: str, partition: int, offset: int, reason: str) -> None:
        pass


def _settings_of(state: State) -> Settings:
    """What decides how records become batches, as a checkpoint has it; nothing leaves."""
    return Settings(
        **state.record_settings.kept({}), replies=_nowhere, dead_letters=_nowhere, history=0
    )


def _nowhere(_: object) -> None:
    """Takes what would leave."""


def _refused(directory: Path, source: Source | None, target: _Target, why: str) -> PastError:
    spans = described(reachable(directory, source))
    return PastError(f"{directory}: {target} cannot be had: {why}; there are {spans}")
