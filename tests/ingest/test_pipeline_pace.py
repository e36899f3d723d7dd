"""How far a pipeline runs, when a batch is closed, and settings that make no sense."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import ingest
from ingest import Pipeline, PipelineError, SqliteLog
from ingest.types import Polled, Position
from lpma import Kind, OutOfMemory
from tests.support.stream_model import SavedModel, weighted
from tests.support.topics import UPDATES
from tests.support.waiting import HANGS_S


def test_until_a_number_the_end_a_condition_or_a_stop(log: SqliteLog) -> None:
    log.produce_many("updates", [ingest.encode_updates(range(10), range(10))] * 10)
    pipeline = Pipeline(log, SavedModel(), batch_size=8)
    seen: list[int] = []
    assert pipeline.run(until=25, progress=lambda stats: seen.append(stats.operations)) == 25
    assert seen == [8, 8, 8, 1]
    assert pipeline.positions()[UPDATES] == Position(2, 5)
    assert pipeline.run(until=lambda p: p.stats.operations >= 30) == 8
    assert pipeline.run(until=0) == 0

    def stopping(stats: ingest.BatchStats) -> None:
        if stats.total_operations > 50:
            pipeline.stop()

    assert pipeline.run(progress=stopping) == 24
    assert pipeline.run(until="end") == 43
    assert pipeline.step() == 0
    assert pipeline.graph.version == len(pipeline.stats.history)


def test_a_batch_waits_for_more_within_its_interval(log: SqliteLog) -> None:
    pipeline = Pipeline(log, SavedModel(), batch_interval=HANGS_S, batch_size=2)
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

    def poll_many(self, max_records: int, timeout: float) -> list[Polled]:
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
        assert pipeline.stats.queries == 1


def test_memory_that_runs_out_leaves_the_batch_for_another_step(
    log: SqliteLog, tmp_path: Path
) -> None:
    class Full(SavedModel):
        fail = 0

        def apply(self, batch: Any) -> Any:
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
