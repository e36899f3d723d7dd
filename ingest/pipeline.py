"""The pipeline: a stream of records becomes a graph, its queries get replies, crashes lose nothing.

    source → codec → batcher → graph.apply → replies → checkpoint

Exactly once for the graph: offsets are committed with the state, so what is in the graph and what
has been read agree after any crash. At least once for what leaves: a reply or a dead letter is
written before the offsets it came from are committed, and repeated when they were not.
The same batches again: what was buffered, its stamps and its cuts are journaled before a batch is
applied and synced before a reply leaves, and a resume builds its batches from the journal.
A checkpoint is written beside the stream, which waits only while the graph is copied.

Invariants:
1. `positions` are those of the applied batches; what waits in the batcher lies behind them.
2. Every piece in the batcher and every batch applied since a checkpoint was taken is in the
   journal, from that checkpoint's segment on or among what was waiting.
3. No reply leaves before the journal is synced; no checkpoint is taken before the replies left.
4. After an error that may have broken 1 to 3, no further step is taken: resume from the directory.
"""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from lpma.errors import AnswersTooLarge, OutOfMemory
from lpma.unchanged import Unchanged

from .admission import Intake
from .batcher import Position, StreamBatch
from .errors import CheckpointError, PipelineError
from .events import tell
from .feed import Feed
from .formats.reading import Reading
from .queries.answering import Answers, QueryLimits, replies, unanswered
from .queries.sinks import Outputs
from .settings import (
    BatchStats,
    CheckpointFigures,
    Settings,
    SettingsDict,
    StreamGraph,
    now_ms,
)
from .sources.base import KnowsEnds, Partition, Source
from .state.checkpoint import GRAPH, VERTICES, Accepted, Checkpoint, State
from .state.checkpointer import Checkpointer, Part
from .state.directory import CheckpointDirectory, has_checkpoint
from .state.gap import Gap, exact, seek_to
from .state.journal_reader import Segment
from .state.marks import check_marks
from .timers import Stages

if TYPE_CHECKING:
    from .state.vertex_ids import VertexIds

Until = int | Literal["end"] | Callable[["Pipeline"], bool] | None


class Pipeline:
    """Applies what `source` holds, from where it stands, to `graph`, batch by batch. The graph may
    hold something already, as one that was loaded does: versions go on from its own.

    checkpoint: a directory of its own, made where there is none; it must hold no checkpoint yet
    (`resume` is for that). None: nothing survives a crash but the stream itself.
    settings: the fields of `Settings`: batch_size, batch_interval, dead_letters, replies … Raises
    UnknownSetting for any other, PipelineError where one makes no sense.

    One thread at a time; `stop` may be called from any. The graph is the pipeline's to change."""

    journal_loss: str | None = None  # what of the journal `resume` was let give up, and did
    _checkpoints: Checkpointer | None = None
    _closed = False

    def __init__(
        self,
        source: Source,
        graph: StreamGraph,
        checkpoint: str | os.PathLike[str] | None = None,
        **settings: Unpack[SettingsDict],
    ) -> None:
        told = Settings.given_to(Pipeline, settings)
        if told.ids == "mapped" and graph.num_rows:
            raise PipelineError(
                "the graph has vertices already, and no names for them: with ids='mapped' a stream "
                "begins with an empty graph"
            )
        start = State(source.identity(), {}, version=graph.version, reading=Reading(**told.of({})))
        self._begin(source, graph, told, start, _vertices(told))
        tell("start", **self._place(), checkpoint=checkpoint and os.fspath(checkpoint))
        if checkpoint is not None:
            directory = CheckpointDirectory(checkpoint)
            try:
                if directory.numbers():
                    raise CheckpointError(
                        f"{checkpoint}: holds a checkpoint already: Pipeline.resume goes on from "
                        "it, another directory starts afresh"
                    )
                directory.begin_journal()
                self._keep_in(directory)
                self.checkpoint_now()
            except BaseException:
                directory.close()
                raise

    @classmethod
    def resume(
        cls,
        checkpoint: str | os.PathLike[str],
        source: Source,
        *,
        load: Callable[[Path], StreamGraph] | None = None,
        accept_gap: bool = False,
        accept_journal_loss: bool = False,
        **settings: Unpack[SettingsDict],
    ) -> Self:
        """Go on from the newest good checkpoint in the directory, and from what its journal says
        happened since: `graph` is again what it was, and replies that may not have left are sent
        (again). `load(path)` reads the graph; where it is None, `lpma.Graph.load` does, onto the
        settings' `device`.

        accept_gap: where retention has dropped records that were still to be read, go on without
        them. `gaps` counts them, `accepted` keeps that; a checkpoint is taken at once.
        accept_journal_loss: where the journal is missing or damaged, give up what it says from
        there on, and read the log again instead. No update is lost or applied twice, but stamps
        and versions are new, and replies that are repeated may differ from what was sent before.
        `journal_loss` says what, `accepted` keeps it; a checkpoint is taken at once.

        Raises CheckpointError where no checkpoint is good, JournalError where the journal since is
        missing or damaged, LockedError where another pipeline has the directory, IdentityError
        where `source` is not the one it was taken from, RewrittenError where it holds other records
        than were read, OffsetError where records are gone that are needed."""
        told = Settings.given_to(cls.resume, settings)
        if not has_checkpoint(checkpoint):
            raise CheckpointError(f"{checkpoint}: holds no checkpoint: start with Pipeline(…)")
        directory = CheckpointDirectory(checkpoint)
        try:
            read = load or partial(_load_graph, told.device)
            found, graph = directory.newest(lambda checkpoint: read(checkpoint.path / GRAPH))
            state = found.state
            told = replace(told, **state.reading.of(settings))
            vertices = _vertices(told, found.path / VERTICES)
            state.identity.check(source.identity())
            starts = {p: position.offset for p, position in state.positions.items()}
            gaps = seek_to(source, starts, accept_gap)
            check_marks(source, state.marks)
            pipeline = cls.__new__(cls)
            pipeline._begin(source, graph, told, state, vertices)
            pipeline._replay(directory, found, gaps, accept_journal_loss)
            return pipeline
        except BaseException:
            directory.close()
            raise

    def _begin(
        self,
        source: Source,
        graph: StreamGraph,
        settings: Settings,
        state: State,
        vertices: VertexIds | None,
    ) -> None:
        """Stand where `state` says. REQUIRES: so do the source, the graph and the vertices."""
        if getattr(source, "ids", "dense") == "mapped" and settings.ids == "dense":
            raise PipelineError(
                "the source reads vertices as names, this pipeline as ids: give it ids='mapped'"
            )
        _check_place(graph, settings.device)
        self.source = source
        self.graph = graph
        self.vertices = vertices  # names ⇄ ids of the graph; None where ids are not mapped
        self.settings = settings
        told = settings.dead_letters is not None and settings.replies is not None
        own = None if told else source.sink()
        self.outputs = Outputs(
            settings.dead_letters or own, settings.replies or own, settings.reply_topics
        )
        self.history: deque[BatchStats] = deque(maxlen=settings.history)
        self.gaps: list[Gap] = []  # that `resume` was let go on behind
        self.replayed = 0  # of those, the ones `resume` applied again
        self.batches = 0  # applied since this start, those of a replay included
        self.queries = 0  # among their operations
        self.stages = Stages()
        self._unchanged_before = self._unchanged = graph.unchanged
        start = {p: Position(offset) for p, offset in source.positions().items()}
        self._state = replace(
            state,
            identity=source.identity(),
            positions=start | state.positions,
            epoch=state.epoch + 1,
        )
        self._limits = QueryLimits(settings.max_hops, settings.max_reply_rows)
        self._intake = Intake(graph, self.outputs, self._limits, settings, vertices, state)
        self._feed = Feed(
            source, self._intake, self.outputs, settings, state.stamp, state.marks, self.stages
        )
        self._pending: StreamBatch | None = None  # taken and not applied: out of memory
        self._started = time.perf_counter()
        self._stopping = False
        self._usable = True

    def _replay(
        self, directory: CheckpointDirectory, found: Checkpoint, gaps: list[Gap], accept_loss: bool
    ) -> None:
        """Apply again what has happened since checkpoint `found`, and stand behind it. REQUIRES:
        this pipeline and its source stand where the checkpoint was taken."""
        history = directory.go_on_from(found, accept_loss=accept_loss)
        checkpoints = self._keep_in(directory)
        for batch in self._feed.replay(exact([*found.waiting, *history.entries], gaps)):
            self._apply(batch)
            self.replayed += batch.operations
        self._skip(gaps)
        self.source.seek(self._feed.ends(self._state.positions))
        if history.damage is not None:
            self._accept_loss(history.damage, found.number)
        if history.damage is not None or self.gaps:
            self.checkpoint_now()  # or the next resume would meet them again
        checkpoints.prepare()
        tell("resume", **self._place(), checkpoint=os.fspath(directory.path),
             number=found.number, replayed=self.replayed, torn_bytes=history.torn)  # fmt: skip

    def _skip(self, gaps: list[Gap]) -> None:
        """Go on behind records that are gone, where the replay has not got there."""
        ends = self._feed.ends(self._state.positions)
        gaps = [gap._replace(start=ends[gap.partition]) for gap in gaps]
        self.gaps = [gap for gap in gaps if gap.start < gap.stop]
        for gap in self.gaps:
            self._feed.skip(gap)
            tell("gap accepted", logging.WARNING, **gap.detail())
        accepted = [Accepted("gap", now_ms(), gap.detail()) for gap in self.gaps]
        behind = {gap.partition: Position(gap.stop) for gap in self.gaps}
        self._state = replace(
            self._state,
            positions=self._state.positions | behind,
            accepted=(*self._state.accepted, *accepted),
        )

    def _keep_in(self, directory: CheckpointDirectory) -> Checkpointer:
        """Journal and checkpoint there from now on. REQUIRES: its journal has begun."""
        self._feed.journal = directory.journal
        parts: dict[str, Part] = {GRAPH: self.graph}
        if self.vertices is not None:
            parts[VERTICES] = self.vertices
        self._checkpoints = Checkpointer(directory, parts, self.settings, self._state)
        return self._checkpoints

    def _accept_loss(self, damage: Segment, number: int) -> None:
        """Go on without what the journal said from `damage` on, since checkpoint `number`: the log
        is read again from where the stream stands."""
        self.journal_loss = damage.problem
        detail = {"problem": damage.problem, "checkpoint": number, "replayed": self.replayed}
        accepted = Accepted("journal", now_ms(), detail)
        self._state = replace(self._state, accepted=(*self._state.accepted, accepted))
        tell("journal loss accepted", logging.WARNING, **detail)

    # One batch -------------------------------------------------------------------------------

    def step(self, limit: int | None = None, *, drain: bool = False) -> int:
        """Apply one batch, of at most `limit` operations; how many operations it had.

        Waits until a batch closes by size or age; 0 says that the source had nothing for an
        interval. `drain`: do not wait for more than the source holds now. After OutOfMemory, which
        leaves the batch unapplied, another step tries it again; after any other error `resume`."""
        if not self._usable:
            raise PipelineError("an earlier error stopped this pipeline, or it was closed: resume")
        with self._stopped_by_errors():
            if self._checkpoints is not None:
                self._checkpoints.look()
            batch = self._pending or self._feed.next_batch(limit or self.settings.batch_size, drain)
            self._pending = batch
            self._apply(batch)
            self._pending = None
            if self._checkpoints is not None and self._checkpoints.is_due(self._state):
                self._begin_checkpoint(self._checkpoints)
        return batch.operations

    def _apply(self, batch: StreamBatch) -> None:
        """Apply a batch, send its replies, move. OutOfMemory leaves all as it was."""
        answers: Answers = ()
        queries, seconds = batch.queries, 0.0
        if len(batch.columns):
            with self.stages.apply as stage:
                try:
                    answers = self.graph.apply(batch.columns)
                except AnswersTooLarge:  # the updates are applied, so there is no trying again
                    queries = unanswered(queries)
            seconds = stage.last
        version = self.graph.version
        if queries:
            if self._checkpoints is not None:
                with self.stages.journal:
                    self._checkpoints.sync()
            with self.stages.reply:
                self.outputs.send(replies(queries, answers, version, self._limits, self.vertices))
        self._state = self._state.after(batch, version)
        if batch.operations:
            self.batches += 1
            self.queries += len(batch.queries)
            self.history.append(self._figures(batch, seconds))

    def _figures(self, batch: StreamBatch, seconds: float) -> BatchStats:
        before, self._unchanged = self._unchanged, self.graph.unchanged
        return BatchStats(
            operations=batch.operations,
            queries=len(batch.queries),
            seconds=seconds,
            since_start=time.perf_counter() - self._started,
            total_operations=self.operations,
            version=self.graph.version,
            num_edges=self.graph.num_edges,
            density=self.graph.density,
            time=batch.stamp,
            unchanged=self._unchanged.since(before),
        )

    @contextmanager
    def _stopped_by_errors(self) -> Iterator[None]:
        try:
            yield
        except OutOfMemory:
            raise  # the batch is kept and the graph unharmed: a later step tries again
        except BaseException as error:
            self._usable = False
            tell("error", logging.ERROR, error=type(error).__name__, message=str(error),
                 **self._place())  # fmt: skip
            raise

    # Many batches ----------------------------------------------------------------------------

    def run(
        self, until: Until = None, progress: Callable[[BatchStats], object] | None = None
    ) -> int:
        """Step until told to stop; how many operations were applied.

        until: a number of operations, exactly; "end": what the source holds when it is reached; a
        function of the pipeline, asked after each step; None: for ever. `stop` ends it after the
        batch at hand, and so does the end of a file. `progress` gets each batch's figures."""
        done = 0
        while not self._stopping:
            left = until - done if isinstance(until, int) else None
            if left is not None and left <= 0:
                break
            operations = self.step(left, drain=until == "end")
            done += operations
            if operations and progress is not None:
                progress(self.history[-1])
            if callable(until) and until(self):
                break
            ends = until == "end" or self.source.bounded
            if not operations and ends and self.source.at_end():
                break
        self._stopping = False
        return done

    def stop(self) -> None:
        """Let `run` return after the batch at hand, or the next `run` at once. For signal handlers
        and other threads: an exception in the middle of a step would stop the pipeline for good."""
        self._stopping = True

    @property
    def operations(self) -> int:
        """How many were applied since the stream began."""
        return self._state.operations

    @property
    def unchanged(self) -> Unchanged:
        """The operations that were applied since this start and changed nothing, by why."""
        return self._unchanged.since(self._unchanged_before)

    # Checkpoints -----------------------------------------------------------------------------

    def _begin_checkpoint(self, checkpoints: Checkpointer) -> None:
        with self.stages.checkpoint:
            state = replace(self._state, marks=dict(self._feed.marks))
            checkpoints.begin(state, self._feed.waiting(self._pending))

    def checkpoint_now(self) -> None:
        """Commit the graph and the offsets of the batches applied, and wait for it. Raises
        CheckpointError where it cannot be written: the checkpoint before is intact then."""
        if self._checkpoints is None or not self._usable:
            raise PipelineError("this pipeline has no checkpoint directory, or has stopped")
        with self._stopped_by_errors():
            self._begin_checkpoint(self._checkpoints)
            self._checkpoints.finish()

    @property
    def checkpoint_figures(self) -> CheckpointFigures | None:
        """Of the last checkpoint that this pipeline committed; None before there is one."""
        return None if self._checkpoints is None else self._checkpoints.figures

    @property
    def checkpoint_age(self) -> float | None:
        """Seconds since the last checkpoint was taken, or since the start; None where none are."""
        return None if self._checkpoints is None else self._checkpoints.age

    @property
    def accepted(self) -> tuple[Accepted, ...]:
        """What was given up since the stream began, because whoever runs it said so."""
        return self._state.accepted

    def positions(self) -> dict[Partition, Position]:
        """Where each partition would be read from had only the applied batches been read."""
        return dict(self._state.positions)

    def lag(self) -> dict[Partition, int]:
        """Records between the last one applied and the end of each partition, as far as the source
        knows its ends without asking; empty for a file. May be called from any thread."""
        if not isinstance(self.source, KnowsEnds):
            return {}
        applied = self._state.positions
        ends = self.source.known_ends()
        return {p: max(0, end - applied[p].offset) for p, end in ends.items() if p in applied}

    def _place(self) -> dict[str, Any]:
        """Where the stream stands, as an event says it."""
        return {"operations": self.operations, "version": self._state.version}

    @property
    def duplicates(self) -> int:
        """Records dropped since this start because their source had sent them before."""
        return self._intake.duplicates

    def close(self, *, checkpoint: bool = True) -> None:
        """Release the directory, after a last checkpoint where something was applied since the
        one before. What only waits is read again by `resume`. The source stays open."""
        if self._closed:
            return
        self._closed = True
        checkpoints = self._checkpoints
        try:
            if self._usable and checkpoints is not None:
                if checkpoint and checkpoints.is_behind(self._state):
                    self.checkpoint_now()
                checkpoints.finish()
        finally:
            self._usable = False
            if checkpoints is not None:
                checkpoints.close()
            self._checkpoints = None
            self.outputs.events.tell(at_once=True)
            tell("stop", **self._place())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.close(checkpoint=kind is None)


def _vertices(settings: Settings, path: Path | None = None) -> VertexIds | None:
    """The dictionary in a file, or an empty one; none where ids are dense. Imported here, because
    reading records needs nothing compiled."""
    if settings.ids == "dense":
        return None
    from .state.vertex_ids import VertexIds

    return VertexIds() if path is None else VertexIds.load(path)


def _check_place(graph: StreamGraph, device: str) -> None:
    """Raises PipelineError where a graph that says where it is, is not on `device`."""
    there = getattr(graph, "device", device)
    if device not in ("auto", there, there.partition(":")[0]):
        raise PipelineError(
            f"device is {device!r}, but the graph is on {there}: make the graph there, as "
            f"lpma.Graph(device={device!r}), or leave device out"
        )


def _load_graph(device: str, path: Path) -> StreamGraph:
    """Imported here: reading records needs no compiled store."""
    import lpma

    graph: StreamGraph = lpma.Graph.load(path, device)
    return graph
