"""Hosts, engines, and epochs over shards that go wrong on demand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ingest import PartitionedSink, SqliteLog, encode_updates
from ingest.cluster import coordinator
from ingest.cluster.coordinator import Coordinator
from ingest.cluster.engine import Engine, Handle, LocalEngine, call_all, try_all
from ingest.cluster.partitioned import create_sharded
from ingest.cluster.spec import ShardSpec
from ingest.cluster.status import Watch
from ingest.cluster.supervisor import ShardSupervisor
from ingest.errors import ClusterError
from tests.support.stand_in_shard import StandInShard
from tests.support.ticks import Ticks
from tests.support.waiting import HANGS_S, wait_for

SHARDS = 4


class Stage:
    """Four stand-ins on an engine, and the files that let them go wrong."""

    def __init__(self, engine: Engine, log: SqliteLog, directory: Path) -> None:
        self.engine = engine
        self.troubles = [directory / f"trouble-{i}" for i in range(SHARDS)]
        self.sink = PartitionedSink(log)
        self.written = 0
        self.specs = [
            ShardSpec(
                source=log.path, kafka_settings=None, number=i, shards=SHARDS,
                checkpoint=str(directory / "state"), settings={"trouble": str(self.troubles[i])},
            )
            for i in range(SHARDS)
        ]  # fmt: skip
        self.handles: list[Handle] = [engine.launch(spec) for spec in self.specs]
        self.coordinator = Coordinator(self.handles, self.sink.mark)

    def write(self, count: int) -> int:
        """Edges that lead to new vertices; how many there are by now."""
        first, self.written = self.written, self.written + count
        ids = range(first, self.written)
        self.sink.produce_many("updates", [encode_updates(ids, [0] * count)])
        return self.written

    def until_running(self) -> None:
        def all_run() -> bool:
            return all(s.shard and s.shard.state == "running" for s in self.statuses())

        wait_for(all_run, "shards that run", despite=ClusterError)

    def statuses(self) -> list[Any]:
        return call_all(self.handles, "status", timeout_s=HANGS_S)

    def until_again(self, before: list[Any], number: int) -> None:
        """Wait until a shard runs that is another one than before."""

        def again() -> bool:
            shard = self.handles[number].call("status").shard
            new = shard and shard.incarnation != before[number].shard.incarnation
            return bool(new and shard.state == "running")

        wait_for(again, f"shard {number}", despite=ClusterError)


@pytest.fixture(scope="module", params=["local", pytest.param("ray", marks=pytest.mark.ray)])
def stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """One for all tests of an engine: what they write is added to what is there."""
    made: Engine = LocalEngine(StandInShard)
    if request.param == "ray":
        request.getfixturevalue("ray_cluster")
        from ingest.cluster.ray_engine import RayEngine

        made = RayEngine(StandInShard)
    directory = tmp_path_factory.mktemp("stage")
    with SqliteLog(directory / "log") as log:
        create_sharded(log, "updates", SHARDS)
        stage = Stage(made, log, directory)
        stage.until_running()
        yield stage
        for handle in stage.handles:
            handle.end()


def test_an_epoch_holds_all_that_was_written_before(stage: Stage) -> None:
    one = stage.write(100), stage.coordinator.epoch(HANGS_S)
    two = stage.write(50), stage.coordinator.epoch(HANGS_S)
    for written, epoch in (one, two):
        assert epoch.num_entries == written
    assert two[1].number > one[1].number
    assert stage.coordinator.newest == two[1]


def test_shards_that_die_are_started_again(stage: Stage) -> None:
    """Three at once; the next epoch waits for them, and is whole."""
    written, dying = stage.write(100), [0, 2, 3]
    before = stage.statuses()
    watch = Watch(SHARDS)
    already = [view.restarts for view in watch.seen(before)]  # another test may have come first
    for number in dying:
        stage.handles[number].kill()
    for number in dying:
        stage.until_again(before, number)
    assert stage.coordinator.epoch(HANGS_S).num_entries == written
    after = watch.seen(stage.statuses())
    died = [number for number, view in enumerate(after) if view.restarts == already[number] + 1]
    assert died == dying
    assert sum(view.restarts for view in after) == sum(already) + len(dying)


def test_an_epoch_begun_before_a_death_is_begun_again(stage: Stage) -> None:
    """A shard that forgot what it was to expect never closes that epoch: another is taken."""
    written = stage.write(60)
    stage.troubles[2].write_text("deaf")
    before = stage.statuses()
    marks = []

    def mark(epoch: int) -> int:
        marks.append(epoch)
        number = stage.sink.mark(epoch)
        if len(marks) == 1:
            stage.troubles[2].unlink()
            stage.handles[2].kill()
            stage.until_again(before, 2)
        return number

    epoch = Coordinator(stage.handles, mark).epoch(HANGS_S)
    assert epoch.num_entries == written
    assert epoch.number == marks[-1]
    assert len(marks) > 1


def test_a_shard_that_does_not_close_is_named(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mark(epoch: int) -> int:
        number = stage.sink.mark(epoch)
        for handle in stage.handles[:3]:
            assert handle.call("closed", number, HANGS_S, timeout_s=HANGS_S)[0]
        return number

    stage.troubles[3].write_text("deaf")
    monkeypatch.setattr(coordinator, "SLICE_S", 0.05)
    monkeypatch.setattr(coordinator, "time", Ticks(100.0))
    with pytest.raises(ClusterError, match="has not closed epoch") as raised:
        Coordinator(stage.handles, mark).epoch(1000.0)
    stage.troubles[3].unlink()
    assert raised.value.shard == 3


def test_a_shard_that_hangs_is_named(stage: Stage) -> None:
    stage.troubles[0].write_text("hang")
    with pytest.raises(ClusterError, match="no answer") as raised:
        stage.coordinator.epoch(1.0)
    assert raised.value.shard == 0
    (hung,) = try_all(stage.handles[:1], "status", timeout_s=0.5)
    assert isinstance(hung, ClusterError)
    others = try_all(stage.handles[1:], "status", timeout_s=HANGS_S)
    assert not any(isinstance(one, ClusterError) for one in others)
    stage.troubles[0].unlink()


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
    host = ShardSupervisor(spec, StandInShard)
    wait_for(lambda: host.status().failures >= 2, "failures")
    assert host.status().problem == "OSError: there is trouble at the start"
    with pytest.raises(ClusterError, match="there is trouble") as raised:
        host.expect(1)
    assert raised.value.shard == 0
    trouble.unlink()
    wait_for(lambda: host.status().failures == 0, "a start")
    running = host.status().shard
    assert running
    assert running.state == "running"
    host.close()
    assert not host._thread.is_alive(), "none is started after the end"


@pytest.mark.ray
def test_actors_are_found_again(ray_cluster: Any, sharded_log: SqliteLog, tmp_path: Path) -> None:
    """A driver that comes back keeps the actors it finds; those of another specification end."""
    from ingest.cluster.ray_engine import RayEngine

    spec = ShardSpec(sharded_log.path, None, 0, 1, str(tmp_path))
    first = RayEngine(StandInShard).launch(spec)
    host = first.call("status", timeout_s=HANGS_S).name
    again = RayEngine(StandInShard).launch(spec)
    assert again.call("status").name == host
    other = RayEngine(StandInShard).launch(replace(spec, names=True))
    assert other.call("status", timeout_s=HANGS_S).name != host
    other.end()
