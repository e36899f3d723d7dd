"""What the cost model says of the stream that shards apply, set beside one, two and four shards in
threads: updates a second, an epoch of which the rows are kept, and a shard that is killed. Part of
`cluster_predicted`.

One shard without edges and one with them give the constants. A kill comes after a checkpoint, so
nothing is to be replayed.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import ingest
from ingest.cluster.cluster import Cluster
from ingest.cluster.partitioned import create_sharded
from lpma.sharding import owners_of

from .. import workloads
from ..keys import Array
from ..report import Report, Setting
from ..stopwatch import WrongAnswer
from . import cluster_model as model
from .cluster_counts import Profile
from .cluster_model import Graph, Machine
from .shards import PATIENCE_S, parts_of

EPOCHS, KILLS = 20, 5


@dataclass(frozen=True)
class Measured:
    """At least, of some: since other work on the machine only adds."""

    load_s: float  # from the first write until all is applied
    epoch_s: float
    recovery_s: float


def stream(setting: Setting) -> Report:
    operations = 20_000 if setting.quick else 2_000_000
    src, dst = workloads.rmat(18, 0, operations).stream(0, operations)
    made = Report("cluster-model", f"the stream, predicted and measured; {operations:,} edges")
    graph = Graph(Profile(np.ones(1), np.zeros(1), np.array([operations])), float(src.max()) + 1)
    empty, alone = _measured(src[:1], dst[:1], 1), _measured(src, dst, 1)
    machine = calibrated(graph, empty, alone)
    for shards in (1, 2, 4):
        found = alone if shards == 1 else _measured(src, dst, shards)
        told = {
            "M updates/s": model.updates_per_s(machine, shards) / 1e6,
            "epoch, ms": model.epoch_s(machine, graph, shards) * 1e3,
            "recovery, s": model.recovery_s(machine, graph, shards, 0.0),
        }
        seen = {
            "M updates/s": operations / found.load_s / 1e6,
            "epoch, ms": found.epoch_s * 1e3,
            "recovery, s": found.recovery_s,
        }
        for what, value in told.items():
            row = {"what": what, "shards": shards, "predicted": value, "measured": seen[what]}
            made.add(row | {"of": value / seen[what]})
    return made


def calibrated(graph: Graph, empty: Measured, alone: Measured) -> Machine:
    """The constants of the stream, from a shard without edges and one with all."""
    copied = model.SNAPSHOT_ENTRY * graph.entries + model.SNAPSHOT_ROW * graph.rows
    unlimited = float("inf")
    stands = Machine(1, 0.0, 0.0, 0.0, 0.0, 0.0, unlimited, {}, log_bytes_s=unlimited)
    return replace(
        stands,
        update_s=alone.load_s / graph.entries,
        marker_s=empty.epoch_s,
        copy_bytes_s=copied / max(alone.epoch_s - empty.epoch_s, 1e-6),
        notice_s=empty.recovery_s,
        load_entry_s=max(0.0, alone.recovery_s - empty.recovery_s) / graph.entries,
    )


def _measured(src: Array, dst: Array, shards: int) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        path, state = str(Path(folder) / "log"), str(Path(folder) / "state")
        with ingest.SqliteLog(path) as log:
            create_sharded(log, "updates", shards)
            with Cluster(path, shards, checkpoint=state) as cluster:
                began = time.perf_counter()
                log.produce_parts(parts_of(src, dst, shards))
                _until_applied(cluster, len(src), began + PATIENCE_S)
                load_s = time.perf_counter() - began
            with Cluster(path, shards, checkpoint=state) as cluster:  # from the last checkpoints
                epoch_s = min(_seconds_of_epoch(cluster) for _ in range(EPOCHS))
                recovery_s = min(_seconds_of_kill(cluster, shards) for _ in range(KILLS))
    return Measured(load_s, epoch_s, recovery_s)


def _until_applied(cluster: Cluster, operations: int, deadline: float) -> None:
    while True:
        statuses = [one.status for one in cluster.status().shards]
        if sum(0 if status is None else status.operations for status in statuses) >= operations:
            return
        if time.perf_counter() > deadline:
            raise WrongAnswer(f"fewer than {operations} operations were applied")
        time.sleep(0.005)


def _seconds_of_epoch(cluster: Cluster) -> float:
    began = time.perf_counter()
    cluster.snapshot(PATIENCE_S)
    return time.perf_counter() - began


def _seconds_of_kill(cluster: Cluster, shards: int) -> float:
    """Until a vertex of the first shard is answered for again."""
    vertex = int(np.flatnonzero(owners_of(np.arange(100), shards) == 0)[0])
    with cluster.client() as client:
        client.degree(vertex, timeout=PATIENCE_S)
        before = _incarnation(cluster)
        began = time.perf_counter()
        cluster._handles[0].kill()
        while _incarnation(cluster) == before:
            time.sleep(0.002)
        client.degree(vertex, timeout=PATIENCE_S)
        return time.perf_counter() - began


def _incarnation(cluster: Cluster) -> str | None:
    status = cluster.status().shards[0].status
    return None if status is None else status.incarnation
