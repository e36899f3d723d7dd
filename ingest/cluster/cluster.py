"""A graph past one machine: shards, each today's pipeline over its own partitions of one log.

Idea: everything that must not be lost is in the log and in the shards' checkpoints. So the cluster
itself has no state: it launches shards and takes epochs, and may be killed and made again at any
moment. What one shard can answer is asked through the log, at its exact place in its partition;
what spans shards is answered as of an epoch.

    source ── partitions p with p mod S = i ──► shard i: pipeline, graph, checkpoint/shard-i
       ▲                                           │
       └─ markers ── Coordinator ◄── closed ───────┘ ──► ShardedSnapshot ──► algorithms, client

Requires a sharded topic, written by `PartitionedSink`, with a number of partitions that the number
of shards divides.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from ..arguments import seconds_of
from ..errors import ClusterClosed, ClusterError, EngineLost
from ..events import log_event
from ..settings import Settings
from ..sources.sqlite.log import SqliteLog
from ..types import QUERIES, UPDATES, Closing
from .arguments import REFUSED, check, check_places, device_of
from .cluster_log import ClusterLog, address_of
from .cluster_manifest import ClusterManifest, check_directory
from .control import OF_DRIVER, DirectoryLock
from .coordinator import Coordinator, Epoch
from .engine import CALL_TIMEOUT_S, PAUSE_S, Engine, Handle, LocalEngine, retried, try_all
from .spec import ShardSpec
from .status import ClusterStatus, Watch

if TYPE_CHECKING:
    from algorithms.sharded import ShardedSnapshot

    from .client import ClusterClient

Result = TypeVar("Result")

START_TIMEOUT_S = 600.0  # until every shard runs, which may have to read much again
LAUNCH_TIMEOUT_S = 60.0  # until every supervisor answers, which may wait for its machine
FAILED_STARTS = 5  # of one shard in a row: then the cluster is not made
LOOK_S = 1.0  # between two looks at the shards
CLOSE_TIMEOUT_S = 300.0  # for the last checkpoints
CLOSED = "this cluster was closed: make another, with the same checkpoint"


class Cluster(Closing):
    """The shards of one graph, launched, watched and asked as one.

    source: the path of an embedded log, or an SqliteLog, or "kafka://host:port,…", with
    kafka_settings as of `KafkaSource`. shards: how many; it divides the topic's partitions.
    engine: "local", threads of this process, or "ray", an actor each (the extra [ray]).
    devices: of the shards, taken in turn: "cpu", "cuda", "cuda:N"; None: all on the CPU.
    checkpoint: the directory for all shards; what lies there is gone on from.
    directed, predecessors, names: as of the `PartitionedSink` that writes the topic.
    topic, queries: the names of the sharded topics.
    keep: where checkpoints are copied to, a path or a URI; see `checkpoint_mirror.py`.
    epoch_interval_s: take an epoch that often by itself; None: only when one is asked for.
    stop: an event; if it is set while the shards start, nobody waits for them any more.
    settings: of each shard's pipeline, as of `Settings`.

    Raises ClusterError, which says which shard cannot be started and why; UnknownSetting and
    PipelineError for settings; SourceError if the log or a topic is not there, or `queries` is
    another graph's; CheckpointError if `checkpoint` is of another kind of cluster, LockedError
    while another one runs there; ClusterClosed if it was stopped. Nothing is left running then. May
    be used from any number of threads. What is asked after `close`, or goes on meanwhile, raises
    ClusterClosed; when Ray itself is gone, EngineLost. Both at once.
    timeout_s, of each method: inf waits as long as it takes; what is no time raises ClusterError.

    >>> log = ingest.SqliteLog("log")
    >>> ingest.create_sharded(log, "updates", 2)
    >>> sink = ingest.PartitionedSink(log)
    >>> sink.produce_many("updates", [ingest.encode_updates([1, 2, 3], [2, 3, 1])])
    >>> with ingest.Cluster("log", shards=2, checkpoint="state") as cluster:
    ...     snapshot = cluster.snapshot()
    ...     with cluster.client() as client:
    ...         reply = client.hops(1, 2)
    >>> snapshot.num_edges, reply.answer.ids.tolist()
    (3, [2, 3])
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | SqliteLog,
        shards: int,
        engine: str | Engine = "local",
        devices: str | Sequence[str] | None = None,
        checkpoint: str | os.PathLike[str] = "state",
        *,
        directed: bool = True,
        predecessors: bool = False,
        names: bool = False,
        topic: str = UPDATES,
        queries: str = QUERIES,
        keep: str | None = None,
        kafka_settings: Mapping[str, Any] | None = None,
        epoch_interval_s: float | None = None,
        stop: threading.Event | None = None,
        **settings: Any,
    ) -> None:
        check(shards, settings, epoch_interval_s, kafka_settings, directed, predecessors, names)
        if stop is not None and not isinstance(stop, threading.Event):
            raise ClusterError(f"stop is {stop!r}: expected a threading.Event")
        check_places(checkpoint, keep)
        self._settings = Settings.given_to(Cluster, settings, REFUSED)  # type: ignore[arg-type]
        self._closed = threading.Event()
        self._lost: EngineLost | None = None  # since the last look at the shards
        self._handles: list[Handle] = []
        spec = ShardSpec(
            source=address_of(source),
            kafka_settings=None if kafka_settings is None else dict(kafka_settings),
            number=0,
            shards=shards,
            checkpoint=os.path.abspath(checkpoint),
            topic=topic,
            queries=queries,
            directed=directed,
            predecessors=predecessors,
            names=names,
            keep=keep,
            settings=settings,
        )
        with ExitStack() as opened:
            self._log = opened.enter_context(ClusterLog(spec))
            self._log.check()
            check_directory(spec.checkpoint, ClusterManifest.of(spec))
            specs = [replace(spec, number=n, device=device_of(devices, n)) for n in range(shards)]
            self._engine = _engine_of(engine)
            self._engine.check({one.device for one in specs})
            opened.enter_context(DirectoryLock(spec.checkpoint, OF_DRIVER))
            opened.callback(self._end)
            self._log.note()
            self._watch = Watch(shards)
            stop = stop or threading.Event()
            for one in specs:
                _check_goes_on(stop)
                self._handles.append(self._engine.launch(one))
            self._await_running(time.monotonic(), stop)
            self._opened = opened.pop_all()
        mark = self._log.mark if self._log.can_mark else None
        self._coordinator = Coordinator(self._handles, mark, self.check)
        self._interval_s = epoch_interval_s
        self._watching = threading.Thread(target=self._look, name="lpma-cluster", daemon=True)
        self._watching.start()

    @property
    def shards(self) -> int:
        """How many there are."""
        return len(self._handles)

    # Asking ----------------------------------------------------------------------------------

    def epoch(self, timeout_s: float = 30.0) -> Epoch:
        """A new epoch that every shard has closed: all that was written before this call is in it.
        Where the topic's writer marks it, the next one it marks. A shard that dies meanwhile is
        waited for. Raises ClusterError after `timeout_s`, which says which shard is late and why.
        """
        return self._coordinator.epoch(timeout_s)

    def snapshot(
        self, timeout_s: float = 60.0, *, since: Any = None, until: Any = None,
        half_life: Any = None, now: Any = None,
    ) -> ShardedSnapshot:  # fmt: skip
        """The whole graph as of a new epoch, for the algorithms, or a view in time of it: see
        `Graph.snapshot`. It lies at the shards: if one starts again, what reads the snapshot raises
        ClusterError, and another is to be taken, which `run` does. Raises ClusterError as `epoch`
        does; SnapshotRefused at once if a shard can hold none, of ids too large for instance; and
        BatchError."""
        view = {"since": since, "until": until, "half_life": half_life, "now": now}
        from algorithms.sharded import ShardedSnapshot

        end = time.monotonic() + seconds_of(timeout_s, "timeout_s", ClusterError)

        def taken(left_s: float) -> ShardedSnapshot:
            epoch = self._coordinator.epoch(left_s, hold=True)
            left_s = max(PAUSE_S, end - time.monotonic())
            try:
                workers = self._engine.workers(self._handles, epoch.number, left_s)
                return ShardedSnapshot.of(workers, epoch.number, **view)
            except LookupError as error:
                raise ClusterError(f"no snapshot within {timeout_s:.3g} s: {error}") from error

        return retried(taken, end)

    def run(
        self, work: Callable[[ShardedSnapshot], Result], timeout_s: float = 600.0, **view: Any
    ) -> Result:
        """What `work` returns for a snapshot, of a view in time if `view` asks for one. If a shard
        dies meanwhile, `work` is called again with the next one, until one call ends well or
        `timeout_s` is over."""
        until = time.monotonic() + seconds_of(timeout_s, "timeout_s", ClusterError)
        return retried(lambda left_s: work(self.snapshot(left_s, **view)), until)

    def client(self, **options: Any) -> ClusterClient:
        """A client, to be closed by whoever asked for it: see `ClusterClient`."""
        from .client import ClusterClient

        self.check()
        return ClusterClient(self, self._log, settings=self._settings, **options)

    def status(self, timeout_s: float = CALL_TIMEOUT_S) -> ClusterStatus:
        """How things stand, within `timeout_s`: a shard that does not answer is "unreachable".
        Raises ClusterClosed after `close`."""
        if self._closed.is_set():
            raise ClusterClosed(CLOSED)
        timeout_s = seconds_of(timeout_s, "timeout_s", ClusterError)
        found = try_all(self._handles, "status", timeout_s=timeout_s)
        self._lost = next((one for one in found if isinstance(one, EngineLost)), None)
        views = self._watch.seen(found)
        return ClusterStatus(views, self._coordinator.newest, self._engine.problem())

    def check(self) -> None:
        """Raise ClusterClosed if the cluster was closed, EngineLost if a shard was out of reach
        at the last look, a second ago at most, and the engine is gone."""
        if self._closed.is_set():
            raise ClusterClosed(CLOSED)
        if self._lost is not None:
            raise EngineLost(self._lost.why, self._lost.shard)

    def wait_until_read(self, timeout_s: float = 60.0) -> None:
        """Return when every shard has applied all that was in the log when this was called. Raises
        ClusterError if that takes longer."""
        if self._log.can_mark:
            self.epoch(timeout_s)
            return
        deadline = time.monotonic() + seconds_of(timeout_s, "timeout_s", ClusterError)
        self.check()
        while late := [s for s in self.status().shards if s.status is None or s.status.lag]:
            if time.monotonic() >= deadline:
                why = late[0].problem or "has records to read still"
                raise ClusterError(why, late[0].number)
            time.sleep(PAUSE_S)

    # How it ends -----------------------------------------------------------------------------

    def close(self) -> None:
        """End the shards, each after a last checkpoint. Raises ClusterError, when all have ended,
        which says of which shards none could be taken, and why: the one before it and the log have
        what it lacks."""
        if self._closed.is_set():
            return
        self._closed.set()
        self._watching.join()
        unsaved = close_all(self._handles)
        self._opened.close()
        if unsaved is not None:
            raise unsaved

    def _end(self) -> None:
        for handle in self._handles:
            handle.end()
        self._engine.close()

    # Starting, watching ----------------------------------------------------------------------

    def _await_running(self, began: float, stop: threading.Event) -> None:
        while True:
            found = try_all(self._handles, "status", timeout_s=CALL_TIMEOUT_S)
            _check_goes_on(stop)
            views = self._watch.seen(found)
            took_s = time.monotonic() - began
            for view, one in zip(views, found, strict=True):
                if isinstance(one, EngineLost):
                    raise one
                if isinstance(one, Exception):
                    if took_s >= LAUNCH_TIMEOUT_S:
                        why = f"did not start within {took_s:.0f} s; does any node have free "
                        why += f"resources? {view.problem}"
                        raise ClusterError(why, view.number) from one
                elif one.failures >= FAILED_STARTS or took_s >= START_TIMEOUT_S:
                    raise ClusterError(view.problem or f"it is {view.state}", view.number)
            if all(view.state == "running" for view in views):
                return
            stop.wait(PAUSE_S)

    def _look(self) -> None:
        """Tell of shards that start again, and take epochs by the clock."""
        next_epoch = time.monotonic()
        while not self._closed.wait(min(LOOK_S, self._interval_s or LOOK_S)):
            with suppress(ClusterClosed):  # meanwhile
                self.status(LOOK_S)
            if self._interval_s is None or time.monotonic() < next_epoch:
                continue
            next_epoch = time.monotonic() + self._interval_s
            try:
                self._coordinator.epoch(max(1.0, self._interval_s))
            except ClusterClosed:
                return
            except ClusterError as error:
                log_event("no epoch", logging.WARNING, problem=str(error))


def _check_goes_on(stop: threading.Event) -> None:
    if stop.is_set():
        raise ClusterClosed("it was stopped before all shards ran: the next one goes on from there")


def _engine_of(engine: str | Engine) -> Engine:
    """The engine of that name. Raises ClusterError if there is none."""
    if isinstance(engine, Engine):
        return engine
    if engine == "local":
        return LocalEngine()
    if engine == "ray":
        from .ray_engine import RayEngine

        return RayEngine()
    raise ClusterError(f"engine is {engine!r}: expected 'local' or 'ray'")


def close_all(handles: Sequence[Handle]) -> ClusterError | None:
    """Let every shard take a last checkpoint, and end. Returns the error that names each shard of
    which none could be taken, and why; EngineLost if the engine is gone."""
    # Nobody waits long for the last checkpoint of a shard that is not there to take it.
    there = try_all(handles, "ping")
    errors = {h.number: e for h, e in zip(handles, there, strict=True) if e is not None}
    left = [handle for handle in handles if handle.number not in errors]
    found = try_all(left, "close", timeout_s=CLOSE_TIMEOUT_S)
    errors |= {h.number: e for h, e in zip(left, found, strict=True) if e is not None}
    unsaved = []
    for number, error in sorted(errors.items()):
        if isinstance(error, EngineLost):
            return error
        named = error.why if isinstance(error, ClusterError) else f"{type(error).__name__}: {error}"
        unsaved.append(ClusterError(f"no last checkpoint: {named}", number))
    if len(unsaved) < 2:
        return unsaved[0] if unsaved else None
    return ClusterError("; ".join(map(str, unsaved)))
