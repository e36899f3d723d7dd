"""The whole road on every device: the embedded log, and bytes that a broker sent, into a store
there, against the serial model. What the pipeline itself promises is tested elsewhere, on the model
in the place of a store; here it is the store and its images that must hold."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from algorithms import core_numbers, triangle_count
from ingest import Pipeline, SqliteLog
from tests.support.killed_stream import make_checkpoints_steady
from tests.support.kills import Place, run
from tests.support.oracles import assert_same
from tests.support.peers import core_numbers_networkx, triangles_networkx
from tests.support.recorded_kafka import SPAN, RecordedSource
from tests.support.stream_model import (
    SavedModel,
    check_outputs,
    random_records,
    same_answer,
    serial,
    weighted,
)

VERTICES = 60
OPTIONS: dict[str, Any] = {
    "poll_records": 9,
    "batch_size": 90,
    # Batches close by size and checkpoints are due by it, in every run alike, however slow.
    "batch_interval": 1e6,
    "query_interval": 1e6,
    "checkpoint_interval": 1e6,
    "checkpoint_operations": 400,
}


def mixed_records(seed: int, count: int, first: int = 0) -> list[bytes]:
    """Small records of every form, queries and bad ones among them, and now and then columns of
    some hundred operations of every kind."""
    rng = np.random.default_rng(seed)
    records = random_records(rng, count, VERTICES, first)
    for place in range(0, count, 40):
        src, dst = rng.integers(0, VERTICES, (2, 300))
        kind = rng.choice([0, 1, 2, 3, 11], 300, p=[0.6, 0.17, 0.02, 0.01, 0.2])
        weight = rng.integers(-4, 12, 300) / 4
        records.insert(place, ingest.encode_updates(src, dst, weight, None, kind))
    return records


def new_graph(device: str) -> lpma.Graph:
    return lpma.Graph(device=device, predecessors=True)


def check_graph(graph: Any, expected: SavedModel, vertices: int = VERTICES) -> None:
    graph.check()
    assert weighted(graph) == weighted(expected)
    ids = np.arange(vertices)
    assert_same(graph.has_vertices(ids), expected.has_vertices(ids))


# Against the model ----------------------------------------------------------------------------


def test_a_stream_is_the_serial_models(device: str, tmp_path: Path) -> None:
    """Records come while the pipeline runs; checkpoints are written beside it, and the last one
    leads to the same graph again."""
    records: list[bytes] = []
    with SqliteLog(tmp_path / "log") as log:
        log.create_topic("updates")
        pipeline = Pipeline(log, new_graph(device), tmp_path / "c", **OPTIONS)
        for turn in range(4):
            more = mixed_records(turn, 120, first=120 * turn)
            log.produce_many("updates", more)
            pipeline.run(until="end")
            records += more
            expected, answers, bad = serial(records)
            check_graph(pipeline.graph, expected)
            check_outputs(tmp_path / "log", answers, bad)
        figures = pipeline.stats.checkpoint_figures
        assert figures is not None
        assert figures.number > 0
        pipeline.close(checkpoint=False)
        again = Pipeline.resume(tmp_path / "c", log, device=device, **OPTIONS)
        assert again.stats.operations == pipeline.stats.operations
        check_graph(again.graph, expected)
        again.close()


@pytest.mark.parametrize("gone", [1, 50])
def test_a_record_of_thousands_is_cut_anywhere(device: str, gone: int, tmp_path: Path) -> None:
    """Batches that end inside records, queries between them; the times too are the model's."""
    rng = np.random.default_rng(gone)
    records = []
    for i in range(6):
        src, dst = rng.integers(0, VERTICES, (2, 2000))
        kind = rng.choice([0, 1, 11], 2000, p=[0.9 - gone / 100, gone / 100, 0.1]).astype(np.uint8)
        records.append(ingest.encode_updates(src, dst, None, np.arange(2000), kind))
        records.append(ingest.encode_query(f"q{i}", lpma.Kind.SUCCESSORS, i))
    expected, answers, _ = serial(records)
    with SqliteLog(tmp_path / "log") as log:
        log.produce_many("updates", records)
        pipeline = Pipeline(log, new_graph(device), **{**OPTIONS, "batch_size": 777})
        pipeline.run(until="end")
        assert isinstance(pipeline.graph, lpma.Graph)
        assert_same(pipeline.graph.snapshot().times, expected.snapshot().times)
        pipeline.close()
    check_graph(pipeline.graph, expected)
    check_outputs(tmp_path / "log", answers, [])


def test_recorded_bytes_of_kafka(device: str) -> None:
    """Batches of 4096 columnar operations a record among small ones, as a broker sent them."""
    source = RecordedSource()
    values = [r.value if isinstance(r.value, bytes) else b"" for r in source.records]
    expected, answers, bad = serial(values)
    sent: list[ingest.Reply] = []
    letters: list[ingest.DeadLetter] = []
    pipeline = Pipeline(
        source, new_graph(device), replies=sent.append, dead_letters=letters.append,
        batch_size=3000, batch_interval=10.0, query_interval=10.0,
    )  # fmt: skip
    pipeline.run(until="end")
    check_graph(pipeline.graph, expected, SPAN)
    assert {reply.id: same_answer(reply.answer, answers[reply.id]) for reply in sent} == (
        dict.fromkeys(answers, True)
    )
    assert [letter.offset for letter in letters] == bad
    assert len(bad) >= 4


def test_algorithms_while_the_stream_goes_on(device: str) -> None:
    """A snapshot is analysed beside the batches that follow it."""
    there, here = (
        Pipeline(
            RecordedSource(), new_graph(name), replies=lambda _: None, dead_letters=lambda _: None,
            batch_size=3000, batch_interval=10.0, query_interval=10.0,
        )
        for name in (device, "cpu")
    )  # fmt: skip
    with ThreadPoolExecutor(2) as pool:
        pending = []
        while there.step(drain=True):
            here.step(drain=True)
            snapshots = [pipeline.graph.snapshot() for pipeline in (there, here)]  # type: ignore[attr-defined]
            found = [pool.submit(f, snapshots[0]) for f in (core_numbers, triangle_count)]
            pending.append((snapshots[1], found))
        assert len(pending) > 4
        for s, (cores, triangles) in pending:
            assert_same(cores.result(), core_numbers(s))
            assert triangles.result() == triangle_count(s) > 0
    src = np.repeat(np.arange(s.num_rows), np.diff(s.indptr))
    assert_same(core_numbers(s), core_numbers_networkx(s.num_rows, src, s.indices))
    assert triangle_count(s) == triangles_networkx(s.num_rows, src, s.indices)


# Kills ----------------------------------------------------------------------------------------

POINTS = ("lpma:Graph.apply", "ingest.state.directory:CheckpointDirectory.commit")


def ingest_all(log: Path, checkpoint: Path, device: str, batch_size: int) -> None:
    make_checkpoints_steady(checkpoint)
    options = {**OPTIONS, "batch_size": batch_size}
    with SqliteLog(log) as source:
        if ingest.has_checkpoint(checkpoint):
            pipeline = Pipeline.resume(checkpoint, source, device=device, **options)
        else:
            pipeline = Pipeline(source, new_graph(device), checkpoint, **options)
        pipeline.run(until="end")


@pytest.mark.system
def test_a_killed_stream_goes_on_as_if_it_had_not_been(device: str, tmp_path: Path) -> None:
    """In batches of another size each time: those that were cut before a kill stay as they were."""
    records = mixed_records(9, 800)
    with SqliteLog(tmp_path / "log") as log:
        log.produce_many("updates", records)
    places = Place(POINTS[0], 12, after=True), Place(POINTS[0], 17), Place(POINTS[1], 1)
    for place, size in zip(places, (90, 50, 70), strict=True):
        given = tmp_path / "log", tmp_path / "c", device, size
        assert run(ingest_all, *given, points=POINTS, place=place).killed
    with SqliteLog(tmp_path / "log") as log:
        pipeline = Pipeline.resume(tmp_path / "c", log, device=device, **OPTIONS)
        assert 12 * OPTIONS["batch_size"] <= pipeline.stats.operations < 5000
        pipeline.run(until="end")
        pipeline.close()
    expected, answers, bad = serial(records)
    check_graph(pipeline.graph, expected)
    check_outputs(tmp_path / "log", answers, bad)


# From one device to the other -----------------------------------------------------------------


@pytest.mark.parametrize("first, second", [
    ("cpu", "cpu"),
    pytest.param("cpu", "cuda", marks=pytest.mark.gpu),
    pytest.param("cuda", "cpu", marks=pytest.mark.gpu),
])  # fmt: skip
def test_a_checkpoint_goes_to_another_device(
    request: pytest.FixtureRequest, tmp_path: Path, first: str, second: str
) -> None:
    """There and back: what is replayed from the journal is applied where the first did not."""
    if "cuda" in (first, second):
        request.getfixturevalue("cupy")
    records = mixed_records(11, 500)
    with SqliteLog(tmp_path / "log") as log:
        log.produce_many("updates", records)
        pipeline = Pipeline(log, new_graph(first), tmp_path / "c", **OPTIONS)
        for device in (second, first):
            for _ in range(7):
                pipeline.step()
            pipeline.close(checkpoint=False)
            pipeline = Pipeline.resume(tmp_path / "c", log, device=device, **OPTIONS)
            assert isinstance(pipeline.graph, lpma.Graph)
            assert pipeline.graph.device.startswith(device)
        pipeline.run(until="end")
        pipeline.close()
    expected, answers, bad = serial(records)
    check_graph(pipeline.graph, expected)
    check_outputs(tmp_path / "log", answers, bad)
