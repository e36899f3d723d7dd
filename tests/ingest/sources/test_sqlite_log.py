"""The embedded log: offsets, order, retention, identity, and several processes."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest import OffsetError, Partition, SourceError, SqliteLog
from ingest.errors import IdentityError
from ingest.sources import Identity
from tests.support.kills import Place, run
from tests.support.waiting import HANGS_S

UPDATES = Partition("updates", 0)
ROOT = Path(__file__).parents[3]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "stream.log"


def values(log: SqliteLog, max_records: int = 500) -> list[bytes]:
    return [r.value for r in log.poll(max_records) if isinstance(r.value, bytes)]


def test_records_come_back_at_rising_offsets(path: Path) -> None:
    with SqliteLog(path) as log:
        assert log.produce("updates", b"a") == 0
        assert log.produce_many("updates", [b"b", b"c"]) == range(1, 3)
        assert log.produce_many("updates", []) == range(3, 3)
        polled = log.poll()
        assert [(r.partition, r.offset, r.value) for r in polled] == [
            (UPDATES, 0, b"a"),
            (UPDATES, 1, b"b"),
            (UPDATES, 2, b"c"),
        ]
        assert log.positions() == {UPDATES: 3, Partition("queries", 0): 0}
        assert log.end_offsets() == log.positions()
        assert log.at_end()
        assert log.poll() == []
    with SqliteLog(path) as log:  # a new reader starts at the beginning, the log is durable
        assert values(log) == [b"a", b"b", b"c"]


def test_partitions_are_read_in_the_order_of_writing(path: Path) -> None:
    with SqliteLog(path) as log:
        log.create_topic("wide", partitions=3)
    with SqliteLog(path, topics=("wide", "queries")) as log:
        written = []
        for i in range(60):
            topic, partition = (("queries", 0), ("wide", 0), ("wide", 2))[i * 7 % 3]
            log.produce(topic, b"%d" % i, partition)
            written.append(b"%d" % i)
        got = []
        while batch := values(log, max_records=7):
            got += batch
        assert got == written


def test_a_poll_is_bounded_by_records_and_bytes(path: Path) -> None:
    with SqliteLog(path, max_bytes=250) as log:
        log.produce_many("updates", [bytes(100)] * 5 + [bytes(1000)] + [bytes(1)] * 9)
        sizes = []
        while batch := values(log, max_records=4):
            sizes.append([len(value) for value in batch])
        assert sizes == [[100, 100], [100, 100], [100], [1000], [1] * 4, [1] * 4, [1]]


@given(st.data())
@settings(max_examples=25)
def test_seek_reads_again_from_any_offset(data: st.DataObject) -> None:
    with SqliteLog(":memory:") as log:
        count = data.draw(st.integers(0, 20))
        log.produce_many("updates", [b"%d" % i for i in range(count)])
        for _ in range(5):
            offset = data.draw(st.integers(0, count))
            log.seek({UPDATES: offset})
            assert values(log) == [b"%d" % i for i in range(offset, count)]
        trimmed = data.draw(st.integers(0, count + 3))
        assert log.trim("updates", 0, trimmed) == min(trimmed, count)
        assert log.produce("updates", b"next") == count
        if trimmed:
            with pytest.raises(OffsetError, match="trimmed"):
                log.seek({UPDATES: min(trimmed, count) - 1})
        log.seek({UPDATES: min(trimmed, count)})
        assert values(log)[-1] == b"next"
        with pytest.raises(OffsetError, match="never written"):
            log.seek({UPDATES: count + 2})
        with pytest.raises(OffsetError, match="not a partition"):
            log.seek({Partition("updates", 1): 0})


def test_a_reader_that_trimming_overtook_is_told(path: Path) -> None:
    with SqliteLog(path) as log, SqliteLog(path) as reader:
        log.produce_many("updates", [b"x"] * 10)
        assert len(reader.poll(4)) == 4
        log.trim("updates", 0, 4)
        assert len(reader.poll(2)) == 2
        log.trim("updates", 0, 8)
        with pytest.raises(OffsetError, match="offset 6 was trimmed, the first kept is 8"):
            reader.poll()
        fresh = SqliteLog(path)
        assert fresh.positions()[UPDATES] == 8
        fresh.close()


def test_identity_survives_reopening_and_not_re_creation(path: Path) -> None:
    with SqliteLog(path) as log:
        log.create_topic("updates")
        identity = log.identity()
        assert set(identity.topics) == {"updates", "queries"}
    with SqliteLog(path) as log:
        assert log.identity() == identity
        identity.check(log.identity())
        log.delete_topic("updates")
        with pytest.raises(OffsetError, match="deleted"):
            log.poll()
        with pytest.raises(IdentityError, match="not in this source"):
            identity.check(log.identity())
        log.create_topic("updates")
        with pytest.raises(IdentityError, match="created again"):
            identity.check(log.identity())
    path.unlink()
    with SqliteLog(path) as log:
        log.create_topic("updates")
        with pytest.raises(IdentityError, match="taken from source"):
            identity.check(log.identity())
    Identity("a", {}).check(Identity("a", {"more": "1"}))


def test_what_is_no_log_is_refused_and_untouched(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database, and long enough to be looked at as one" * 50)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE t (x)")
    database.close()
    for file in (text, other):
        before = file.read_bytes()
        with pytest.raises(SourceError, match=str(file)):
            SqliteLog(file)
        assert file.read_bytes() == before
    with pytest.raises(SourceError, match="cannot be opened"):
        SqliteLog(tmp_path / "missing" / "log")
    log = SqliteLog(tmp_path / "log")
    log.close()
    with pytest.raises(SourceError, match="failed"):
        log.poll()


def test_bad_writes_are_refused_whole(path: Path) -> None:
    with SqliteLog(path) as log:
        with pytest.raises(SourceError, match="no partition 0 of topic 'nowhere'"):
            log.produce("nowhere", b"x")
        with pytest.raises(SourceError, match="no partition 1"):
            log.produce("updates", b"x", partition=1)
        with pytest.raises(SourceError, match="bytes"):
            log.produce_many("updates", [b"good", "bad"])  # type: ignore[list-item]
        with pytest.raises(SourceError, match="bytes"):
            log.produce("updates", bytes((32 << 20) + 1))
        with pytest.raises(SourceError, match="letters"):
            log.create_topic("a/b")
        with pytest.raises(SourceError, match="partitions"):
            log.create_topic("a", partitions=0)
        assert log.poll() == []


class FailsWhenReadAgain(list[bytes]):
    """The first reading checks the values, the second writes them."""

    read = 0

    def __iter__(self) -> Iterator[bytes]:
        self.read += 1
        yield from super().__iter__()
        if self.read > 1:
            raise InterruptedError("after the last value")


def test_a_failed_transaction_leaves_nothing(path: Path) -> None:
    with SqliteLog(path) as log:
        log.produce("updates", b"before")
        with pytest.raises(InterruptedError):
            log.produce_many("updates", FailsWhenReadAgain([b"a", b"b"]))
        assert log.produce("updates", b"after") == 1
        assert values(log) == [b"before", b"after"]


@pytest.mark.system
def test_a_poll_waits_for_what_another_writes(path: Path) -> None:
    with SqliteLog(path) as log:
        log.create_topic("updates")
        start = time.monotonic()
        assert log.poll(timeout=0.05) == []
        assert time.monotonic() - start >= 0.05
        child = subprocess.Popen([sys.executable, "-c", _WRITER, str(path), "1"], cwd=ROOT)
        try:
            polled = log.poll(timeout=60.0)
        finally:
            assert child.wait(timeout=HANGS_S) == 0
        assert [r.offset for r in polled] == [0, 1, 2]


_WRITER = """
import sys
from ingest.sources import SqliteLog
log = SqliteLog(sys.argv[1])
for i in range(int(sys.argv[2])):
    log.produce_many("updates", [b"%d" % i] * 3)
"""


@pytest.mark.system
def test_processes_that_write_at_once_lose_nothing(path: Path) -> None:
    """All open a log that is not there yet, so its making is contended too."""
    command = [sys.executable, "-c", _WRITER, str(path), "40"]
    children = [subprocess.Popen(command, cwd=ROOT) for _ in range(3)]
    assert [child.wait(timeout=HANGS_S) for child in children] == [0, 0, 0]
    with SqliteLog(path) as log:
        polled = log.poll(1000)
        assert [r.offset for r in polled] == list(range(360))
        assert sorted(int(r.value) for r in polled if isinstance(r.value, bytes)) == sorted(
            list(range(40)) * 9
        )


class Five(Sequence[bytes]):
    """Five records, each of them asked for: so a kill may come in the middle of a transaction."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, at: Any) -> Any:
        return value_at(at)


def value_at(at: int) -> bytes:
    if at >= 5:
        raise IndexError
    return b"%d" % at


def write_and_tell(path: Path, acknowledged: Path) -> None:
    """Five records a transaction; and after each, how many there are."""
    log = SqliteLog(path)
    for _ in range(60):
        offsets = log.produce_many("updates", Five())
        acknowledged.write_text(str(offsets.stop))


HERE = "tests.ingest.sources.test_sqlite_log"
PLACES = [
    Place(f"{HERE}:value_at", 50 * 12 + 9),  # asked for 12 times: to be judged, to be written
    Place("ingest.sources.sqlite.log:bounds_of", 50, after=True),
    Place("os:utime", 50),
    Place("ingest:SqliteLog.produce_many", 50, after=True),
]


@pytest.mark.system
def test_what_was_acknowledged_survives_a_kill(path: Path, tmp_path: Path) -> None:
    told = tmp_path / "acknowledged"
    least = 0
    for place in PLACES:
        assert run(write_and_tell, path, told, points=[place.point], place=place).killed
        assert int(told.read_text()) >= least + 45 * 5
        least = int(told.read_text())
        with SqliteLog(path) as log:
            end = log.end_offsets()[UPDATES]
            assert end >= least
            assert end % 5 == 0, "a transaction was applied in part"
            assert [r.offset for r in log.poll(10**6)] == list(range(end))
