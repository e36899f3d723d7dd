"""A shard that is killed at any point: its graph, and whatever it closes afterwards, is exact."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import ingest
from ingest import Partition, SqliteLog
from ingest.cluster.partitioned import create_sharded
from ingest.cluster.spec import ShardSpec
from ingest.formats.markers import encode_marker
from ingest.pipeline.pipeline import Pipeline
from tests.conftest import soak
from tests.support.epochs import before, edges_of, random_record, replayed
from tests.support.killed_shard import run_until_closed
from tests.support.kills import Ended, Place, drawn, run
from tests.support.stream_model import weighted
from tests.support.topics import read

PARTITIONS = 3
ROUNDS = 30  # that are written before each start
CHECKED = 30  # epochs of those that were closed: a slow replay each
POINTS = (
    "ingest.cluster.epoch_log:EpochLog.close",
    "ingest.cluster.epoch_log:EpochLog.ended",
    "ingest.cluster.epoch_source:NotedEpoch.note",
    "ingest.state.directory:CheckpointDirectory.commit",
    "ingest.state.journal:Journal.append",
    "ingest.state.journal:Journal.sync",
    "lpma:Graph.apply",
)
# No batch ends by the clock.
SETTINGS = {"checkpoint_operations": 300, "batch_size": 50, "batch_interval": 3600.0}


class Writer:
    """Writes records and markers, some of them twice and some not everywhere."""

    def __init__(self, log: SqliteLog, topics: list[str]) -> None:
        self.stream: dict[Partition, list[bytes]] = {
            Partition(topic, number): [] for topic in topics for number in range(PARTITIONS)
        }
        self._log = log
        self._rng = np.random.default_rng(4)
        self.epoch = 0
        self.everywhere: list[int] = []  # epochs that no partition lacks

    def some(self) -> None:
        """`ROUNDS`, and the markers of an epoch behind them."""
        for _ in range(ROUNDS):
            self.round()
        self.epoch += 1
        self.everywhere.append(self.epoch)
        self.write({partition: [encode_marker(self.epoch)] for partition in self.stream})

    def round(self) -> None:
        """Some records, and now and then the markers of the next epoch or of one before."""
        parts: dict[Partition, list[bytes]] = {}
        for partition in self.stream:
            count = self._rng.integers(0, 3)
            parts[partition] = [
                random_record(self._rng, partition.number, PARTITIONS) for _ in range(count)
            ]
        what = self._rng.integers(0, 10)
        if what < 3:
            self.epoch += 1
            marked = [r for r in parts.values() if what or self._rng.integers(0, 4)]
            for records in marked:
                at = int(self._rng.integers(0, len(records) + 1))
                records.insert(at, encode_marker(self.epoch))
            if len(marked) == len(parts):
                self.everywhere.append(self.epoch)
        elif what == 3 and self.epoch > 2:
            again = self.epoch - int(self._rng.integers(0, 3))
            for records in parts.values():
                records.append(encode_marker(again))
        self.write(parts)

    def write(self, parts: dict[Partition, list[bytes]]) -> None:
        self._log.produce_parts(parts)
        for partition, records in parts.items():
            self.stream[partition] += records

    def told(self, topic: str) -> dict[Partition, list[bytes]]:
        """What was written to one topic."""
        return {p: records for p, records in self.stream.items() if p.topic == topic}


class Stage:
    """A shard whose process is started again and again, with some more to read each time."""

    def __init__(self, directory: Path, predecessors: bool) -> None:
        self.log = SqliteLog(directory / "log")
        create_sharded(self.log, "updates", PARTITIONS, predecessors)
        self.spec = ShardSpec(
            self.log.path, None, 0, 1, str(directory / "state"), predecessors=predecessors,
            settings=SETTINGS,
        )  # fmt: skip
        self.writer = Writer(self.log, ["updates", "updates.in"][: 1 + predecessors])
        self.out = directory / "out"
        self.out.mkdir()

    def run(self, place: Place | None = None) -> Ended:
        self.writer.some()
        return run(
            run_until_closed, self.spec, self.writer.epoch, self.out, points=POINTS, place=place
        )


def killed(directory: Path, predecessors: bool, kills: int) -> None:
    stage = Stage(directory, predecessors)
    stage.run()
    calls = stage.run().calls
    early = Counter({point: max(1, number // 2) for point, number in calls.items()})
    for place in drawn(np.random.default_rng(7), early, kills):
        assert stage.run(place).killed, place
    before_last = stage.writer.epoch
    assert not stage.run().killed
    closed = list(stage.out.glob("epoch-*.npz"))
    epochs = {int(path.name.split("-")[1]) for path in closed}
    # Of two pipelines one may have gone on from an epoch that the other had not reached.
    assert epochs >= {e for e in stage.writer.everywhere if not predecessors or e > before_last}
    for path in np.random.default_rng(8).permutation(np.array(closed, object))[:CHECKED]:
        check(path, stage.writer, int(path.name.split("-")[1]))
    spec, log = stage.spec, stage.log
    for way in spec.directions:
        with Pipeline.resume(spec.directory(way), SqliteLog(log.path, spec.topics(way))) as again:
            assert weighted(again.graph) == replayed(stage.writer.told(spec.topics(way)[0]))
    assert not read(log, "dead-letters", ingest.decode_dead_letter)
    log.close()


def test_killed_at_each_point(tmp_path: Path) -> None:
    killed(tmp_path, predecessors=False, kills=len(POINTS))


@pytest.mark.integration
@pytest.mark.soak
@pytest.mark.parametrize("predecessors", [False, True])
def test_killed_at_many_places(tmp_path: Path, predecessors: bool) -> None:
    killed(tmp_path, predecessors, soak(4, 20) * len(POINTS))


def check(path: Path, writer: Writer, epoch: int) -> None:
    """What was held of an epoch is what lay before its first markers."""
    with np.load(path) as arrays:
        for way, topic in (("out", "updates"), ("in", "updates.in")):
            if f"{way}_indptr" not in arrays:
                continue
            names = ("indptr", "indices", "weights")
            part = SimpleNamespace(**{name: arrays[f"{way}_{name}"] for name in names})
            cut = before(writer.told(topic), epoch)
            assert cut is not None, f"epoch {epoch} is torn"
            assert edges_of(part) == replayed(cut)
