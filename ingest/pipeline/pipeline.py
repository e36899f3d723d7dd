"""The pipeline: a stream of records becomes a graph, its queries get replies, crashes lose nothing.

The stages that a batch passes are in `steps.py`, what a start checks in `recovery.py`.

Exactly once for the graph: offsets are committed with the state, so what is in the graph and what
has been read agree after any crash. At least once for what leaves: a reply or a dead letter is
written before the offsets it came from are committed, and repeated when they were not. The same
batches again: a resume builds its batches from the journal.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal, Self, Unpack

from ..errors import PipelineError, SourceError
from ..events import log_event
from ..settings import BatchStats, Settings, SettingsDict
from ..sources.base import Source
from ..state.checkpoint import GRAPH, VERTICES, Accepted, Checkpoint, State
from ..state.checkpointer import Checkpointer, Part
from ..state.directory import CheckpointDirectory, directory_path
from ..state.journal_reader import Segment
from ..state.retention import ladder_of
from ..timers import now_ms
from ..types import Partition, Position, StreamGraph
from . import recovery
from .recovery import Gap, exact
from .steps import Steps

Until = int | Literal["end"] | Callable[["Pipeline"], bool] | None


class Pipeline(Steps):
    """Applies what `source` holds, from where it stands, to `graph`, batch by batch. The graph may
    hold something already, as one that was loaded does: versions go on from its own.

    checkpoint: a directory of its own, made if there is none; it must hold no checkpoint yet
    (`resume` is for that). None: nothing survives a crash but the stream itself.
    positions: where what the graph holds already ends, as `positions()` of the pipeline that made
    it says: for a partition (offset, how many rows of that record are done). The others begin where
    the source stands. OffsetError, PipelineError if there is no such place.
    settings: the fields of `Settings`: batch_size, batch_interval, dead_letters, replies, window …
    Raises UnknownSetting for any other, PipelineError if one makes no sense. A stream that holds
    nothing but bad records is read to its end, and its dead letters leave; `lpma ingest` stops
    after 1,000 and leaves nothing, as does a pipeline with stop_if_first_bad=1000.

    One thread at a time; `stop` may be called from any. The graph is the pipeline's to change.

    >>> log = ingest.SqliteLog("log")
    >>> _ = log.produce("updates", ingest.encode_updates([1, 2], [2, 3]))
    >>> with ingest.Pipeline(log, lpma.Graph(device="cpu"), "state") as pipeline:
    ...     pipeline.run(until="end")
    2
    >>> with ingest.Pipeline.resume("state", log) as pipeline:
    ...     pipeline.graph.num_edges
    2
    """

    _closed = False
    _stopping = False

    def __init__(
        self,
        source: Source,
        graph: StreamGraph,
        checkpoint: str | os.PathLike[str] | None = None,
        *,
        positions: Mapping[Partition, Position] | None = None,
        **settings: Unpack[SettingsDict],
    ) -> None:
        own = recovery.fitting(Settings.given_to(Pipeline, settings), graph)
        path = None if checkpoint is None else directory_path(checkpoint)
        recovery.check_fit(source, graph, own)  # before anything is taken
        state = recovery.fresh_state(source, graph, own, positions)
        with ExitStack() as taken:  # what a start that fails gives back
            directory = None if path is None else recovery.new_directory(path)
            if directory is not None:
                taken.callback(directory.close)
            super().__init__(
                source, graph, own, state, recovery.vertices_of(own, graph),
                judged=own.stop_if_first_bad,
            )  # fmt: skip
            taken.callback(self._let_go)
            self._begun_at = {p: at.offset for p, at in self._state.positions.items()}
            log_event("start", **self._place(), checkpoint=path and str(path))
            self._begin_results(resumes=False)
            if directory is not None:
                self._keep_in(directory)
                self.checkpoint_now()
            taken.pop_all()

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
        (again). `load(path)` reads the graph; if it is None, `lpma.Graph.load` does, onto the
        settings' `device`.

        accept_gap: if retention has dropped records that were still to be read, go on without
        them. `gaps` counts them, `accepted` keeps that; a checkpoint is taken at once.
        accept_journal_loss: if the journal is missing or damaged, give up what it says from
        there on, and read the log again instead. No update is lost or applied twice, but stamps
        and versions are new, and replies that are repeated may differ from what was sent before.
        `journal_loss` says what, `accepted` keeps it; a checkpoint is taken at once.

        Raises CheckpointError if no checkpoint is good, JournalError if the journal since is
        missing or damaged, LockedError if another pipeline has the directory, IdentityError
        if `source` is not the one it was taken from, RewrittenError if it holds other records
        than were read, OffsetError if records that are needed are gone."""
        own = Settings.given_to(cls.resume, settings)
        if settings.pop("ids", None) is not None:
            settings["names"] = own.names
        with ExitStack() as taken:
            directory = recovery.kept_directory(checkpoint)
            taken.callback(directory.close)
            read = load or (lambda path: recovery.load_graph(path, own.device))
            found, graph = directory.newest(lambda checkpoint: read(checkpoint.path / GRAPH))
            own, gaps = recovery.stand_at(found.state, source, settings, accept_gap)
            vertices = recovery.vertices_of(own, graph, found.path / VERTICES)
            pipeline = cls.__new__(cls)
            super(Pipeline, pipeline).__init__(source, graph, own, found.state, vertices)
            taken.callback(pipeline._let_go)
            pipeline._replay(directory, found, gaps, accept_journal_loss)
            taken.pop_all()
        return pipeline

    def _let_go(self) -> None:
        """End what goes on beside the stream, and close the place of the results."""
        if self._checkpoints is not None:
            self._checkpoints.end()
        self._close_results()

    def _keep_in(self, directory: CheckpointDirectory) -> Checkpointer:
        """Journal and checkpoint there from now on. REQUIRES: its journal has begun."""
        self._feed.journal = directory.journal
        self._state = recovery.serving(self._state, self.settings)
        directory.rungs.ladder = ladder_of(self._state.keep_checkpoints)
        parts: dict[str, Part] = {GRAPH: self.graph}
        if self.vertices is not None and not self._looks_up:
            parts[VERTICES] = self.vertices
        self._checkpoints = Checkpointer(directory, parts, self.settings, self._state)
        return self._checkpoints

    # Many batches ----------------------------------------------------------------------------

    def run(
        self, until: Until = None, progress: Callable[[BatchStats], object] | None = None
    ) -> int:
        """Step until told to stop; how many operations were applied.

        until: a number of operations, exactly; "end": what the source holds when it is reached; a
        function of the pipeline, called after each step; None: forever. `stop` ends it after the
        current batch, and so does the end of a file. `progress` gets each batch's figures.
        PipelineError for any other `until`, before anything is applied. AllRecordsBad if the first
        records of a new stream are all bad, and the setting `stop_if_first_bad` says to stop then.

        Until `run` returns, tracked figures, and results to a log or a file, may be those of a
        batch or two before: see `results/worker.py`."""
        recovery.check_until(until)
        done = 0
        with self._running_on():
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
                    self.check_first_records()
                    break
        self._stopping = False
        return done

    def check_first_records(self) -> None:
        """Raise AllRecordsBad if this is a new stream with `stop_if_first_bad`, and nothing but bad
        records came so far: no others are to come. `run` does so where the source ends, and `close`
        does."""
        if self._usable:
            with self._stopped_by_errors():
                self._first.end()

    def stop(self) -> None:
        """Let `run` return after the current batch, or the next `run` at once. For signal handlers
        and other threads: an exception in the middle of a step would stop the pipeline for good."""
        self._stopping = True

    def checkpoint_now(self) -> None:
        """Commit the graph and the offsets of the batches applied, and wait until that is done.
        Raises CheckpointError if it cannot be written: then the previous checkpoint is intact."""
        if self._checkpoints is None or not self._usable:
            raise PipelineError("this pipeline has no checkpoint directory, or has stopped")
        with self._stopped_by_errors():
            self._begin_checkpoint(self._checkpoints)
            self._checkpoints.finish()

    def close(self, *, checkpoint: bool = True) -> None:
        """Release the directory, after a last checkpoint if something was applied since the
        one before. What only waits is read again by `resume`. The source stays open. Raises
        AllRecordsBad as `check_first_records` does: then nothing is left in the directory, and the
        source stands where the stream began."""
        if self._closed:
            return
        self._closed = True
        self.interludes.close("this pipeline was closed: ask again when it runs")
        checkpoints = self._checkpoints
        try:
            if checkpoint:
                self.check_first_records()
            if self._usable and checkpoints is not None:
                if checkpoint and checkpoints.is_behind(self._state):
                    self.checkpoint_now()
                checkpoints.finish()
        finally:
            self._usable = False
            self._checkpoints = None
            if checkpoints is not None and self._first.failed:
                checkpoints.discard()
            elif checkpoints is not None:
                checkpoints.close()
            self._close_results()
            if self._first.failed:  # another may begin where this one did
                with suppress(SourceError):
                    self.source.seek(self._begun_at)
            self.outputs.events.flush(at_once=True)
            log_event("stop", **self._place())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.close(checkpoint=kind is None)

    # Recovery --------------------------------------------------------------------------------

    def _replay(
        self, directory: CheckpointDirectory, found: Checkpoint, gaps: list[Gap], accept_loss: bool
    ) -> None:
        """Apply again what has happened since checkpoint `found`, and stand after it. REQUIRES:
        this pipeline and its source stand where the checkpoint was taken."""
        history = directory.go_on_from(found, accept_loss=accept_loss)
        checkpoints = self._keep_in(directory)
        begun = self._begin_results(resumes=True)
        with self._asking_as(found.state):
            for batch in self._feed.replay(exact([*found.waiting, *history.entries], gaps)):
                self._carry_out(batch)
                self.replayed += batch.operations
        self._skip(gaps)
        self.source.seek(self._feed.ends(self._state.positions))
        if history.damage is not None:
            self._accept_loss(history.damage, found.number)
        if anew := self._why_results_anew(history.damage):
            begun = self._begin_results(resumes=True, anew=anew)
        others = recovery.asking_as(self.settings, found.state) != self.settings
        if history.damage is not None or self.gaps or begun or others:
            self.checkpoint_now()  # or the next resume would meet them again
        checkpoints.prepare()
        log_event("resume", **self._place(), checkpoint=os.fspath(directory.path),
                  number=found.number, replayed=self.replayed, torn_bytes=history.torn)  # fmt: skip

    def _why_results_anew(self, damage: Segment | None) -> str:
        """Why a new run of results must begin after the replay; "" if the one that is told can be
        gone on with."""
        if damage is not None:
            return "the journal was lost, so versions are made anew"
        if self.results is not None and self.results.is_behind():
            return "the place holds later results than the checkpoint: was an older one restored?"
        return ""

    @contextmanager
    def _asking_as(self, state: State) -> Iterator[None]:
        """Within, the queries that were asked then are asked, whatever the settings say now: else
        batches would have other versions."""
        admission, outputs, now = self._admission, self.outputs, self.settings
        then = recovery.asking_as(now, state)
        admission.settings, outputs.topics = then, tuple(then.reply_topics)
        yield
        admission.settings, outputs.topics = now, tuple(now.reply_topics)

    def _skip(self, gaps: list[Gap]) -> None:
        """Go on after records that are gone, unless the replay went past them."""
        ends = self._feed.ends(self._state.positions)
        gaps = [gap._replace(start=ends[gap.partition]) for gap in gaps]
        self.gaps = [gap for gap in gaps if gap.start < gap.stop]
        for gap in self.gaps:
            self._feed.skip(gap)
            log_event("gap accepted", logging.WARNING, **gap.detail())
        accepted = [Accepted("gap", now_ms(), gap.detail()) for gap in self.gaps]
        behind = {gap.partition: Position(gap.stop) for gap in self.gaps}
        self._state = replace(
            self._state,
            positions=self._state.positions | behind,
            accepted=(*self._state.accepted, *accepted),
        )

    def _accept_loss(self, damage: Segment, number: int) -> None:
        """Go on without what the journal said from `damage` on, since checkpoint `number`: the log
        is read again from where the stream stands."""
        self.journal_loss = damage.problem
        detail = {"problem": damage.problem, "checkpoint": number, "replayed": self.replayed}
        accepted = Accepted("journal", now_ms(), detail)
        self._state = replace(self._state, accepted=(*self._state.accepted, accepted))
        log_event("journal loss accepted", logging.WARNING, **detail)
