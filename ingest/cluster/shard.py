"""A shard: the pipelines over its own partitions, their graphs, and what it holds of epochs.

Idea: a shard is today's pipeline, with a journal, checkpoints and an exactly-once effect of its
own. What it adds is the end of epochs: at a marker it knows a state of its rows that belongs to one
state of the whole graph, and holds a snapshot of it where one was asked for.

    source ──▶ EpochSource ──▶ Pipeline ──▶ Graph        a `ShardPipeline`, a thread each way
                   └── request at an epoch's end ──▶ EpochLog ──▶ closed, worker

Requires: the directory `spec.checkpoint` where this process can write, and the source where it can
read it. A directory belongs to one shard at a time: a second one fails to start.
"""

from __future__ import annotations

import secrets
import threading
from typing import TYPE_CHECKING

from ..errors import ClusterError, PipelineError
from ..types import Closing
from .epoch_log import EpochLog
from .shard_pipeline import ShardPipeline
from .spec import EpochClosed, ShardSpec, ShardState, ShardStatus

if TYPE_CHECKING:
    from algorithms.sharded.runtime.worker import Worker
    from lpma import Snapshot


class Shard(Closing):
    """The shard that `spec` describes. Its methods may be called from any thread.

    >>> from ingest.cluster.shard import Shard
    >>> from ingest.cluster.spec import ShardSpec
    >>> log = ingest.SqliteLog("log")
    >>> ingest.create_sharded(log, "updates", 2)
    >>> sink = ingest.PartitionedSink(log)
    >>> with Shard(ShardSpec("log", None, 0, 1, "state")) as shard:
    ...     shard.start()
    ...     shard.expect(5)
    ...     sink.write(lpma.Batch.from_columns(lpma.Kind.INSERT, [1, 2, 3], [2, 3, 4]))
    ...     epoch = sink.mark(5)
    ...     closed = shard.closed(epoch, timeout_s=30.0)
    ...     part = shard.worker(epoch).part
    >>> closed.num_edges, part.indices.tolist()
    (3, [2, 3, 4])
    """

    def __init__(self, spec: ShardSpec) -> None:
        self._spec = spec
        self._incarnation = secrets.token_hex(8)
        self._epoch_log = EpochLog(spec.ways)
        self._pipelines = [ShardPipeline(spec, way, self._epoch_log) for way in spec.ways]
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

    def closed(self, epoch: int, timeout_s: float) -> EpochClosed | None:
        """How that epoch ended here; None if it has not within `timeout_s`, or never will, because
        a partition passed it without a marker, or the shard ends."""
        return self._epoch_log.wait(epoch, timeout_s)

    def closed_from(self, epoch: int, timeout_s: float) -> EpochClosed | None:
        """The first epoch that is held, of that one and all above it; None if none is within
        `timeout_s`."""
        return self._epoch_log.wait_for_later(epoch, timeout_s)

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
