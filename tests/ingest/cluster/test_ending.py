"""The end of a cluster whose disk is full, or whose shard does not run: whoever ends it is told
which shards took no last checkpoint, nothing piles up meanwhile, and nothing is lost."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
from ingest import ClusterError
from ingest.cluster.control import ask
from ingest.cluster.ending import close_all
from ingest.cluster.host import ShardHost
from ingest.cluster.local import LocalHandle
from ingest.cluster.shard import Shard
from ingest.cluster.spec import ShardSpec
from ingest.state.checkpoint import write_checkpoint
from ingest.state.journal import segment_numbers
from tests.support.command_line import command_line

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


def full_for(patch: pytest.MonkeyPatch, *shards: str) -> None:
    """The disk of these shards has no room for another checkpoint."""

    def write_one(directory: Path, number: int, taken: Any) -> int:
        if number and directory.parent.name in shards:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write_checkpoint(directory, number, taken)

    patch.setattr("ingest.state.directory.write_checkpoint", write_one)


def until(holds: Callable[[], Any], limit_s: float = 60.0) -> None:
    deadline = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.01)


@pytest.mark.parametrize("wait_s", [0.0, 0.04, 0.1, 0.3])
@pytest.mark.parametrize("shards", [["shard-0001"], ["shard-0000", "shard-0001"]])
def test_a_full_disk(
    log: ingest.SqliteLog, tmp_path: Path, shards: list[str], wait_s: float
) -> None:
    """At whatever moment between two starts."""
    state = tmp_path / "state"
    with pytest.MonkeyPatch.context() as patch:
        cluster = ingest.Cluster(log.path, 2, checkpoint=state, **OFTEN)
        full_for(patch, *shards)
        write(log)
        until(lambda: len(cluster.status().problems) == len(shards))
        time.sleep(wait_s)
        with pytest.raises(ClusterError, match=r"no last checkpoint: .*No space left") as raised:
            cluster.close()
    said = str(raised.value)
    assert [name for name in ("shard 0:", "shard 1:") if name in said] == [
        f"shard {int(shard[-4:])}:" for shard in shards
    ]
    assert raised.value.shard == (1 if len(shards) == 1 else None)
    with ingest.Cluster(log.path, 2, checkpoint=state) as cluster:
        assert cluster.snapshot().num_edges == EDGES


def test_shards_that_take_none(
    log: ingest.SqliteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that has failed, one that was killed, one that never began; and one that takes it."""
    spec = ShardSpec(log.path, None, 0, 1, str(tmp_path / "state"), settings=OFTEN)
    unborn = Shard(spec)
    killed, failed, well = Shard(spec), Shard(spec), Shard(spec)
    for shard in (killed, failed):
        shard.start()
        until(lambda: shard.status().state == "running")  # noqa: B023
        if shard is killed:
            shard.kill()
    with monkeypatch.context() as patch:
        full_for(patch, "shard-0000")
        write(log)
        until(lambda: failed.status().state == "failed")
        with pytest.raises(ClusterError, match="free the disk"):
            failed.close()
    for shard in (unborn, killed):
        with pytest.raises(ClusterError, match="did not run"):
            shard.close()
    well.start()
    until(lambda: well.status().lag == 0 and well.status().operations == EDGES)
    well.close()
    well.close()


def test_a_host_that_never_had_a_shard() -> None:
    def failing(spec: ShardSpec) -> Any:
        raise OSError("no memory")

    host = ShardHost(ShardSpec("log", None, 1, 2, "state"), failing)
    until(lambda: host.status().failures)
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
                     "--checkpoint-operations", 1),
        stdout=subprocess.DEVNULL, stderr=said.open("wb"), preexec_fn=limited,
    )  # fmt: skip
    try:
        until(lambda: (state / "control.sock").exists() or process.poll() is not None)
        until(lambda: ask(state, "status")["state"] == "running")
        write(log, count=20_000)
        until(lambda: ask(state, "status")["restarts"] >= 6)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 1
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
