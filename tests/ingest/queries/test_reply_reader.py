"""The reader of replies: the first reply counts, what others were sent is skipped."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import ingest
from ingest import Reply, SqliteLog
from ingest.queries.reply_reader import ReplyReader
from ingest.sources import Polled
from ingest.types import REPLIES
from lpma import Kind
from tests.support.waiting import HANGS_S


def reply_to(id: str, version: int = 1) -> bytes:
    return ingest.formats.replies.encode_reply(
        Reply(id, Kind.DEGREE, version, 0, np.array([version]))
    )


def come(reader: ReplyReader, *ids: str) -> list[Reply]:
    """The replies that have come by now."""
    with reader._lock:
        reader._read_once(0.0)
    return reader.wait(ids, time.monotonic())


def later() -> float:
    return time.monotonic() + HANGS_S


def test_the_first_reply_to_an_id_that_is_expected_counts(log: SqliteLog) -> None:
    log.produce(REPLIES, reply_to("me-1", 1))
    reader = ReplyReader(SqliteLog(log.path, topics=(REPLIES,)), "me")
    reader.expect(["me-1", "me-2"])
    assert come(reader, "me-1") == [], "what came before the client is not read"
    garbage = b"\x81\xa5reply\xa4me-2"
    log.produce_many(
        REPLIES, [garbage, reply_to("you-1"), reply_to("me-9"), reply_to("me-1", 2), b"",
                  reply_to("me-1", 3), reply_to("me-2", 4)]
    )  # fmt: skip
    assert [r.version for r in reader.wait(["me-1"], later())] == [2]
    assert [r.version for r in reader.wait(["me-2"], later())] == [4]
    log.produce(REPLIES, reply_to("me-1", 5))
    assert come(reader, "me-1") == []
    reader.expect(["me-3", "me-4"])
    reader.forget(["me-3", "never"])
    log.produce_many(REPLIES, [reply_to("me-3"), reply_to("me-4")])
    assert [r.id for r in reader.wait(["me-3", "me-4"], later())] == ["me-4"]


def test_an_idle_client_skips_what_others_were_sent(log: SqliteLog, monkeypatch: Any) -> None:
    polled: list[Polled] = []

    class Noting(SqliteLog):
        def poll(self, max_records: int = 500, timeout: float = 0.0) -> list[Polled]:
            found = super().poll(max_records, timeout)
            polled.extend(found)
            return found

    reader = ReplyReader(Noting(log.path, topics=(REPLIES,)), "me")
    log.produce_many(REPLIES, [reply_to("you-1")] * 50)
    monkeypatch.setattr("ingest.queries.reply_reader.IDLE_S", 0.0)
    reader.expect(["me-1"])
    log.produce(REPLIES, reply_to("me-1"))
    assert len(reader.wait(["me-1"], later())) == 1
    assert len(polled) == 1


def test_replies_that_were_trimmed_unread_do_not_stop_a_client(log: SqliteLog) -> None:
    reader = ReplyReader(SqliteLog(log.path, topics=(REPLIES,)), "me")
    reader.expect(["me-1", "me-2"])
    log.produce_many(REPLIES, [reply_to("me-1")] * 3)
    log.trim(REPLIES, 0, 3)
    assert come(reader, "me-1") == []
    log.produce(REPLIES, reply_to("me-2"))
    assert len(reader.wait(["me-1", "me-2"], later())) == 1
