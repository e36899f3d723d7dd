"""Checkpoints of a pipeline, and resuming from them: nothing lost, nothing applied twice."""

from __future__ import annotations

import tempfile
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
    FileSource,
    LockedError,
    OffsetError,
    Pipeline,
    PipelineError,
    Reply,
    SqliteLog,
)
from ingest.errors import IdentityError
from ingest.state.journal import Journal
from lpma import Kind
from tests.conftest import real_graph, soak
from tests.support.stream_model import SavedModel, random_records, same_answer, serial, weighted
from tests.support.topics import Ticking, replies


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
            place = pipeline.positions(), pipeline.stats.operations
            pipeline.close(checkpoint=data.draw(st.booleans()))
            source.close()
            source = SqliteLog(log.path, topics=("wide",))
            pipeline = Pipeline.resume(directory, source, load=SavedModel.load, **options())
            assert pipeline.graph.content() == before  # type: ignore[attr-defined]
            after = pipeline.positions()
            assert pipeline.stats.operations == place[1]
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
    record = ingest.encode_updates(range(10), range(10), producer="p", seq=5)
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
        assert pipeline.stats.replayed == 24
        pipeline.close(checkpoint=False)
    pipeline = Pipeline.resume(tmp_path / "c", SqliteLog(log.path), load=SavedModel.load)
    pipeline.run(until="end")
    pipeline.close()
    assert weighted(pipeline.graph) == weighted(serial(records)[0])
    pipeline = Pipeline.resume(tmp_path / "c", SqliteLog(log.path), load=SavedModel.load)
    assert pipeline.stats.replayed == 0


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
    pipeline = Pipeline(
        log, SavedModel(), tmp_path / "c", batch_size=10, checkpoint_operations=30,
        batch_interval=1000,  # so that each batch closes by size, on a busy machine, too
    )  # fmt: skip

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


@pytest.mark.parametrize("saved", [True, False])
def test_stamps_do_not_fall_over_a_resume(saved: bool, log: SqliteLog, tmp_path: Path) -> None:
    """The clock was set back; the checkpoint says how far it was, or the journal does."""
    log.produce("updates", ingest.encode_row(1, 2))
    pipeline = Pipeline(log, SavedModel(), tmp_path / "c", clock=lambda: 2000)
    pipeline.step(drain=True)
    pipeline.close(checkpoint=saved)
    log.produce("updates", ingest.encode_row(1, 3))
    options: dict[str, Any] = {"load": SavedModel.load, "clock": lambda: 1000}
    with Pipeline.resume(tmp_path / "c", log, **options) as pipeline:
        assert (pipeline.stats.replayed, pipeline.step(drain=True)) == (0 if saved else 1, 1)
        assert pipeline.stats.history[-1].time == 2000


def test_replies_leave_once_the_journal_is_synced(
    log: SqliteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 3 of pipeline.py: all that the journal was given, the batch's end too."""
    events: list[str] = []
    for name in ("append", "sync"):
        done = getattr(Journal, name)

        def noted(self: Any, *given: Any, name: str = name, done: Any = done) -> None:
            done(self, *given)
            events.append(name)

        monkeypatch.setattr(Journal, name, noted)
    queries = [ingest.encode_query(f"q{i}", Kind.DEGREE, 1) for i in range(4)]
    log.produce_many("updates", [ingest.encode_row(1, 2), *queries])
    options: dict[str, Any] = {"replies": lambda reply: events.append("reply"), "batch_size": 3}
    with Pipeline(log, SavedModel(), tmp_path / "c", **options) as pipeline:
        pipeline.run(until="end")
    cut = ["append", "sync", "reply", "reply"]
    assert events == ["append", *cut, *cut]


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
    assert resumed.stats.operations == 12_345
    assert resumed.run() == len(rows) - 12_345
    assert isinstance(resumed.graph, lpma.Graph)
    resumed.graph.check()
    expected = lpma.Graph(device="cpu")
    expected.insert(graph["src"], graph["dst"], graph["w"].astype(float), graph["t"])
    assert weighted(resumed.graph) == weighted(expected)
    resumed.close()


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_a_dead_letter_leaves_once_however_often_a_stream_is_stopped_and_resumed(
    data: st.DataObject,
) -> None:
    """Each stop is clean, and may find bad records, and records of which some rows are late, read
    ahead or taken in part."""
    kinds = data.draw(
        st.lists(st.sampled_from(["row", "rows", "bad", "late"]), min_size=1, max_size=15)
    )
    with tempfile.TemporaryDirectory() as name:
        log, expected = SqliteLog(Path(name) / "log"), []
        for offset, kind in enumerate(kinds):
            time = [1000, 0, 1000] if kind == "late" else [1000] * (3 if kind == "rows" else 1)
            record = ingest.encode_updates([offset] * len(time), [1] * len(time), time=time)
            log.produce("updates", b"bad" if kind == "bad" else record)
            expected += [offset] if kind in ("bad", "late") else []
        source, directory = SqliteLog(log.path, topics=("updates",)), Path(name) / "checkpoint"
        letters: list[int] = []
        counted = 0
        while True:
            options: dict[str, Any] = {
                "dead_letters": lambda letter: letters.append(letter.offset), "late": "reject",
                "poll_records": data.draw(st.integers(1, 10)), "batch_interval": 0.0,
            }  # fmt: skip
            if directory.exists():
                pipeline = Pipeline.resume(directory, source, load=SavedModel.load, **options)
            else:
                pipeline = Pipeline(source, SavedModel(), directory, max_lateness=1, **options)
            with pipeline:
                limit = data.draw(st.integers(1, 4))
                while (found := pipeline.step(limit, drain=True)) and data.draw(st.booleans()):
                    pass
            counted += pipeline.outputs.rejected
            if not found and source.at_end():
                break
        log.close()
        source.close()
    assert sorted(letters) == letters == expected
    assert counted == len(letters)
