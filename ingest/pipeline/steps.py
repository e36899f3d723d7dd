"""One step of a pipeline: a batch's way through the stages.

    1 receive      poll the source, and stamp what came                        intake.py
    2 journal      write down what came, and its stamp                         state/journal.py
    3 decode       bytes become operations, or a dead letter                   formats/
    4 admit        drop repeats and late rows, refuse queries, map names; buffer  record_decoder.py
    5 cut          take a batch from the front, and journal where it ends      batching.py
    6 apply        to the graph                                                lpma
    7 answer       sync the journal, then send the replies                     outputs.py
                   and what changed of the tracked figures       results/worker.py
    8 checkpoint   if one is due: copy graph, positions and names           state/checkpointer.py
    9 commit       write the copy, while the stream goes on                    state/directory.py

Invariants:
1. `positions` are those of the applied batches; what waits in the batcher lies after them.
2. Every piece in the batcher and every batch applied since a checkpoint was taken is in the
   journal, from that checkpoint's segment on or among what was waiting.
3. No reply and no result leaves before the journal is synced; no checkpoint is taken before the
   replies, the results and the dead letters left.
4. After an error that may have broken 1 to 3, no further step is taken: resume from the directory.

Between 7 and 8 other threads of this process may ask the graph: see `graph_requests.py`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lpma.errors import AnswersTooLarge, OutOfMemory

from ..errors import PipelineError
from ..events import log_event
from ..results.worker import Following
from ..settings import BatchStats, Settings
from ..sources.base import KnowsOwners, Source, Wakes
from ..state.checkpoint import State
from ..types import Answer, StreamGraph
from . import recovery
from .batching import Asked, StreamBatch
from .graph_requests import FLOWING_SHARE_S, IDLE_SHARE_S, Interludes, Moment
from .intake import Feed
from .outputs import FirstRecords, Outputs, replies_to, unanswered
from .record_decoder import Admission
from .windows import Slide, slide, with_expiry

if TYPE_CHECKING:
    from lpma.engine.answers import Answers
    from lpma.names import Names

    from ..state.checkpointer import Checkpointer

FLOWED_S = 1.0  # after a batch, during which the stream is taken to flow


class Steps(Following):
    """Takes steps through a stream, from where `state` says. REQUIRES: the source, the graph and
    the vertices stand there too. judged: how many records are, at the beginning of a stream."""

    def __init__(
        self,
        source: Source,
        graph: StreamGraph,
        settings: Settings,
        state: State,
        vertices: Names | None,
        judged: int = 0,
    ) -> None:
        recovery.check_fit(source, graph, settings)
        super().__init__(source, graph, settings, recovery.opened(state, source))
        self.vertices = vertices  # names ⇄ ids of the graph; None if vertices go by ids
        self._looks_up = vertices is not None and recovery.names_in(graph) is vertices
        letters, replies = settings.dead_letters, settings.replies
        own = None if letters is not None and replies is not None else source.sink()
        self.outputs = Outputs(letters or own, replies or own, settings.reply_topics)
        owners = source if isinstance(source, KnowsOwners) else None
        self._first = FirstRecords(judged, self.outputs)
        self._admission = Admission(
            graph, self.outputs, settings, vertices, state, owners, self._first
        )
        self.interludes = Interludes(source.wake if isinstance(source, Wakes) else lambda: None)
        self._feed = Feed(
            source, self._admission, self.outputs, settings, state.stamp, state.marks, self.stages,
            self.interludes,
        )  # fmt: skip
        self._pending: StreamBatch | None = None  # taken but not applied: out of memory
        self._harmless: OutOfMemory | None = None  # the last one after which a step may be retried
        self._usable = True
        self._moved_at = 0.0  # by the monotonic clock: when a batch was last applied

    def step(self, limit: int | None = None, *, drain: bool = False) -> int:
        """Apply one batch, of at most `limit` operations; how many operations it had.

        Waits until a batch closes by size or age; 0 says that the source had nothing for an
        interval, or nothing but bad records. `drain`: do not wait for more than the source holds
        now. After the graph's
        OutOfMemory, which leaves the batch unapplied, another step tries it again, whole, whatever
        the limit; after any other error `resume`."""
        if not self._usable:
            raise PipelineError("an earlier error stopped this pipeline, or it was closed: resume")
        with self._stopped_by_errors():
            if self._checkpoints is not None:
                self._checkpoints.look()
            self._look_beside()
            batch = self._pending or self._feed.next_batch(  # 1 to 5
                limit or self.settings.batch_size, drain
            )
            self._pending = batch
            self._carry_out(batch)  # 6, 7
            self._pending = None
            self._follow(batch.stamp)
            self._hold_interlude()
            self.outputs.events.flush()
            if (
                self._checkpoints is not None
                and not self._first.on_trial
                and self._checkpoints.is_due(self._state)
            ):
                self._begin_checkpoint(self._checkpoints)  # 8; 9 happens alongside the stream
        return batch.operations

    def _carry_out(self, batch: StreamBatch) -> None:
        """The graph's OutOfMemory leaves all as it was."""
        window = self._slide(batch)
        answers, queries, seconds = self._apply(batch, window.before)
        if queries:
            self._answer(queries, answers)
        if self.results is not None:
            self._follow(batch.stamp)
        self._move(batch, seconds, window)

    def _slide(self, batch: StreamBatch) -> Slide:
        """What the batch does to the window, if there is one."""
        newest, width = self._state.window_newest, self.settings.window
        if width is None:
            return Slide(newest, None, 0)
        assert isinstance(width, int)
        return slide(batch, newest, width, self.settings.window_time == "arrival")

    def _apply(
        self, batch: StreamBatch, before: int | None
    ) -> tuple[Answers | Sequence[Answer], Sequence[Asked], float]:
        """6: the answers, the queries that they are of, and the seconds that it took. before: what
        is older has expired after the batch; None: nothing has."""
        columns = batch.columns if before is None else with_expiry(batch.columns, before)
        if not len(columns):
            return (), batch.queries, 0.0
        with self.stages.apply as stage:
            try:
                columns = columns.replace(ids_resolved=self._looks_up)
                answers, queries = self.graph.apply(columns), batch.queries
            except AnswersTooLarge:  # the updates are applied, so the batch cannot be tried again
                answers, queries = (), unanswered(batch.queries)
            except OutOfMemory as error:
                self._harmless = error
                raise
        return answers, queries, stage.last

    def _answer(self, queries: Sequence[Asked], answers: Answers | Sequence[Answer]) -> None:
        """7: the journal first, so that a resume comes to the same answers (invariant 3)."""
        with self.stages.journal:
            self._sync_journal()
        rows = self.settings.max_reply_rows
        with self.stages.reply:
            self.outputs.send(replies_to(queries, answers, self.graph.version, rows, self.vertices))

    def _hold_interlude(self) -> None:
        """Between two batches: answer what other threads ask, tell them what is applied."""
        interludes = self.interludes
        interludes.moved(self._state.positions, self._state.version, self._sync_journal)
        if interludes.due(False) is None:
            return
        stamp = self._feed.time_between()
        self._state = replace(self._state, stamp=max(self._state.stamp, stamp))
        apart = None if self._looks_up else self.vertices
        flows = self._feed.flows or time.monotonic() - self._moved_at < FLOWED_S
        share = FLOWING_SHARE_S if flows else IDLE_SHARE_S
        moment = Moment(self.graph, apart, self.graph.version, stamp, share)
        with self.stages.reply:
            interludes.hold(moment, self._feed.taken, self._sync_journal)

    def _move(self, batch: StreamBatch, seconds: float, window: Slide) -> None:
        """Move past a batch that was applied, and count it."""
        state, version = self._state, self.graph.version
        state.producers.update(batch.producers)  # in place: they may be many
        newest = {p: max(t, state.newest.get(p, t)) for p, t in batch.newest.items()}
        expired, self._expired = self.graph.expired - self._expired, self.graph.expired
        self._state = replace(
            state,
            positions=state.positions | batch.positions,
            version=version,
            stamp=max(state.stamp, batch.stamp),
            operations=state.operations + batch.operations,
            newest=state.newest | newest,
            window_newest=window.newest,
            expired=state.expired + expired,
        )
        self.late_by_window += window.late
        if self.settings.window is not None:
            self.untimed += batch.untimed
        if batch.operations:
            self._moved_at = time.monotonic()
            before, self._unchanged = self._unchanged, self.graph.unchanged
            self.batches += 1
            self.queries += len(batch.queries)
            self.history.append(
                BatchStats(
                    operations=batch.operations,
                    queries=len(batch.queries),
                    seconds=seconds,
                    since_start=time.perf_counter() - self._started,
                    total_operations=self._state.operations,
                    version=version,
                    num_edges=self.graph.num_edges,
                    density=self.graph.density,
                    time=batch.stamp,
                    unchanged=self._unchanged.since(before),
                    expired=expired,
                )
            )

    def _begin_checkpoint(self, checkpoints: Checkpointer) -> None:
        with self.stages.checkpoint:
            self._settle()
            if self.outputs.held and self.outputs.letters:  # whoever asks for one takes them
                self._first.good()
                self._feed.write_held()
                self.outputs.flush()
            state = replace(self._state, marks=dict(self._feed.marks))
            try:
                checkpoints.begin(state, self._feed.waiting(self._pending))
            except OutOfMemory as error:
                self._harmless = error
                raise

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
            self.interludes.close(f"an error stopped this pipeline ({error}): ask again later")
            log_event("error", logging.ERROR, error=type(error).__name__, message=str(error),
                      **self._place())  # fmt: skip
            raise

    def _place(self) -> dict[str, Any]:
        """Where the stream stands, as fields of an event."""
        return {"operations": self.operations, "version": self._state.version}
