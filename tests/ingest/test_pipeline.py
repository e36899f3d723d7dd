"""The pipeline against a model that takes one record after the other."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingest
import lpma
from ingest import DeadLetter, FileSource, Pipeline, RecordError, Reply, SqliteLog
from ingest.types import Position
from lpma import Kind
from tests.conftest import soak
from tests.support.stream_model import SavedModel, random_records, same_answer, serial, weighted
from tests.support.topics import UPDATES, dead_letters, read, replies


@pytest.mark.soak
@pytest.mark.parametrize("make", [SavedModel, lpma.Graph], ids=["model", "graph"])
@given(seed=st.integers(0, 10**6), batch_size=st.integers(1, 30), max_queries=st.integers(1, 5))
@settings(max_examples=soak(12, 5000))
def test_any_cut_gives_what_serial_execution_gives(
    make: Any, seed: int, batch_size: int, max_queries: int
) -> None:
    records = random_records(np.random.default_rng(seed), 40)
    expected, answers, bad = serial(records)
    options = {} if make is SavedModel else {"device": "cpu", "segment_size": 4}
    graph = make(predecessors=True, **options)
    with SqliteLog(":memory:") as log:
        log.produce_many("updates", records)
        got: list[Reply] = []
        letters: list[DeadLetter] = []
        pipeline = Pipeline(log, graph, batch_size=batch_size, max_queries=max_queries,
                            replies=got.append, dead_letters=letters.append)  # fmt: skip
        operations = pipeline.run(until="end")
    assert weighted(graph) == weighted(expected)
    assert [r.id for r in got] == list(answers)
    for reply in got:
        assert (answers[reply.id] is None) == (reply.error == "hops")
        assert same_answer(reply.answer, answers[reply.id])
    assert [letter.offset for letter in letters] == bad
    assert all(letter.value == records[letter.offset] for letter in letters)
    assert max((stats.operations for stats in pipeline.stats.history), default=0) <= batch_size
    assert operations == pipeline.stats.operations
    assert operations == sum(batch.operations for batch in pipeline.stats.history)
    assert pipeline.positions()[UPDATES] == Position(len(records))


def test_queries_of_a_topic_of_their_own_see_what_was_written_before(log: SqliteLog) -> None:
    for i in range(30):
        log.produce("updates", ingest.encode_row(1, i))
        log.produce("queries", ingest.encode_query(f"q{i}", Kind.DEGREE, 1))
    Pipeline(log, SavedModel(), batch_size=7).run(until="end")
    assert [(r.id, int(r.answer[0])) for r in replies(log)] == [  # type: ignore[index]
        (f"q{i}", i + 1) for i in range(30)
    ]


def test_times_are_stamps_where_a_record_has_none(log: SqliteLog) -> None:
    log.produce_many("updates", [ingest.encode_row(1, 2), ingest.encode_row(1, 3, time=-5)])
    graph = SavedModel()
    pipeline = Pipeline(log, graph, clock=lambda: 10**12)
    pipeline.run(until="end")
    assert graph.state == {(1, 2): (1.0, 10**12), (1, 3): (1.0, -5)}
    assert pipeline.stats.history[-1].time == 10**12


def test_stamps_do_not_fall_with_the_clock(log: SqliteLog) -> None:
    clock = iter(range(2000, 1000, -1))
    pipeline = Pipeline(log, SavedModel(), clock=lambda: next(clock))
    for v in range(3):
        log.produce("updates", ingest.encode_row(1, v))
        pipeline.step(drain=True)
    assert {time for _, time in pipeline.graph.state.values()} == {2000}  # type: ignore[attr-defined]


def test_a_query_over_a_bound_is_told_so(log: SqliteLog) -> None:
    updates = ingest.encode_updates([1] * 5, range(5))
    q = ingest.encode_query
    records = [
        updates,
        q("late", Kind.DEGREE, 1, deadline=999),
        q("in time", Kind.DEGREE, 1, deadline=1000),
        q("far", Kind.HOPS, 1, steps=3),
        q("backwards", Kind.PREDECESSORS, 1),
        q("many", Kind.SUCCESSORS, 1),
        q("the others", Kind.SUCCESSORS, 1, after=3),
        q("few", Kind.SUCCESSORS, 2),
    ]
    log.produce_many("updates", records)
    pipeline = Pipeline(log, SavedModel(), clock=lambda: 1000, max_reply_rows=4)
    assert pipeline.run(until="end") == 12
    got = replies(log)
    assert [(r.id, r.error) for r in got] == [
        ("late", "deadline"),
        ("in time", None),
        ("far", "hops"),
        ("backwards", "unsupported"),
        ("many", None),
        ("the others", None),
        ("few", None),
    ]
    assert [(r.id, r.cursor) for r in got if r.more] == [("many", 3)]
    assert [r.answer.ids.tolist() for r in got[4:]] == [[0, 1, 2, 3], [4], []]  # type: ignore[union-attr]
    assert {(r.version, r.time) for r in got} == {(1, 1000)}
    assert all(r.message for r in got if r.error)


def test_replies_go_to_named_topics_only(log: SqliteLog) -> None:
    q = ingest.encode_query
    log.produce_many(
        "updates",
        [
            q("a", Kind.DEGREE, 1),
            q("b", Kind.DEGREE, 1, reply="second"),
            q("c", Kind.DEGREE, 1, reply="updates"),
        ],
    )
    Pipeline(log, SavedModel(), reply_topics=("first", "second")).run(until="end")
    assert [r.id for r in read(log, "first", ingest.decode_reply)] == ["a"]
    assert [r.id for r in read(log, "second", ingest.decode_reply)] == ["b"]
    (letter,) = dead_letters(log)
    assert letter.offset == 2
    assert "'updates' is not one of first, second" in letter.reason


def test_bad_records_can_go_to_any_log_topic_or_be_kept(log: SqliteLog, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("1 2\nbad\n3 4\n")
    source = FileSource(path)
    graph = SavedModel()
    pipeline = Pipeline(source, graph, dead_letters=(log, "trash"))
    assert pipeline.run() == 2
    assert weighted(graph) == {(1, 2): 1.0, (3, 4): 1.0}
    (letter,) = read(log, "trash", ingest.decode_dead_letter)
    assert (letter.topic, letter.partition, letter.offset) == ("a.txt", 0, 1)
    assert letter.value == b"bad"
    again = Pipeline(FileSource(path), SavedModel())
    again.run()
    assert again.outputs.rejected == 1
    assert [x.offset for x in again.outputs.kept] == [1]


def test_records_sent_again_are_dropped(log: SqliteLog) -> None:
    def record(seq: int, source: str = "p") -> bytes:
        return ingest.encode_updates([seq] * 3, [1, 2, 3], producer=source, seq=seq)

    sent = [record(0), record(1), record(0), record(1), record(1, "other"), record(2), record(2)]
    log.produce_many("updates", sent)
    graph = SavedModel()
    pipeline = Pipeline(log, graph, batch_size=2)
    assert pipeline.run(until="end") == 12
    assert weighted(graph) == {(0, v): 1 for v in (1, 2, 3)} | {(1, v): 2 for v in (1, 2, 3)} | {
        (2, v): 1 for v in (1, 2, 3)
    }
    assert pipeline.stats.duplicates == 3


def test_sources_are_counted_by_partition(
    log: SqliteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above the bound a new one is refused, told and counted; those known are read on."""
    monkeypatch.setattr(ingest.pipeline.record_reader, "MAX_PRODUCERS", 3)
    log.create_topic("t", 2)

    def send(number: int, *sources: str, seq: int = 1) -> None:
        rows = [ingest.encode_row(number, 9, producer=source, seq=seq) for source in sources]
        log.produce_many("t", rows, number)

    def run(start: Any) -> Pipeline:
        with SqliteLog(log.path, ["t"]) as source:
            pipeline: Pipeline = start(source)
            pipeline.run(until="end")
            pipeline.close()
            return pipeline

    send(0, "a", "b", "c", "late", "a")
    send(1, "x", "y", "z", "late")
    first = run(lambda source: Pipeline(source, SavedModel(), tmp_path / "c"))
    assert (first.stats.operations, first.stats.duplicates) == (6, 1)
    assert first.outputs.rejected_by == {"unserved": 2}
    send(0, "a", "late", seq=2)
    send(1, "z", "more", seq=2)
    again = run(lambda source: Pipeline.resume(tmp_path / "c", source, load=SavedModel.load))
    assert (again.stats.operations, again.stats.duplicates) == (8, 0)
    assert again.outputs.rejected_by == {"unserved": 2}
    letters = read(log, "dead-letters", ingest.decode_dead_letter)
    assert [(d.partition, d.offset) for d in letters] == [(0, 3), (1, 3), (0, 6), (1, 5)]
    assert all("3 of this partition" in d.reason for d in letters)


class Narrow:
    """A sink that takes no more than so many bytes at once."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.values: dict[str, list[bytes]] = {}
        self.refused = 0

    def produce_many(self, topic: str, values: Sequence[bytes]) -> None:
        for value in values:
            if len(value) > self.limit:
                self.refused += 1
                raise RecordError(f"{len(value)} bytes")
            self.values.setdefault(topic, []).append(value)


@pytest.mark.parametrize("limit", [300, 1000, 5000, 70_000])
def test_a_dead_letter_is_cut_to_what_its_topic_takes(log: SqliteLog, limit: int) -> None:
    bad = [bytes([0xC1]) * size for size in (10, 400, 4000, 66_000, 100_000)] * 3
    good = [ingest.encode_row(1, v) for v in range(len(bad))]
    log.produce_many("updates", [record for both in zip(bad, good, strict=True) for record in both])
    sink = Narrow(limit)
    pipeline = Pipeline(log, SavedModel(), dead_letters=sink)
    assert pipeline.run(until="end") == len(good)
    letters = {d.offset: d for d in map(ingest.decode_dead_letter, sink.values["dead-letters"])}
    assert sorted(letters) == list(range(0, 2 * len(bad), 2))
    for offset, letter in letters.items():
        record = bad[offset // 2]
        assert (letter.topic, letter.partition) == ("updates", 0)
        assert (letter.size, letter.sha256) == (len(record), hashlib.sha256(record).digest())
        assert record.startswith(letter.value)
        assert letter.reason
    assert sink.refused < 15, "what a topic takes is learned once"


def test_a_topic_that_takes_no_dead_letter_at_all_is_an_error(log: SqliteLog) -> None:
    log.produce("updates", b"\xc1" * 1000)
    with pytest.raises(RecordError):
        Pipeline(log, SavedModel(), dead_letters=Narrow(50)).run(until="end")


def test_a_reply_of_an_error_is_cut_to_what_its_topic_takes(log: SqliteLog) -> None:
    log.produce("queries", ingest.encode_query("q", Kind.HOPS, 1, steps=9))
    sink = Narrow(200)
    Pipeline(log, SavedModel(), replies=sink).run(until="end")
    (reply,) = map(ingest.decode_reply, sink.values["replies"])
    assert (reply.id, reply.error) == ("q", "hops")


def test_a_pipeline_begins_at_the_earliest_record() -> None:
    """Wherever the log was read to, unless it is told a position."""
    with SqliteLog(":memory:") as log:
        log.produce_many("updates", [ingest.encode_row(0, v) for v in range(1, 4)])
        log.poll()
        assert log.at_end()
        pipeline = Pipeline(log, lpma.Graph(device="cpu"))
        assert pipeline.run("end") == 3
        positions = {UPDATES: Position(2, 0)}
        assert Pipeline(log, lpma.Graph(device="cpu"), positions=positions).run("end") == 1
        log.trim("updates", 0, 1)
        assert Pipeline(log, lpma.Graph(device="cpu")).run("end") == 2
