"""A Kafka that goes wrong: the stream is read exactly, soon after, and memory stays flat.

The broker is the tests' own (fault_broker.py). `make soak` has more of each fault, for longer.
"""

from __future__ import annotations

import socket
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from ingest import (
    KafkaSource,
    Pipeline,
    SourceError,
)
from ingest.sources.kafka.sink import KafkaSink
from tests.conftest import SOAK, soak
from tests.support.fault_broker import Edit, Fault, FaultBroker, Send
from tests.support.fault_cluster import (
    CORRUPT_MESSAGE,
    LEADER_NOT_AVAILABLE,
    NOT_LEADER,
    OFFSET_OUT_OF_RANGE,
    REPLICA_NOT_AVAILABLE,
    STORAGE_ERROR,
    UNKNOWN_TOPIC,
    UNKNOWN_TOPIC_ID,
)
from tests.support.fault_stream import PROMISE_S, Stream
from tests.support.faults import cut_records, drop, error, flip, garbage, no_answer, stall, trickle
from tests.support.own_time import OwnTime
from tests.support.stream_model import SavedImage
from tests.support.waiting import wait_for

pytestmark = pytest.mark.system

# api, how often, and what happens to its answers
PASSING: dict[str, tuple[str, int, Edit | None, Send | None]] = {
    "dropped before the answer": ("Fetch", 3, None, drop()),
    "dropped in the size": ("Fetch", 1, None, drop(2)),
    "dropped in the head": ("Fetch", 2, None, drop(11)),
    "dropped in the records": ("Fetch", 2, None, drop(200)),
    "metadata dropped": ("Metadata", 3, None, drop(9)),
    "offsets dropped": ("ListOffsets", 2, None, drop()),
    "a record flipped once": ("Fetch", 1, flip(-3), None),
    "a checksum flipped": ("Fetch", 2, flip(18), None),
    "a batch's length flipped": ("Fetch", 1, flip(11), None),
    "a batch's magic flipped": ("Fetch", 1, flip(16), None),
    "a batch's count flipped": ("Fetch", 1, flip(60), None),
    "a batch cut short": ("Fetch", 2, cut_records(40), None),
    "a batch's head cut short": ("Fetch", 2, cut_records(7), None),
    "not the leader": ("Fetch", 3, error(NOT_LEADER), None),
    "replica away": ("Fetch", 3, error(REPLICA_NOT_AVAILABLE), None),
    "storage error": ("Fetch", 2, error(STORAGE_ERROR), None),
    "said to be corrupt": ("Fetch", 2, error(CORRUPT_MESSAGE), None),
    "said to be out of range": ("Fetch", 1, error(OFFSET_OUT_OF_RANGE), None),
    "topic unknown for a while": ("Fetch", 2, error(UNKNOWN_TOPIC), None),
    "topic id unknown for a while": ("Fetch", 2, error(UNKNOWN_TOPIC_ID), None),
    "no leader for a while": ("Metadata", 3, error(LEADER_NOT_AVAILABLE), None),
    "no word on the connection": ("Fetch", 1, None, no_answer()),
    "garbage": ("Fetch", 1, None, garbage(b"\x00\x00\x00\x07garbage")),
    "an answer in crumbs": ("Fetch", 2, None, trickle(97, 0.002)),
}


MUTE = {"garbage", "no word on the connection"}  # after which a reader waits in vain


def order(stream: Stream, name: str) -> Fault:
    api, times, edit, send = PASSING[name]
    if name in MUTE:
        assert send is not None
        send = stream.own_time.mute(send)
    fault = stream.broker.order(api, edit=edit, send=send, times=times)
    if api != "Fetch":
        stream.broker.cut()  # so that it is asked for
    return fault


@pytest.mark.soak
@pytest.mark.parametrize("name", PASSING)
def test_a_fault_that_passes_leaves_no_trace(name: str, stream: Stream) -> None:
    stream.send(40)
    with stream.read_to_end() as pipeline:
        ordered = stream.own_time.now()
        fault = order(stream, name)
        stream.send(40)
        reached = stream.run_to_end(pipeline)
        if fault.api == "Fetch":
            assert fault.hits >= 1
        stream.broker.lift(fault)
        assert reached - ordered < PROMISE_S
        stream.check(pipeline)
    stream.send(5)
    stream.check_resumed()


RESUMED = ["dropped in the records", "metadata dropped", "offsets dropped", "a record flipped once",
           "not the leader", "said to be out of range", "no leader for a while"]  # fmt: skip


@pytest.mark.soak
@pytest.mark.parametrize("name", PASSING if SOAK else RESUMED)
def test_a_fault_that_passes_at_a_resume(name: str, stream: Stream) -> None:
    """The journal's records are read again through the fault."""
    stream.settings["checkpoint_operations"] = 10**6
    stream.send(40)
    with stream.read_to_end():
        pass
    fault = order(stream, name)
    stream.check_resumed()
    assert fault.hits >= 1


@pytest.mark.soak
@pytest.mark.parametrize("how", ["stopped", "silent"])
@pytest.mark.parametrize("seconds", [0.3, 3.0, 15.0, 25.0])
def test_a_broker_that_was_away(how: str, seconds: float, stream: Stream) -> None:
    stream.send(40)
    with stream.read_to_end() as pipeline:
        stream.send(40)
        back = stream.away(seconds, how)
        reached = stream.run_to_end(pipeline)
        assert reached - back < PROMISE_S
        stream.check(pipeline)
    stream.check_resumed()


def test_a_tls_handshake_without_an_answer_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """kafka-python itself would wait for ever."""
    monkeypatch.setattr("ingest.sources.kafka.source._CONNECT_TIMEOUT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        bootstrap = f"127.0.0.1:{mute.getsockname()[1]}"
        with pytest.raises(SourceError, match="no answer within"):
            KafkaSource(bootstrap, ["updates"], settings={"security_protocol": "SSL"}, patience=1.0)


WRITING: dict[str, tuple[int, Edit | None, Send | None]] = {
    "acknowledgement lost": (2, None, drop()),
    "acknowledgement cut": (1, None, drop(6)),
    "not the leader": (2, error(NOT_LEADER), None),
    "in crumbs": (2, None, trickle(3, 0.001)),
}


@pytest.mark.parametrize("name", WRITING)
def test_replies_and_dead_letters_outlive_faults(name: str, stream: Stream, tmp_path: Path) -> None:
    broker = stream.broker
    for topic in ("replies", "dead-letters"):
        broker.create_topic(topic)
    times, edit, send = WRITING[name]
    with KafkaSink(broker.bootstrap, patience=20) as sink:
        stream.settings |= {"replies": sink, "dead_letters": sink}
        stream.send(60)
        with stream.reading() as pipeline:
            pipeline.run(until=40)
            fault = broker.order("Produce", edit=edit, send=send, times=times)
            stream.run_to_end(pipeline)
            assert fault.hits == times
    for value in broker.values("replies"):
        stream._reply(ingest.decode_reply(value))
    for value in broker.values("dead-letters"):
        stream._letter(ingest.decode_dead_letter(value))
    assert all(len(repeats) == 1 for repeats in stream.replies.values()), "the sink is idempotent"
    stream.check(pipeline)


def test_a_sink_that_stalls_stops_the_pipeline_and_loses_nothing(stream: Stream) -> None:
    broker = stream.broker
    broker.create_topic("replies")
    back = threading.Event()
    stream.send(60)
    with KafkaSink(broker.bootstrap, patience=1.5) as sink:  # kafka-python's to wait
        stream.settings["replies"] = sink
        fault = broker.order("Produce", send=stall(back), times=None)
        with stream.reading() as pipeline, pytest.raises(SourceError, match="replies"):
            stream.run_to_end(pipeline)
        broker.lift(fault)
        back.set()
    with KafkaSink(broker.bootstrap, patience=20) as sink:
        stream.settings["replies"] = sink
        with stream.reading() as pipeline:
            stream.run_to_end(pipeline)
    for value in broker.values("replies"):
        stream._reply(ingest.decode_reply(value))
    stream.check(pipeline)


class Slow:
    """A graph that only sums what it is given, and only once `source` has fetched all that it
    fetches while nobody polls it."""

    version, num_edges, num_rows, levels, density = 0, 0, 0, 0, 0.5
    directed, has_predecessors, unchanged, expired = True, False, lpma.Unchanged(), 0

    def __init__(self, source: KafkaSource) -> None:
        self._source = source
        self.total = np.zeros(3, np.uint64)

    def apply(self, batch: Any) -> Any:
        reader = self._source._reader
        assert reader is not None
        wait_for(lambda: not reader._consumer._fetcher.in_flight_fetches(), "the fetches")
        self.total += tally(batch.src, batch.dst)
        self.version += 1
        return ()

    def image(self, old: Any = None) -> SavedImage:
        return SavedImage(f"{self.version} {self.total.tolist()}".encode())


def tally(src: Any, dst: Any) -> Any:
    product = src.astype(np.uint64) * dst
    return np.array([len(src), src.sum(dtype=np.uint64), product.sum()], np.uint64)


@pytest.mark.soak
@pytest.mark.parametrize("partitions", [1, 3])
def test_memory_is_flat_under_a_flood(partitions: int, tmp_path: Path) -> None:
    """The whole flood lies ready, which is faster than any rate; the source holds two fetches."""
    rng = np.random.default_rng(1)
    limit = 1 << 19
    records, rows = soak(600, 3000), 4096
    expected = np.zeros(3, np.uint64)
    with FaultBroker(updates=partitions) as broker:
        for i in range(records):
            src, dst = rng.integers(0, 1 << 20, (2, rows), np.uint32)
            expected += tally(src, dst)
            broker.produce("updates", [ingest.encode_updates(src, dst)], i % partitions)
        with KafkaSource(broker.bootstrap, ["updates"], max_bytes=limit) as source:
            graph = Slow(source)
            pipeline = Pipeline(source, graph, tmp_path / "c", batch_size=20_000, history=10)
            pipeline.run(until=4 * pipeline.settings.batch_size)
            tracemalloc.start()
            try:
                pipeline.run(until=records * rows - pipeline.stats.operations)
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            pipeline.close()
    assert graph.total.tolist() == expected.tolist()
    assert records * rows * 8 > 37 * limit
    assert peak < 16 * limit, "fetches held, answered and decoded, and two batches"


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(soak(2, 40)))
def test_random_faults_at_random_places(
    seed: int, fault_broker: FaultBroker, own_time: OwnTime, tmp_path: Path
) -> None:
    """Faults, stops and kills as the seed has them; the state is exact at every resume."""
    rng = np.random.default_rng([seed, 77])
    stream = Stream(fault_broker, own_time, tmp_path / "checkpoint", seed)
    stream.send(20)
    names = sorted(set(PASSING) - MUTE)
    for _ in range(soak(4, 30)):
        with stream.reading() as pipeline:
            for name in rng.choice(names, int(rng.integers(0, 3))):
                order(stream, str(name))
            stream.send(int(rng.integers(1, 30)))
            for _ in range(int(rng.integers(0, 6))):
                pipeline.step()
            if rng.random() < 0.3:
                stream.away(float(rng.uniform(0, 9)), str(rng.choice(["stopped", "silent"])))
                stream.run_to_end(pipeline)
    with stream.read_to_end() as pipeline:
        stream.check(pipeline)
    stream.check_resumed()
