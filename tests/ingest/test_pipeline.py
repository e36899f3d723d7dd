"""The pipeline against a model that takes one record after the other."""

from __future__ import annotations

import hashlib
import itertools
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingest
import lpma
from ingest import (
    CheckpointError,
    DeadLetter,
    FileSource,
    IdentityError,
    LockedError,
    OffsetError,
    Partition,
    Pipeline,
    PipelineError,
    RecordError,
    Reply,
    SqliteLog,
)
from ingest.types import Polled, Position
from lpma import Kind, OutOfMemory
from tests.conftest import real_graph, soak
from tests.support.stream_model import SavedModel, random_records, same_answer, serial, weighted

UPDATES = Partition("updates", 0)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SqliteLog]:
    with SqliteLog(tmp_path / "log") as log:
        log.create_topic("updates")
        yield log


def read(log: SqliteLog, topic: str, decode: Callable[[bytes], Any]) -> list[Any]:
    with SqliteLog(log.path, topics=(topic,)) as reader:
        return [decode(r.value) for r in reader.poll(10**6) if isinstance(r.value, bytes)]


def replies(log: SqliteLog) -> list[Reply]:
    return read(log, "replies", ingest.decode_reply)


def dead_letters(log: SqliteLog) -> list[DeadLetter]:
    return read(log, "dead-letters", ingest.decode_dead_letter)


class Ticking:
    """A clock that moves on a little at every look."""

    def __init__(self, ms: int = 1) -> None:
        self.ticks = itertools.count(10**12, ms)

    def __call__(self) -> int:
        return next(self.ticks)


# The stream, in and out ----------------------------------------------------------------------


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
    assert max((stats.operations for stats in pipeline.history), default=0) <= batch_size
    assert operations == pipeline.operations == sum(s.operations for s in pipeline.history)
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
    assert pipeline.history[-1].time == 10**12


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
        return ingest.encode_updates([seq] * 3, [1, 2, 3], source=source, seq=seq)

    sent = [record(0), record(1), record(0), record(1), record(1, "other"), record(2), record(2)]
    log.produce_many("updates", sent)
    graph = SavedModel()
    pipeline = Pipeline(log, graph, batch_size=2)
    assert pipeline.run(until="end") == 12
    assert weighted(graph) == {(0, v): 1 for v in (1, 2, 3)} | {(1, v): 2 for v in (1, 2, 3)} | {
        (2, v): 1 for v in (1, 2, 3)
    }
    assert pipeline.duplicates == 3


def test_sources_are_counted_by_partition(
    log: SqliteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above the bound a new one is refused, told and counted; those known are read on."""
    monkeypatch.setattr(ingest.admission, "MAX_PRODUCERS", 3)
    log.create_topic("t", 2)

    def send(number: int, *sources: str, seq: int = 1) -> None:
        rows = [ingest.encode_row(number, 9, source=source, seq=seq) for source in sources]
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
    assert (first.operations, first.duplicates) == (6, 1)
    assert first.outputs.rejected_by == {"unserved": 2}
    send(0, "a", "late", seq=2)
    send(1, "z", "more", seq=2)
    again = run(lambda source: Pipeline.resume(tmp_path / "c", source, load=SavedModel.load))
    assert (again.operations, again.duplicates) == (8, 0)
    assert again.outputs.rejected_by == {"unserved": 2}
    letters = read(log, "dead-letters", ingest.decode_dead_letter)
    assert [(d.partition, d.offset) for d in letters] == [(0, 3), (1, 3), (0, 6), (1, 5)]
    assert all("3 of this partition" in d.reason for d in letters)


# What a log does not take for its size ---------------------------------------------------------


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


# How far to run ------------------------------------------------------------------------------


def test_until_a_number_the_end_a_condition_or_a_stop(log: SqliteLog) -> None:
    log.produce_many("updates", [ingest.encode_updates(range(10), range(10))] * 10)
    pipeline = Pipeline(log, SavedModel(), batch_size=8)
    seen: list[int] = []
    assert pipeline.run(until=25, progress=lambda stats: seen.append(stats.operations)) == 25
    assert seen == [8, 8, 8, 1]
    assert pipeline.positions()[UPDATES] == Position(2, 5)
    assert pipeline.run(until=lambda p: p.operations >= 30) == 8
    assert pipeline.run(until=0) == 0

    def stopping(stats: ingest.BatchStats) -> None:
        if stats.total_operations > 50:
            pipeline.stop()

    assert pipeline.run(progress=stopping) == 24
    assert pipeline.run(until="end") == 43
    assert pipeline.step() == 0
    assert pipeline.graph.version == len(pipeline.history)


def test_a_batch_waits_for_its_interval(log: SqliteLog) -> None:
    pipeline = Pipeline(log, SavedModel(), batch_interval=0.3)
    log.produce("updates", ingest.encode_row(1, 2))
    later = threading.Timer(0.05, log.produce, ("updates", ingest.encode_row(1, 3)))
    later.start()
    assert pipeline.step() == 2, "what came within the interval is in the batch"
    later.join()


class Waited(SqliteLog):
    """A log in which one record appears each time it is waited for, a millisecond later by the
    clock; it notes how long it would have waited."""

    def __init__(self, path: Path, coming: list[bytes]) -> None:
        super().__init__(path)
        self.create_topic("updates")
        self.coming = coming
        self.now_ms = 0
        self.waits: list[float] = []

    def poll(self, max_records: int = 500, timeout: float = 0.0) -> list[Polled]:
        self.waits.append(timeout)
        if self.coming:
            self.now_ms += 1
            self.produce("updates", self.coming.pop(0))
        return super().poll(max_records)


@pytest.mark.parametrize(
    "query_interval, waits",
    [
        (0.02, [10.0, 10.0, 0.02, 0.019]),  # the query's, less what it has waited
        (60.0, [10.0, 10.0, 9.999, 9.998]),  # the batch's, which is over sooner
        (0.0, [10.0, 10.0]),  # it closes with the query
    ],
)
def test_a_query_waits_for_its_interval_and_no_longer(
    tmp_path: Path, query_interval: float, waits: list[float]
) -> None:
    """Its batch closes `query_interval` after it was buffered: not at once, so that what comes by
    then shares the batch, and not with the batch's interval, for its asker waits."""
    query = ingest.encode_query("q", Kind.DEGREE, 1)
    with Waited(tmp_path / "log", [ingest.encode_row(1, 2), query, ingest.encode_row(1, 3)]) as log:
        pipeline = Pipeline(
            log,
            SavedModel(),
            batch_interval=10.0,
            query_interval=query_interval,
            clock=lambda: log.now_ms,
        )
        assert pipeline.step() == (3 if query_interval else 2)
        assert log.waits == pytest.approx(waits)
        assert pipeline.queries == 1


def test_memory_that_runs_out_leaves_the_batch_for_another_step(
    log: SqliteLog, tmp_path: Path
) -> None:
    class Full(SavedModel):
        fail = 0

        def apply(self, batch: Any, opera: bool = True) -> Any:
            if self.fail:
                self.fail -= 1
                raise OutOfMemory("cut the batch")
            return super().apply(batch)

    log.produce_many("updates", [ingest.encode_updates(range(10), range(10))] * 2)
    graph = Full()
    pipeline = Pipeline(log, graph, tmp_path / "c", batch_size=8)
    pipeline.step()
    graph.fail = 2
    for _ in range(2):
        with pytest.raises(OutOfMemory):
            pipeline.step()
    assert pipeline.positions()[UPDATES] == Position(0, 8)
    assert pipeline.run(until="end") == 12
    assert weighted(graph) == {(v, v): 2.0 for v in range(10)}
    pipeline.close(checkpoint=False)
    resumed = Pipeline.resume(tmp_path / "c", SqliteLog(log.path), load=SavedModel.load)
    assert resumed.graph.content() == graph.content()  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["batch_size", "max_queries", "poll_records"])
def test_settings_must_make_sense(log: SqliteLog, name: str) -> None:
    bad: dict[str, Any] = {name: 0}
    with pytest.raises(PipelineError, match=name):
        Pipeline(log, SavedModel(), None, **bad)
    with pytest.raises(PipelineError, match="batch_interval"):
        Pipeline(log, SavedModel(), batch_interval=-1)
    with pytest.raises(PipelineError, match="reply_topics"):
        Pipeline(log, SavedModel(), reply_topics=())
    pipeline = Pipeline(log, SavedModel())
    with pytest.raises(PipelineError, match="no checkpoint directory"):
        pipeline.checkpoint_now()
    pipeline.close()
    with pytest.raises(PipelineError, match="closed"):
        pipeline.step()


# Checkpoints and resuming --------------------------------------------------------------------


@pytest.mark.soak
@given(st.data())
@settings(max_examples=soak(10, 500))
def test_a_resume_brings_back_every_batch_as_it_was(data: st.DataObject) -> None:
    """Stop without a last word at any place, resume with other settings: the same graph with the
    same times and versions, and the same replies to the same queries."""
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    records = random_records(rng, 60)
    expected, answers, _ = serial(records)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name) / "checkpoint"
        got: dict[str, list[Reply]] = {}

        def reply(r: Reply) -> None:
            got.setdefault(r.id, []).append(r)

        def options() -> dict[str, Any]:
            return {
                "batch_size": data.draw(st.integers(1, 40)),
                "poll_records": data.draw(st.integers(1, 20)),
                "batch_interval": data.draw(st.sampled_from([0.0, 0.003, 10.0])),
                "checkpoint_operations": data.draw(st.integers(1, 60)),
                "replies": reply,
                "dead_letters": lambda letter: None,
                "clock": clock,
            }

        clock = Ticking()
        log = SqliteLog(Path(name) / "log")
        log.create_topic("wide", 3)
        for i, record in enumerate(records):
            log.produce("wide", record, partition=i % 3)
        source = SqliteLog(log.path, topics=("wide",))
        pipeline = Pipeline(source, SavedModel(predecessors=True), directory, **options())
        for _ in range(data.draw(st.integers(1, 4))):
            for _ in range(data.draw(st.integers(0, 6))):
                pipeline.step(drain=True)
            if data.draw(st.booleans()):
                pipeline.checkpoint_now()
            before = pipeline.graph.content()  # type: ignore[attr-defined]
            place = pipeline.positions(), pipeline.operations
            pipeline.close(checkpoint=data.draw(st.booleans()))
            source.close()
            source = SqliteLog(log.path, topics=("wide",))
            pipeline = Pipeline.resume(directory, source, load=SavedModel.load, **options())
            assert pipeline.graph.content() == before  # type: ignore[attr-defined]
            after = pipeline.positions()
            assert pipeline.operations == place[1]
            assert all(after[p] >= position for p, position in place[0].items())
        pipeline.run(until="end")
        pipeline.close()
        source.close()
        log.close()
    assert weighted(pipeline.graph) == weighted(expected)
    assert set(got) == set(answers)
    for id, repeats in got.items():
        first = repeats[0]
        assert same_answer(first.answer, answers[id])
        for other in repeats[1:]:
            assert (other.version, other.time, other.error) == (
                first.version,
                first.time,
                first.error,
            )
            assert same_answer(other.answer, first.answer)


def test_a_record_cut_by_a_checkpoint_is_applied_once(log: SqliteLog, tmp_path: Path) -> None:
    """Also where its source and number say that it was seen."""
    record = ingest.encode_updates(range(10), range(10), source="p", seq=5)
    log.produce_many("updates", [record, record])
    pipeline = Pipeline(log, SavedModel(), tmp_path / "c", batch_size=4)
    assert pipeline.step() == 4
    pipeline.close()
    for batch in (4, 2):
        source = SqliteLog(log.path)
        pipeline = Pipeline.resume(tmp_path / "c", source, load=SavedModel.load, batch_size=4)
        assert pipeline.step() == batch
        pipeline.close()
    assert weighted(pipeline.graph) == {(v, v): 1.0 for v in range(10)}
    pipeline = Pipeline.resume(tmp_path / "c", SqliteLog(log.path), load=SavedModel.load)
    assert pipeline.run(until="end") == 0


def test_a_damaged_checkpoint_means_the_one_before_and_the_same_state(
    log: SqliteLog, tmp_path: Path
) -> None:
    records = random_records(np.random.default_rng(3), 60)
    log.produce_many("updates", records)
    pipeline = Pipeline(log, SavedModel(predecessors=True), tmp_path / "c", batch_size=5)
    for _ in range(4):
        pipeline.run(until=11)
        pipeline.checkpoint_now()
    pipeline.run(until=13)
    content = pipeline.graph.content()  # type: ignore[attr-defined]
    pipeline.close(checkpoint=False)
    newest = max((tmp_path / "c").glob("checkpoint-*"))
    (newest / "graph.lpma").write_bytes(b"")
    for _ in range(2):
        pipeline = Pipeline.resume(tmp_path / "c", SqliteLog(log.path), load=SavedModel.load)
        assert pipeline.graph.content() == content  # type: ignore[attr-defined]
        assert pipeline.replayed == 24
        pipeline.close(checkpoint=False)
    pipeline = Pipeline.resume(tmp_path / "c", SqliteLog(log.path), load=SavedModel.load)
    pipeline.run(until="end")
    pipeline.close()
    assert weighted(pipeline.graph) == weighted(serial(records)[0])
    pipeline = Pipeline.resume(tmp_path / "c", SqliteLog(log.path), load=SavedModel.load)
    assert pipeline.replayed == 0


def test_a_wrong_start_is_refused(log: SqliteLog, tmp_path: Path) -> None:
    directory = tmp_path / "c"
    log.produce_many("updates", [ingest.encode_row(1, v) for v in range(20)])
    with pytest.raises(CheckpointError, match="start with Pipeline"):
        Pipeline.resume(directory, log, load=SavedModel.load)
    assert not directory.exists()
    assert not ingest.has_checkpoint(directory)
    pipeline = Pipeline(log, SavedModel(), directory, batch_size=5)
    pipeline.step()
    with pytest.raises(LockedError):
        Pipeline.resume(directory, SqliteLog(log.path), load=SavedModel.load)
    pipeline.close()
    assert ingest.has_checkpoint(directory)
    with pytest.raises(CheckpointError, match="holds a checkpoint already"):
        Pipeline(log, SavedModel(), directory)
    with SqliteLog(tmp_path / "other") as other:
        other.create_topic("updates")
        with pytest.raises(IdentityError):
            Pipeline.resume(directory, other, load=SavedModel.load)
    log.trim("updates", 0, 6)
    with pytest.raises(OffsetError, match="offset 5 was trimmed"):
        Pipeline.resume(directory, SqliteLog(log.path), load=SavedModel.load)
    log.delete_topic("updates")
    log.create_topic("updates")
    with pytest.raises(IdentityError, match="created again"):
        Pipeline.resume(directory, SqliteLog(log.path), load=SavedModel.load)


def test_what_was_journaled_and_is_gone_is_refused(log: SqliteLog, tmp_path: Path) -> None:
    log.produce_many("updates", [ingest.encode_row(1, v) for v in range(20)])
    pipeline = Pipeline(log, SavedModel(), tmp_path / "c", batch_size=5)
    pipeline.step()
    pipeline.close(checkpoint=False)
    cut = SqliteLog(log.path)
    cut._file.database.execute("DELETE FROM records WHERE offset >= 10")
    cut._file.database.execute("UPDATE partitions SET next = 10 WHERE topic = 'updates'")
    with pytest.raises(OffsetError, match="are not there now"):
        Pipeline.resume(tmp_path / "c", cut, load=SavedModel.load)


def test_after_a_failed_output_nothing_is_lost(log: SqliteLog, tmp_path: Path) -> None:
    log.produce_many("updates", [ingest.encode_row(1, 2), ingest.encode_query("q", Kind.DEGREE, 1)])

    def failing(reply: Reply) -> None:
        raise ConnectionError("nobody listens")

    pipeline = Pipeline(log, SavedModel(), tmp_path / "c", replies=failing)
    with pytest.raises(ConnectionError):
        pipeline.run(until="end")
    with pytest.raises(PipelineError, match="resume"):
        pipeline.step()
    pipeline.close()
    resumed = Pipeline.resume(tmp_path / "c", SqliteLog(log.path), load=SavedModel.load)
    assert [(r.id, r.version) for r in replies(log)] == [("q", 1)]
    assert weighted(resumed.graph) == {(1, 2): 1.0}


def test_checkpoints_come_by_count_by_age_and_at_the_end(
    log: SqliteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.produce_many("updates", [ingest.encode_row(1, v) for v in range(100)])
    pipeline = Pipeline(log, SavedModel(), tmp_path / "c", batch_size=10, checkpoint_operations=30)

    def number() -> int:
        checkpoints = pipeline._checkpoints
        if checkpoints is not None:
            checkpoints.finish()
        return int(max((tmp_path / "c").glob("checkpoint-*")).name[-10:])

    numbers = []
    for _ in range(7):
        pipeline.step()
        numbers.append(number())
    assert numbers == [0, 0, 1, 1, 1, 2, 2]
    assert pipeline._checkpoints is not None
    later = pipeline._checkpoints._saved_time + 61
    monkeypatch.setattr("ingest.state.checkpointer.time.monotonic", lambda: later)
    pipeline.step()
    assert number() == 3
    with pipeline:
        pipeline.step()
    assert number() == 4


def test_a_file_goes_on_where_it_stopped(tmp_path: Path) -> None:
    graph = real_graph("soc-sign-bitcoinotc")
    path = tmp_path / "edges.csv"
    rows = np.c_[graph["src"], graph["dst"], graph["w"], graph["t"]]
    np.savetxt(path, rows, fmt="%d", delimiter=",")
    options: dict[str, Any] = {"batch_size": 1000, "checkpoint_operations": 4000}
    pipeline = Pipeline(FileSource(path), lpma.Graph(device="cpu"), tmp_path / "c", **options)
    pipeline.run(until=12_345)
    pipeline.close(checkpoint=False)
    resumed = Pipeline.resume(tmp_path / "c", FileSource(path, chunk=777), **options)
    assert resumed.operations == 12_345
    assert resumed.run() == len(rows) - 12_345
    assert isinstance(resumed.graph, lpma.Graph)
    resumed.graph.check()
    expected = lpma.Graph(device="cpu")
    expected.insert(graph["src"], graph["dst"], graph["w"].astype(float), graph["t"])
    assert weighted(resumed.graph) == weighted(expected)
    resumed.close()
