"""Rows that lie too far out: times past the clock, ids past what is tracked. And times that look to
be in another unit."""

from __future__ import annotations

import json
import logging
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingest
import lpma
from ingest import Fields, Pipeline, PipelineError, SqliteLog
from ingest.errors import AllRecordsBad
from ingest.formats.times import UNITS, unit_of
from ingest.pipeline.record_decoder import MAX_TRACKED
from ingest.settings import RecordSettings
from ingest.types import Position
from lpma import Kind
from tests.conftest import soak
from tests.support.stream_model import SavedModel
from tests.support.window_model import Op, WindowModel, record_of, records

NOW = 1_700_000_000_000
DAY = 86_400_000
AHEAD = 20

when = st.integers(-60, 60).map(lambda behind: NOW + behind) | st.sampled_from(
    [NOW * 1000, NOW + AHEAD, NOW + AHEAD + 1, -(2**63), 2**63 - 1]
)


def is_far(op: Op, stamp: int) -> bool:
    return op.kind is not Kind.EXPIRE and op.time is not None and op.time > stamp + AHEAD


@pytest.mark.soak
@given(st.data())
@settings(max_examples=soak(40, 1000), deadline=None)
def test_a_far_row_is_as_if_it_had_not_been_there(data: st.DataObject) -> None:
    """Whatever the others are, wherever a stream is resumed, and whatever the clock says then."""
    stream = data.draw(records(when=when))
    model, now = WindowModel(30), [NOW]
    letters: list[ingest.DeadLetter] = []
    options: dict[str, Any] = {
        "batch_size": 1, "clock": lambda: now[0], "dead_letters": letters.append,
        "replies": lambda _: None,
    }  # fmt: skip
    far = 0
    with tempfile.TemporaryDirectory() as name, SqliteLog(Path(name) / "log") as log:
        directory = Path(name) / "c"
        log.create_topic("updates")
        pipeline = Pipeline(log, SavedModel(), directory, window=30, max_ahead=AHEAD, **options)
        for i, ops in enumerate(stream):
            log.produce("updates", record_of(ops, f"q{i}"))
            pipeline.run(until="end")
            for op in ops:
                far += is_far(op, now[0])
                if not is_far(op, now[0]):
                    model.batch([op], now[0])
            if data.draw(st.integers(0, 3)) == 0:
                pipeline.close(checkpoint=data.draw(st.booleans()))
                now[0] += data.draw(st.sampled_from([0, 5, 2 * AHEAD]))
                pipeline = Pipeline.resume(directory, log, load=SavedModel.load, **options)
        model_graph: Any = pipeline.graph
        assert model_graph.state == model.edges
        assert pipeline.stats.expired_before == model.bound
        once = {(letter.offset, letter.kind): letter.value for letter in letters}
        assert sum(len(ingest.decode(value)) for value in once.values()) == far
        pipeline.close()


def run(log: SqliteLog, graph: Any = None, **given: Any) -> Pipeline:
    graph = lpma.Graph(device="cpu") if graph is None else graph
    pipeline = Pipeline(log, graph, clock=lambda: NOW, **given)
    pipeline.run(until="end")
    return pipeline


FAR = [NOW, NOW * 1000, NOW + DAY, NOW + DAY + 1]
ROWS = [ingest.encode_row(i, i, time=t) for i, t in enumerate(FAR)]


@pytest.mark.parametrize("form", ["rows", "columns", "json"])
def test_it_is_a_dead_letter_that_says_the_unit(form: str) -> None:
    with SqliteLog(":memory:") as log:
        given: dict[str, Any] = {}
        if form == "columns":
            log.produce("updates", ingest.encode_updates(range(4), range(4), time=FAR))
        elif form == "rows":
            log.produce_many(
                "updates", [ingest.encode_row(i, i, time=t) for i, t in enumerate(FAR)]
            )
        else:
            given["records"] = Fields(time="at")
            rows = [{"src": i, "dst": i, "at": t} for i, t in enumerate(FAR)]
            log.produce_many("updates", [json.dumps(row).encode() for row in rows])
        pipeline = run(log, window="24h", **given)
        assert pipeline.outputs.rejected_by == {"ahead": 1 if form == "columns" else 2}
        assert "it looks like microseconds: declare" in pipeline.outputs.kept[0].reason
        assert pipeline.graph.num_edges == 2
        assert pipeline.stats.expired_before == NOW


@pytest.mark.parametrize("given, edges", [
    ({"window": "24h", "max_ahead": None}, 1), ({"window": "24h", "max_ahead": "none"}, 1),
    ({"window": "24h", "max_ahead": "2d"}, 2), ({"window": "24h", "window_time": "arrival"}, 4),
    ({}, 4), ({"late": "reject"}, 2),
])  # fmt: skip
def test_the_bound_counts_where_event_times_decide_something(
    given: dict[str, Any], edges: int
) -> None:
    with SqliteLog(":memory:") as log:
        log.produce_many("updates", ROWS)
        pipeline = run(log, **given)
        assert pipeline.graph.num_edges == edges
        kept = RecordSettings.from_json(json.loads(json.dumps(pipeline.settings.to_json())))
        assert kept == pipeline.settings.record_settings()


def test_a_checkpoint_of_an_older_release_has_no_bound() -> None:
    content = RecordSettings(window="24h").to_json()
    assert content.pop("max_ahead") == DAY
    assert RecordSettings.from_json(content).max_ahead is None


def test_a_resume_cannot_change_it(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log") as log:
        log.create_topic("updates")
        Pipeline(log, SavedModel(), tmp_path / "c", window="24h", max_ahead="2d").close()
        with pytest.raises(PipelineError, match=r"max_ahead is 86400000 \(1 d .*\), but"):
            Pipeline.resume(tmp_path / "c", log, load=SavedModel.load, max_ahead="1d")
        Pipeline.resume(tmp_path / "c", log, load=SavedModel.load, max_ahead=2 * DAY).close()
    with SqliteLog(":memory:") as log, pytest.raises(PipelineError, match="max_ahead is 'soon'"):
        Pipeline(log, SavedModel(), max_ahead="soon")


def test_a_stream_of_nothing_but_far_rows_stops_and_leaves_nothing(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log") as log:
        log.produce_many("updates", [ingest.encode_row(1, 2, time=NOW * 1000)] * 5)
        pipeline = Pipeline(
            log, SavedModel(), tmp_path / "c", window="1h", stop_if_first_bad=5, clock=lambda: NOW
        )
        with pytest.raises(AllRecordsBad, match="looks like microseconds"):
            pipeline.run(until="end")
        pipeline.close(checkpoint=False)
        assert not (tmp_path / "c").exists()


def test_a_file_loses_its_far_rows(tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("".join(f"{i},{i},1,{t}\n" for i, t in enumerate(FAR)))
    source = ingest.FileSource(path, columns="src dst weight time")
    pipeline = Pipeline(source, SavedModel(), window="24h", clock=lambda: NOW)
    pipeline.run()
    assert pipeline.outputs.rejected_by == {"ahead": 2}
    assert pipeline.graph.num_edges == 2


def test_rows_of_a_record_of_which_some_are_far_do_not_count(tmp_path: Path) -> None:
    place = ingest.Partition("updates", 0)
    with SqliteLog(tmp_path / "log") as log:
        log.produce("updates", ingest.encode_updates(range(4), range(4), time=FAR))
        log.produce("updates", ingest.encode_updates(range(4), range(4), time=[NOW] * 4))
        options: dict[str, Any] = {"window": "24h", "clock": lambda: NOW}
        with pytest.raises(PipelineError, match="too far out"):
            Pipeline(log, SavedModel(), positions={place: Position(0, 1)}, **options)
        pipeline = Pipeline(log, SavedModel(), positions={place: Position(1, 1)}, **options)
        assert pipeline.run("end") == 3


# Units --------------------------------------------------------------------------------------


@given(st.sampled_from(list(UNITS)), st.integers(200_000_000, 50_000_000_000))
def test_a_unit_is_known_by_its_magnitude(unit: str, seconds: int) -> None:
    per_second = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}[unit]
    if seconds * per_second < 2**63:
        assert unit_of(seconds * per_second) == unit


@pytest.mark.parametrize("unit, time, window", [
    ("s", NOW // 1000, None), ("s", NOW // 1000, "24h"), ("us", NOW * 1000, None),
    ("ns", NOW * 10**6, None),
])  # fmt: skip
def test_another_unit_is_told_once_and_counted(
    unit: str, time: int, window: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    with SqliteLog(":memory:") as log, caplog.at_level(logging.WARNING, "lpma.ingest"):
        log.produce_many("updates", [
            ingest.encode_row(1, 2, time=NOW), ingest.encode_row(2, 3),
            ingest.encode_row(3, 4, time=7),
            ingest.encode_updates([1, 2, 3], [4, 5, 6], time=[time, time, NOW]),
            ingest.encode_row(4, 5, time=time),
        ])  # fmt: skip
        pipeline = run(log, window=window, batch_size=2)
        assert pipeline.stats.other_units == {unit: 3}
    events: list[Any] = [record.msg for record in caplog.records]
    (said,) = [event for event in events if str(event).startswith("other unit")]
    assert said.fields["unit"] == unit
    assert f"time_unit={unit!r}" in said.fields["advice"]


def test_it_is_told_before_anything_expires(caplog: pytest.LogCaptureFixture) -> None:
    told: list[bool] = []

    class Noting(SavedModel):
        def apply(self, batch: Any) -> list[Any]:
            if Kind.EXPIRE in batch.kind.tolist():
                told.append(any(str(r.msg).startswith("other unit") for r in caplog.records))
            return super().apply(batch)

    with SqliteLog(":memory:") as log, caplog.at_level(logging.WARNING, "lpma.ingest"):
        log.produce_many("updates", [ingest.encode_row(1, 2, time=t) for t in (7, NOW // 1000)])
        run(log, Noting(), window="24h", batch_size=1)
    assert told
    assert all(told[1:])


@pytest.mark.parametrize("unit, per_ms", [("s", None), ("us", 1000), ("ns", 10**6)])
def test_a_declared_unit_is_that_of_every_form(unit: Any, per_ms: int | None) -> None:
    """Rows of JSON and of msgpack, mapped or our own, as maps, arrays and columns."""
    import msgpack

    at = NOW // 1000 if per_ms is None else NOW * per_ms
    row = {"user": 1, "item": 2, "at": at}
    records = [
        json.dumps(row).encode(), msgpack.packb(row), ingest.encode_row(1, 2, time=at),
        msgpack.packb([1, 2, None, at]), ingest.encode_updates([1], [2], time=[at]),
        json.dumps({**row, "at": float(at)}).encode() if at < 2**53 else b'{"user":1,"item":2}',
        ingest.encode_row(1, 2, time=at, producer="p", seq=1),
    ]  # fmt: skip
    fields = Fields("user", "item", time="at", time_unit=unit)
    for many in (records, [record for record in records for _ in range(2)]):
        with SqliteLog(":memory:") as log:
            log.produce_many("updates", many)
            graph = lpma.Graph(device="cpu")
            pipeline = Pipeline(log, graph, records=fields, batch_size=1, clock=lambda: NOW)
            while pipeline.step(drain=True):
                assert graph.edges([1], [2]).times.tolist() == [NOW]  # type: ignore[union-attr]
            assert pipeline.outputs.rejected == 0


@pytest.mark.parametrize("unit, per_ms", [("s", None), ("us", 1000)])
def test_what_is_left_out_of_columns_has_times_as_its_topic_does(
    unit: Any, per_ms: int | None
) -> None:
    times = [at // 1000 if per_ms is None else at * per_ms for at in (NOW, NOW + 2 * DAY)]
    fields = Fields(time_unit=unit)
    with SqliteLog(":memory:") as log:
        log.produce("updates", ingest.encode_updates([1, 2], [3, 4], time=times))
        pipeline = run(log, records=fields, window="24h")
        (letter,) = pipeline.outputs.kept
    found = ingest.decode_record(letter.value, fields=fields).batch
    assert found.time is not None
    assert (found.src.tolist(), found.time.tolist()) == ([2], [NOW + 2 * DAY])


# Ids ----------------------------------------------------------------------------------------


def test_an_id_too_large_to_be_tracked_is_a_dead_letter(tmp_path: Path) -> None:
    large = MAX_TRACKED + 1
    rows = [
        ingest.encode_row(1, 2), ingest.encode_row(large, 1), ingest.encode_row(1, 2**32 - 2),
        ingest.encode_updates([1, large, 2], [3, 4, 3]), ingest.encode_expire(-5),
        ingest.encode_row(large, kind=Kind.ADD_VERTEX), ingest.encode_row(3, 4),
        ingest.encode_row(1, large, kind=Kind.SET), ingest.encode_row(large, 1, kind=Kind.SET),
    ]  # fmt: skip
    with SqliteLog(tmp_path / "log") as log:
        log.produce_many("updates", rows)
        with Pipeline(log, lpma.Graph(device="cpu"), tmp_path / "c", track=["core"]) as pipeline:
            pipeline.run(until="end")
            assert pipeline.outputs.rejected_by == {"unserved": 6}
            assert "above 268435454, up to which figures are tracked" in (
                pipeline.outputs.kept[0].reason
            )
            assert ingest.decode(pipeline.outputs.kept[2].value).src.tolist() == [large]
            assert pipeline.tracked is not None
            assert pipeline.tracked.figures() == {"core": 2}
        with Pipeline(log, lpma.Graph(device="cpu"), names=True, track=["core"]) as named:
            log.seek({ingest.Partition("updates", 0): 0})
            named.run(until="end")
            assert named.outputs.rejected == 0


@pytest.mark.parametrize("before, after", [(["core"], []), ([], ["core"])])
def test_a_replay_takes_the_ids_that_were_taken_then(
    tmp_path: Path, before: list[str], after: list[str]
) -> None:
    """Though a resume tracks something else: the journal has cut what was taken."""
    kind = Kind.INSERT if before else Kind.DELETE  # an id that an edge has could not be tracked
    rows = [ingest.encode_row(v, 1, kind=kind) for v in (1, MAX_TRACKED + 1, 2, 3)] * 2
    with SqliteLog(tmp_path / "log") as log:
        log.produce_many("updates", rows)
        pipeline = Pipeline(
            log, lpma.Graph(device="cpu"), tmp_path / "c", track=before, batch_size=2
        )
        pipeline.run(until=5)
        pipeline.close(checkpoint=False)
        log.produce_many("updates", rows)
        resumed = Pipeline.resume(tmp_path / "c", log, track=after, batch_size=2, device="cpu")
        with resumed:
            assert resumed.stats.replayed == 5
            assert resumed.run(until="end") == 6 + 8 - 5, "two of one half are refused"
            assert resumed.outputs.rejected == 2


def test_what_a_graph_holds_already_is_said(tmp_path: Path) -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert([2**32 - 2], [1])
    with SqliteLog(tmp_path / "log") as log:
        log.create_topic("updates")
        with (
            Pipeline(log, graph, track=("core",)) as pipeline,
            pytest.raises(lpma.SnapshotTooLarge, match=r"track: .* is now 4,294,967,294: go on"),
        ):
            pipeline.run(until="end")
