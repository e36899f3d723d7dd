"""Memory that runs out in the middle of a stream: a batch waits or is applied, once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from ingest import Pipeline, PipelineError, SqliteLog
from lpma import AnswersTooLarge, OutOfMemory
from tests.ingest.test_stream_devices import OPTIONS, check_graph, mixed_records, new_graph
from tests.lpma import test_allocation, test_cuda_streams
from tests.support.oracles import assert_same
from tests.support.stream_model import same_answer, serial, weighted


def failing(device: str, n: int) -> Any:
    """While it is entered, the n-th allocation on the device fails."""
    if device == "cpu":
        return test_allocation.Failing(n)
    import cupy

    return test_cuda_streams.Failing(cupy, n)


def replies_in(log: Path) -> Iterator[ingest.Reply]:
    with SqliteLog(log, topics=("replies",)) as reader:
        for record in reader.poll(10**6):
            yield ingest.decode_reply(bytes(record.value))  # type: ignore[arg-type]


def test_every_allocation_of_a_stream_fails_in_turn(device: str, tmp_path: Path) -> None:
    """After OutOfMemory the next step applies the same batch: the first allocation of the first
    try fails, the second of the second … and in the end nothing is lost or there twice."""
    records = mixed_records(13, 200)
    expected, answers, _ = serial(records)
    failed = 0  # tries, those included in which only an answer found no memory
    with SqliteLog(tmp_path / "log") as log:
        log.produce_many("updates", records)
        pipeline = Pipeline(log, new_graph(device), tmp_path / "c", **OPTIONS)
        n, operations = 1, 1
        while operations:
            before = pipeline.positions(), pipeline.stats.operations, pipeline.graph.version
            with failing(device, n) as tried:
                try:
                    operations = pipeline.step(drain=True)
                    n = 1
                except OutOfMemory:
                    n += 1
            failed += tried.calls >= tried.n
            if n > 1 and pipeline.stats.operations == before[1]:
                assert (
                    pipeline.positions(),
                    pipeline.stats.operations,
                    pipeline.graph.version,
                ) == before
                assert pipeline._pending is not None
        assert pipeline.stats.operations == len(answers) + sum(
            len(ingest.decode(data)) for data in records if _is_good(data)
        )
        pipeline.close()
        again = Pipeline.resume(tmp_path / "c", log, device=device, **OPTIONS)
        check_graph(again.graph, expected)
        again.close()
    assert failed > 20
    check_graph(pipeline.graph, expected)
    for reply in replies_in(tmp_path / "log"):
        answered = answers.pop(reply.id)
        assert reply.error == "memory" or same_answer(reply.answer, answered)
    assert not answers


def _is_good(data: bytes) -> bool:
    try:
        ingest.decode_record(data)
    except ingest.RecordError:
        return False
    return True


def test_answers_that_find_no_memory_are_refused_and_nothing_is_applied_twice(
    device: str, tmp_path: Path
) -> None:
    """The updates of their batch are applied, so it is not tried again."""

    class Full(lpma.Graph):
        def apply(self, batch: Any, watch: Any = None) -> Any:
            answers = super().apply(batch, watch)
            if len(answers):
                raise AnswersTooLarge("ask for less at once")
            return answers

    with SqliteLog(tmp_path / "log") as log:
        query = ingest.encode_query("q", lpma.Kind.SUCCESSORS, 1)
        log.produce_many("updates", [ingest.encode_row(1, 2, 0.5), query, query[:-1]])
        log.produce("updates", ingest.encode_row(1, 2, 0.25))
        pipeline = Pipeline(log, Full(device=device), tmp_path / "c", **OPTIONS)
        assert pipeline.run(until="end") == 3
        assert weighted(pipeline.graph) == {(1, 2): 0.75}
        pipeline.close()
        (reply,) = replies_in(tmp_path / "log")
        assert (reply.id, reply.error, reply.answer) == ("q", "memory", None)
        assert "ask for less" in str(reply.message)


@pytest.mark.parametrize("where", ["replies", "dead_letters", "clock"])
def test_memory_that_runs_out_elsewhere_stops_the_pipeline(where: str, tmp_path: Path) -> None:
    """Invariant 4: OutOfMemory of what is not the graph (a callback that asks one of its own) comes
    where the batch may be applied, a letter taken, a record polled. No further step is taken, and a
    resume applies each record once and sends what was not sent."""
    calls = 0
    sent: list[Any] = []

    def call(*output: Any) -> int:
        nonlocal calls
        calls += 1
        if calls == (2 if where == "clock" else 1):
            raise OutOfMemory("of another graph")
        sent.extend(output)
        return calls

    options: dict[str, Any] = {"replies": lambda reply: None, where: call}
    with SqliteLog(tmp_path / "log") as log:
        query = ingest.encode_query("q", lpma.Kind.SUCCESSORS, 1)
        log.produce_many("updates", [ingest.encode_row(1, 2, 0.5), query, query[:-1]])
        with Pipeline(log, lpma.Graph(device="cpu"), tmp_path / "c", **options) as pipeline:
            with pytest.raises(OutOfMemory, match="another"):
                pipeline.step(drain=True)
            with pytest.raises(PipelineError, match="resume"):
                pipeline.step(drain=True)
        with Pipeline.resume(tmp_path / "c", log, device="cpu", **options) as pipeline:
            pipeline.run(until="end")
            assert weighted(pipeline.graph) == {(1, 2): 0.5}
            assert pipeline.stats.operations == 2
    assert len(sent) == (where != "clock")


@pytest.mark.gpu
def test_a_device_that_is_full_stops_nothing_for_good(cupy: Any, tmp_path: Path) -> None:
    """CuPy's pool is at its limit: the batch waits, and with more room the next step applies it."""
    rng = np.random.default_rng(3)
    src, dst = rng.integers(0, 1 << 20, (2, 1 << 20))
    pool = cupy.get_default_memory_pool()
    with SqliteLog(tmp_path / "log") as log:
        for start in range(0, len(src), 1 << 16):
            part = slice(start, start + (1 << 16))
            log.produce("updates", ingest.encode_updates(src[part], dst[part]))
        pipeline = Pipeline(
            log, lpma.Graph(device="cuda"), tmp_path / "c", batch_size=1 << 19, batch_interval=10.0
        )
        pool.free_all_blocks()
        pool.set_limit(size=pool.total_bytes() + (4 << 20))
        try:
            for _ in range(2):
                with pytest.raises(OutOfMemory, match="unapplied"):
                    pipeline.step()
        finally:
            pool.set_limit(size=0)
        assert pipeline.run(until="end") == len(src)
        pipeline.close()
        again = Pipeline.resume(tmp_path / "c", log, device="cuda")
        again.close()
    here = lpma.Graph(device="cpu")
    here.insert(src, dst)
    expected = here.snapshot()
    for graph in (pipeline.graph, again.graph):
        assert isinstance(graph, lpma.Graph)
        s = graph.snapshot()
        for name in ("indptr", "indices", "weights"):
            assert_same(getattr(s, name), getattr(expected, name), name)
