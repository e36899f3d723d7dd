"""What a pipeline answers and rejects, in topics of its stream's own brokers."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from ingest import KafkaSource, Pipeline
from ingest.sources.kafka.reader import Reader
from lpma import Kind
from tests.support.fault_stream import Stream
from tests.support.stream_model import SavedModel, weighted

pytestmark = pytest.mark.system


def run_to_end(stream: Stream, records: list[bytes]) -> SavedModel:
    """The graph that these records lead to, by a pipeline that is told nothing of topics."""
    stream.broker.produce("updates", records)
    graph = SavedModel()
    with KafkaSource(stream.broker.bootstrap, ["updates"]) as source:
        Pipeline(source, graph).run(until="end")
    return graph


def test_topics_of_replies_and_dead_letters_are_made_where_there_are_none(stream: Stream) -> None:
    run_to_end(stream, [ingest.encode_query("q", Kind.DEGREE, 1), b"\xc1"])
    (reply,) = map(ingest.decode_reply, stream.broker.values("replies"))
    assert reply.id == "q"
    (letter,) = map(ingest.decode_dead_letter, stream.broker.values("dead-letters"))
    assert (letter.topic, letter.offset) == ("updates", 1)


def test_a_reply_that_the_brokers_do_not_take_is_cut(stream: Stream) -> None:
    ids = np.arange(100_000)
    records = [
        *(ingest.encode_updates(np.zeros(len(some), int), some) for some in np.split(ids, 2)),
        ingest.encode_query("small", Kind.DEGREE, 0),
        ingest.encode_query("large", Kind.SUCCESSORS, 0),
        ingest.encode_query("and on", Kind.DEGREE, 0),
    ]
    run_to_end(stream, records)
    replies = [ingest.decode_reply(value) for value in stream.broker.values("replies")]
    by_id = {reply.id: reply for reply in replies}
    assert by_id.keys() == {"small", "large", "and on"}
    large = by_id["large"]
    assert large.more
    assert isinstance(large.answer, lpma.Neighbors)
    assert 1000 < large.rows < len(ids)
    assert large.answer.ids.tolist() == ids[: large.rows].tolist()
    assert by_id["small"].answer == by_id["and on"].answer == [len(ids)]


def test_a_dead_letter_that_the_brokers_do_not_take_is_cut(stream: Stream) -> None:
    stream.broker.max_message_bytes = 2000
    bad = [b"\xc1" * size for size in (100, 60_000, 1_000_000, 5000)]
    graph = run_to_end(stream, [ingest.encode_row(1, 2), *bad, ingest.encode_row(1, 3)])
    assert weighted(graph) == {(1, 2): 1, (1, 3): 1}
    found = [ingest.decode_dead_letter(value) for value in stream.broker.values("dead-letters")]
    letters = {letter.offset: letter for letter in found}
    assert letters.keys() == {1, 2, 3, 4}
    for offset, record in enumerate(bad, 1):
        letter = letters[offset]
        assert (letter.size, letter.sha256) == (len(record), hashlib.sha256(record).digest())
        assert len(letter.value) >= min(len(record), 400)


def test_after_any_error_a_new_consumer_goes_on_where_it_was(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors in the middle of a poll, after kafka-python's own position has moved."""
    rng = np.random.default_rng(1)
    poll = Reader.poll
    failures = iter([ValueError("bytes"), AssertionError(), RuntimeError("StopIteration")] * 4)

    def failing(reader: Reader, max_records: int, timeout: float, together: bool = False) -> Any:
        polled = poll(reader, max_records, timeout, together)
        if polled and rng.integers(2) and (error := next(failures, None)):
            raise error
        return polled

    monkeypatch.setattr(Reader, "poll", failing)
    sent = [f"{n}".encode() for n in range(500)]
    stream.broker.produce("updates", sent)
    with KafkaSource(stream.broker.bootstrap, ["updates"]) as source:
        found = []
        while not source.at_end():
            found += source.poll(10, 1.0)
    assert next(failures, None) is None
    assert [p.offset for p in found] == list(range(500))
    assert [p.value for p in found] == sent
