"""The client against the model, through a pipeline that runs beside it over the embedded log."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from ingest import (
    QUERIES,
    REPLIES,
    UPDATES,
    Ask,
    Client,
    KafkaSink,
    KafkaSource,
    Partition,
    Pipeline,
    QueryError,
    QueryRefused,
    QueryTimeout,
    RecordError,
    Reply,
    SqliteLog,
)
from ingest.admission import Backlog
from ingest.batcher import Piece
from ingest.queries import client as client_module
from ingest.queries.reply_reader import ReplyReader
from ingest.sources import Polled
from lpma import Kind
from tests.conftest import soak
from tests.support.broker import Cluster
from tests.support.oracles import assert_same
from tests.support.stream_model import SavedModel, same_answer

NEIGHBOURS = (Kind.SUCCESSORS, Kind.PREDECESSORS)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SqliteLog]:
    with SqliteLog(tmp_path / "log") as log:
        log.create_topic("updates")
        yield log


@contextmanager
def running(pipeline: Pipeline) -> Iterator[Pipeline]:
    """The pipeline, in a thread of its own within the block."""
    failed: list[BaseException] = []

    def work() -> None:
        try:
            pipeline.run()
        except BaseException as error:  # noqa: BLE001 - told below
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield pipeline
    finally:
        pipeline.stop()
        thread.join()
        pipeline.close(checkpoint=False)
    assert not failed


def serving(log: SqliteLog, graph: Any, **settings: Any) -> AbstractContextManager[Pipeline]:
    return running(Pipeline(SqliteLog(log.path), graph, **{"batch_interval": 0.02, **settings}))


def answered(model: SavedModel, query: Ask) -> Any:
    """What the model says, after the row `query.after`."""
    ask = {
        Kind.EDGE: lambda: model.edges(query.src, query.dst),
        Kind.SUCCESSORS: lambda: model.successors(query.src),
        Kind.PREDECESSORS: lambda: model.predecessors(query.src),
        Kind.HOPS: lambda: model.hops(query.src, query.steps or 0),
        Kind.DEGREE: lambda: model.degree(query.src),
        Kind.VERTEX: lambda: model.has_vertices(query.src),
    }
    return ask[query.kind]()


def ids_of(*replies: Reply) -> list[int]:
    """The rows of replies, one after the other."""
    ids: list[int] = []
    for reply in replies:
        assert isinstance(reply.answer, lpma.Neighbors)
        ids += reply.answer.ids.tolist()
    return ids


def every_query(vertices: int) -> list[Ask]:
    ids = range(vertices)
    pairs = [(u, v) for u in ids for v in ids]
    return [
        *(Ask(Kind.EDGE, u, v) for u, v in pairs),
        *(Ask(kind, u) for kind in (*NEIGHBOURS, Kind.DEGREE, Kind.VERTEX) for u in ids),
        *(Ask(Kind.HOPS, u, steps=k) for u in ids for k in (1, 2)),
    ]


# What is answered ----------------------------------------------------------------------------


@pytest.mark.parametrize("make", [SavedModel, lpma.Graph], ids=["model", "graph"])
def test_every_query_is_answered_as_the_model_answers(log: SqliteLog, make: Any) -> None:
    rng = np.random.default_rng(7)
    graph = make(predecessors=True, **({} if make is SavedModel else {"device": "cpu"}))
    model = SavedModel(predecessors=True)
    last = Reply("", Kind.EDGE, 0, 0)
    with serving(log, graph), Client(log) as client:
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
    with serving(log, SavedModel()), Client(log) as client:
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
    with serving(log, graph, max_reply_rows=most), Client(log) as client:
        for query in every_query(vertices):
            if query.kind not in (*NEIGHBOURS, Kind.HOPS):
                continue
            expected = answered(graph, query)
            parts = list(client.pages(query))
            assert len(parts) == max(1, -(-len(expected.ids) // most))
            assert all(part.more for part in parts[:-1])
            assert len({part.version for part in parts}) == len(parts), "each of its own batch"
            for name in ("ids", "weight", "time"):
                if getattr(expected, name) is not None:
                    joined = np.concatenate([getattr(part.answer, name) for part in parts])
                    assert joined.tolist() == getattr(expected, name).tolist()
        assert ids_of(client.successors(3, after=vertices - 1)) == []


def test_a_part_is_of_its_own_place_in_the_stream(log: SqliteLog) -> None:
    graph = SavedModel()
    graph.insert(1, range(0, 20, 2))
    with serving(log, graph, max_reply_rows=4), Client(log) as client:
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

    with serving(log, graph, replies=Narrow()), Client(log) as client:
        assert ids_of(*client.pages(Ask(Kind.SUCCESSORS, 1))) == list(range(100))
        first = len(refused)
        assert first >= 2
        parts = list(client.pages(Ask(Kind.HOPS, 1, steps=1)))
        assert len(refused) == first, "what the topic takes is known now"
    assert ids_of(*parts) == list(range(100))
    assert len(parts) > 1
    monkeypatch.setattr("ingest.queries.sinks.MAX_REPLY_BYTES", 700)
    with serving(log, graph, replies=log), Client(log) as client:
        parts = list(client.pages(Ask(Kind.SUCCESSORS, 1)))
    assert ids_of(*parts) == list(range(100))
    assert len(parts) == 4, "of 25 rows of 16 bytes"


def test_names_go_out_and_come_back(log: SqliteLog) -> None:
    """Text and integers of 64 bits; a cursor is a name too."""
    names = ["b", 7, "ü", 2**63, -5, "7", "c"]
    with (
        serving(log, SavedModel(), ids="mapped", max_reply_rows=3) as pipeline,
        Client(log, ids="mapped") as client,
    ):
        targets = np.array(names, object)
        log.produce(UPDATES, ingest.encode_updates(["a"] * 7, targets, ids="mapped"))
        while pipeline.operations < 7:
            time.sleep(0.01)
        parts = list(client.pages(Ask(Kind.SUCCESSORS, "a")))
        assert [name for part in parts for name in part.answer.ids.tolist()] == names  # type: ignore[union-attr]
        assert [part.cursor for part in parts] == ["ü", "7", None]
        assert client.edge("a", -5).answer.found.tolist() == [True]  # type: ignore[union-attr]
        assert client.degree("nobody").answer.tolist() == [0]  # type: ignore[union-attr]
        with pytest.raises(RecordError, match="64"):
            client.degree("x" * 65)


# What is not ---------------------------------------------------------------------------------


def test_refusals_are_errors_of_one_query_and_replies_among_many(log: SqliteLog) -> None:
    graph = SavedModel()
    graph.insert(1, 2)
    with serving(log, graph), Client(log) as client:
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
        Ask(Kind.APPEND, 1, 2),
        Ask(Kind.SUCCESSORS, 1, after=2**32),
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_told_at_once_and_nothing_is_sent(
    log: SqliteLog, query: Ask
) -> None:
    with Client(log) as client, pytest.raises(RecordError):
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


def test_replies_that_came_in_time_are_in_the_error(log: SqliteLog) -> None:
    with Client(log) as client:
        waiting = threading.Thread(target=lambda: caught.append(attempt()))
        caught: list[QueryTimeout] = []

        def attempt() -> QueryTimeout:
            with pytest.raises(QueryTimeout) as told:
                client.ask_many([Ask(Kind.DEGREE, v) for v in range(3)], timeout=1.0)
            return told.value

        waiting.start()
        pipeline = Pipeline(SqliteLog(log.path), SavedModel(), batch_size=2, batch_interval=1.0)
        while not pipeline.step(limit=2):
            pass
        waiting.join()
    assert [reply and reply.answer is not None for reply in caught[0].replies] == [True, True, None]


def test_a_late_query_is_refused_by_its_deadline(log: SqliteLog) -> None:
    with Client(log) as client:
        with pytest.raises(QueryTimeout):
            client.degree(1, timeout=0.02)
        time.sleep(0.01)
        with serving(log, SavedModel()):
            client.degree(2)
    with SqliteLog(log.path, topics=(REPLIES,)) as reader:
        sent = [ingest.decode_reply(bytes(r.value)) for r in reader.poll()]  # type: ignore[arg-type]
    assert [r.error for r in sent] == ["deadline", None]


def test_only_allowed_reply_topics_are_answered(log: SqliteLog) -> None:
    log.create_topic("elsewhere")
    with (
        serving(log, SavedModel(), reply_topics=("first", "second")),
        Client(log, reply_topic="second") as allowed,
        Client(log, reply_topic="elsewhere", timeout=0.2) as refused,
    ):
        assert allowed.degree(1).answer == [0]
        with pytest.raises(QueryTimeout, match="dead letters"):
            refused.degree(1)
    with SqliteLog(log.path, topics=("dead-letters",)) as reader:
        (letter,) = reader.poll()
        assert isinstance(letter.value, bytes)
        assert "'elsewhere' is not one of" in ingest.decode_dead_letter(letter.value).reason


def test_what_a_client_must_have(tmp_path: Path) -> None:
    with SqliteLog(":memory:") as log, pytest.raises(QueryError, match="in no file"):
        Client(log)

    class Only:
        def produce_many(self, topic: str, values: Any) -> None: ...

    with pytest.raises(QueryError, match="replies"):
        Client(Only())


# Too many ------------------------------------------------------------------------------------


def flood(log: SqliteLog, count: int) -> None:
    encode = ingest.encode_query
    log.produce_many(QUERIES, [encode(f"f{i}", Kind.DEGREE, 1) for i in range(count)])


def told(log: SqliteLog) -> list[tuple[str, str | None]]:
    with SqliteLog(log.path, topics=(REPLIES,)) as reader:
        found = [ingest.decode_reply(bytes(r.value)) for r in reader.poll(10**6)]  # type: ignore[arg-type]
    return [(reply.id, reply.error) for reply in found]


def test_a_queue_that_is_too_long_is_told_to_retry_and_none_is_left_out(log: SqliteLog) -> None:
    flood(log, 500)
    pipeline = Pipeline(
        log, SavedModel(), poll_records=10, max_waiting_queries=200, batch_interval=0
    )
    while not log.at_end():
        pipeline.step()
    while pipeline.step():
        pass
    found = told(log)
    assert [id for id, _ in found] == [f"f{i}" for i in range(500)]
    errors = [error for _, error in found]
    # The first poll says that these are queries; then those go until 200 are left.
    assert errors[:10] == [None] * 10
    assert errors[10:290] == ["retry"] * 280
    assert errors[290:] == [None] * 210


def test_who_reads_to_the_end_answers_all(log: SqliteLog) -> None:
    flood(log, 500)
    Pipeline(log, SavedModel(), poll_records=10, max_waiting_queries=1).run(until="end")
    assert [error for _, error in told(log)] == [None] * 500


def test_queries_among_updates_are_not_told_to_retry(log: SqliteLog) -> None:
    q = [ingest.encode_query(f"f{i}", Kind.DEGREE, 1) for i in range(50)]
    log.produce_many(UPDATES, [record for x in q for record in (x, ingest.encode_row(1, 2))])
    pipeline = Pipeline(log, SavedModel(), poll_records=10, max_waiting_queries=1)
    while not log.at_end():
        pipeline.step()
    assert [error for _, error in told(log)] == [None] * 50


def test_the_ends_of_the_source_are_looked_up_seldom(log: SqliteLog, monkeypatch: Any) -> None:
    now = 100.0
    monkeypatch.setattr("ingest.admission.time.monotonic", lambda: now)
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
    query = ingest.Query("q", Kind.DEGREE, 1)
    backlog.note([Piece(queries, 0, 0, query=query)])
    assert set(backlog.overlong()) == {queries}
    source.poll()
    assert not backlog.overlong()
    assert looks == 1
    now += 1
    backlog.overlong()
    assert looks == 2
    backlog.note([Piece(queries, 1, 0, query=query), Piece(queries, 2, 0)])
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
    first = told(log)
    assert {error for _, error in first} == {None, "retry"}
    pipeline.close(checkpoint=False)
    for path in (tmp_path / "c").glob("checkpoint-0000000006/graph.lpma"):
        path.write_bytes(b"")  # so that the replay begins at the one before
    resumed = Pipeline.resume(
        tmp_path / "c", SqliteLog(log.path), load=SavedModel.load, max_waiting_queries=1
    )
    again = told(log)[len(first) :]
    assert len(again) >= 14
    assert again == first[-len(again) :]
    resumed.run(until="end")
    assert dict(told(log)) == dict(first) | {f"f{i}": None for i in range(len(first), 100)}


def test_the_client_asks_again_when_told_to(log: SqliteLog, monkeypatch: Any) -> None:
    monkeypatch.setattr("ingest.admission.RETRY_AFTER_MS", 1)
    refuse = [3]

    def overlong(backlog: Backlog) -> set[Partition]:
        refuse[0] -= 1
        return {Partition(QUERIES, 0)} if refuse[0] >= 0 else set()

    monkeypatch.setattr(Backlog, "overlong", overlong)
    with serving(log, SavedModel(), poll_records=1), Client(log) as client:
        assert client.degree(1).answer == [0]
        assert [error for _, error in told(log)] == ["retry"] * 3 + [None]
        monkeypatch.setattr("ingest.admission.RETRY_AFTER_MS", 60_000)
        refuse[0] = 1
        with pytest.raises(QueryRefused, match="retry"):
            client.degree(1)  # at once: its patience ends before it may ask again
        monkeypatch.setattr("ingest.admission.RETRY_AFTER_MS", 1)
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
    with serving(log, graph), Client(Counting(), SqliteLog(log.path, topics=(REPLIES,))) as client:
        asked = [Ask(Kind.SUCCESSORS, v) for v in range(50)]
        assert ids_of(*client.ask_many(asked)) == list(range(50))
    assert max(produced) == produced[0] == 7
    assert client.ask_many([]) == []


# Crashes, threads, other clients -------------------------------------------------------------


def test_a_reply_that_comes_again_after_a_crash_is_dropped(log: SqliteLog, tmp_path: Path) -> None:
    """The pipeline dies between a reply and the next checkpoint, and says all again."""
    graph = SavedModel()
    pipeline = Pipeline(SqliteLog(log.path), graph, tmp_path / "c", batch_interval=0.02)
    with Client(log) as client:
        got = []
        for round in range(4):
            with running(pipeline):
                log.produce(UPDATES, ingest.encode_row(1, round))
                got += client.ask_many([Ask(Kind.DEGREE, 1)] * 3)
            # `running` closes it without a checkpoint: the next says all since the start again.
            pipeline = Pipeline.resume(
                tmp_path / "c", SqliteLog(log.path), load=SavedModel.load, batch_interval=0.02
            )
        pipeline.close(checkpoint=False)
        assert [reply.answer.tolist() for reply in got] == [[1 + i // 3] for i in range(12)]  # type: ignore[union-attr]
        assert not client._reader._replies
    sent = told(log)
    assert len(sent) == 3 * (1 + 2 + 3 + 4) + 12
    assert len(set(sent)) == 12


def in_threads(work: Callable[[int], None], count: int) -> None:
    failed: list[BaseException] = []

    def one(number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001 - told below
            failed.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


@pytest.mark.soak
@pytest.mark.parametrize("shared", [True, False], ids=["one client", "a client each"])
def test_several_threads_and_clients_on_one_reply_topic(log: SqliteLog, shared: bool) -> None:
    graph = SavedModel()
    graph.insert(range(40), range(1, 41))
    one = Client(log)
    rounds = soak(10, 100)

    def ask(number: int) -> None:
        client = one if shared else Client(log)
        for v in range(rounds):
            u = (number + v) % 41
            assert ids_of(client.successors(u)) == ([u + 1] if u < 40 else [])
            replies = client.ask_many([Ask(Kind.EDGE, u, w) for w in range(number)])
            found = [bool(reply.answer.found[0]) for reply in replies]  # type: ignore[union-attr]
            assert found == [w == u + 1 for w in range(number)]

    with serving(log, graph):
        in_threads(ask, 4)
    assert not one._reader._replies
    one.close()


def test_a_thread_that_gives_up_leaves_the_others_reading(log: SqliteLog) -> None:
    with Client(log) as client:
        done = threading.Event()

        def patient(_: int) -> None:
            client.degree(1)
            done.set()

        def hasty(_: int) -> None:
            with pytest.raises(QueryTimeout):
                client.degree(1, timeout=0.05)

        threads = [threading.Thread(target=f, args=(0,)) for f in (hasty, patient, hasty)]
        for thread in threads:
            thread.start()
        threads[0].join()
        threads[2].join()
        with serving(log, SavedModel()):
            assert done.wait(10)
        threads[1].join()


def test_closing_ends_the_calls_that_wait(log: SqliteLog) -> None:
    client = Client(log)

    def ask(number: int) -> None:
        if number == 2:
            while log.end_offsets()[Partition(QUERIES, 0)] != 2:
                time.sleep(0.001)
            client.close()
        with pytest.raises(QueryError, match="closed"):
            client.degree(1)

    in_threads(ask, 3)


# The reader -----------------------------------------------------------------------------------


def reply_to(id: str, version: int = 1) -> bytes:
    return ingest.encode_reply(Reply(id, Kind.DEGREE, version, 0, np.array([version])))


def soon() -> float:
    return time.monotonic() + 0.02


def later() -> float:
    return time.monotonic() + 10


def test_the_first_reply_to_an_id_that_is_expected_counts(log: SqliteLog) -> None:
    log.produce(REPLIES, reply_to("me-1", 1))
    reader = ReplyReader(SqliteLog(log.path, topics=(REPLIES,)), "me")
    reader.expect(["me-1", "me-2"])
    assert reader.wait(["me-1"], soon()) == [], "what came before the client is not read"
    garbage = b"\x81\xa5reply\xa4me-2"
    log.produce_many(
        REPLIES, [garbage, reply_to("you-1"), reply_to("me-9"), reply_to("me-1", 2), b"",
                  reply_to("me-1", 3), reply_to("me-2", 4)]
    )  # fmt: skip
    assert [r.version for r in reader.wait(["me-1"], later())] == [2]
    assert [r.version for r in reader.wait(["me-2"], later())] == [4]
    log.produce(REPLIES, reply_to("me-1", 5))
    assert reader.wait(["me-1"], soon()) == []
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
    assert reader.wait(["me-1"], soon()) == []
    log.produce(REPLIES, reply_to("me-2"))
    assert len(reader.wait(["me-1", "me-2"], later())) == 1


# Over Kafka ----------------------------------------------------------------------------------


def test_the_same_over_kafka(kafka: Cluster) -> None:
    """Every kind of query, long answers that a topic does not take whole, two clients, a pipeline
    that dies and resumes."""
    topics = [kafka.topic(name=name) for name in ("updates", "queries")]
    replies = kafka.topic(name="replies", max_message_bytes="2000")
    rng = np.random.default_rng(11)
    model = SavedModel(predecessors=True)
    settings: dict[str, Any] = {
        "reply_topics": (replies,), "dead_letters": lambda letter: None, "batch_interval": 0.02
    }  # fmt: skip

    def client() -> Client:
        return Client.kafka(kafka.bootstrap, query_topic=topics[1], reply_topic=replies)

    def source() -> KafkaSource:
        return KafkaSource(kafka.bootstrap, topics)

    with TemporaryDirectory() as name, client() as one, client() as two:
        with (
            source() as read,
            KafkaSink(kafka.bootstrap) as sink,
            running(Pipeline(read, SavedModel(predecessors=True), name, **settings)) as pipeline,
        ):
            src, dst = rng.integers(0, 6, (2, 30))
            updates = ingest.encode_updates([*src, *[9] * 400], [*dst, *range(400)])
            model.apply(ingest.decode(updates))
            sink.produce_many(topics[0], [updates])
            while pipeline.operations < 430:  # two topics have no order between them
                time.sleep(0.01)
            for asking, queries in [(one, every_query(6)), (two, every_query(6)[::-1])]:
                for query, reply in zip(queries, asking.ask_many(queries), strict=True):
                    assert same_answer(reply.answer, answered(model, query)), query
            parts = list(two.pages(Ask(Kind.SUCCESSORS, 9)))
            assert ids_of(*parts) == list(range(400))
            assert len(parts) > 3
            with pytest.raises(QueryRefused, match="hops"):
                one.hops(1, 3)
        with source() as read, running(
            Pipeline.resume(name, read, load=SavedModel.load, **settings)
        ):  # fmt: skip
            assert one.degree(9).answer == [400]
        with pytest.raises(QueryTimeout):
            two.degree(9, timeout=0.1)
