"""The client against the model, through a pipeline that runs beside it over the embedded log."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from ingest import (
    Ask,
    Client,
    Pipeline,
    QueryError,
    QueryRefused,
    QueryTimeout,
    RecordError,
    Reply,
    SqliteLog,
)
from ingest.queries.client import _Call
from ingest.timers import now_ms
from ingest.types import REPLIES, UPDATES
from lpma import Kind
from tests.support.oracles import assert_same
from tests.support.serving import NEIGHBOURS, answered, every_query, ids_of, serving
from tests.support.stream_model import SavedModel, same_answer
from tests.support.topics import dead_letters
from tests.support.waiting import HANGS_S, wait_for


@pytest.mark.parametrize("make", [SavedModel, lpma.Graph], ids=["model", "graph"])
def test_every_query_is_answered_as_the_model_answers(log: SqliteLog, make: Any) -> None:
    rng = np.random.default_rng(7)
    graph = make(predecessors=True, **({} if make is SavedModel else {"device": "cpu"}))
    model = SavedModel(predecessors=True)
    last = Reply("", Kind.EDGE, 0, 0)
    with serving(log, graph), Client(log, timeout=HANGS_S) as client:
        for _ in range(3):
            src, dst = rng.integers(0, 6, (2, 12))
            weight, kind = rng.integers(-2, 9, 12) / 4, rng.choice([0, 0, 0, 1, 2, 3], 12)
            updates = ingest.encode_updates(src, dst, weight, range(12), kind)
            log.produce(UPDATES, updates)
            model.apply(ingest.decode(updates))
            asked = every_query(7)
            for query, reply in zip(asked, client.ask_many(asked), strict=True):
                assert reply.kind is query.kind
                assert reply.error is None
                assert same_answer(reply.answer, answered(model, query)), query
                assert (reply.version, reply.time) >= (last.version, last.time)
                last = reply
        u, v = 1, 2
        for reply, expected in [
            (client.edge(u, v), model.edges(u, v)),
            (client.successors(u), model.successors(u)),
            (client.predecessors(v), model.predecessors(v)),
            (client.hops(u, 2), model.hops(u, 2)),
            (client.degree(u), model.degree(u)),
            (client.vertex(v), model.has_vertices(v)),
        ]:
            assert_same(reply.answer, expected, f"{reply.kind.name}, times too")
            assert not reply.more
            assert reply.cursor is None


def test_a_query_sees_what_was_written_before_it(log: SqliteLog) -> None:
    with serving(log, SavedModel()), Client(log, timeout=HANGS_S) as client:
        for v in range(20):
            log.produce(UPDATES, ingest.encode_row(1, v))
            reply = client.degree(1)
            assert reply.answer == [v + 1]


@pytest.mark.parametrize("most", [1, 3, 7])
def test_the_parts_of_a_long_answer_are_the_whole(log: SqliteLog, most: int) -> None:
    rng = np.random.default_rng(most)
    graph = SavedModel(predecessors=True)
    vertices = 8
    src, dst = rng.integers(0, vertices, (2, 40))
    graph.insert(src, dst, 1.0, rng.integers(0, 99, 40))
    with serving(log, graph, max_reply_rows=most), Client(log, timeout=HANGS_S) as client:
        for query in every_query(vertices):
            if query.kind not in (*NEIGHBOURS, Kind.HOPS):
                continue
            expected = answered(graph, query)
            parts = list(client.pages(query))
            assert len(parts) == max(1, -(-len(expected.ids) // most))
            assert all(part.more for part in parts[:-1])
            assert len({part.version for part in parts}) == len(parts), "each of its own batch"
            for name in ("ids", "weights", "times"):
                if getattr(expected, name) is not None:
                    joined = np.concatenate([getattr(part.answer, name) for part in parts])
                    assert joined.tolist() == getattr(expected, name).tolist()
        assert ids_of(client.successors(3, after=vertices - 1)) == []


def test_a_part_is_of_its_own_place_in_the_stream(log: SqliteLog) -> None:
    graph = SavedModel()
    graph.insert(1, range(0, 20, 2))
    with serving(log, graph, max_reply_rows=4), Client(log, timeout=HANGS_S) as client:
        pages = client.pages(Ask(Kind.SUCCESSORS, 1))
        got = [next(pages)]
        log.produce(UPDATES, ingest.encode_updates([1] * 20, range(20)))
        got += pages
    assert ids_of(got[0]) == [0, 2, 4, 6]
    assert ids_of(*got[1:]) == list(range(7, 20))
    assert got[1].version > got[0].version


def test_a_reply_the_log_does_not_take_is_cut(log: SqliteLog, monkeypatch: Any) -> None:
    graph = SavedModel()
    graph.insert(1, range(100))
    refused: list[int] = []

    class Narrow:
        def produce_many(self, topic: str, values: Any) -> None:
            refused.extend(size for value in values if (size := len(value)) > 500)
            if refused and refused[-1] == max(map(len, values)):
                raise RecordError("too large for this topic")
            log.produce_many(topic, values)

    with serving(log, graph, replies=Narrow()), Client(log, timeout=HANGS_S) as client:
        assert ids_of(*client.pages(Ask(Kind.SUCCESSORS, 1))) == list(range(100))
        first = len(refused)
        assert first >= 2
        parts = list(client.pages(Ask(Kind.HOPS, 1, steps=1)))
        assert len(refused) == first, "what the topic takes is known now"
    assert ids_of(*parts) == list(range(100))
    assert len(parts) > 1
    monkeypatch.setattr("ingest.pipeline.outputs.MAX_REPLY_BYTES", 700)
    with serving(log, graph, replies=log), Client(log, timeout=HANGS_S) as client:
        parts = list(client.pages(Ask(Kind.SUCCESSORS, 1)))
    assert ids_of(*parts) == list(range(100))
    assert len(parts) == 4, "of 25 rows of 16 bytes"


def test_names_go_out_and_come_back(log: SqliteLog) -> None:
    """Text and integers of 64 bits; a cursor is a name too."""
    names = ["b", 7, "ü", 2**63, -5, "7", "c"]
    with (
        serving(log, SavedModel(), names=True, max_reply_rows=3) as pipeline,
        Client(log, names=True) as client,
    ):
        targets = np.array(names, object)
        log.produce(UPDATES, ingest.encode_updates(["a"] * 7, targets, names=True))
        wait_for(lambda: pipeline.stats.operations == 7)
        parts = list(client.pages(Ask(Kind.SUCCESSORS, "a")))
        assert [name for part in parts for name in part.answer.ids.tolist()] == names  # type: ignore[union-attr]
        assert [part.cursor for part in parts] == ["ü", "7", None]
        assert client.edge("a", -5).answer.found.tolist() == [True]  # type: ignore[union-attr]
        assert client.degree("nobody").answer.tolist() == [0]  # type: ignore[union-attr]
        with pytest.raises(RecordError, match="1024"):
            client.degree("x" * 1025)


def test_refusals_are_errors_of_one_query_and_replies_among_many(log: SqliteLog) -> None:
    graph = SavedModel()
    graph.insert(1, 2)
    with serving(log, graph), Client(log, timeout=HANGS_S) as client:
        with pytest.raises(QueryRefused, match=r"\(hops\): 3 steps: at most 2") as refused:
            client.hops(1, 3)
        assert refused.value.reply.error == "hops"
        with pytest.raises(QueryRefused, match="predecessors=True"):
            client.predecessors(1)
        asked = [Ask(Kind.DEGREE, 1), Ask(Kind.HOPS, 1, steps=9), Ask(Kind.PREDECESSORS, 1)]
        assert [r.error for r in client.ask_many(asked)] == [None, "hops", "unsupported"]


@pytest.mark.parametrize(
    "query",
    [
        Ask(Kind.DEGREE, -1),
        Ask(Kind.DEGREE, 1, 2),
        Ask(Kind.EDGE, 1),
        Ask(Kind.HOPS, 1),
        Ask(Kind.HOPS, 1, steps=0),
        Ask(Kind.DEGREE, 1, after=3),
        Ask(Kind.INSERT, 1, 2),
        Ask(Kind.SUCCESSORS, 1, after=2**32),
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_told_at_once_and_nothing_is_sent(
    log: SqliteLog, query: Ask
) -> None:
    with Client(log, timeout=HANGS_S) as client, pytest.raises(RecordError):
        client.ask_many([Ask(Kind.DEGREE, 1), query])
    assert log.at_end()


def test_no_reply_in_time(log: SqliteLog) -> None:
    with Client(log, timeout=0.05) as client:
        with pytest.raises(QueryTimeout, match=r"1 of 1 queries had no reply within 0\.05 s"):
            client.degree(1)
        with pytest.raises(TimeoutError, match=r"within 0\.01 s"):
            client.degree(1, timeout=0.01)
        with pytest.raises(QueryError, match="must be positive"):
            client.degree(1, timeout=0)


def test_replies_that_came_in_time_are_in_the_error(
    log: SqliteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = _Call.take

    def taking(call: _Call, reply: Reply) -> None:
        take(call, reply)
        if len(call.out) == 1:
            call.until = time.monotonic()  # the time is over

    monkeypatch.setattr(_Call, "take", taking)
    with Client(log, timeout=HANGS_S) as client:
        waiting = threading.Thread(target=lambda: caught.append(attempt()))
        caught: list[QueryTimeout] = []

        def attempt() -> QueryTimeout:
            with pytest.raises(QueryTimeout) as told:
                client.ask_many([Ask(Kind.DEGREE, v) for v in range(3)])
            return told.value

        waiting.start()
        pipeline = Pipeline(SqliteLog(log.path), SavedModel(), batch_size=2)
        while not pipeline.step(limit=2):
            pass
        waiting.join()
    assert [reply and reply.answer is not None for reply in caught[0].replies] == [True, True, None]


def test_a_late_query_is_refused_by_its_deadline(log: SqliteLog) -> None:
    with Client(log, timeout=HANGS_S) as client:
        with pytest.raises(QueryTimeout):
            client.degree(1, timeout=0.02)
        with serving(log, SavedModel(), clock=lambda: now_ms() + 1000):
            client.degree(2)
    with SqliteLog(log.path, topics=(REPLIES,)) as reader:
        sent = [ingest.decode_reply(bytes(r.value)) for r in reader.poll()]  # type: ignore[arg-type]
    assert [r.error for r in sent] == ["deadline", None]


def test_only_allowed_reply_topics_are_answered(log: SqliteLog) -> None:
    log.create_topic("elsewhere")
    with (
        serving(log, SavedModel(), reply_topics=("first", "second")),
        Client(log, reply_topic="second", timeout=HANGS_S) as allowed,
        Client(log, reply_topic="elsewhere", timeout=0.2) as refused,
    ):
        assert allowed.degree(1).answer == [0]
        with pytest.raises(QueryTimeout, match="dead letters"):
            refused.degree(1)
        wait_for(lambda: dead_letters(log))
    (letter,) = dead_letters(log)
    assert "'elsewhere' is not one of" in letter.reason


def test_what_a_client_must_have(tmp_path: Path) -> None:
    with SqliteLog(":memory:") as log, pytest.raises(QueryError, match="not in a file"):
        Client(log, timeout=HANGS_S)

    class Only:
        def produce_many(self, topic: str, values: Any) -> None: ...

    with pytest.raises(QueryError, match="replies"):
        Client(Only())
