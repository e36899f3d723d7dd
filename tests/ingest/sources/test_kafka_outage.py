"""Brokers that are away: waited for from the start on, and told once, and once when it is over.

On a time of the test's own (own_time.py), which alone says how long anything took.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ingest
from ingest import KafkaSink, KafkaSource, Pipeline, SourceError, SqliteLog
from ingest.cluster.cluster_log import ClusterLog
from ingest.cluster.spec import ShardSpec
from ingest.sources.kafka.outage import CALM_S
from lpma import Kind
from tests.support.command_line import run
from tests.support.events import Told
from tests.support.fault_broker import FaultBroker
from tests.support.own_time import OwnTime
from tests.support.stream_model import SavedModel
from tests.support.waiting import wait_for

pytestmark = pytest.mark.system


@pytest.fixture
def fault_broker() -> Iterator[FaultBroker]:
    with FaultBroker(updates=1, queries=1, replies=1) as broker:
        broker.create_topic("dead-letters")
        yield broker


@pytest.fixture
def own_time(fault_broker: FaultBroker, monkeypatch: pytest.MonkeyPatch) -> OwnTime:
    return OwnTime(fault_broker, monkeypatch)


def read_until(source: KafkaSource, count: int) -> None:
    while count:
        count -= len(source.poll(count, 0.1))


def test_a_source_waits_for_its_first_connection(
    fault_broker: FaultBroker, own_time: OwnTime, told: Told
) -> None:
    fault_broker.produce("updates", [ingest.encode_row(1, 2)])
    own_time.stop()
    own_time.after(5.5, own_time.start)
    with KafkaSource(fault_broker.bootstrap, ["updates"], patience=30) as source:
        read_until(source, 1)
    assert told.names == ["outage", "outage over"]
    assert 5 <= told.events[1].fields["seconds"] < 12
    assert not told.lines, told.lines


def test_a_cluster_tells_of_brokers_that_are_not_there_once(
    fault_broker: FaultBroker, own_time: OwnTime, told: Told, tmp_path: Path
) -> None:
    """By its error, which has the address; what happens after an answer is an outage as any."""
    address = f"kafka://{fault_broker.bootstrap}"
    with ClusterLog(ShardSpec(address, None, 0, 1, "state")) as log:
        log.check()
        assert isinstance(log._sink, KafkaSink)
        log._sink._outage.fails("they are away", 1.0)
    assert told.names == ["outage"]
    told.events.clear()
    own_time.stop()
    before = own_time.now()
    with pytest.raises(ingest.SourceError, match=fault_broker.bootstrap) as raised:
        ingest.Cluster(address, 1, checkpoint=tmp_path / "state")
    assert own_time.now() - before > 1, "it tried more than once"
    assert str(raised.value).count(fault_broker.bootstrap) == 1
    assert told.names == []


def test_a_source_gives_up_after_its_patience(fault_broker: FaultBroker, own_time: OwnTime) -> None:
    own_time.stop()
    before = own_time.now()
    with pytest.raises(SourceError, match=f"{fault_broker.bootstrap}: no Kafka could be reached"):
        KafkaSource(fault_broker.bootstrap, ["updates"], patience=30)
    assert 30 <= own_time.now() - before < 40


@pytest.mark.parametrize("how", ["stopped", "silent"])
def test_a_source_that_has_read_gives_up_after_its_patience(
    fault_broker: FaultBroker, own_time: OwnTime, how: str
) -> None:
    with KafkaSource(fault_broker.bootstrap, ["updates"], patience=30) as source:
        fault_broker.produce("updates", [b"a"])
        read_until(source, 1)
        before = own_time.now()
        own_time.stop(how)
        with pytest.raises(SourceError, match=f"updates at {fault_broker.bootstrap}: not read for"):
            read_until(source, 1)
        assert 30 <= own_time.now() - before < 40
        own_time.start()


def test_what_will_not_pass_is_not_waited_for(
    fault_broker: FaultBroker, own_time: OwnTime, monkeypatch: pytest.MonkeyPatch, told: Told
) -> None:
    before = own_time.now()
    with pytest.raises(SourceError, match="no topic absent"):
        KafkaSource(fault_broker.bootstrap, ["absent"])
    for module in ("source._CONNECT_TIMEOUT_S", "sink.CONNECT_TIMEOUT_S"):
        # kafka-python tries for so long before it is asked why.
        monkeypatch.setattr(f"ingest.sources.kafka.{module}", 0.1)
    settings = {"security_protocol": "SSL", "ssl_cafile": "/not/there"}
    with pytest.raises(SourceError, match="no Kafka could be reached"):
        KafkaSource(fault_broker.bootstrap, ["updates"], settings=settings)
    fault_broker.password = "right"
    sasl = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "u", "sasl_plain_password": "p"}  # fmt: skip
    with pytest.raises(SourceError, match="wrong password"):
        KafkaSource(fault_broker.bootstrap, ["updates"], settings=sasl)
    with KafkaSink(fault_broker.bootstrap, settings=sasl) as sink:
        with pytest.raises(SourceError, match="wrong password"):
            sink.produce_many("updates", [b"x"])
        with pytest.raises(SourceError, match="wrong password"):
            sink.create_topic("new")
    assert own_time.now() - before < 5, "but for a topic that may have been made just now"
    assert told.names == []


@pytest.mark.parametrize("first", ["a send", "a topic"])
def test_a_sink_waits_for_its_first_connection(
    fault_broker: FaultBroker, own_time: OwnTime, told: Told, first: str
) -> None:
    own_time.stop()
    own_time.after(5.5, own_time.start)
    with KafkaSink(fault_broker.bootstrap, patience=30) as sink:
        if first == "a topic":
            sink.create_topic("new")
        sink.produce_many("replies", [b"x", b"y"])
    assert fault_broker.values("replies") == [b"x", b"y"]
    assert told.names == ["outage", "outage over"]
    assert told.lines == [], "nor that a topic was not there before it was made"


def test_a_sink_gives_up_after_its_patience(fault_broker: FaultBroker, own_time: OwnTime) -> None:
    own_time.stop()
    before = own_time.now()
    sink = KafkaSink(fault_broker.bootstrap, patience=30)
    with sink, pytest.raises(SourceError, match="no Kafka could be reached"):
        sink.produce_many("replies", [b"x"])
    assert 29 <= own_time.now() - before <= 30


def test_a_pipelines_first_reply_outlives_an_outage(
    fault_broker: FaultBroker, own_time: OwnTime, told: Told
) -> None:
    """The broker goes between the start and the first query."""
    with KafkaSink(fault_broker.bootstrap, patience=30) as sink, SqliteLog(":memory:") as log:
        pipeline = Pipeline(log, SavedModel(), replies=sink)
        log.produce("queries", ingest.encode_query("q", Kind.DEGREE, 1))
        own_time.stop()
        own_time.after(7.5, own_time.start)
        assert pipeline.run(until="end") == 1
    assert [ingest.decode_reply(value).id for value in fault_broker.values("replies")] == ["q"]
    assert told.names == ["outage", "outage over"]
    assert not told.lines, told.lines


def test_a_sink_that_is_not_answered_gives_up_and_goes_on_when_it_is(
    fault_broker: FaultBroker, own_time: OwnTime
) -> None:
    with KafkaSink(fault_broker.bootstrap, patience=1) as sink:  # kafka-python's to wait
        sink.produce_many("replies", [b"a"])
        own_time.stop("silent")
        with pytest.raises(SourceError, match="could not be written"):
            sink.produce_many("replies", [b"b"])
        own_time.start()
        sink.produce_many("replies", [b"c"])
    # What was given up may have been written all the same.
    assert fault_broker.values("replies") in ([b"a", b"c"], [b"a", b"b", b"c"])


@pytest.mark.parametrize("seconds", [9, 40])
@pytest.mark.parametrize("how", ["stopped", "silent"])
def test_an_outage_is_told_once(
    fault_broker: FaultBroker, own_time: OwnTime, monkeypatch: pytest.MonkeyPatch, told: Told,
    how: str, seconds: int,
) -> None:  # fmt: skip
    """By a source and its sink together, which both go on afterwards."""
    sink_waits = noted_silence(monkeypatch)
    with KafkaSource(fault_broker.bootstrap, ["updates"], patience=60) as source:
        source.sink().produce_many("replies", [b"before"])
        fault_broker.produce("updates", [b"a"])
        read_until(source, 1)
        own_time.stop(how, at_most_s=50)
        before = own_time.now()
        sent = [b"while it is away"]
        sending = threading.Thread(target=source.sink().produce_many, args=("replies", sent))
        sending.start()
        while not sink_waits.is_set() or own_time.now() < before + seconds:
            source.poll(10, 0.1)
        away = own_time.now() - before
        own_time.start()
        sending.join()
        fault_broker.produce("updates", [b"b"])
        read_until(source, 1)
        assert told.names == ["outage"]
        own_time.passes(CALM_S + 0.1)
        source.poll(10)
        assert told.names == ["outage", "outage over"]
        first, last = told.events
        assert first.fields["bootstrap"] == last.fields["bootstrap"] == fault_broker.bootstrap
        assert first.fields["patience_s"] == 60
        assert away - 1.5 <= last.fields["seconds"] <= away + 2.2
    assert fault_broker.values("replies") == [b"before", *sent]
    assert told.names == ["outage", "outage over"]
    assert not told.lines, told.lines


def noted_silence(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once a sink has waited for an acknowledgement, and noticed that there is none."""
    noticed, silent = threading.Event(), KafkaSink._silent

    def noting(sink: KafkaSink, *given: object) -> None:
        silent(sink, *given)  # type: ignore[arg-type]
        noticed.set()

    monkeypatch.setattr(KafkaSink, "_silent", noting)
    return noticed


@pytest.mark.parametrize("as_json", [False, True])
def test_the_command_tells_it_in_two_lines(
    fault_broker: FaultBroker, own_time: OwnTime, told: Told, tmp_path: Path, as_json: bool
) -> None:
    """Those of an outage while it follows, after those of one at its start."""

    def while_it_works(condition: Callable[[], bool]) -> None:
        wait_for(lambda: condition() or not working.is_alive())
        assert condition(), results

    def told_of(count: int) -> None:
        while_it_works(lambda: len(told.events) >= count)

    command = ["ingest", "--kafka", fault_broker.bootstrap, "-c", tmp_path / "c", "--follow",
               "--limit", 3, *(["--set", "run.log_json=true"] if as_json else [])]  # fmt: skip
    queries = [ingest.encode_query(f"q{number}", Kind.DEGREE, 1) for number in range(3)]
    results: list[Any] = []
    own_time.stop(at_most_s=50)
    working = threading.Thread(target=lambda: results.append(run(*command)))
    working.start()
    try:
        told_of(1)
        own_time.start()
        fault_broker.produce("queries", queries[:1])
        while_it_works(lambda: len(fault_broker.values("replies")) == 1)
        own_time.passes(CALM_S + 0.1)
        told_of(2)
        own_time.stop(at_most_s=50)
        told_of(3)
        own_time.passes(30)
        own_time.start()
        fault_broker.produce("queries", queries[1:2])
        while_it_works(lambda: len(fault_broker.values("replies")) == 2)
        own_time.passes(CALM_S + 0.1)
        told_of(4)
    finally:
        own_time.start()
        fault_broker.produce("queries", queries)
        working.join()
    (result,) = results
    lines = result.stderr.splitlines()
    if as_json:
        usual = ("start", "checkpoint", "progress", "stop")
        events = [e for line in lines if (e := json.loads(line))["event"] not in usual]
        assert [e["event"] for e in events] == ["outage", "outage over"] * 2, events
    else:
        words = ["fails, tried again for 60 s: ", "is back, after "] * 2
        assert len(lines) == 4, lines
        for line, expected in zip(lines, words, strict=True):
            assert line.startswith(f"lpma: Kafka at {fault_broker.bootstrap} ")
            assert expected in line
