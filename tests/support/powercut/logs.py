"""The embedded log by itself under power cuts: several partitions, records of all sizes, trimming,
topics that come and go, files that are closed and opened."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ingest import Partition, SqliteLog

from .cases import last, told
from .trace import mark

FREQUENT = "PRAGMA wal_autocheckpoint = 6"  # pages, for many of SQLite's own checkpoints


class ToldLog(SqliteLog):
    """A log that marks what it is about to append, and that it has."""

    def __init__(self, path: str | Path, topics: Sequence[str] = ("updates", "queries")) -> None:
        super().__init__(path, topics)
        self.create_topic("updates")  # the first makes the file
        self._file.database.execute(FREQUENT)

    def produce_many(
        self, topic: str, values: Sequence[bytes | None], partition: int = 0, *,
        keys: Sequence[bytes | None] | None = None,
    ) -> range:  # fmt: skip
        for value in values:
            mark(b"sending %s/%d %s" % (topic.encode(), partition, value or b""))
        offsets = super().produce_many(topic, values, partition, keys=keys)
        mark(b"sent/%s/%d %d" % (topic.encode(), partition, offsets.stop))
        return offsets


def check_partition(
    log: SqliteLog, marks: Sequence[bytes], topic: str, number: int = 0, least: int = 0
) -> list[bytes]:
    """That a partition has what was sent to it, in order, all of what was acknowledged and from
    offset `least` on at the latest; what it has."""
    place = f"{topic}/{number}"
    sent = [rest for name, rest in map(_split, told(marks, "sending")) if name == place]
    partition = Partition(topic, number)
    with SqliteLog(log.path, topics=(topic,)) as reader:
        first, end = reader.positions()[partition], reader.end_offsets()[partition]
        polled = [r for r in reader.poll(10**6) if r.partition == partition]
    assert first <= least
    assert end >= last(marks, f"sent/{place}", 0), f"{place}: acknowledged, and lost"
    assert [r.offset for r in polled] == list(range(first, end))
    values = [bytes(r.value) for r in polled]  # type: ignore[arg-type]
    assert values == sent[first:end], f"{place}: other records than were sent"
    return values


def remade(path: Path, marks: Sequence[bytes], topics: Sequence[str]) -> SqliteLog:
    """The log, made again where its making was cut."""
    assert path.exists() or b"made" not in marks, "the log is gone"
    log = SqliteLog(path, topics)
    log.create_topic(topics[0])
    return log


def _split(data: bytes) -> tuple[str, bytes]:
    name, _, rest = data.partition(b" ")
    return name.decode(), rest


class Log:
    """Appends of 1 to 3 records of up to three pages."""

    def __init__(self, appends: int = 40) -> None:
        self.appends = appends

    def prepare(self, directory: Path) -> None:
        pass

    def run(self, directory: Path, root: Path) -> None:
        rng = np.random.default_rng(4)
        log = ToldLog(root / "log")
        mark(b"made")
        log.create_topic("wide", partitions=2)
        mark(b"widened")
        for number in range(self.appends):
            topic, partition = (("updates", 0), ("wide", 0), ("wide", 1))[int(rng.integers(3))]
            sizes = rng.integers(0, [1, 300, 12_000], 3)[: int(rng.integers(1, 4))]
            log.produce_many(topic, [rng.bytes(int(size)) for size in sizes], partition)
            if number % 10 == 7:
                first = log.end_offsets()[Partition("updates", 0)] // 2
                mark(b"trimming %d" % first)
                log.trim("updates", 0, first)
                mark(b"trimmed %d" % first)
            if number % 16 == 15:
                log.close()
                log = ToldLog(root / "log")
        log.close()

    def check(self, directory: Path, root: Path, marks: Sequence[bytes]) -> None:
        with remade(root / "log", marks, ("updates", "wide")) as log:
            check_partition(log, marks, "updates", 0, last(marks, "trimming", 0))
            (first,) = (log.positions()[p] for p in [Partition("updates", 0)])
            assert first >= last(marks, "trimmed", 0), "trimmed, and back again"
            if b"widened" in marks:
                for number in range(2):
                    check_partition(log, marks, "wide", number)
            # It goes on where it ended.
            end = log.end_offsets()[Partition("updates", 0)]
            assert log.produce("updates", b"more") == end
