"""The pipeline: a stream of records becomes a graph, its queries get replies, crashes lose nothing.

Exactly once for the graph: offsets are committed with the state, so the graph and the place in the
stream agree after any crash. At least once for what leaves: a reply or a dead letter is written
before the offsets it came from are committed, and repeated if they were not. The same batches
again: a resume builds its batches from the journal.

A batch passes these stages in `Pipeline.step`:

    1 receive      poll the source, and stamp what came                      intake.py
    2 journal      write down what came, and its stamp                       state/journal.py
    3 decode       bytes become operations, or a dead letter                 topics/
    4 admit        drop repeats and late rows, refuse queries, map names     record_decoder.py,
                                                                             record_reader.py
    5 cut          take a batch from the front, and journal where it ends    batching.py
    6 apply        to the graph                                              lpma
    7 answer       sync the journal, then send the replies                   outputs.py
                   and what changed of the tracked figures                   results/worker.py
                   and of the graph's edges                                  feed/writer.py
    8 checkpoint   if one is due: copy graph, positions and names            state/checkpointer.py
    9 commit       write the copy, while the stream goes on                  state/directory.py

Invariants:
1. `positions` are those of the applied batches; what waits in the batcher lies after them.
2. Every piece in the batcher and every batch applied since a checkpoint was taken is in the
   journal, from that checkpoint's segment on or among what was waiting.
3. No reply, no result and nothing of the edge feed leaves before the journal is synced; no
   checkpoint is taken before they and the dead letters left.
4. After an error that may have broken 1 to 3, no further step is taken: resume from the directory.

Between 7 and 8 other threads of this process may ask the graph (`graph_requests.py`). How a
pipeline begins, and goes on after a crash, is in `recovery.py`.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

import lpma
from lpma.errors import AnswersTooLarge, OutOfMemory

from ..errors import PipelineError, SourceError
from ..events import log_event
from ..feed.writer import FeedWriter
from ..results.figures import Tracked
from ..results.publisher import Publisher
from ..results.worker import ResultsWorker
from ..settings import BatchStats, Settings, SettingsDict
from ..sources.base import Source
from ..state.checkpoint import GRAPH, VERTICES, Checkpoint
from ..state.checkpointer import Checkpointer, Part
from ..state.directory import CheckpointDirectory
from ..state.retention import RetentionPolicy
from ..state.stream_state import StreamState
from ..state.table_rows import ROWS
from ..timers import Stages
from ..types import Answer, Partition, Position, StreamGraph
from . import recovery
from .batching import Asked, StreamBatch, without_queries
from .graph_requests import FLOWING_SHARE_S, IDLE_SHARE_S, GraphRequests, GraphView
from .intake import Intake
from .outputs import FirstRecords, Outputs, replies_to, unanswered
from .record_decoder import Admission, RecordDecoder
from .stats import PipelineStats
from .windows import Slide, slide, with_expiry

if TYPE_CHECKING:
    from lpma import Watch
    from lpma.batch.columns import Columns
    from lpma.engine.answers import Answers

FLOWED_S = 1.0  # after a batch, during which the stream is taken to flow

Until = int | Literal["end"] | Callable[["Pipeline"], bool] | None


class Pipeline:
    """Applies what `source` holds, a log from its earliest record on, to `graph`, batch by batch.
    The graph may hold something already, as one that was loaded does: versions go on from its own.

    checkpoint: a directory of its own, made if there is none; it must hold no checkpoint yet
    (`resume` is for that). None: nothing survives a crash but the stream itself.
    positions: where what the graph holds already ends, as `positions()` of the pipeline that made
    it says: for a partition (offset, how many rows of that record are done).
    OffsetError, PipelineError if there is no such place.
    settings: the fields of `Settings`: batch_size, batch_interval, dead_letters, replies, window …
    Raises UnknownSetting for any other, PipelineError if one makes no sense. A stream that holds
    nothing but bad records is read to its end, and its dead letters leave; `lpma ingest` stops
    after 1,000 and leaves nothing, as does a pipeline with stop_if_first_bad=1000.

    `stats` has all figures of the stream (operations, history, lag …), for any thread; `requests`
    lets other threads ask the graph between two batches; `outputs` has the last dead letters.

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

    def __init__(
        self,
        source: Source,
        graph: StreamGraph,
        checkpoint: str | os.PathLike[str] | None = None,
        *,
        positions: Mapping[Partition, Position] | None = None,
        **settings: Unpack[SettingsDict],
    ) -> None:
        own = Settings.given_to(Pipeline, settings)
        stream = recovery.begin(source, graph, checkpoint, own, positions)
        with self._released_on_error(stream.directory):
            self._set_up(stream, judged=own.stop_if_first_bad)
            path = None if stream.directory is None else os.fspath(stream.directory.path)
            log_event("start", **self._place(), checkpoint=path)
            recovery.tell_sums(source, own.records)
            self._results.begin(resumes=False)
            self._feed.begin(resumes=False)
            if stream.directory is not None:
                self._keep_in(stream.directory)
                self.checkpoint_now()

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
        them. `stats.gaps` counts them, `stats.accepted` keeps that; a checkpoint is taken at once.
        accept_journal_loss: if the journal is missing or damaged, give up what it says from
        there on, and read the log again instead. No update is lost or applied twice, but stamps
        and versions are new, and replies that are repeated may differ from what was sent before.
        `stats.journal_loss` says what, `stats.accepted` keeps it; a checkpoint is taken at once.

        Raises CheckpointError if no checkpoint is good, JournalError if the journal since is
        missing or damaged, LockedError if another pipeline has the directory, IdentityError
        if `source` is not the one it was taken from, RewrittenError if it holds other records
        than were read, OffsetError if records that are needed are gone."""
        own = Settings.given_to(cls.resume, settings)
        if settings.pop("ids", None) is not None:
            settings["names"] = own.names
        read = load or (lambda path: lpma.Graph.load(path, own.device))
        stream = recovery.reopen(checkpoint, source, read, settings, accept_gap=accept_gap,
                                 accept_journal_loss=accept_journal_loss)  # fmt: skip
        directory, found = stream.directory, stream.checkpoint
        assert directory is not None
        assert found is not None
        pipeline = cls.__new__(cls)
        with pipeline._released_on_error(directory):
            pipeline._set_up(stream)
            pipeline._catch_up(directory, found)
        return pipeline

    @classmethod
    def _of(cls, stream: StreamState, judged: int = 0) -> Self:
        """A pipeline at this state, which has not begun: nothing is written anywhere."""
        pipeline = cls.__new__(cls)
        pipeline._set_up(stream, judged)
        return pipeline

    def _set_up(self, stream: StreamState, judged: int = 0) -> None:
        """What every constructor does. judged: how many records are, where a stream begins."""
        self._stream, stages = stream, Stages()
        self._checkpoints: Checkpointer | None = None
        self._results = ResultsWorker(stream, stages, self._sync_journal)
        self._feed = FeedWriter(stream, stages, self._sync_journal)
        source, graph, settings = stream.source, stream.graph, stream.settings
        self.source, self.graph, self.settings = source, graph, settings
        self.vertices = stream.vertices  # names ⇄ ids of the graph; None if vertices go by ids
        letters, replies = settings.dead_letters, settings.replies
        own = None if letters is not None and replies is not None else source.sink()
        self.outputs = Outputs(letters or own, replies or own, settings.reply_topics)
        self._first = FirstRecords(judged, self.outputs)
        self.decoder = RecordDecoder(stream, self.outputs, self._first)
        self.requests = GraphRequests(source.wake)
        self.intake = Intake(stream, self.decoder, self.outputs, stages, self.requests)
        self.stats = PipelineStats(stream, stages, self.decoder, self.outputs, self._results,
                                   self._feed, self.intake.written)  # fmt: skip
        self._begun_at = {p: at.offset for p, at in stream.state.positions.items()}
        self._pending: StreamBatch | None = None  # taken but not applied: out of memory
        self._harmless: OutOfMemory | None = None  # the last one after which a step may be retried
        self._expired = graph.expired  # when it was last read
        self._moved_at = 0.0  # by the monotonic clock: when a batch was last applied
        self._usable, self._closed, self._stopping = True, False, False

    @contextmanager
    def _released_on_error(self, directory: CheckpointDirectory | None) -> Iterator[None]:
        """A start that fails within gives back what it holds."""
        try:
            yield
        except BaseException:
            if self._checkpoints is not None:
                self._checkpoints.end()
            self._results.close()
            self._feed.close()
            if directory is not None:
                directory.close()
            raise

    def _keep_in(
        self, directory: CheckpointDirectory, found: Checkpoint | None = None
    ) -> Checkpointer:
        """Journal and checkpoint there from now on; `found` is the newest that is there. REQUIRES:
        its journal has begun."""
        stream = self._stream
        self.intake.journal = directory.journal
        stream.state = recovery.with_policies(stream.state, self.settings)
        directory.kept.policy = RetentionPolicy.of(stream.state.keep_checkpoints)
        parts: dict[str, Part] = {GRAPH: self.graph}
        if self.vertices is not None and not stream.looks_up:
            parts[VERTICES] = self.vertices
        if stream.rows is not None:
            parts[ROWS] = stream.rows
        checkpoints = Checkpointer(
            directory, parts, self.settings, stream.state, self.source.checkpointed,
            None if found is None else found.time,
        )  # fmt: skip
        self._checkpoints = self.stats.checkpoints = checkpoints
        return checkpoints

    def _catch_up(self, directory: CheckpointDirectory, found: Checkpoint) -> None:
        """Apply again what has happened since checkpoint `found`, and stand after it."""
        stream, stats = self._stream, self.stats
        history = directory.go_on_from(found, accept_loss=stream.accepts_loss)
        checkpoints = self._keep_in(directory, found)
        begun = self._results.begin(resumes=True) | self._feed.begin(resumes=True)
        then, now = Admission.then(found.state, self.settings), self.decoder.admission
        self._admit_as(then)  # or batches would have other versions
        entries = recovery.exact([*found.waiting, *history.entries], stream.gaps)
        for batch in recovery.replayed(self.source, self.intake, entries):
            self._carry_out(batch)
            stats.replayed += batch.operations
        self._admit_as(now)
        stats.gaps = recovery.skip_gaps(stream, self.intake)
        self.source.seek(self.intake.ends(stream.state.positions))
        if history.damage is not None:
            stats.journal_loss = history.damage.problem
            recovery.accept_journal_loss(stream, history.damage, found.number, stats.replayed)
        if anew := recovery.why_anew(history.damage, self._results.publisher):
            begun = self._results.begin(resumes=True, anew=anew)
        if anew := recovery.why_anew(history.damage, self._feed.publisher):
            begun = self._feed.begin(resumes=True, anew=anew)
        if history.damage is not None or stats.gaps or begun or then != now:
            self.checkpoint_now()  # or the next resume would meet them again
        checkpoints.prepare()
        log_event("resume", **self._place(), checkpoint=os.fspath(directory.path),
                  number=found.number, replayed=stats.replayed,
                  torn_bytes=history.torn)  # fmt: skip
        recovery.tell_sums(self.source, self.settings.records)

    def _admit_as(self, admission: Admission) -> None:
        """Let this say which records are taken."""
        self.decoder.admission, self.outputs.topics = admission, admission.reply_topics

    # What it has ----------------------------------------------------------------------------

    def __repr__(self) -> str:
        """
        >>> with ingest.Pipeline(ingest.SqliteLog("log"), lpma.Graph(device="cpu")) as pipeline:
        ...     pipeline
        <ingest.Pipeline of SqliteLog('log', ['updates', 'queries']): 0 operations, version 0>
        """
        directory = self._stream.directory
        kept = "" if directory is None else f", checkpoints in {os.fspath(directory.path)!r}"
        done = f"{self.stats.operations:,} operations, version {self.graph.version}"
        return f"<ingest.Pipeline of {self.source!r}: {done}{kept}>"

    @property
    def tracked(self) -> Tracked | None:
        """The figures of the setting `track`, from the first step on."""
        return self._results.tracked

    @property
    def results(self) -> Publisher | None:
        """What publishes the results, if the setting of that name says where to."""
        return self._results.publisher

    @property
    def feed(self) -> Publisher | None:
        """What publishes the edge feed, if the setting `changes` says where to."""
        return self._feed.publisher

    def positions(self) -> dict[Partition, Position]:
        """Where each partition would be read from had only the applied batches been read."""
        return dict(self._stream.state.positions)

    # Many batches ----------------------------------------------------------------------------

    def run(
        self, until: Until = None, progress: Callable[[BatchStats], object] | None = None
    ) -> int:
        """Step until told to stop; how many operations were applied.

        until: a number of operations, exactly, unless a change of a table that has two ends there
        and is not cut; "end": what the source holds when it is reached; a
        function of the pipeline, called after each step; None: forever. `stop` ends it after the
        current batch, and so does the end of a file. `progress` gets each batch's figures.
        PipelineError for any other `until`, before anything is applied. AllRecordsBad if the first
        records of a new stream are all bad, and the setting `stop_if_first_bad` says to stop then.

        Until `run` returns, tracked figures, and results to a log or a file, may be those of a
        batch or two before: see `results/worker.py`."""
        _check_until(until)
        done = 0
        with self._running_on():
            while not self._stopping:
                left = until - done if isinstance(until, int) else None
                if left is not None and left <= 0:
                    break
                operations = self.step(left, drain=until == "end")
                done += operations
                if operations and progress is not None:
                    progress(self.stats.history[-1])
                if callable(until) and until(self):
                    break
                ends = until == "end" or self.source.bounded
                if not operations and ends and self.intake.at_end():
                    self.check_first_records()
                    break
        self._stopping = False
        return done

    @contextmanager
    def _running_on(self) -> Iterator[None]:
        """Within, the stream need not wait for its results; at the end all have left."""
        self._results.runs_on = self._feed.runs_on = True
        try:
            yield
        finally:
            self._results.runs_on = self._feed.runs_on = False
            if self._usable:
                with self._stopped_by_errors():
                    self._results.settle()
                    self._feed.settle()

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
        self.requests.close("this pipeline was closed: ask again when it runs")
        checkpoints = self._checkpoints
        try:
            if checkpoint:
                self.check_first_records()
            if self._usable and checkpoints is not None:
                if checkpoint and checkpoints.is_behind(self._stream.state):
                    self.checkpoint_now()
                checkpoints.finish()
        finally:
            self._usable = False
            self._checkpoints = self.stats.checkpoints = None
            if checkpoints is not None and self._first.failed:
                checkpoints.discard()
            elif checkpoints is not None:
                checkpoints.close()
            self._results.close()
            self._feed.close()
            if self._first.failed:  # another may begin where this one did
                with suppress(SourceError):
                    self.source.seek(self._begun_at)
            self.outputs.events.flush(at_once=True)
            log_event("stop", **self._place())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.close(checkpoint=kind is None)

    # One batch -------------------------------------------------------------------------------

    def step(self, limit: int | None = None, *, drain: bool = False) -> int:
        """Apply one batch, of at most `limit` operations; how many operations it had.

        Waits until a batch closes by size or age; 0 says that the source had nothing for an
        interval, or nothing but bad records, or that a schema registry is away. `drain`: do not
        wait for more than the source holds now. After the graph's OutOfMemory, which leaves the
        batch unapplied, another step tries it again, whole, whatever the limit; after any other
        error `resume`."""
        if not self._usable:
            raise PipelineError("an earlier error stopped this pipeline, or it was closed: resume")
        checkpoints = self._checkpoints
        with self._stopped_by_errors():
            if checkpoints is not None:
                checkpoints.look()
            self._results.look(idle=not self.intake.flows)
            self._feed.look()
            batch = self._pending or self.intake.next_batch(  # 1 to 5
                limit or self.settings.batch_size, drain
            )
            self._pending = batch
            if batch.operations:
                self._begin(drain)
            self._carry_out(batch)  # 6, 7
            self._pending = None
            self._results.follow(batch.stamp)
            self._answer_requests()
            self.outputs.events.flush()
            self.decoder.reader.fields.tell()
            self._first.tell()
            due = checkpoints is not None and checkpoints.is_due(self._stream.state)
            if checkpoints is not None and due and not self._first.on_trial:
                self._begin_checkpoint(checkpoints)  # 8; 9 happens alongside the stream
        return batch.operations

    def _begin(self, drain: bool) -> None:
        """Judge the fields of a new stream, before its first batch. Raises AllRecordsBad."""
        if self._first.on_trial:
            self._first.begin((drain or self.source.bounded) and self.intake.at_end())
            self.intake.write_held()
            self.intake.flush_letters()

    def _carry_out(self, batch: StreamBatch, *, asks: bool = True) -> None:
        """Apply a batch, and answer its queries; not `asks`: leave these out, but not their
        version. The graph's OutOfMemory leaves all as it was."""
        window = self._slide(batch)
        columns, queries = batch.columns, batch.queries
        if not asks:
            columns, queries = without_queries(batch), ()
        if window.before is not None:
            columns = with_expiry(columns, window.before)
        self.stats.tell_units(batch)  # before anything expires by them
        answers: Answers | Sequence[Answer] = ()
        seconds = 0.0
        watch = self._feed.watch() if len(columns) else None
        if len(columns):
            version = self.graph.version
            with self.stats.stages.apply as stage:
                try:
                    answers = self._apply(columns, watch)
                except AnswersTooLarge:  # the updates are applied: it cannot be tried again
                    queries = unanswered(queries)
                except OutOfMemory as error:
                    if self.graph.version == version:  # else for what a watch looks up behind it
                        self._harmless = error
                    raise
            seconds = stage.last
        if queries:
            self._answer(queries, answers)
        if watch is not None:
            self._feed.follow(columns, watch, batch.stamp)
        if self.results is not None:
            self._results.follow(batch.stamp)
        self._move(batch, seconds, window)

    def _apply(self, columns: Columns, watch: Watch | None) -> Answers | Sequence[Answer]:
        columns = columns.replace(ids_resolved=self._stream.looks_up)
        if watch is None:
            return self.graph.apply(columns)
        assert isinstance(self.graph, lpma.Graph), "recovery.check_fit has seen it"
        return self.graph.apply(columns, watch)

    def _slide(self, batch: StreamBatch) -> Slide:
        newest, width = self._stream.state.window_newest, self.settings.window
        if width is None:
            return Slide(newest, None, 0)
        assert isinstance(width, int)
        return slide(batch, newest, width, self.settings.window_time == "arrival")

    def _answer(self, queries: Sequence[Asked], answers: Answers | Sequence[Answer]) -> None:
        """7: the journal first, so that a resume comes to the same answers (invariant 3)."""
        with self.stats.stages.journal:
            self._sync_journal()
        rows = self.settings.max_reply_rows
        with self.stats.stages.reply:
            self.outputs.send(replies_to(queries, answers, self.graph.version, rows, self.vertices))

    def _move(self, batch: StreamBatch, seconds: float, window: Slide) -> None:
        """Move past a batch that was applied, and count it."""
        state = self._stream.state
        state.producers.update(batch.producers)  # in place: they may be many
        if self._stream.rows is not None:
            self._stream.rows.applied(batch.changes)
        newest = {p: max(t, state.newest.get(p, t)) for p, t in batch.newest.items()}
        expired, self._expired = self.graph.expired - self._expired, self.graph.expired
        self._stream.update(
            positions=state.positions | batch.positions,
            version=self.graph.version,
            stamp=max(state.stamp, batch.stamp),
            operations=state.operations + batch.operations,
            newest=state.newest | newest,
            window_newest=window.newest,
            expired=state.expired + expired,
        )
        self.intake.written.apply(batch.positions)
        self.stats.count(batch, seconds, window.late, expired)
        if batch.operations:
            self._moved_at = time.monotonic()

    def _answer_requests(self) -> None:
        """Between two batches: answer what other threads ask, tell them what is applied."""
        requests, stream = self.requests, self._stream
        requests.moved(stream.state.positions, stream.state.version, self._sync_journal)
        if requests.due(False) is None:
            return
        stamp = self.intake.time_between()
        stream.update(stamp=max(stream.state.stamp, stamp))
        apart = None if stream.looks_up else self.vertices
        flows = self.intake.flows or time.monotonic() - self._moved_at < FLOWED_S
        share = FLOWING_SHARE_S if flows else IDLE_SHARE_S
        view = GraphView(self.graph, apart, self.graph.version, stamp, share)
        with self.stats.stages.reply:
            requests.answer(view, self.intake.taken, self._sync_journal)

    def _begin_checkpoint(self, checkpoints: Checkpointer) -> None:
        with self.stats.stages.checkpoint:
            self._results.settle()
            self._feed.settle()
            if self.outputs.held and self.outputs.letters:  # whoever asks for one takes them
                self._first.release()
                self.intake.write_held()
                self.intake.flush_letters()
            state = replace(self._stream.state, fingerprints=dict(self.intake.fingerprints))
            try:
                checkpoints.begin(state, self.intake.waiting(self._pending))
            except OutOfMemory as error:
                self._harmless = error
                raise

    def _sync_journal(self) -> None:
        if self.intake.journal is not None:
            self.intake.journal.sync()

    @contextmanager
    def _stopped_by_errors(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            harmless, self._harmless = self._harmless, None
            if error is harmless:
                raise  # the batch is kept and the graph unharmed: a later step tries again
            # Another's OutOfMemory, as of a function that takes replies, may come after `apply`.
            self._usable = False
            self.requests.close(f"an error stopped this pipeline ({error}): ask again later")
            log_event("error", logging.ERROR, error=type(error).__name__, message=str(error),
                      **self._place())  # fmt: skip
            raise

    def _place(self) -> dict[str, Any]:
        return {"operations": self.stats.operations, "version": self._stream.state.version}


def _check_until(until: object) -> None:
    """Raise PipelineError unless `Pipeline.run` knows it: any other text would mean forever."""
    is_number = isinstance(until, int) and not isinstance(until, bool) and until >= 0
    if not (is_number or until is None or until == "end" or callable(until)):
        raise PipelineError(
            f"until is {until!r}: expected a number of operations, at least 0, 'end', a function "
            "of the pipeline, or None, which is forever"
        )
