"""The end of a cluster whose disk is full, or whose shard does not run: whoever ends it is told
which shards took no last checkpoint, nothing piles up meanwhile, and nothing is lost."""

from __future__ import annotations

import errno
import os
import pkgutil
import resource
import signal
import subprocess
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
from ingest import ClusterError
from ingest.cluster.cluster import close_all
from ingest.cluster.control import ask
from ingest.cluster.engine import LocalHandle
from ingest.cluster.shard import Shard
from ingest.cluster.spec import ShardSpec
from ingest.cluster.supervisor import ShardSupervisor
from ingest.state.checkpoint import write_checkpoint
from ingest.state.journal import segment_numbers
from tests.support.command_line import await_cluster, command_line
from tests.support.waiting import HANGS_S, wait_for

EDGES = 60
OFTEN: dict[str, Any] = {"checkpoint_operations": 1}


@pytest.fixture
def log(tmp_path: Path) -> ingest.SqliteLog:
    """A stream to two shards."""
    log = ingest.SqliteLog(tmp_path / "log")
    ingest.create_sharded(log, "updates", 2)
    return log


def write(log: ingest.SqliteLog, first: int = 0, count: int = EDGES) -> None:
    ids = np.arange(first, first + count)
    with ingest.PartitionedSink(log) as sink:
        sink.produce_many("updates", [ingest.encode_updates(ids, ids + 1)])


def full_for(patch: pytest.MonkeyPatch, shards: Collection[int]) -> None:
    """The disk of these shards has no room for another checkpoint."""

    def write_one(directory: Path, number: int, taken: Any) -> int:
        if number and int(directory.parent.name.removeprefix("shard-")) in shards:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write_checkpoint(directory, number, taken)

    patch.setattr("ingest.state.directory.write_checkpoint", write_one)


class Stop:
    """Where shards stop in their second life, until their end is asked for."""

    def __init__(self, patch: pytest.MonkeyPatch, point: str, shards: Collection[int]) -> None:
        self.reached: set[int] = set()
        self.hosts: list[ShardSupervisor] = []
        self._calls: Counter[int] = Counter()
        self._shards = shards
        function = pkgutil.resolve_name(point)

        def held(of: Any, *given: Any) -> Any:
            self._hold((of if isinstance(of, ShardSpec) else of._spec).number)
            return function(of, *given)

        patch.setattr(point.replace(":", "."), held)

    def _hold(self, shard: int) -> None:
        self._calls[shard] += 1
        if shard in self._shards and self._calls[shard] == 2:
            self.reached.add(shard)
            wait_for(lambda: self.hosts[shard]._ended.is_set(), "the end")

    def await_all(self, cluster: ingest.Cluster) -> None:
        self.hosts = [handle._supervisor for handle in cluster._handles]  # type: ignore[attr-defined]
        wait_for(lambda: self.reached == set(self._shards), "shards that stop")


@pytest.mark.parametrize("point", [
    "ingest.cluster.supervisor:_shard",
    "ingest.cluster.shard:ShardPipeline._begun",
    "ingest.cluster.shard:ShardPipeline._ended",
    "ingest.cluster.supervisor:ShardSupervisor._watched",
])  # fmt: skip
@pytest.mark.parametrize("shards", [[1], [0, 1]])
def test_a_full_disk(log: ingest.SqliteLog, tmp_path: Path, shards: list[int], point: str) -> None:
    """At several moments between two failures."""
    state = tmp_path / "state"
    with pytest.MonkeyPatch.context() as patch:
        stop = Stop(patch, point, shards)
        cluster = ingest.Cluster(log.path, 2, checkpoint=state, **OFTEN)
        full_for(patch, shards)
        write(log)
        stop.await_all(cluster)
        check_told(cluster, shards)
    with ingest.Cluster(log.path, 2, checkpoint=state) as cluster:
        assert cluster.snapshot().num_edges == EDGES


def test_a_full_disk_in_the_pause_before_a_start(log: ingest.SqliteLog, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ingest.cluster.supervisor.FIRST_PAUSE_S", HANGS_S)
        cluster = ingest.Cluster(log.path, 2, checkpoint=tmp_path / "state", **OFTEN)
        full_for(patch, [0])
        write(log)
        wait_for(lambda: cluster.status().problems, "a failure")
        check_told(cluster, [0])


def check_told(cluster: ingest.Cluster, shards: list[int]) -> None:
    """That the end of the cluster says which shards took no last checkpoint, and why."""
    with pytest.raises(ClusterError, match=r"no last checkpoint: .*No space left") as raised:
        cluster.close()
    said = str(raised.value)
    assert [number for number in range(2) if f"shard {number}:" in said] == shards
    assert raised.value.shard == (shards[0] if len(shards) == 1 else None)


def test_shards_that_take_none(
    log: ingest.SqliteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that has failed, one that was killed, one that never began; and one that takes it."""
    spec = ShardSpec(log.path, None, 0, 1, str(tmp_path / "state"), settings=OFTEN)
    unborn = Shard(spec)
    killed, failed, well = Shard(spec), Shard(spec), Shard(spec)
    for shard in (killed, failed):
        shard.start()
        wait_for(lambda: shard.status().state == "running", "a start")  # noqa: B023
        if shard is killed:
            shard.kill()
    with monkeypatch.context() as patch:
        full_for(patch, [0])
        write(log)
        wait_for(lambda: failed.status().state == "failed", "a failure")
        with pytest.raises(ClusterError, match="free the disk"):
            failed.close()
    for shard in (unborn, killed):
        with pytest.raises(ClusterError, match="did not run"):
            shard.close()
    well.start()
    wait_for(lambda: well.status().operations == EDGES, "all edges")
    well.close()
    well.close()


def test_a_host_that_never_had_a_shard() -> None:
    def failing(spec: ShardSpec) -> Any:
        raise OSError("no memory")

    host = ShardSupervisor(ShardSpec("log", None, 1, 2, "state"), failing)
    wait_for(lambda: host.status().failures, "a failure")
    found = close_all([LocalHandle(host)])
    assert str(found) == "shard 1: no last checkpoint: OSError: no memory"


def test_the_command_on_a_full_disk(log: ingest.SqliteLog, tmp_path: Path) -> None:
    """A disk on which no file may grow beyond 64 KiB: that is less than a checkpoint takes."""
    state, said = tmp_path / "state", tmp_path / "said"

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, 64 << 10))

    process = subprocess.Popen(
        command_line("cluster", "run", log.path, "--shards", 2, "-c", state,
                     "--set", "checkpoints.operations=1"),
        stdout=subprocess.DEVNULL, stderr=said.open("wb"), preexec_fn=limited,
    )  # fmt: skip
    try:
        await_cluster(process, state)
        write(log, count=20_000)
        wait_for(lambda: process.poll() or ask(state, "status")["restarts"] >= 6, "restarts")
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANGS_S) == 1
    finally:
        process.kill()
        process.wait()
    told = said.read_text().split("stopping")[1]
    for number in range(2):
        assert f"shard {number}: no last checkpoint: CheckpointError" in told
        assert len(segment_numbers(state / f"shard-{number:04}")) <= 4
    assert "each shard takes" not in said.read_text()
    with ingest.Cluster(log.path, 2, checkpoint=state) as cluster:
        assert cluster.snapshot().num_edges == 20_000
