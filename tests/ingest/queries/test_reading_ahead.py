"""Queries beside a backlog: read before what was written before them, answered as of their place,
and never in the way of the updates."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingest
from ingest import Pipeline, Reply, SqliteLog
from ingest.pipeline import intake
from ingest.sources.sqlite import order
from ingest.types import QUERIES, Polled
from lpma import Batch, Columns
from lpma.batch.columns import query_rows
from tests.conftest import soak
from tests.support.serving import flood, sent
from tests.support.stream_model import SavedModel, random_query, same_answer
from tests.support.topics import Ticking, replies

ROWS = 10  # of a record
BATCH = 50


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are many here."""
    monkeypatch.setattr(order, "AHEAD_BYTES", 2000)
    monkeypatch.setattr(intake, "POLL_ROWS", 1)


def backlog(log: SqliteLog, records: int, first: int = 0) -> int:
    """Write so many records of ROWS edges each, no edge twice; how many edges."""
    log.produce_many(
        "updates",
        [
            ingest.encode_updates(np.full(ROWS, i), np.arange(ROWS))
            for i in range(first, first + records)
        ],
    )
    return records * ROWS


def steps_to_reply(pipeline: Pipeline, log: SqliteLog, count: int = 1) -> int:
    """How many operations were applied when so many replies had been sent."""
    while len(sent(log)) < count:
        assert pipeline.step(), "the stream has ended"
    return pipeline.stats.operations


def test_a_query_behind_a_backlog_is_answered_before_it(log: SqliteLog) -> None:
    edges = backlog(log, 400)
    pipeline = Pipeline(log, SavedModel(), batch_size=BATCH, clock=lambda: 10**12)
    pipeline.run(until=BATCH * ROWS + 5)  # what was polled at first, and some of the next record
    flood(log, 1)
    before = pipeline.stats.operations
    # What is in the buffer, and nothing of what waits in the log.
    assert steps_to_reply(pipeline, log) - before == 1 + ROWS - 5
    pipeline.run(until="end")
    assert pipeline.stats.operations == edges + 1


def test_a_query_written_behind_little_keeps_its_place(log: SqliteLog) -> None:
    """It sees what its asker wrote before it."""
    backlog(log, 10)
    flood(log, 1)
    backlog(log, 400, first=10)
    pipeline = Pipeline(log, SavedModel(), batch_size=BATCH)
    pipeline.step()
    assert steps_to_reply(pipeline, log) > 10 * ROWS
    (reply,) = replies(log)
    assert reply.answer == [ROWS]


def test_updates_go_on_however_many_ask(log: SqliteLog) -> None:
    """More queries come than a step answers, all the time."""
    edges = backlog(log, 100)
    pipeline = Pipeline(
        log, SavedModel(), batch_size=BATCH, max_queries=2, poll_records=5, query_interval=0,
        clock=lambda: 10**12,
    )  # fmt: skip
    steps = 0
    while pipeline.stats.operations - pipeline.stats.queries < edges:
        flood(log, 6)
        pipeline.step()
        steps += 1
        assert steps < 5 * edges / ROWS, "a poll of updates for every few steps"
    assert pipeline.stats.queries > steps / 2


@pytest.mark.parametrize(("cost_ms", "batches"), [(0, 1), (4, 4), (8, 8), (500, 10)])
def test_queries_read_first_take_a_tenth_of_the_time(
    log: SqliteLog, cost_ms: int, batches: int
) -> None:
    """A client asks again as soon as it has its reply. Its queries take `cost_ms` each, a batch of
    updates 10 ms; so many of these come between."""
    now = [10**12]

    class Slow(SavedModel):
        def apply(self, batch: Batch | Columns) -> list[Any]:
            assert isinstance(batch, Columns)
            now[0] += cost_ms if query_rows(batch.kind).any() else 10
            return super().apply(batch)

    backlog(log, 400)
    pipeline = Pipeline(log, Slow(), batch_size=BATCH, clock=lambda: now[0])
    pipeline.run(until=2 * BATCH)
    between = []
    for number in range(1, 6):
        flood(log, 1)
        steps = 0
        while len(sent(log)) < number:
            pipeline.step()
            steps += 1
        between.append(steps - 1)
    assert between[1:] == [batches] * 4


def test_a_poll_asks_for_what_the_batch_lacks(log: SqliteLog) -> None:
    """So little lies before a query that comes next; and whole batches are cut all the same."""
    asked: list[int] = []

    class Noting(SqliteLog):
        def poll_many(self, max_records: int, timeout: float) -> list[Polled]:
            asked.append(max_records)
            return super().poll_many(max_records, timeout)

    backlog(log, 100)
    with Noting(log.path) as source:
        pipeline = Pipeline(source, SavedModel(), batch_size=BATCH)
        assert [pipeline.step() for _ in range(15)] == [BATCH] * 15
        assert asked[0] == intake.FIRST_RECORDS, "which may have any number of rows"
        assert set(asked[1:]) == {3, 5}, "for the 30 rows that a batch lacks, or for all 50"
        log.produce_many("updates", [ingest.encode_row(1, v) for v in range(100)])
        pipeline.run(until=100 * ROWS - pipeline.stats.operations)
        pipeline.step(), pipeline.step()
        assert asked[-1] == 50, "rows of their own are single"


def test_a_replay_reads_each_partition_by_itself(log: SqliteLog, tmp_path: Path) -> None:
    """A backlog that queries went before is not held in memory until their turn comes."""
    backlog(log, 400)
    options: dict[str, Any] = {"batch_size": BATCH, "clock": Ticking()}
    pipeline = Pipeline(log, SavedModel(), tmp_path / "c", **options)
    pipeline.step()
    for count in range(1, 4):
        flood(log, 1)
        steps_to_reply(pipeline, log, count)
    content = pipeline.graph.content()  # type: ignore[attr-defined]
    pipeline.close(checkpoint=False)
    found = replies(log)

    class OneByOne(SqliteLog):
        def poll(self, max_records: int = 500, timeout: float = 0.0) -> list[Polled]:
            raise AssertionError("a replay reads what the journal names")

        poll_many = poll

    again = OneByOne(log.path)
    with Pipeline.resume(tmp_path / "c", again, load=SavedModel.load, **options) as resumed:
        assert resumed.graph.content() == content  # type: ignore[attr-defined]
    assert replies(log)[len(found) :] == found


@pytest.mark.soak
@given(st.data())
@settings(max_examples=soak(15, 1000), deadline=None)
def test_every_answer_is_that_of_its_place(data: st.DataObject) -> None:
    """Whatever is read first: each partition is read in its order, each query is answered as of
    the operations before it, and a resume from anywhere leads to the same."""
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    with tempfile.TemporaryDirectory() as name:
        log = SqliteLog(Path(name) / "log")
        log.create_topic("wide", 2)
        run = _Run(Path(name), data)
        pipeline = run.begun()
        for _ in range(data.draw(st.integers(1, 6))):
            for _ in range(data.draw(st.integers(0, 40))):
                run.write(log, rng)
            for _ in range(data.draw(st.integers(0, 8))):
                pipeline.step(drain=True)
            if data.draw(st.booleans()):
                pipeline = run.resumed(pipeline)
        pipeline.run(until="end")
        run.check(pipeline)
        pipeline.close()
        log.close()


class _Run:
    """A pipeline that is resumed now and then, the batches that it applied, and what it replied."""

    def __init__(self, directory: Path, data: st.DataObject) -> None:
        self.directory, self.data, self.clock = directory, data, Ticking()
        self.written: list[int] = []  # of each record, its partition
        self.batches: dict[int, Columns] = {}  # by version
        self.replies: dict[str, list[Reply]] = {}  # in the order of the stream

    def write(self, log: SqliteLog, rng: np.random.Generator) -> None:
        """Append one record: a query, or updates that have its number as their weight."""
        number, partition = len(self.written), int(rng.integers(0, 4))
        self.written.append(partition)
        if partition == 3:
            u, v = rng.integers(0, 9, 2).tolist()
            log.produce(QUERIES, random_query(rng, f"q{number}", u, v))
        else:
            src, dst = rng.integers(0, 9, (2, int(rng.integers(1, 9))))
            record = ingest.encode_updates(src, dst, np.full(len(src), number))
            log.produce("wide" if partition < 2 else "updates", record, partition % 2)

    def _options(self) -> dict[str, Any]:
        draw = self.data.draw
        return {
            "batch_size": draw(st.integers(1, 60)),
            "poll_records": draw(st.integers(1, 20)),
            "max_queries": draw(st.integers(1, 5)),
            "max_hops": 10,
            "batch_interval": draw(st.sampled_from([0.0, 0.003, 10.0])),
            "checkpoint_operations": draw(st.integers(1, 200)),
            "replies": lambda reply: self.replies.setdefault(reply.id, []).append(reply),
            "dead_letters": lambda letter: None,
            "clock": self.clock,
        }

    def _source(self) -> SqliteLog:
        return SqliteLog(self.directory / "log", topics=("wide", "updates", QUERIES))

    def _watched(self, pipeline: Pipeline) -> Pipeline:
        graph: Any = pipeline.graph
        apply = graph.apply

        def noting(batch: Columns) -> Any:
            answers = apply(batch)
            known = self.batches.setdefault(graph.version, batch)
            assert np.array_equal(known.src, batch.src)
            assert np.array_equal(known.kind, batch.kind)
            return answers

        graph.apply = noting
        return pipeline

    def begun(self) -> Pipeline:
        model = SavedModel(predecessors=True)
        path = self.directory / "c"
        return self._watched(Pipeline(self._source(), model, path, **self._options()))

    def resumed(self, pipeline: Pipeline) -> Pipeline:
        pipeline.close(checkpoint=self.data.draw(st.booleans()))
        pipeline.source.close()  # type: ignore[attr-defined]
        again = Pipeline.resume(
            self.directory / "c", self._source(), load=SavedModel.load, **self._options()
        )
        return self._watched(again)

    def check(self, pipeline: Pipeline) -> None:
        oracle = SavedModel(predecessors=True)
        replied = iter(self.replies.values())
        newest = [0, 0, 0]  # number of each partition of updates
        for version in sorted(self.batches):
            batch = self.batches[version]
            for i in range(len(batch)):
                answers = oracle.apply(batch.rows(i, i + 1))
                if query_rows(batch.kind[i]):
                    for reply in next(replied):
                        assert reply.version == version
                        assert same_answer(reply.answer, answers[0])
                elif batch.weight is not None:
                    number = int(batch.weight[i])
                    partition = self.written[number]
                    assert number >= newest[partition]
                    newest[partition] = number
        assert next(replied, None) is None
        assert oracle.state == pipeline.graph.state  # type: ignore[attr-defined]
