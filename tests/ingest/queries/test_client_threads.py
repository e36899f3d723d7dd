"""Clients that crash, share a reply topic, give up or are closed, in several threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import ingest
from ingest import Ask, Client, Partition, Pipeline, QueryError, QueryTimeout, SqliteLog
from ingest.types import QUERIES, UPDATES
from lpma import Kind
from tests.conftest import soak
from tests.support.serving import ids_of, running, sent, serving
from tests.support.stream_model import SavedModel
from tests.support.waiting import HANGS_S, wait_for


def test_a_reply_that_comes_again_after_a_crash_is_dropped(log: SqliteLog, tmp_path: Path) -> None:
    """The pipeline dies between a reply and the next checkpoint, and says all again."""
    graph = SavedModel()
    pipeline = Pipeline(SqliteLog(log.path), graph, tmp_path / "c", batch_interval=0.02)
    with Client(log, timeout=HANGS_S) as client:
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
    replied = sent(log)
    assert len(replied) == 3 * (1 + 2 + 3 + 4) + 12
    assert len(set(replied)) == 12


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
    one = Client(log, timeout=HANGS_S)
    rounds = soak(10, 100)

    def ask(number: int) -> None:
        client = one if shared else Client(log, timeout=HANGS_S)
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
    with Client(log, timeout=HANGS_S) as client:
        done = threading.Event()

        def patient(_: int) -> None:
            client.degree(1, timeout=HANGS_S)
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
            assert done.wait(HANGS_S)
        threads[1].join()


def test_closing_ends_the_calls_that_wait(log: SqliteLog) -> None:
    client = Client(log, timeout=HANGS_S)

    def ask(number: int) -> None:
        if number == 2:
            wait_for(lambda: log.end_offsets()[Partition(QUERIES, 0)] == 2)
            client.close()
        with pytest.raises(QueryError, match="closed"):
            client.degree(1)

    in_threads(ask, 3)
