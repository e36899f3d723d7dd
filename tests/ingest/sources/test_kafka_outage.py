"""Brokers that are away: waited for from the start on, and told once, and once when it is over."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ingest
from ingest import KafkaSink, KafkaSource, Pipeline, SourceError, SqliteLog
from ingest.cluster import stream
from ingest.sources.kafka.outage import CALM_S
from lpma import Kind
from tests.conftest import soak
from tests.support.command_line import ROOT, command_line
from tests.support.events import Told
from tests.support.fault_broker import FaultBroker
from tests.support.faults import stall
from tests.support.stream_model import SavedModel


@pytest.fixture
def broker() -> Iterator[FaultBroker]:
    with FaultBroker(updates=1, queries=1, replies=1) as broker:
        broker.create_topic("dead-letters")
        yield broker


def later(seconds: float, act: Callable[[], object]) -> threading.Timer:
    timer = threading.Timer(seconds, act)
    timer.start()
    return timer


def read_until(source: KafkaSource, count: int, limit_s: float = 30.0) -> None:
    deadline = time.monotonic() + limit_s
    while count:
        assert time.monotonic() < deadline
        count -= len(source.poll(count, 0.1))


def test_a_source_waits_for_its_first_connection(broker: FaultBroker, told: Told) -> None:
    broker.produce("updates", [ingest.encode_row(1, 2)])
    broker.stop()
    back = later(5.5, broker.start)
    with KafkaSource(broker.bootstrap, ["updates"], patience=30) as source:
        read_until(source, 1)
    back.join()
    assert told.names == ["outage", "outage over"]
    assert 5 <= told.events[1].fields["seconds"] < 12
    assert not told.lines, told.lines


def test_a_cluster_tells_of_brokers_that_are_not_there_once(
    broker: FaultBroker, told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its error, which has the address; what happens after an answer is an outage as any."""
    monkeypatch.setattr(stream, "WRITE_TIMEOUT_S", 3.0)
    monkeypatch.setattr("ingest.sources.kafka.sink.CONNECT_TIMEOUT_S", 0.5)  # several attempts
    address = f"kafka://{broker.bootstrap}"
    with stream.ClusterLog(address, "updates", "queries", True, False, False) as log:
        log.check(1)
        assert isinstance(log._sink, KafkaSink)
        log._sink._outage.fails("they are away", 1.0)
    assert told.names == ["outage"]
    told.events.clear()
    broker.stop()
    with pytest.raises(ingest.SourceError, match=broker.bootstrap) as raised:
        ingest.Cluster(address, 1, checkpoint=tmp_path / "state")
    assert str(raised.value).count(broker.bootstrap) == 1
    assert told.names == []


def test_a_source_gives_up_after_its_patience(broker: FaultBroker) -> None:
    broker.stop()
    started = time.monotonic()
    with pytest.raises(SourceError, match="no Kafka could be reached"):
        KafkaSource(broker.bootstrap, ["updates"], patience=5)
    assert 5 <= time.monotonic() - started < 15


@pytest.mark.slow
def test_what_will_not_pass_is_not_waited_for(broker: FaultBroker, told: Told) -> None:
    started = time.monotonic()
    with pytest.raises(SourceError, match="no topic absent"):
        KafkaSource(broker.bootstrap, ["absent"])
    settings = {"security_protocol": "SSL", "ssl_cafile": "/not/there"}
    with pytest.raises(SourceError, match="no Kafka could be reached"):
        KafkaSource(broker.bootstrap, ["updates"], settings=settings)
    broker.password = "right"
    sasl = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "u", "sasl_plain_password": "p"}  # fmt: skip
    with pytest.raises(SourceError, match="wrong password"):
        KafkaSource(broker.bootstrap, ["updates"], settings=sasl)
    with KafkaSink(broker.bootstrap, settings=sasl) as sink:
        with pytest.raises(SourceError, match="wrong password"):
            sink.produce_many("updates", [b"x"])
        with pytest.raises(SourceError, match="wrong password"):
            sink.create_topic("new")
    assert time.monotonic() - started < 40, "not even once as long as its patience"
    assert told.names == []


@pytest.mark.parametrize("first", ["a send", "a topic"])
def test_a_sink_waits_for_its_first_connection(broker: FaultBroker, told: Told, first: str) -> None:
    broker.stop()
    back = later(5.5, broker.start)
    with KafkaSink(broker.bootstrap, patience=30) as sink:
        if first == "a topic":
            sink.create_topic("new")
        sink.produce_many("replies", [b"x", b"y"])
    back.join()
    assert broker.values("replies") == [b"x", b"y"]
    assert told.names == ["outage", "outage over"]
    assert told.lines == [], "nor that a topic was not there before it was made"


def test_a_sink_gives_up_after_its_patience(broker: FaultBroker) -> None:
    broker.stop()
    started = time.monotonic()
    sink = KafkaSink(broker.bootstrap, patience=3)
    with sink, pytest.raises(SourceError, match="no Kafka could be reached"):
        sink.produce_many("replies", [b"x"])
    assert time.monotonic() - started < 12


@pytest.mark.slow
def test_a_pipelines_first_reply_outlives_an_outage(broker: FaultBroker, told: Told) -> None:
    """The broker goes between the start and the first query, longer than it may take to look a
    topic up."""
    with KafkaSink(broker.bootstrap, patience=30) as sink, SqliteLog(":memory:") as log:
        pipeline = Pipeline(log, SavedModel(), replies=sink)
        log.produce("queries", ingest.encode_query("q", Kind.DEGREE, 1))
        broker.stop()
        back = later(7.5, broker.start)
        assert pipeline.run(until="end") == 1
        back.join()
    assert [ingest.decode_reply(value).id for value in broker.values("replies")] == ["q"]
    assert told.names == ["outage", "outage over"]
    assert not told.lines, told.lines


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stopped", "silent"])
def test_an_outage_is_told_once(broker: FaultBroker, told: Told, how: str) -> None:
    """By a source and its sink together, which both go on afterwards."""
    seconds = soak(9, 40)
    with KafkaSource(broker.bootstrap, ["updates"], patience=60) as source:
        source.sink().produce_many("replies", [b"before"])
        broker.produce("updates", [b"a"])
        read_until(source, 1)
        gone, faults = threading.Event(), []
        if how == "stopped":
            broker.stop()
            back = later(seconds, broker.start)
        else:
            apis = ("Fetch", "Metadata", "ApiVersions", "ListOffsets", "Produce")
            faults = [broker.order(api, send=stall(gone), times=None) for api in apis]

            def end() -> None:
                for fault in faults:
                    broker.lift(fault)
                gone.set()

            back = later(seconds, end)
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            source.poll(10, 0.1)
        source.sink().produce_many("replies", [b"while it is away"])
        back.join()
        broker.produce("updates", [b"b"])
        read_until(source, 1)
        calm = time.monotonic() + CALM_S + 1.5
        while time.monotonic() < calm:
            source.poll(10, 0.1)
        assert told.names == ["outage", "outage over"]
        first, last = told.events
        assert first.fields["bootstrap"] == last.fields["bootstrap"] == broker.bootstrap
        assert first.fields["patience_s"] == 60
        assert seconds - 4 <= last.fields["seconds"] <= seconds + 8
    assert told.names == ["outage", "outage over"]
    assert not told.lines, told.lines


@pytest.mark.slow
@pytest.mark.parametrize("as_json", [False, True])
def test_the_command_tells_it_in_two_lines(
    broker: FaultBroker, tmp_path: Path, as_json: bool
) -> None:
    """Those of an outage while it follows, after those of one at its start."""
    command = ["ingest", "--kafka", broker.bootstrap, "-c", tmp_path / "c", "--follow",
               *(["--log-json"] if as_json else [])]  # fmt: skip
    broker.stop()
    child = subprocess.Popen(
        command_line(*command), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    lines: list[str] = []
    assert child.stderr is not None
    reading = threading.Thread(target=lambda: lines.extend(child.stderr))  # type: ignore[arg-type]
    reading.start()
    try:
        wait_for(lambda: about(lines, 1), child)
        broker.start()
        broker.produce("queries", [ingest.encode_query("q", Kind.DEGREE, 1)])
        wait_for(lambda: about(lines, 2) and broker.values("replies"), child)
        broker.stop()
        wait_for(lambda: about(lines, 3), child)
        time.sleep(soak(5, 30))
        broker.start()
        broker.produce("queries", [ingest.encode_query("r", Kind.DEGREE, 1)])
        wait_for(lambda: about(lines, 4) and len(broker.values("replies")) == 2, child)
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0
    finally:
        child.kill()
        child.communicate()
        reading.join()
    if as_json:
        usual = ("start", "checkpoint", "progress", "stop")
        events = [e for line in lines if (e := json.loads(line))["event"] not in usual]
        assert [e["event"] for e in events] == ["outage", "outage over"] * 2, events
    else:
        words = ["fails, tried again for 60 s: ", "is back, after "] * 2
        assert len(lines) == 4, lines
        for line, expected in zip(lines, words, strict=True):
            assert line.startswith(f"lpma: Kafka at {broker.bootstrap} ")
            assert expected in line


def about(lines: list[str], count: int) -> bool:
    return sum("outage" in line or "Kafka at" in line for line in lines) >= count


def wait_for(true: Callable[[], object], child: Any, limit_s: float = 120.0) -> None:
    deadline = time.monotonic() + limit_s
    while not true():
        assert child.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
