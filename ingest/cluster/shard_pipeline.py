"""One pipeline of a shard, from the opening of its source to its last checkpoint, in one thread.

Idea: a source, a pipeline and its graph are for one thread at a time, so one thread makes them,
runs them and closes them. Others see figures, stop it, and ask through requests.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import lpma

from ..events import log_event
from ..pipeline.graph_requests import GraphView
from ..pipeline.pipeline import Pipeline
from ..sources.sqlite.log import SqliteLog
from ..state.directory import has_checkpoint
from ..timers import now_ms
from .cluster_manifest import settle
from .epoch_log import EpochLog, Taken
from .epoch_source import EpochSource, NotedEpoch
from .opening import check_share, open_source, updates_of
from .ownership import Ownership
from .removals import SharedGraph
from .spec import ShardSpec, ShardState, ShardStatus

if TYPE_CHECKING:
    from ..sources.kafka.source import KafkaSource
    from .checkpoint_mirror import CheckpointMirror

NOTE_EVERY_S = 0.2  # how far behind it is


class ShardPipeline:
    """The pipeline of `spec` that reads one way, "out" or "in". Raises nothing: `state` and
    `problem` tell what became of it, `saved` whether it ended with a last checkpoint, and `last`
    what that failed of."""

    def __init__(self, spec: ShardSpec, way: str, epoch_log: EpochLog) -> None:
        self.way = way
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
            target=self._run, name=f"lpma-shard-{spec.number}-{way}", daemon=True
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
        """Wait until it has ended."""
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
            with open_source(self._spec, self.way) as source:
                settle(self._spec, self.way)
                noted = NotedEpoch(f"{self._spec.directory(self.way)}/epoch")
                updates = updates_of(source, self._spec, self.way)
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
            log_event("shard failed", logging.ERROR, shard=self._spec.number, way=self.way,
                      problem=self.problem)  # fmt: skip
        else:
            self.state = "stopped"
        finally:
            self._epoch_log.finish()

    def _begun(self, source: EpochSource, partitions: int) -> Pipeline:
        """A pipeline that goes on from its checkpoint, if there is one here or in kept storage."""
        spec, directory = self._spec, self._spec.directory(self.way)
        settings: Any = {**spec.settings, "device": spec.device, "names": spec.names}
        restored = False
        if spec.keep is not None:
            from .restore import restore

            restored = restore(spec.keep, spec.number, directory, self._part)
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

    @property
    def _part(self) -> str:
        """The name of this way in kept storage."""
        return self.way if self._spec.predecessors else ""

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
        if self._spec.keep is None:
            yield
            return
        from .checkpoint_mirror import CheckpointMirror

        directory = self._spec.directory(self.way)
        with CheckpointMirror(
            self._spec.keep, self._spec.number, directory, self._part
        ) as self.mirror:
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
            check_share(source, self._spec, self.way)
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
        self._epoch_log.ended(self.way, floor, closed)
