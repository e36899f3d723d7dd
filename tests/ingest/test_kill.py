"""Killed at any point, a pipeline resumes to the state, and to the replies, of an unbroken run."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from ingest import Pipeline, SqliteLog
from lpma import Kind
from tests.conftest import soak
from tests.support import named_stream
from tests.support.killed_stream import (
    OPTIONS,
    POINTS,
    in_a_process,
    ingest_all,
    make_checkpoints_steady,
)
from tests.support.kills import Place, drawn, run
from tests.support.stream_model import (
    SavedModel,
    check_outputs,
    random_records,
    serial,
    weighted,
)
from tests.support.window_model import Op, WindowModel, record_of


def check(log: Path, graph: SavedModel, records: list[bytes]) -> None:
    expected, answers, bad = serial(records)
    assert weighted(graph) == weighted(expected)
    assert graph.markers == expected.markers
    check_outputs(log, answers, bad)


def unbroken(directory: Path, data: list[bytes], **reading: Any) -> Counter[str]:
    """How often each point is called where nobody kills. Leaves a log of these records in
    `directory`."""
    with SqliteLog(directory / "log") as log:
        log.produce_many("updates", data)
    shutil.copy(directory / "log", directory / "copy")
    return in_a_process(directory / "copy", directory / "state", **reading).calls


def killed(
    directory: Path, rng: np.random.Generator, calls: Counter[str], kills: int, **reading: Any
) -> Iterator[tuple[Path, Path]]:
    """The log and its checkpoints after a kill, each time after another."""
    for number, place in enumerate(drawn(rng, calls, kills)):
        log, checkpoint = directory / f"log{number}", directory / f"state{number}"
        shutil.copy(directory / "log", log)
        assert in_a_process(log, checkpoint, place, **reading).killed, place
        if number % 2:  # the resumed one may die too, if it comes by that place
            again = drawn(rng, calls, 1)[0]
            in_a_process(log, checkpoint, again._replace(call=again.call // 4), **reading)
        yield log, checkpoint


@pytest.mark.soak
@pytest.mark.parametrize("kills", [
    pytest.param(10, marks=pytest.mark.system),
    pytest.param(4 * len(POINTS), marks=pytest.mark.integration),
])  # fmt: skip
def test_a_kill_at_any_point_loses_and_repeats_nothing(tmp_path: Path, kills: int) -> None:
    rng = np.random.default_rng(kills)
    records = random_records(rng, 60)
    calls = unbroken(tmp_path, records)
    assert calls.keys() == {*POINTS}
    for log, checkpoint in killed(tmp_path, rng, calls, soak(kills, 8 * kills)):
        graph = ingest_all(log, checkpoint, batch_size=int(rng.integers(1, 20))).graph
        assert isinstance(graph, SavedModel)
        check(log, graph, records)


@pytest.mark.soak
@pytest.mark.integration
def test_a_kill_changes_no_name_and_makes_nothing_late(tmp_path: Path) -> None:
    """As above, with a vertex dictionary, JSON among the records and a late policy."""
    records = named_stream.random_records(np.random.default_rng(6), 60)
    reading: dict[str, Any] = {
        "records": named_stream.JSON,
        "names": True,
        "late": "dead-letter",
        "max_lateness": 30,
    }
    expected = named_stream.serial(records, "dead-letter", 30)
    rng = np.random.default_rng(3)
    calls = unbroken(tmp_path, records, **reading)
    for log, checkpoint in killed(tmp_path, rng, calls, soak(10, 300), **reading):
        pipeline = ingest_all(log, checkpoint, int(rng.integers(1, 20)), **reading)
        assert pipeline.vertices is not None
        names = pipeline.vertices.of(np.arange(len(pipeline.vertices)))
        assert names.tolist() == expected.names
        assert named_stream.named_edges(pipeline) == expected.edges
        with SqliteLog(log, topics=("replies", "dead-letters")) as reader:
            sent = [(r.partition.topic, bytes(r.value)) for r in reader.poll(10**6)]  # type: ignore[arg-type]
        replies = [ingest.decode_reply(data) for topic, data in sent if topic == "replies"]
        letters = [ingest.decode_dead_letter(data) for topic, data in sent if topic != "replies"]
        assert {r.id for r in replies} == set(expected.answers)
        assert all(named_stream.said(r) == expected.answers[r.id] for r in replies)
        assert {letter.offset for letter in letters} == set(expected.letters)


@pytest.mark.soak
@pytest.mark.integration
@pytest.mark.parametrize("late", ["apply", "dead-letter"])
def test_a_kill_changes_no_window(tmp_path: Path, late: str) -> None:
    """The edges, their times and the bound of an unbroken run; a repeated reply is the same,
    though it says what a batch's expiry has left. Weights only grow, so no cut shows at the end."""
    rng = np.random.default_rng(8)
    stream = timed_stream(rng, 60)
    most = 0 if late == "apply" else 10**6
    reading: dict[str, Any] = {"window": 40, "late": late, "max_lateness": most}
    model = WindowModel(40)
    for ops in stream:
        bound = model.bound
        kept = [op for op in ops if late == "apply" or op.kind in (Kind.EDGE, Kind.EXPIRE)
                or bound is None or op.time is None or op.time >= bound]  # fmt: skip
        model.batch(kept)
    data = [record_of(ops, f"q{i}") for i, ops in enumerate(stream)]
    calls = unbroken(tmp_path, data, **reading)
    for log, checkpoint in killed(tmp_path, rng, calls, soak(12, 300), **reading):
        pipeline = ingest_all(log, checkpoint, int(rng.integers(1, 20)), **reading)
        found: Any = pipeline.graph
        times = {key: time for key, (_, time) in found.state.items()}
        assert times == {key: time for key, (_, time) in model.edges.items()}
        assert pipeline.stats.expired_before == model.bound
        with SqliteLog(log, topics=("replies",)) as reader:
            sent = [bytes(r.value) for r in reader.poll(10**6)]  # type: ignore[arg-type]
        assert len(set(sent)) == len({ingest.decode_reply(data).id for data in sent})


def timed_stream(rng: np.random.Generator, count: int) -> list[list[Op]]:
    """Records of one row with a time that rises and falls, among them deletions, expiries and
    queries; some come too late for a window of 40."""
    stream = []
    for at in range(count):
        u, v = (int(x) for x in rng.integers(0, 6, 2))
        time = 3 * at + int(rng.integers(-60, 20))
        kind = Kind(int(rng.choice([0, 0, 0, 0, 1, 4, 5])))
        if kind is Kind.EXPIRE:
            stream.append([Op(kind, time=3 * at - 20)])
        else:
            stream.append([Op(kind, u, v, time=None if kind is Kind.EDGE else time)])
    return stream


STORE = ("lpma:Graph.apply", "ingest.state.journal:Journal.sync",
         "ingest.state.directory:CheckpointDirectory.commit")  # fmt: skip


def ingest_into_store(log: Path, checkpoint: Path) -> None:
    make_checkpoints_steady(checkpoint)
    options: dict[str, Any] = {**OPTIONS, "batch_size": 2000, "checkpoint_operations": 15_000}
    with SqliteLog(log) as source:
        if ingest.has_checkpoint(checkpoint):
            pipeline = Pipeline.resume(checkpoint, source, device="cpu", **options)
        else:
            graph = lpma.Graph(device="cpu", segment_size=8)
            pipeline = Pipeline(source, graph, checkpoint, **options)
        pipeline.run(until="end")
        pipeline.close()


@pytest.mark.soak
@pytest.mark.integration
def test_the_store_killed_again_and_again_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    """Of the 25 batches that there are for each kill, it comes within 20."""
    rng = np.random.default_rng(9)
    kills = soak(4, 40)
    kind = rng.choice([0, 0, 0, 0, 1], 50_000 * kills).astype(np.uint8)
    src, dst = rng.integers(0, 3000, (2, len(kind)))
    weight = rng.integers(-4, 12, len(kind)) / 4
    asked = range(0, len(kind), 3000)
    log = SqliteLog(tmp_path / "log")
    for start in asked:
        part = slice(start, start + 3000)
        columns = src[part], dst[part], weight[part], None, kind[part]
        log.produce("updates", ingest.encode_updates(*columns))
        log.produce("queries", ingest.encode_query(f"q{start}", lpma.Kind.DEGREE, int(src[start])))
    for point in rng.choice(STORE, kills).tolist():
        call = int(rng.integers(2 if point.endswith("commit") else 20))
        place = Place(point, call, bool(rng.integers(2)))
        given = tmp_path / "log", tmp_path / "c"
        assert run(ingest_into_store, *given, points=STORE, place=place).killed, place
    pipeline = Pipeline.resume(tmp_path / "c", log, device="cpu")
    assert pipeline.stats.operations < len(kind)
    pipeline.run(until="end")
    assert pipeline.stats.operations == len(kind) + len(asked)
    assert isinstance(pipeline.graph, lpma.Graph)
    pipeline.graph.check()
    model = lpma.Graph(device="cpu")
    model.apply(lpma.Batch.from_columns(kind, src, dst, weight, np.zeros(len(kind), np.int64)))
    assert weighted(pipeline.graph) == weighted(model)
    pipeline.close()
    log.close()
    with SqliteLog(log.path, topics=("replies",)) as reader:
        sent = [ingest.decode_reply(bytes(r.value)) for r in reader.poll(10**6)]  # type: ignore[arg-type]
    assert {r.id for r in sent} == {f"q{start}" for start in asked}
    assert len({ingest.formats.replies.encode_reply(r) for r in sent}) == len(asked), (
        "each in the same words"
    )
