"""A shard that is killed at any moment: its graph, and whatever it closes afterwards, is exact."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import ingest
from ingest import Partition, SqliteLog
from ingest.cluster.partitioned import create_sharded
from ingest.cluster.spec import ShardSpec
from ingest.formats.markers import encode_marker
from ingest.pipeline import Pipeline
from tests.conftest import soak
from tests.support.epochs import before, edges_of, random_record, replayed
from tests.support.stream_model import weighted
from tests.support.topics import read

ROOT = Path(__file__).parents[3]
CHILD = ROOT / "tests" / "support" / "killed_shard.py"
PARTITIONS = 3
CHECKED = 60  # epochs of those that were closed: a slow replay each
PATIENCE_S = 60.0  # of a test, not of a promise


class Writer:
    """Writes records and markers, some of them twice and some not everywhere, until told."""

    def __init__(self, log: SqliteLog, topics: list[str]) -> None:
        self.stream: dict[Partition, list[bytes]] = {
            Partition(topic, number): [] for topic in topics for number in range(PARTITIONS)
        }
        self._log = log
        self._rng = np.random.default_rng(4)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.epoch = 0

    def _run(self) -> None:
        while not self._over.wait(0.008):
            self.round()

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
            for records in parts.values():
                if what or self._rng.integers(0, 4):
                    at = int(self._rng.integers(0, len(records) + 1))
                    records.insert(at, encode_marker(self.epoch))
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

    @contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join()


def started(spec: Path, out: Path) -> subprocess.Popen[str]:
    """A shard that runs. What it says of trouble goes to a file beside `spec`."""
    errors = spec.with_name("errors")
    child = subprocess.Popen(
        [sys.executable, str(CHILD), str(spec), str(out)], cwd=ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors.open("w"),
        env={"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n", f"{errors.read_text()}{child.wait()}"
    return child


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("predecessors", [False, True])
def test_killed_at_random_moments(tmp_path: Path, predecessors: bool) -> None:
    rng = np.random.default_rng(7)
    log = SqliteLog(tmp_path / "log")
    create_sharded(log, "updates", PARTITIONS, predecessors)
    settings = {"checkpoint_operations": 300, "batch_size": 50}
    spec = ShardSpec(
        log.path, None, 0, 1, str(tmp_path / "state"), predecessors=predecessors, settings=settings
    )
    (tmp_path / "spec.json").write_text(json.dumps(vars(spec)))
    out = tmp_path / "out"
    out.mkdir()
    writer = Writer(log, ["updates", "updates.in"][: 1 + predecessors])
    with writer.running():
        for _ in range(soak(3, 25)):
            child = started(tmp_path / "spec.json", out)
            time.sleep(float(rng.uniform(0, 0.6)))
            child.kill()
            child.wait()
    child = started(tmp_path / "spec.json", out)
    last, deadline, next_at = writer.epoch, time.monotonic() + PATIENCE_S, 0.0
    while last == writer.epoch or not list(out.glob(f"epoch-{last}-*.npz")):
        assert time.monotonic() < deadline
        assert child.poll() is None
        if time.monotonic() > next_at:  # one that closes before the child expects it is not held
            last, next_at = last + 1, time.monotonic() + 1
            writer.write({partition: [encode_marker(last)] for partition in writer.stream})
        time.sleep(0.01)
    child.communicate()
    assert child.returncode == 0
    closed = list(out.glob("epoch-*.npz"))
    assert len(closed) > 3
    for path in rng.permutation(np.array(closed, object))[:CHECKED]:
        check(path, writer, int(path.name.split("-")[1]))
    for way in spec.ways:
        with Pipeline.resume(spec.directory(way), SqliteLog(log.path, spec.topics(way))) as again:
            assert weighted(again.graph) == replayed(writer.told(spec.topics(way)[0]))
    assert not read(log, "dead-letters", ingest.decode_dead_letter)
    log.close()


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
