"""Queues of queries that grow too long: which are told to retry, and that none is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ingest
from ingest import Ask, Client, Partition, Pipeline, QueryRefused, SqliteLog
from ingest.pipeline.batching import BufferedRows
from ingest.pipeline.intake import Backlog
from ingest.queries import client as client_module
from ingest.types import QUERIES, REPLIES, UPDATES
from lpma import Kind
from tests.support.serving import flood, ids_of, sent, serving
from tests.support.stream_model import SavedModel
from tests.support.waiting import HANGS_S


def test_a_queue_that_is_too_long_is_told_to_retry_and_none_is_left_out(log: SqliteLog) -> None:
    flood(log, 500)
    pipeline = Pipeline(
        log, SavedModel(), poll_records=10, max_waiting_queries=200, batch_interval=0
    )
    while not log.at_end():
        pipeline.step()
    while pipeline.step():
        pass
    found = sent(log)
    assert [id for id, _ in found] == [f"f{i}" for i in range(500)]
    errors = [error for _, error in found]
    # The first poll says that these are queries; then those go until 200 are left.
    assert errors[:10] == [None] * 10
    assert errors[10:290] == ["retry"] * 280
    assert errors[290:] == [None] * 210


def test_a_replay_tells_the_same_queries_to_retry(log: SqliteLog, tmp_path: Path) -> None:
    """The journal says which were told; what a resume sends again is what was sent."""
    flood(log, 100)
    options: dict[str, Any] = {
        "poll_records": 10, "max_waiting_queries": 50, "batch_interval": 0,
    }  # fmt: skip
    pipeline = Pipeline(log, SavedModel(), tmp_path / "c", **options)
    while not log.at_end():
        pipeline.step()
    while pipeline.step():
        pass
    pipeline.close(checkpoint=False)
    found = sent(log)
    assert [error for _, error in found].count("retry") > 0
    again = SqliteLog(log.path)
    with Pipeline.resume(tmp_path / "c", again, load=SavedModel.load, **options) as resumed:
        assert resumed.stats.replayed > 0
    repeated = sent(log)[len(found) :]
    assert repeated == found


def test_who_reads_to_the_end_answers_all(log: SqliteLog) -> None:
    flood(log, 500)
    Pipeline(log, SavedModel(), poll_records=10, max_waiting_queries=1).run(until="end")
    assert [error for _, error in sent(log)] == [None] * 500


def test_queries_among_updates_are_not_told_to_retry(log: SqliteLog) -> None:
    q = [ingest.encode_query(f"f{i}", Kind.DEGREE, 1) for i in range(50)]
    log.produce_many(UPDATES, [record for x in q for record in (x, ingest.encode_row(1, 2))])
    pipeline = Pipeline(log, SavedModel(), poll_records=10, max_waiting_queries=1)
    while not log.at_end():
        pipeline.step()
    assert [error for _, error in sent(log)] == [None] * 50


def test_the_ends_of_the_source_are_looked_up_seldom(log: SqliteLog, monkeypatch: Any) -> None:
    now = 100.0
    monkeypatch.setattr("ingest.pipeline.intake.time.monotonic", lambda: now)
    looks = 0

    class Counting(SqliteLog):
        def end_offsets(self) -> dict[Partition, int]:
            nonlocal looks
            looks += 1
            return super().end_offsets()

    queries = Partition(QUERIES, 0)
    source = Counting(log.path)
    backlog = Backlog(source, 5)
    flood(log, 6)
    assert not backlog.overlong()
    assert looks == 0, "nothing is known to be a query"
    query = ingest.types.Query("q", Kind.DEGREE, 1)
    backlog.note([BufferedRows(queries, 0, 0, query=query)])
    assert set(backlog.overlong()) == {queries}
    source.poll()
    assert not backlog.overlong()
    assert looks == 1
    now += 1
    backlog.overlong()
    assert looks == 2
    backlog.note([BufferedRows(queries, 1, 0, query=query), BufferedRows(queries, 2, 0)])
    assert not backlog._of_queries[queries]


def test_a_replay_sheds_the_same_queries_whatever_the_limit_is_now(
    log: SqliteLog, tmp_path: Path
) -> None:
    """Also those that were buffered when the checkpoint was taken."""
    flood(log, 100)
    settings: dict[str, Any] = {"poll_records": 10, "batch_interval": 10.0, "query_interval": 10.0}
    pipeline = Pipeline(
        log, SavedModel(), tmp_path / "c", batch_size=15, max_waiting_queries=30, **settings
    )
    for _ in range(6):
        pipeline.step(limit=7)
        pipeline.checkpoint_now()
        pipeline.step(limit=7)
    first = sent(log)
    assert {error for _, error in first} == {None, "retry"}
    pipeline.close(checkpoint=False)
    for path in (tmp_path / "c").glob("checkpoint-0000000006/graph.lpma"):
        path.write_bytes(b"")  # so that the replay begins at the one before
    resumed = Pipeline.resume(
        tmp_path / "c", SqliteLog(log.path), load=SavedModel.load, max_waiting_queries=1
    )
    again = sent(log)[len(first) :]
    assert len(again) >= 14
    assert again == first[-len(again) :]
    resumed.run(until="end")
    assert dict(sent(log)) == dict(first) | {f"f{i}": None for i in range(len(first), 100)}


def test_the_client_asks_again_when_told_to(log: SqliteLog, monkeypatch: Any) -> None:
    monkeypatch.setattr("ingest.pipeline.record_decoder.RETRY_AFTER_MS", 1)
    refuse = [3]

    def overlong(backlog: Backlog) -> set[Partition]:
        refuse[0] -= 1
        return {Partition(QUERIES, 0)} if refuse[0] >= 0 else set()

    monkeypatch.setattr(Backlog, "overlong", overlong)
    with serving(log, SavedModel(), poll_records=1), Client(log, timeout=HANGS_S) as client:
        assert client.degree(1).answer == [0]
        assert [error for _, error in sent(log)] == ["retry"] * 3 + [None]
        monkeypatch.setattr("ingest.pipeline.record_decoder.RETRY_AFTER_MS", 6_000_000)
        refuse[0] = 1
        with pytest.raises(QueryRefused, match="retry"):
            client.degree(1, timeout=HANGS_S)  # at once: its patience ends before it may ask again
        monkeypatch.setattr("ingest.pipeline.record_decoder.RETRY_AFTER_MS", 1)
        refuse[0] = 2
        assert [r.error for r in client.ask_many([Ask(Kind.DEGREE, 1)] * 5)] == [None] * 5


def test_many_are_out_together_but_not_all(log: SqliteLog, monkeypatch: Any) -> None:
    monkeypatch.setattr(client_module, "MAX_IN_FLIGHT", 7)
    produced: list[int] = []

    class Counting:
        def produce_many(self, topic: str, values: Any) -> None:
            produced.append(len(values))
            log.produce_many(topic, values)

    graph = SavedModel()
    graph.insert(range(50), range(50))
    with (
        serving(log, graph),
        Client(Counting(), SqliteLog(log.path, topics=(REPLIES,)), timeout=HANGS_S) as client,
    ):
        asked = [Ask(Kind.SUCCESSORS, v) for v in range(50)]
        assert ids_of(*client.ask_many(asked)) == list(range(50))
    assert max(produced) == produced[0] == 7
    assert client.ask_many([]) == []
