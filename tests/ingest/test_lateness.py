"""Late operations: which they are, and what becomes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ingest
from ingest import DeadLetter, Partition, Pipeline, PipelineError, SqliteLog
from ingest.pipeline.windows import Lateness
from lpma import Columns
from tests.support.stream_model import SavedModel, weighted

A, B = Partition("a", 0), Partition("b", 0)
edge_times = st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 20)


def timed(times: Any) -> Columns:
    """Appends with these event times, or without any."""
    zeros = np.zeros(2 if times is None else len(times), np.uint32)
    return Columns.validated(0, zeros, zeros, None, times)


@given(st.lists(st.lists(edge_times, max_size=12), max_size=6), st.integers(0, 30) | st.just(2**62))
def test_rows_are_judged_one_by_one(columns: list[list[int]], bound: int) -> None:
    """However they are cut into records, and however far 64 bits reach."""
    lateness = Lateness(bound, {})
    newest: int | None = None
    for times in columns:
        expected = []
        for t in times:
            newest = t if newest is None else max(newest, t)
            expected.append(t < newest - bound)
        column = np.array(times, np.int64)
        late = lateness.late_rows(A, timed(column))
        assert (late is None) == (not any(expected))
        if late is not None:
            assert late.tolist() == expected
            column = column[~late]
        lateness.advance(A, timed(column))


def test_partitions_do_not_make_each_other_late() -> None:
    lateness = Lateness(5, {B: 1000})
    lateness.advance(A, timed([100]))
    assert lateness.late_rows(A, timed([95, 96])) is None
    assert lateness.late_rows(A, timed([94, 96])).tolist() == [True, False]  # type: ignore[union-attr]
    assert lateness.late_rows(B, timed([994])).tolist() == [True]  # type: ignore[union-attr]
    assert lateness.late_rows(A, timed(None)) is None


def test_a_window_makes_them_late_for_each_other() -> None:
    lateness = Lateness(5, {B: 100}, window=50)
    assert lateness.late_rows(A, timed([49, 50])).tolist() == [True, False]  # type: ignore[union-attr]
    lateness.advance(A, timed([200]))
    assert lateness.late_rows(B, timed([149, 150])).tolist() == [True, False]  # type: ignore[union-attr]


RECORDS = [
    ingest.encode_updates([1, 2, 3], [1, 2, 3], time=[100, 80, 110]),
    ingest.encode_row(4, 4, time=89),
    ingest.encode_row(5, 5),
    ingest.encode_updates(
        [6, 7, 8], [6, 7, 8], [0.5, 1.5, 2.5], [105, 200, 150], producer="p", seq=1
    ),
    ingest.encode_updates([9, 10], [9, 10], time=[1, 2]),
]


def run(log: SqliteLog, **settings: Any) -> tuple[Pipeline, list[DeadLetter]]:
    letters: list[DeadLetter] = []
    log.produce_many("updates", RECORDS)
    pipeline = Pipeline(log, SavedModel(), dead_letters=letters.append, **settings)
    pipeline.run(until="end")
    return pipeline, letters


def applied(pipeline: Pipeline) -> list[int]:
    return [u for u, _ in weighted(pipeline.graph)]


def test_apply_takes_all() -> None:
    with SqliteLog(":memory:") as log:
        pipeline, letters = run(log)
    assert applied(pipeline) == list(range(1, 11))
    assert letters == []


def test_dead_letters_hold_the_late_rows_as_records() -> None:
    with SqliteLog(":memory:") as log:
        pipeline, letters = run(log, late="dead-letter", max_lateness=20)
    assert applied(pipeline) == [1, 2, 3, 5, 6, 7]
    assert [letter.offset for letter in letters] == [1, 3, 4]
    assert {(letter.topic, letter.partition) for letter in letters} == {("updates", 0)}
    assert letters[0].value == RECORDS[1], "all of it is late: the record as it came"
    late = ingest.decode_record(letters[1].value)
    assert (late.batch.src.tolist(), late.producer, late.seq) == ([8], "p", 1)
    assert late.batch.weight is not None
    assert late.batch.time is not None
    assert (late.batch.weight.tolist(), late.batch.time.tolist()) == ([2.5], [150])
    assert letters[1].size == len(letters[1].value)
    assert "1 of 3 rows, the first of them row 2, lie more than 20 behind" in letters[1].reason


def test_reject_takes_whole_records_and_does_not_move_on_by_them() -> None:
    with SqliteLog(":memory:") as log:
        pipeline, letters = run(log, late="reject", max_lateness=20)
        assert [letter.offset for letter in letters] == [1, 3, 4]
        assert applied(pipeline) == [1, 2, 3, 5]
        assert [letter.value for letter in letters] == [RECORDS[1], RECORDS[3], RECORDS[4]]
        log.produce("updates", ingest.encode_row(11, 11, time=95))
        log.produce("updates", RECORDS[3])
        pipeline.run(until="end")
    assert applied(pipeline) == [1, 2, 3, 5, 11], "200 was rejected, so 110 is the newest"
    assert pipeline.stats.duplicates == 1, "a record that was rejected was read all the same"


@pytest.mark.parametrize("bounds", [{"max_lateness": 25}, {"max_lateness": 1000, "window": 25}])
@pytest.mark.parametrize("batch_size", [1, 2, 3, 100])
def test_a_file_loses_its_late_rows_one_by_one(
    tmp_path: Path, batch_size: int, bounds: dict[str, int]
) -> None:
    """What lies outside a window is late, too, and nothing else expires by it that came later."""
    rng = np.random.default_rng(2)
    times = (np.arange(60) * 5 + rng.integers(-40, 40, 60)).tolist()
    path = tmp_path / "edges.csv"
    path.write_text("".join(f"{i},{i},1,{t}\n" for i, t in enumerate(times)))
    newest, late = -(2**63), []
    for i, t in enumerate(times):
        newest = max(newest, t)
        if t < newest - 25:
            late.append(i)
    letters: dict[int, DeadLetter] = {}
    options: dict[str, Any] = {
        "batch_size": batch_size,
        "dead_letters": lambda letter: letters.setdefault(letter.offset, letter),
    }
    reading: dict[str, Any] = {"late": "dead-letter", **bounds}
    source = ingest.FileSource(path, columns="src dst weight time")
    pipeline = Pipeline(source, SavedModel(), tmp_path / "c", **reading, **options)
    pipeline.run(until=20)
    pipeline.close(checkpoint=batch_size % 2 == 1)
    again = ingest.FileSource(path, columns="src dst weight time", chunk=7)
    resumed = Pipeline.resume(tmp_path / "c", again, load=SavedModel.load, **options)
    resumed.run()
    bound = newest - 25 if "window" in bounds else -(2**63)
    assert sorted(applied(resumed)) == [
        i for i, t in enumerate(times) if i not in late and t >= bound
    ]
    assert resumed.stats.late_by_window == 0
    assert len(late) > 5
    assert sorted(letters) == late
    assert all(ingest.decode(letters[i].value).src.tolist() == [i] for i in late)
    resumed.close()


@pytest.mark.parametrize(
    "settings", [{"late": "drop"}, {"max_lateness": -1}, {"max_lateness": 1.5}, {"names": "sparse"},
                 {"records": "json"}, {"max_lateness": 2**63}],
)  # fmt: skip
def test_settings_must_make_sense(settings: dict[str, Any]) -> None:
    with SqliteLog(":memory:") as log, pytest.raises(PipelineError, match=next(iter(settings))):
        Pipeline(log, SavedModel(), **settings)


def test_a_lateness_without_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is refused where a stream begins; a checkpoint of an older release may say so."""
    useless: dict[str, Any] = {"max_lateness": 5}
    with SqliteLog(tmp_path / "log") as log:
        log.create_topic("updates")
        with pytest.raises(PipelineError, match="say what becomes of it"):
            Pipeline(log, SavedModel(), tmp_path / "c", **useless)
        assert not (tmp_path / "c").exists()
        with monkeypatch.context() as older:
            older.setattr("ingest.pipeline.recovery.check_lateness", lambda settings: None)
            Pipeline(log, SavedModel(), tmp_path / "c", **useless).close()
        Pipeline.resume(tmp_path / "c", log, load=SavedModel.load, **useless).close()


def test_a_resume_reads_on_as_the_checkpoint_says(tmp_path: Path) -> None:
    reading: dict[str, Any] = {
        "late": "reject",
        "max_lateness": 7,
        "records": ingest.Fields("user").of_topic(),
    }
    with SqliteLog(tmp_path / "log") as log:
        log.create_topic("updates")
        Pipeline(log, SavedModel(), tmp_path / "c", **reading).close()
        resumed = Pipeline.resume(tmp_path / "c", log, load=SavedModel.load)
        assert {name: getattr(resumed.settings, name) for name in reading} == reading
        resumed.close()
        Pipeline.resume(tmp_path / "c", log, load=SavedModel.load, **reading).close()
        with pytest.raises(PipelineError, match=r"max_lateness is 8, but .* with 7"):
            Pipeline.resume(tmp_path / "c", log, load=SavedModel.load, max_lateness=8)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_record_cut_by_a_checkpoint_is_judged_as_it_was(tmp_path: Path, steps: int) -> None:
    """Its own newest time counts from its end on: else its first rows would be late again."""
    with SqliteLog(tmp_path / "log") as log:
        times = [10, 11, 100, 101, 94]
        log.produce("updates", ingest.encode_updates(range(5), range(5), time=times))
        log.produce("updates", ingest.encode_row(5, 5, time=95))
        reading: dict[str, Any] = {"late": "dead-letter", "max_lateness": 5}
        pipeline = Pipeline(log, SavedModel(), tmp_path / "c", batch_size=1, **reading)
        for _ in range(steps):
            pipeline.step()
        pipeline.close()
        source = SqliteLog(log.path)
        resumed = Pipeline.resume(tmp_path / "c", source, load=SavedModel.load, batch_size=1)
        resumed.run(until="end")
        assert applied(resumed) == [0, 1, 2, 3]
        assert {letter.offset for letter in resumed.outputs.kept} == {0, 1}
        resumed.close()
        source.close()
