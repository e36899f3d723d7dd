"""A log that is not the one that was read any more: rolled back and written again, or trimmed."""

from __future__ import annotations

import logging
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ingest
from ingest import OffsetError, Partition, Pipeline, SqliteLog
from ingest.errors import IdentityError, RewrittenError
from ingest.state.checkpoint import Accepted, read_checkpoint
from ingest.state.directory import checkpoint_numbers, checkpoint_path
from lpma import Kind
from tests.support.events import events_named
from tests.support.stream_model import SavedModel, weighted

UPDATES, QUERIES = Partition("updates", 0), Partition("queries", 0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "stream.log"


def edges(first: int, count: int, source: int = 1) -> list[bytes]:
    return [ingest.encode_row(source, first + i) for i in range(count)]


def roll_back(path: Path, to: int, records: list[bytes], topic: str = "updates") -> None:
    """Cut the log off at an offset, as an older copy of it is, and write others behind."""
    with sqlite3.connect(path) as database:
        (key,) = database.execute("SELECT key FROM partitions WHERE topic = ?", (topic,)).fetchone()
        database.execute("DELETE FROM records WHERE part = ? AND offset >= ?", (key, to))
        database.execute("UPDATE partitions SET next = ? WHERE key = ?", (to, key))
    database.close()
    with SqliteLog(path) as log:
        log.produce_many(topic, records)


def ingested(path: Path, state: Path, close: Callable[[Pipeline], None], **settings: Any) -> None:
    with SqliteLog(path) as log:
        pipeline = Pipeline(log, SavedModel(), state, **{"batch_size": 100, **settings})
        pipeline.run("end")
        close(pipeline)


def checkpointed(pipeline: Pipeline) -> None:
    pipeline.close()


def killed(pipeline: Pipeline) -> None:
    """All of it is in the journal, and nothing in a checkpoint."""
    assert pipeline._checkpoints is not None
    pipeline.close(checkpoint=False)


def resumed(path: Path, state: Path, **options: Any) -> Pipeline:
    return Pipeline.resume(state, SqliteLog(path), load=SavedModel.load, **options)


@pytest.mark.parametrize("close", [checkpointed, killed])
@pytest.mark.parametrize("to", [0, 1, 300, 499])
def test_a_log_written_again_is_refused(
    path: Path, tmp_path: Path, to: int, close: Callable[[Pipeline], None]
) -> None:
    """500 records, rolled back to fewer, and others written: offsets fit, and mean others."""
    with SqliteLog(path) as log:
        log.produce_many("updates", edges(0, 500))
    ingested(path, tmp_path / "c", close)
    before = sorted(p.name for p in (tmp_path / "c").glob("checkpoint-*"))
    roll_back(path, to, edges(1000, 400 + 500 - to))
    # The last record of a poll is marked, and the first poll is short.
    refused = r"updates/0: offset (31|499) holds another record.*start"
    with pytest.raises(RewrittenError, match=refused):
        resumed(path, tmp_path / "c")
    with pytest.raises(IdentityError):
        resumed(path, tmp_path / "c", accept_gap=True)
    assert sorted(p.name for p in (tmp_path / "c").glob("checkpoint-*")) == before


@pytest.mark.parametrize("close", [checkpointed, killed])
def test_records_of_the_same_bytes_are_told_apart(
    path: Path, tmp_path: Path, close: Callable[[Pipeline], None]
) -> None:
    with SqliteLog(path) as log:
        log.produce_many("updates", [*edges(0, 99), ingest.encode_row(7, 7)])
    ingested(path, tmp_path / "c", close)
    roll_back(path, 50, [*edges(500, 49), ingest.encode_row(7, 7), *edges(600, 9)])
    with pytest.raises(RewrittenError, match="offset 99"):
        resumed(path, tmp_path / "c")


def test_what_was_replayed_counts(path: Path, tmp_path: Path) -> None:
    """A checkpoint taken right after a replay says what that read."""
    with SqliteLog(path) as log:
        log.produce_many("updates", edges(0, 500))
    ingested(path, tmp_path / "c", killed)
    resumed(path, tmp_path / "c").close()
    roll_back(path, 300, edges(1000, 400))
    with pytest.raises(RewrittenError, match="offset 499"):
        resumed(path, tmp_path / "c")


@pytest.mark.parametrize("limit, to, read", [(1, 20, 31), (120, 300, 499), (499, 499, 499)])
def test_what_was_polled_and_not_applied_counts(
    path: Path, tmp_path: Path, limit: int, to: int, read: int
) -> None:
    """A checkpoint between polls: the position is far before what the journal has, which has read
    up to offset `read`. A first poll is short."""
    with SqliteLog(path) as log:
        log.produce_many("updates", edges(0, 500))
        pipeline = Pipeline(log, SavedModel(), tmp_path / "c", batch_size=limit)
        pipeline.step()
        pipeline.close()
    shutil.copytree(tmp_path / "c", tmp_path / "d")
    resumed(path, tmp_path / "d").close()
    roll_back(path, to, edges(1000, 400))
    with pytest.raises(RewrittenError, match=f"offset {read}"):
        resumed(path, tmp_path / "c")


def test_each_partition_is_looked_at(path: Path, tmp_path: Path) -> None:
    asked = [ingest.encode_query(f"q{i}", Kind.DEGREE, 1) for i in range(9)]
    with SqliteLog(path) as log:
        log.produce_many("updates", edges(0, 20))
        log.produce_many("queries", asked[:4])
    ingested(path, tmp_path / "c", checkpointed)
    roll_back(path, 3, asked[4:], topic="queries")
    with pytest.raises(RewrittenError, match="queries/0: offset 3 "):
        resumed(path, tmp_path / "c")


def test_a_log_written_again_within_what_is_replayed_sends_no_reply(
    path: Path, tmp_path: Path
) -> None:
    """The checkpoint is from before it all: only the journal knows what was read."""
    asked = [ingest.encode_query(f"q{i}", Kind.DEGREE, 1) for i in range(9)]
    with SqliteLog(path) as log:
        log.produce_many("updates", [*edges(0, 5), *asked[:2]])
        pipeline = Pipeline(log, SavedModel(), tmp_path / "c")
        pipeline.run("end")
        log.produce_many("updates", edges(5, 5))
        pipeline.run("end")
        pipeline.close(checkpoint=False)
    roll_back(path, 4, [*edges(100, 9), *asked[2:]])
    replies: list[Any] = []
    with pytest.raises(RewrittenError, match="offset 6 "):
        resumed(path, tmp_path / "c", replies=replies.append)
    assert replies == []


def test_a_log_that_is_shorter_than_what_was_read_is_refused(path: Path, tmp_path: Path) -> None:
    with SqliteLog(path) as log:
        log.produce_many("updates", edges(0, 500))
        pipeline = Pipeline(log, SavedModel(), tmp_path / "c", batch_size=100)
        pipeline.step()
        pipeline.close()  # at 100, and 500 were polled
    roll_back(path, 300, [])
    for options in ({}, {"accept_gap": True}):
        with pytest.raises(OffsetError, match="offset 500 was never written, the log ends at 300"):
            resumed(path, tmp_path / "c", **options)


def test_what_retention_took_cannot_be_told_and_that_is_said(
    path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with SqliteLog(path) as log:
        log.produce_many("updates", edges(0, 500))
    ingested(path, tmp_path / "c", checkpointed)
    with SqliteLog(path) as log:
        log.trim("updates", 0, 500)
        log.produce_many("updates", edges(500, 10))
    with caplog.at_level(logging.INFO, "lpma.ingest"):
        pipeline = resumed(path, tmp_path / "c")
    (event,) = events_named(caplog, "unchecked")
    assert (event.fields["topic"], event.fields["offset"]) == ("updates", 499)
    pipeline.run("end")
    assert len(weighted(pipeline.graph)) == 510
    pipeline.close()
    caplog.clear()
    resumed(path, tmp_path / "c").close()
    assert events_named(caplog, "unchecked") == []


# Gaps ----------------------------------------------------------------------------------------


def accepted(state: Path) -> tuple[Accepted, ...]:
    newest = checkpoint_numbers(state)[-1]
    return read_checkpoint(checkpoint_path(state, newest), newest).state.accepted


def trim(path: Path, before: int, topic: str = "updates") -> None:
    with SqliteLog(path) as log:
        log.trim(topic, 0, before)


@pytest.mark.parametrize("close", [checkpointed, killed])
def test_a_gap_is_accepted_by_an_option_alone(
    path: Path, tmp_path: Path, close: Callable[[Pipeline], None],
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    with SqliteLog(path) as log:
        log.produce_many("updates", edges(0, 100))
    ingested(path, tmp_path / "c", close, batch_size=10)
    with SqliteLog(path) as log:
        log.produce_many("updates", edges(100, 400))
    trim(path, 300)
    with pytest.raises(OffsetError, match=r"trimmed.*accept_gap=True, or `lpma .*accept_gap=true`"):
        resumed(path, tmp_path / "c")
    with caplog.at_level(logging.INFO, "lpma.ingest"):
        pipeline = resumed(path, tmp_path / "c", accept_gap=True)
    start = 100 if close is checkpointed else 0
    detail = {"topic": "updates", "partition": 0, "from": start, "to": 299, "records": 300 - start}
    assert [(one.kind, one.detail) for one in pipeline.stats.accepted] == [("gap", detail)]
    assert [str(gap) for gap in pipeline.stats.gaps] == [
        f"updates/0: {300 - start} records are gone, {start} … 299"
    ]
    (event,) = events_named(caplog, "gap accepted")
    assert event.fields == detail
    kept = accepted(tmp_path / "c")
    assert kept == pipeline.stats.accepted, "at once: a kill now loses none of it"
    pipeline.close(checkpoint=False)
    caplog.clear()
    pipeline = resumed(path, tmp_path / "c")
    assert pipeline.stats.gaps == []
    assert events_named(caplog, "unchecked") == [], (
        "what was read before the gap is of no use any more"
    )
    pipeline.run("end")
    pipeline.close()
    assert {v for _, v in weighted(pipeline.graph)} == {*range(start), *range(300, 500)}
    assert len(accepted(tmp_path / "c")) == 1
    with SqliteLog(path) as log:  # and once more
        log.produce_many("updates", edges(500, 20))
    trim(path, 510)
    resumed(path, tmp_path / "c", accept_gap=True).close()
    assert [one.detail["from"] for one in accepted(tmp_path / "c")] == [start, 500]


def test_what_is_still_there_is_replayed_exactly_up_to_the_gap(path: Path, tmp_path: Path) -> None:
    """Updates were read, then queries; of the updates read last, retention took the first."""
    asked = [ingest.encode_query(f"q{i}", Kind.DEGREE, 1) for i in range(9)]
    first: list[ingest.Reply] = []
    with SqliteLog(path) as log:
        log.create_topic("updates")
        pipeline = Pipeline(
            log,
            SavedModel(),
            tmp_path / "c",
            replies=first.append,
            clock=iter(range(9**9)).__next__,
        )
        for step in range(3):
            log.produce_many("queries", asked[3 * step : 3 * step + 3])
            pipeline.run("end")
            if step == 1:
                log.produce_many("updates", edges(0, 10))
                pipeline.run("end")
        pipeline.close(checkpoint=False)
    trim(path, 4)
    again: list[ingest.Reply] = []
    pipeline = resumed(path, tmp_path / "c", accept_gap=True, replies=again.append)
    assert [(r.id, r.version, r.time) for r in again] == [
        (r.id, r.version, r.time) for r in first[:6]
    ]
    assert pipeline.stats.replayed == 6
    pipeline.run("end")
    pipeline.close()
    assert [r.id for r in again] == [f"q{i}" for i in range(9)], "each is answered again, once"
    assert {v for _, v in weighted(pipeline.graph)} == set(range(4, 10))
    assert pipeline.stats.operations == 9 + 6


def test_no_gap_is_no_gap(path: Path, tmp_path: Path) -> None:
    with SqliteLog(path) as log:
        log.produce_many("updates", edges(0, 100))
    ingested(path, tmp_path / "c", killed)
    pipeline = resumed(path, tmp_path / "c", accept_gap=True)
    assert (pipeline.stats.gaps, pipeline.stats.replayed) == ([], 100)
    pipeline.close()
    assert accepted(tmp_path / "c") == ()


@pytest.mark.parametrize("row", [0, 3])
def test_a_record_cut_by_the_checkpoint_goes_with_the_gap(
    path: Path, tmp_path: Path, row: int
) -> None:
    with SqliteLog(path) as log:
        log.produce("updates", ingest.encode_updates([1] * 5, range(5)))
        log.produce_many("updates", edges(10, 5))
        pipeline = Pipeline(log, SavedModel(), tmp_path / "c")
        if row:
            pipeline.step(row)
        pipeline.close()
    trim(path, 2)
    pipeline = resumed(path, tmp_path / "c", accept_gap=True)
    pipeline.run("end")
    assert {v for _, v in weighted(pipeline.graph)} == {*range(row), *range(11, 15)}
    assert pipeline.stats.accepted[0].detail["from"] == 0
    pipeline.close()


def test_retention_that_goes_on_meanwhile_is_followed(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqliteLog(path) as log:
        log.produce_many("updates", edges(0, 100))
        Pipeline(log, SavedModel(), tmp_path / "c").close()
    trim(path, 10)
    before = iter([30, 50])
    seek = SqliteLog.seek

    def slow(log: SqliteLog, positions: Any) -> None:
        log.trim("updates", 0, next(before, 0))
        seek(log, positions)

    monkeypatch.setattr(SqliteLog, "seek", slow)
    pipeline = resumed(path, tmp_path / "c", accept_gap=True)
    assert [one.detail["to"] for one in pipeline.stats.accepted] == [49]
    pipeline.close()
