"""A shard: its life, its share of the stream, what it tells of epochs and holds of them."""

from __future__ import annotations

import os
import pickle
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from algorithms.sharded import LocalWorkers, ShardedSnapshot
from ingest import Partition, PipelineError, SqliteLog
from ingest.cluster import epoch_log, epoch_source
from ingest.cluster import shard as shard_module
from ingest.cluster.partitioned import PartitionedSink, create_sharded
from ingest.cluster.shard import Shard
from ingest.cluster.spec import ShardSpec
from ingest.formats.markers import encode_marker
from ingest.timers import now_ms
from lpma.batch.columns import Columns
from lpma.errors import OutOfMemory
from tests.support.epochs import edges_of
from tests.support.waiting import HANGS_S, wait_for

UPDATES = [Partition("updates", number) for number in range(4)]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SqliteLog]:
    """An embedded log with a sharded topic of four partitions, and the turned edges."""
    with SqliteLog(tmp_path / "log") as log:
        create_sharded(log, "updates", 4, predecessors=True)
        yield log


@pytest.fixture
def shard_of(log: SqliteLog, tmp_path: Path) -> Iterator[Callable[..., Shard]]:
    """Makes shards that are started, and ends those that are left."""
    made: list[Shard] = []

    def make(number: int = 0, shards: int = 1, **rest: Any) -> Shard:
        shard = Shard(ShardSpec(log.path, None, number, shards, str(tmp_path / "state"), **rest))
        made.append(shard)
        shard.start()
        return shard

    yield make
    for shard in made:
        shard.kill()


def running(shard: Shard) -> Shard:
    wait_for(lambda: shard.status().state != "starting", "a start")
    assert shard.status().state == "running", shard.status().problem
    return shard


def ended(shard: Shard) -> str:
    """What a shard fails of."""
    wait_for(lambda: shard.status().state not in ("starting", "running"), "its end")
    status = shard.status()
    assert status.state == "failed"
    return status.problem or ""


def random_edges(count: int, seed: int = 1) -> Columns:
    rng = np.random.default_rng(seed)
    src, dst = rng.integers(0, 50, (2, count))
    weight = rng.integers(1, 9, count) / 4
    return lpma.Batch.from_columns(lpma.Kind.INSERT, src, dst, weight)


def mark(log: SqliteLog, epoch: int, topic: str = "updates") -> None:
    log.produce_parts({Partition(topic, n): [encode_marker(epoch)] for n in range(4)})


# Its life ------------------------------------------------------------------------------------


def test_it_starts_and_goes_on(log: SqliteLog, shard_of: Callable[..., Shard]) -> None:
    sink = PartitionedSink(log)
    first = running(shard_of())
    sink.write(random_edges(300))
    wait_for(lambda: first.status().operations == 300, "300 operations")
    assert first.status().checkpoint_time is not None
    first.close()
    first.close()
    assert first.status().state == "stopped"
    edges = first.status().edges
    second = running(shard_of())
    status = second.status()
    assert (status.operations, status.edges, status.replayed) == (300, edges, 0)
    assert status.incarnation != first.status().incarnation
    sink.write(random_edges(50, seed=2))
    wait_for(lambda: second.status().operations == 350, "350 operations")
    second.kill()
    assert second.status().state == "stopped"
    third = running(shard_of())
    assert (third.status().operations, third.status().replayed) == (350, 50)


def test_how_far_behind(
    log: SqliteLog, shard_of: Callable[..., Shard], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although the last record is an hour old, as the clock has it."""
    monkeypatch.setattr(shard_module, "now_ms", lambda: now_ms() + 3_600_000)
    shard = running(shard_of())
    PartitionedSink(log).write(random_edges(10))
    wait_for(lambda: shard.status().operations == 10, "10 operations")
    wait_for(lambda: shard.status().lag == 0, "the end")
    wait_for(lambda: shard.status().seconds_behind == 0.0, "now")


def test_it_is_started_once(shard_of: Callable[..., Shard], log: SqliteLog) -> None:
    shard = shard_of()
    with pytest.raises(PipelineError, match="started already"):
        shard.start()
    shard.kill()
    unborn = Shard(ShardSpec(log.path, None, 0, 1, os.path.dirname(log.path)))
    unborn.kill()
    unborn.start()
    assert unborn.status().state == "stopped"
    assert unborn.closed(1, HANGS_S) is None


def test_what_cannot_be_started_says_why(
    log: SqliteLog, shard_of: Callable[..., Shard], tmp_path: Path
) -> None:
    assert "4 partitions" in ended(shard_of(0, 3))
    log.create_topic("odd", 2)
    assert "'queries' 4; 2 shards" in ended(shard_of(0, 2, topic="odd"))
    assert "PipelineError" in ended(shard_of(settings={"batch_size": 0}))
    running(shard_of())
    assert "LockedError" in ended(shard_of())
    spec = ShardSpec(str(tmp_path / "none"), None, 0, 1, "state")
    assert pickle.loads(pickle.dumps(spec)) == spec  # noqa: S301 - our own bytes
    shard = Shard(spec)
    shard.start()
    assert "none" in ended(shard)
    assert shard.closed(1, HANGS_S) is None


@pytest.mark.parametrize("larger", ["young", "young.queries"])
def test_a_topic_that_grows_ends_it(
    log: SqliteLog, shard_of: Callable[..., Shard], larger: str
) -> None:
    """One that was never written to may still get partitions, which this start does not read."""
    log.create_topic("young", 2)
    log.create_topic("young.queries", 2)
    shard = running(shard_of(topic="young", queries="young.queries"))
    log.create_topic(larger, 4)
    assert f"{larger!r} has 4 partitions now, and had 2" in ended(shard)


def test_kept_storage_replaces_a_disk(
    log: SqliteLog, shard_of: Callable[..., Shard], tmp_path: Path
) -> None:
    keep = str(tmp_path / "kept")
    sink = PartitionedSink(log, predecessors=True)
    shard = running(shard_of(keep=keep, predecessors=True))
    sink.write(random_edges(300))
    sink.mark(7)
    wait_for(lambda: shard.status().epoch == 7, "epoch 7")
    shard.close()
    assert shard.status().kept_time is not None
    edges = shard.status().edges
    shutil.rmtree(tmp_path / "state")
    shard = running(shard_of(keep=keep, predecessors=True))
    assert (shard.status().edges, shard.status().operations) == (edges, 300)
    sink.write(random_edges(10, seed=3))
    wait_for(lambda: shard.status().operations == 310, "310 operations")


# Epochs --------------------------------------------------------------------------------------


def test_all_shards_hold_one_state_of_the_graph(
    log: SqliteLog, shard_of: Callable[..., Shard]
) -> None:
    shards = [running(shard_of(number, 2, predecessors=True)) for number in range(2)]
    whole = lpma.Graph(device="cpu", predecessors=True)
    sink = PartitionedSink(log, predecessors=True)
    for epoch in (5, 6):
        for shard in shards:
            shard.expect(epoch)
        batch = random_edges(400, seed=epoch)
        sink.write(batch)
        whole.apply(batch)
        sink.mark(epoch)
        sink.write(random_edges(100, seed=9))  # after the markers: no part of it
        closed = [shard.closed(epoch, HANGS_S) for shard in shards]
        assert all(one is not None and one.held and one.epoch == epoch for one in closed)
        entries = [one.num_edges for one in closed if one is not None]
        workers = LocalWorkers([shard.worker(epoch) for shard in shards])
        assert shards[0].worker(epoch) is shards[0].worker(epoch)
        snapshot = ShardedSnapshot.of(workers, epoch)
        assert edges_of(snapshot.gather()) == edges_of(whole.snapshot())
        assert snapshot.num_edges == sum(entries)
        turned = [shard.worker(epoch).part.in_part for shard in shards]
        found = {(v, u): w for part in turned for (u, v), w in edges_of(part).items()}
        assert found == edges_of(whole.snapshot())
        whole.apply(random_edges(100, seed=9))
    assert shards[0].status().epochs_closed == 2
    assert shards[0].status().highest_epoch == shards[0].status().epoch == 6


def test_both_ways_close_an_epoch(
    log: SqliteLog, shard_of: Callable[..., Shard], monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = running(shard_of(predecessors=True))
    shard.expect(5)
    mark(log, 5)
    wait_for(lambda: 5 in shard._epoch_log._taken, "what one of two has taken")
    assert shard.closed(5, 0.0) is None
    assert shard.status().epoch == 0
    with pytest.raises(LookupError, match="not held here"):
        shard.worker(5)
    mark(log, 5, "updates.in")
    closed = shard.closed(5, HANGS_S)
    assert closed is not None
    assert closed.held
    mark(log, 6)
    mark(log, 7, "updates.in")  # which passes 6
    assert shard.closed(6, HANGS_S) is None
    assert 6 not in shard._epoch_log._taken  # nothing of it is kept


def test_what_is_not_expected_is_not_held(log: SqliteLog, shard_of: Callable[..., Shard]) -> None:
    shard = running(shard_of())
    shard.expect(6)
    for epoch in (5, 6, 7):
        mark(log, epoch)
    assert shard.closed(7, HANGS_S) is not None
    assert [one.held for e in (5, 6, 7) if (one := shard.closed(e, 0.0))] == [False, True, False]
    assert shard.status().held == (6,)
    with pytest.raises(LookupError, match=r"epoch 5 is not held here \(held: 6\)"):
        shard.worker(5)
    worker = shard.worker(6)
    shard.forget(6)
    assert shard.status().held == ()
    assert worker.part.num_rows == 0  # who has it keeps it
    with pytest.raises(LookupError, match="held: none"):
        shard.worker(6)


def test_few_are_held(log: SqliteLog, shard_of: Callable[..., Shard]) -> None:
    shard = running(shard_of())
    for epoch in range(1, 6):
        shard.expect(epoch)
        mark(log, epoch)
    assert shard.closed(5, HANGS_S) is not None
    assert shard.status().held == (4, 5)
    first = shard.closed(1, 0.0)
    assert first is not None
    assert not first.held


def test_the_next_one_whatever_its_number(log: SqliteLog, shard_of: Callable[..., Shard]) -> None:
    """As where the writer marks: the first epoch from a number on, and no more of them."""
    shard = running(shard_of())
    shard.expect(10, or_later=True)
    mark(log, 9)
    assert shard.closed(9, HANGS_S) is not None
    assert shard.closed(1, 0.0, or_later=True) is None
    mark(log, 12)
    mark(log, 13)
    found = shard.closed(10, HANGS_S, or_later=True)
    assert found is not None
    assert found.epoch == 12
    assert shard.closed(13, HANGS_S) is not None
    assert shard.status().held == (12,)


def test_an_epoch_that_is_passed(
    log: SqliteLog, shard_of: Callable[..., Shard], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for it is told as soon as that is known, and the stream has gone on."""
    monkeypatch.setattr(epoch_source, "ALIGN_S", 0.2)
    shard = running(shard_of())
    log.produce_parts({UPDATES[0]: [encode_marker(5), ingest.encode_row(0, 1)]})
    began = time.monotonic()
    assert shard.closed(5, HANGS_S) is None
    assert time.monotonic() - began < HANGS_S / 2
    wait_for(lambda: shard.status().operations == 1, "1 operations")
    assert shard.status().highest_epoch == 5
    mark(log, 5)  # too late
    mark(log, 6)
    assert shard.closed(6, HANGS_S) is not None
    assert shard.closed(5, 0.0) is None


def test_it_closes_again_what_it_stood_at(log: SqliteLog, shard_of: Callable[..., Shard]) -> None:
    """A shard that ends behind the markers is at the end of that epoch when it starts again; one
    that has read on is not."""
    sink = PartitionedSink(log)
    shard = running(shard_of())
    sink.write(random_edges(100))
    mark(log, 5)
    closed = shard.closed(5, HANGS_S)
    shard.kill()
    shard = shard_of()
    shard.expect(5)
    again = shard.closed(5, HANGS_S)
    assert closed is not None
    assert again is not None
    assert (again.version, again.num_edges) == (closed.version, closed.num_edges)
    sink.write(random_edges(1, seed=2))
    wait_for(lambda: shard.status().operations == 101, "101 operations")
    shard.kill()
    shard = running(shard_of())
    mark(log, 5)
    assert shard.closed(5, HANGS_S) is None
    assert shard.status().highest_epoch == 5


def test_without_memory_nothing_is_held(
    log: SqliteLog, shard_of: Callable[..., Shard], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is held already gives way first; the stream goes on in any case."""
    shard = running(shard_of())
    take = lpma.Graph.snapshot
    room = [1]

    def snapshot(graph: lpma.Graph) -> lpma.Snapshot:
        if len(shard._epoch_log._held) >= room[0]:
            raise OutOfMemory("no room for a snapshot")
        return take(graph)

    monkeypatch.setattr(lpma.Graph, "snapshot", snapshot)
    for epoch in (1, 2):
        shard.expect(epoch)
        mark(log, epoch)
        assert shard.closed(epoch, HANGS_S) is not None
    assert shard.status().held == (2,)
    room[0] = 0
    shard.expect(3)
    mark(log, 3)
    third = shard.closed(3, HANGS_S)
    assert third is not None
    assert not third.held
    assert third.refused is not None
    assert third.refused.startswith("no room for a snapshot: take more shards")
    assert shard.closed(3, HANGS_S, or_later=True) == third
    PartitionedSink(log).write(random_edges(10))
    wait_for(lambda: shard.status().operations == 10, "10 operations")


def test_names(log: SqliteLog, shard_of: Callable[..., Shard]) -> None:
    shards = [running(shard_of(number, 4, names=True)) for number in range(4)]
    for shard in shards:
        shard.expect(5)
    sink = PartitionedSink(log, names=True)
    src, dst = ["ann", "bob", 7, "cem"], ["bob", 7, "ann", "ann"]
    columns = ingest.decode_record(ingest.encode_updates(src, dst, names=True), names=True)
    sink.write(columns.batch, columns.names)
    sink.mark(5)
    closed = [shard.closed(5, HANGS_S) for shard in shards]
    assert sum(one.num_edges for one in closed if one is not None) == 4
    found = set()
    for shard in shards:
        part = shard.worker(5).part
        names = part.names.of(np.arange(part.num_rows)).tolist() if part.names else []
        found |= {(names[u], names[v]) for u, v in edges_of(part)}
    assert found == set(zip(src, dst, strict=True))


def test_expectations_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    book = epoch_log.EpochLog(("out",))
    for epoch in range(1000):
        book.expect(epoch)
    assert len(book._expected) == epoch_log.MOST_EXPECTED
    assert min(book._expected) == 1000 - epoch_log.MOST_EXPECTED
