"""Hosts, engines, and epochs over shards that go wrong on demand."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ingest import PartitionedSink, SqliteLog, encode_updates
from ingest.cluster.coordinator import Coordinator
from ingest.cluster.engine import Engine, Handle, call_all, try_all
from ingest.cluster.host import ShardHost
from ingest.cluster.local import LocalEngine
from ingest.cluster.spec import ShardSpec
from ingest.cluster.status import Watch
from ingest.errors import ClusterError
from tests.support.stand_in_shard import StandInShard

SHARDS = 4


class Stage:
    """Four stand-ins on an engine, and the files that let them go wrong."""

    def __init__(self, engine: Engine, log: SqliteLog, directory: Path) -> None:
        self.engine = engine
        self.troubles = [directory / f"trouble-{i}" for i in range(SHARDS)]
        self.sink = PartitionedSink(log)
        self.specs = [
            ShardSpec(
                source=log.path, kafka_settings=None, number=i, shards=SHARDS,
                checkpoint=str(directory / "state"), settings={"trouble": str(self.troubles[i])},
            )
            for i in range(SHARDS)
        ]  # fmt: skip
        self.handles: list[Handle] = [engine.launch(spec) for spec in self.specs]
        self.coordinator = Coordinator(self.handles, self.sink.mark)

    def write(self, count: int) -> None:
        """Edges of `count` vertices, one each."""
        self.sink.produce_many("updates", [encode_updates(range(count), range(1, count + 1))])

    def until_running(self) -> None:
        until(lambda: all(s.shard and s.shard.state == "running" for s in self.statuses()))

    def statuses(self) -> list[Any]:
        return call_all(self.handles, "status", timeout_s=60.0)


def until(met: Callable[[], object], limit_s: float = 20.0) -> float:
    """Wait for a condition; the seconds it took."""
    began = time.monotonic()
    while True:
        try:
            if met():
                return time.monotonic() - began
        except ClusterError:
            pass
        assert time.monotonic() - began < limit_s, "it does not come"
        time.sleep(0.01)


@pytest.fixture
def stage(engine: str, sharded_log: SqliteLog, tmp_path: Path) -> Iterator[Stage]:
    if engine == "ray":
        from ingest.cluster.on_ray import RayEngine

        made: Engine = RayEngine(StandInShard)
    else:
        made = LocalEngine(StandInShard)
    stage = Stage(made, sharded_log, tmp_path)
    stage.until_running()
    yield stage
    for handle in stage.handles:
        handle.end()


def test_an_epoch_holds_all_that_was_written_before(stage: Stage) -> None:
    stage.write(100)
    one = stage.coordinator.epoch(20.0)
    assert one.num_entries == 100
    stage.write(150)  # 50 of them new
    two = stage.coordinator.epoch(20.0)
    assert (two.num_entries, two.number > one.number) == (150, True)
    assert stage.coordinator.newest == two


def test_shards_that_die_are_started_again(stage: Stage) -> None:
    """One, then three at once; the next epoch waits for them, and is whole."""
    stage.write(100)
    stage.coordinator.epoch(20.0)
    before = stage.statuses()
    for dying in ([1], [0, 2, 3]):
        for number in dying:
            stage.handles[number].kill()
        until(lambda dying=dying: all(_again(stage, before, number) for number in dying))
        assert stage.coordinator.epoch(30.0).num_entries == 100
    assert Watch(SHARDS).seen(stage.statuses())


def _again(stage: Stage, before: list[Any], number: int) -> bool:
    status = stage.handles[number].call("status")
    return bool(status.shard and status.shard.incarnation != before[number].shard.incarnation)


def test_an_epoch_begun_before_a_death_is_begun_again(stage: Stage) -> None:
    """A shard that forgot what it was to expect never closes that epoch: another is taken."""
    stage.write(60)
    stage.troubles[2].write_text("deaf")
    marks = []

    def mark(epoch: int) -> int:
        marks.append(epoch)
        number = stage.sink.mark(epoch)
        if len(marks) == 1:
            stage.troubles[2].unlink()
            stage.handles[2].kill()
        return number

    began = time.monotonic()
    epoch = Coordinator(stage.handles, mark).epoch(30.0)
    assert epoch.num_entries == 60
    assert epoch.number == marks[-1]
    assert len(marks) > 1
    assert time.monotonic() - began < 20.0


def test_a_shard_that_does_not_close_is_named(stage: Stage) -> None:
    stage.troubles[3].write_text("deaf")
    began = time.monotonic()
    with pytest.raises(ClusterError, match="has not closed epoch") as raised:
        stage.coordinator.epoch(1.5)
    assert raised.value.shard == 3
    assert time.monotonic() - began < 3.0


def test_a_shard_that_hangs_is_named_in_time(stage: Stage) -> None:
    stage.troubles[1].write_text("hang")
    began = time.monotonic()
    with pytest.raises(ClusterError, match="no answer") as raised:
        stage.coordinator.epoch(1.0)
    assert raised.value.shard == 1
    found = try_all(stage.handles, "status", timeout_s=0.5)
    assert [isinstance(one, ClusterError) for one in found] == [False, True, False, False]
    assert time.monotonic() - began < 4.0
    stage.troubles[1].unlink()


def test_errors_keep_their_type(stage: Stage) -> None:
    """What a method raises at the host is raised here."""
    with pytest.raises(KeyError):
        stage.handles[0].call("worker", 7)
    with pytest.raises(AttributeError):
        stage.handles[0].call("no_such_method")


def test_a_host_tells_why_its_shard_does_not_start(sharded_log: SqliteLog, tmp_path: Path) -> None:
    trouble = tmp_path / "trouble"
    trouble.write_text("start")
    spec = ShardSpec(sharded_log.path, None, 0, 1, "state", settings={"trouble": str(trouble)})
    host = ShardHost(spec, StandInShard)
    until(lambda: host.status().failures >= 2)
    assert host.status().problem == "OSError: there is trouble at the start"
    with pytest.raises(ClusterError, match="there is trouble") as raised:
        host.expect(1)
    assert raised.value.shard == 0
    trouble.unlink()
    until(lambda: host.status().shard.state == "running")
    until(lambda: host.status().failures == 0)
    host.close()
    starts = host.status().starts
    time.sleep(0.3)
    assert host.status().starts == starts  # none is started after the end


@pytest.mark.ray
def test_processes_that_are_killed(
    ray_cluster: Any, sharded_log: SqliteLog, tmp_path: Path
) -> None:
    """kill -9 of two shards' processes at once: Ray starts them again, in new ones."""
    from ingest.cluster.on_ray import RayEngine

    stage = Stage(RayEngine(StandInShard), sharded_log, tmp_path)
    stage.until_running()
    stage.write(80)
    pids = [status.pid for status in stage.statuses()]
    assert len(set(pids)) == SHARDS
    for pid in pids[:2]:
        os.kill(pid, signal.SIGKILL)
    assert stage.coordinator.epoch(30.0).num_entries == 80
    assert len({status.pid for status in stage.statuses()} - set(pids)) == 2
    for handle in stage.handles:
        handle.end()


@pytest.mark.ray
def test_actors_are_found_again(ray_cluster: Any, sharded_log: SqliteLog, tmp_path: Path) -> None:
    """A driver that comes back keeps the actors it finds; those of another specification end."""
    from ingest.cluster.on_ray import RayEngine

    first = Stage(RayEngine(StandInShard), sharded_log, tmp_path)
    first.until_running()
    hosts = [status.host for status in first.statuses()]
    again = Stage(RayEngine(StandInShard), sharded_log, tmp_path)
    assert [status.host for status in again.statuses()] == hosts
    other = again.engine.launch(ShardSpec(**{**vars(again.specs[0]), "names": True}))
    assert other.call("status").host != hosts[0]
    for handle in [*again.handles, other]:
        handle.end()
