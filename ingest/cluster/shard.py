"""A shard: the pipelines over its own partitions, their graphs, and what it holds of epochs.

Idea: a shard is today's pipeline, with a journal, checkpoints and an exactly-once effect of its
own. What it adds is the end of epochs: at a marker it knows a state of its rows that belongs to one
state of the whole graph, and holds a snapshot of it where one was asked for.

    source ──▶ EpochSource ──▶ Pipeline ──▶ Graph        a `ShardPipeline`, one thread each
                   └── request at an epoch's end ──▶ EpochLog ──▶ closed, worker

A source, a pipeline and its graph are for one thread at a time, so one thread makes them, runs them
and closes them. Others see figures, stop it, and ask through requests.

Requires: the directory `spec.checkpoint` where this process can write, and the source where it can
read it. A directory belongs to one shard at a time: a second one fails to start.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import lpma

from ..errors import ClusterError, PipelineError
from ..events import log_event
from ..pipeline.graph_requests import GraphView
from ..pipeline.pipeline import Pipeline
from ..sources.sqlite.log import SqliteLog
from ..state.directory import has_checkpoint
from ..timers import now_ms
from ..types import Closing
from .cluster_log import check_share, open_source, updates_of
from .cluster_manifest import settle
from .epoch_log import EpochLog, Taken
from .epoch_source import EpochSource, NotedEpoch
from .owners import Ownership
from .removals import SharedGraph
from .spec import EpochClosed, ShardSpec, ShardState, ShardStatus

if TYPE_CHECKING:
    from algorithms.sharded.runtime.worker import Worker
    from lpma import Snapshot

    from ..sources.kafka.source import KafkaSource
    from .checkpoint_mirror import CheckpointMirror


class Shard(Closing):
    """The shard that `spec` describes. Its methods may be called from any thread."""

    def __init__(self, spec: ShardSpec) -> None:
        self._spec = spec
        self._incarnation = secrets.token_hex(8)
        self._epoch_log = EpochLog(spec.directions)
        self._pipelines = [ShardPipeline(spec, d, self._epoch_log) for d in spec.directions]
        self._turn = threading.Lock()  # of starting and ending
        self._started = self._ended = False

    def start(self) -> None:
        """Begin, or go on from the checkpoint if there is one. Returns at once: `status` tells what
        becomes of it. Does nothing if the shard was closed or killed. Raises PipelineError if it
        was started before."""
        with self._turn:
            if self._ended:
                return
            if self._started:
                raise PipelineError("this shard was started already: make another")
            self._started = True
            for pipeline in self._pipelines:
                pipeline.start()

    def close(self) -> None:
        """End, with a last checkpoint. A second call does nothing more. Raises what that failed of,
        ClusterError if the shard had failed before, or was killed: then the checkpoint before it,
        the journal and the log have all."""
        self._end(checkpoint=True)
        for pipeline in self._pipelines:
            if not pipeline.saved:
                raise pipeline.last or ClusterError(pipeline.problem or "it did not run")

    def kill(self) -> None:
        """End after the batch at hand and without a checkpoint, and leave the directory."""
        self._end(checkpoint=False)

    def _end(self, *, checkpoint: bool) -> None:
        with self._turn:
            self._ended = True
            for pipeline in self._pipelines:
                pipeline.stop(checkpoint=checkpoint)
        for pipeline in self._pipelines:
            pipeline.join()
        self._epoch_log.finish()

    # Asking ----------------------------------------------------------------------------------

    def status(self) -> ShardStatus:
        """How it stands. Returns at once, whatever the shard does."""
        states = [pipeline.state for pipeline in self._pipelines]
        order: tuple[ShardState, ...] = ("failed", "stopped", "starting", "running")
        status = ShardStatus(
            number=self._spec.number,
            shards=self._spec.shards,
            state=next(state for state in order if state in states),
            problem=next(
                (pipeline.trouble for pipeline in self._pipelines if pipeline.trouble), None
            ),
            incarnation=self._incarnation,
            device=self._spec.device,
            lag=sum(pipeline.lag for pipeline in self._pipelines),
            seconds_behind=max(pipeline.seconds_behind for pipeline in self._pipelines),
            epoch=self._epoch_log.newest,
            epochs_closed=self._epoch_log.count,
            highest_epoch=max(pipeline.highest_epoch for pipeline in self._pipelines),
            held=self._epoch_log.held(),
        )
        return self._pipelines[0].figures_in(status)

    def expect(self, epoch: int, or_later: bool = False) -> None:
        """Hold a snapshot when that epoch closes. To be called before its markers are written, or
        it may have closed without one. or_later: or of the first above it that closes, where
        another writes the markers, and chooses the numbers."""
        self._epoch_log.expect(epoch, or_later)

    def closed(self, epoch: int, timeout_s: float, or_later: bool = False) -> EpochClosed | None:
        """How that epoch ended here; or_later: the first that is held, of that one and all above
        it. None if it has not within `timeout_s`, or never will, because a partition passed it
        without a marker, or the shard ends."""
        return self._epoch_log.wait(epoch, timeout_s, or_later)

    def worker(self, epoch: int) -> Worker:
        """The worker over what is held of that epoch, always the same. Raises LookupError if
        nothing is."""
        return self._epoch_log.made(epoch, self._worker)

    def forget(self, epoch: int) -> None:
        """Hold nothing of that epoch any more. What a worker of it still holds is freed with the
        worker."""
        self._epoch_log.forget(epoch)

    def _worker(self, snapshots: dict[str, Snapshot]) -> Worker:
        from algorithms.sharded.runtime.types import Part
        from algorithms.sharded.runtime.worker import Worker

        spec = self._spec
        return Worker(
            Part.of(
                snapshots["out"],
                spec.number,
                spec.shards,
                directed=spec.directed,
                in_snapshot=snapshots.get("in"),
            )
        )


NOTE_EVERY_S = 0.2  # how far behind it is


class ShardPipeline:
    """The pipeline of `spec` that reads edges in one direction, "out" or "in". Raises nothing:
    `state` and `problem` tell what became of it, `saved` whether it ended with a last checkpoint,
    and `last` what that failed of."""

    def __init__(self, spec: ShardSpec, direction: str, epoch_log: EpochLog) -> None:
        self.direction = direction
        self.state: ShardState = "starting"
        self.problem: str | None = None
        self.saved = False
        self.last: Exception | None = None
        self.pipeline: Pipeline | None = None  # from "running" on
        self.mirror: CheckpointMirror | None = None
        self.lag = 0  # records, when last noted
        self.seconds_behind = 0.0
        self.highest_epoch = 0
        self._edges = self._version = 0
        self._spec = spec
        self._epoch_log = epoch_log
        self._away: str | None = None  # why the source cannot be read, when last noted
        self._over = threading.Event()
        self._checkpoints = True  # whether a last one is taken
        self._note_at = 0.0
        self._thread = threading.Thread(
            target=self._run, name=f"lpma-shard-{spec.number}-{direction}", daemon=True
        )

    # Any thread ------------------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()

    def stop(self, *, checkpoint: bool) -> None:
        """Let it end after the batch at hand; checkpoint: with a last one."""
        self._checkpoints = checkpoint
        self._over.set()
        if self.pipeline is not None:
            self.pipeline.requests.ask(lambda moment: None)  # wakes it

    def join(self) -> None:
        if self._thread.ident is not None:
            self._thread.join()
        elif self.state == "starting":
            self.state = "stopped"

    @property
    def trouble(self) -> str | None:
        """Why it ended; or why its source cannot be read at the moment, or its checkpoints cannot
        be kept; None: nothing is wrong."""
        kept = None if self.mirror is None else self.mirror.status.problem
        return self.problem or self._away or (kept and f"not kept: {kept}")

    def figures_in(self, status: ShardStatus) -> ShardStatus:
        """The status with the figures of this pipeline, if there is one yet."""
        pipeline, mirror = self.pipeline, self.mirror
        if pipeline is None:
            return status
        checkpoint = pipeline.stats.checkpoint_figures
        return replace(
            status,
            device=getattr(pipeline.graph, "device", status.device),
            operations=pipeline.stats.operations,
            replayed=pipeline.stats.replayed,
            edges=self._edges,
            version=self._version,
            checkpoint_time=None if checkpoint is None else checkpoint.time,
            kept_time=None if mirror is None else mirror.status.time,
        )

    # Its thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            with open_source(self._spec, self.direction) as source:
                settle(self._spec, self.direction)
                noted = NotedEpoch(f"{self._spec.directory(self.direction)}/epoch")
                updates = updates_of(source, self._spec, self.direction)
                partitions = len(updates) * self._spec.shards
                epochs = EpochSource(source, updates, noted, Ownership(partitions))
                pipeline = self._begun(epochs, partitions)
                with self._kept(), self._ended(pipeline):
                    epochs.begin(pipeline.requests, self, pipeline.intake.fingerprints)
                    self._note(epochs, pipeline)
                    self.pipeline, self.state = pipeline, "running"
                    pipeline.run(until=lambda _: self._looked(source, epochs, pipeline))
        except BaseException as error:  # noqa: BLE001 - whoever asks for the status is told
            self.problem = f"{type(error).__name__}: {error}"
            self.state = "failed"
            log_event("shard failed", logging.ERROR, shard=self._spec.number,
                      direction=self.direction, problem=self.problem)  # fmt: skip
        else:
            self.state = "stopped"
        finally:
            self._epoch_log.finish()

    def _begun(self, source: EpochSource, partitions: int) -> Pipeline:
        """A pipeline that goes on from its checkpoint, if there is one here or in kept storage."""
        spec, directory = self._spec, self._spec.directory(self.direction)
        settings: Any = {**spec.settings, "device": spec.device, "names": spec.names}
        restored = False
        if spec.keep is not None:
            from .checkpoint_mirror import restore

            restored = restore(spec.keep, spec.number, directory, spec.part(self.direction))
        own = lpma.Graph if partitions == spec.shards else SharedGraph.of(partitions)
        if has_checkpoint(directory):
            return Pipeline.resume(
                directory,
                source,
                load=lambda path: own.load(path, spec.device),
                accept_journal_loss=restored,
                **settings,
            )
        graph = own(device=spec.device, names=spec.names)
        return Pipeline(source, graph, directory, **settings)

    @contextmanager
    def _ended(self, pipeline: Pipeline) -> Iterator[None]:
        """Close the pipeline, whatever the block does; after an error without a checkpoint."""
        try:
            yield
        except BaseException:
            pipeline.close(checkpoint=False)
            raise
        try:
            pipeline.close(checkpoint=self._checkpoints)
            self.saved = self._checkpoints
        except Exception as error:
            self.last = error
            raise

    @contextmanager
    def _kept(self) -> Iterator[None]:
        """Copy checkpoints to kept storage during the block."""
        spec, direction = self._spec, self.direction
        if spec.keep is None:
            yield
            return
        from .checkpoint_mirror import CheckpointMirror

        place = spec.directory(direction)
        with CheckpointMirror(spec.keep, spec.number, place, spec.part(direction)) as self.mirror:
            self.mirror.start()
            yield

    def _looked(
        self, source: SqliteLog | KafkaSource, epochs: EpochSource, pipeline: Pipeline
    ) -> bool:
        """After each step: note where it stands. Whether it is to end."""
        self._note(epochs, pipeline)
        now = time.monotonic()
        if now >= self._note_at:
            self._note_at = now + NOTE_EVERY_S
            self._away = source.trouble()
            check_share(source, self._spec, self.direction)
            self.lag = sum(pipeline.stats.lag().values())
            behind_ms = now_ms() - epochs.read_time if self.lag and epochs.read_time else 0
            self.seconds_behind = max(0, behind_ms) / 1000
        return self._over.is_set()

    def _note(self, epochs: EpochSource, pipeline: Pipeline) -> None:
        """What a graph says only while no batch is applied, nobody else has to wait for."""
        self.highest_epoch = epochs.alignment.highest
        self._edges, self._version = pipeline.graph.num_edges, pipeline.graph.version

    # What its source calls: see `epochs.Closer` ----------------------------------------------

    def close(self, epoch: int, moment: GraphView) -> Taken:
        return self._epoch_log.close(epoch, moment)

    def ended(self, floor: int, closed: Future[Taken] | None) -> None:
        self._epoch_log.ended(self.direction, floor, closed)
