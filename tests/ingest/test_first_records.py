"""A stream whose first records are all bad: it stops, and leaves nothing but what it read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ingest
import lpma
from ingest.state.checkpointer import Checkpointer

GOOD, BAD = ingest.encode_row(1, 2), b"no record"
NAMED = ingest.encode_row("a", "b", names=True)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[ingest.SqliteLog]:
    with ingest.SqliteLog(tmp_path / "stream.log") as log:
        log.create_topic("updates")
        yield log


def pipeline(log: Any, state: Path | None, limit: int = 3, **settings: Any) -> ingest.Pipeline:
    graph = lpma.Graph(device="cpu", names=settings.get("names", False))
    return ingest.Pipeline(log, graph, state, stop_if_first_bad=limit, **settings)


def letters_of(log: ingest.SqliteLog) -> int:
    """How many dead letters there are."""
    with ingest.SqliteLog(log.path, topics=["dead-letters"]) as letters:
        return sum(letters.end_offsets().values())


@pytest.mark.parametrize("made", [True, False], ids=["its own directory", "one that was there"])
def test_nothing_is_left_of_a_stream_of_bad_records(
    log: ingest.SqliteLog, tmp_path: Path, made: bool
) -> None:
    state = tmp_path / "state"
    if not made:
        state.mkdir()
    log.produce_many("updates", [NAMED] * 3)
    with pytest.raises(ingest.errors.AllRecordsBad, match=r"first 3 records are bad .*names"):  # noqa: SIM117
        with pipeline(log, state) as stream:
            stream.run("end")
    assert letters_of(log) == 0
    assert state.exists() != made
    assert made or not list(state.iterdir())
    with pipeline(log, state, names=True) as stream:
        assert stream.run("end") == 3


def test_fewer_are_judged_where_the_source_ends_or_the_stream_is_stopped(
    log: ingest.SqliteLog, tmp_path: Path
) -> None:
    log.produce("updates", BAD)
    stream = pipeline(log, tmp_path / "a")
    with pytest.raises(ingest.errors.AllRecordsBad, match="first record is bad"):
        stream.run("end")
    stream.close()
    stream = pipeline(log, tmp_path / "b")
    stream.run(lambda stream: stream.outputs.rejected == 1 or stream.source.at_end())
    with pytest.raises(ingest.errors.AllRecordsBad):
        stream.close()
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
    assert letters_of(log) == 0


def test_an_empty_source_is_no_bad_one(log: ingest.SqliteLog, tmp_path: Path) -> None:
    with pipeline(log, tmp_path / "state") as stream:
        assert stream.run("end") == 0
    assert ingest.has_checkpoint(tmp_path / "state")


@pytest.mark.parametrize("limit, goes_on", [(0, True), (3, False), (4, True)])
def test_a_good_record_among_the_first_ends_the_trial(
    log: ingest.SqliteLog, tmp_path: Path, limit: int, goes_on: bool
) -> None:
    log.produce_many("updates", [BAD] * 3 + [GOOD] + [BAD] * 5)
    with pipeline(log, tmp_path / "state", limit) as stream:
        if goes_on:
            assert stream.run("end") == 1
        else:
            with pytest.raises(ingest.errors.AllRecordsBad):
                stream.run("end")
    assert letters_of(log) == (8 if goes_on else 0)


@given(records=st.lists(st.sampled_from(["good", "bad", "query", "late", "repeat"]), max_size=9),
       limit=st.integers(0, 6), batch_size=st.integers(1, 3), poll=st.integers(1, 3))  # fmt: skip
def test_any_stream_stops_where_its_first_records_are_bad_and_only_there(
    records: list[str], limit: int, batch_size: int, poll: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    """The oracle counts. What goes on leaves all of its dead letters, once."""
    folder = tmp_path_factory.mktemp("stream")
    values = {
        "good": ingest.encode_row(1, 2, time=9), "bad": BAD,
        "query": ingest.encode_query("q", lpma.Kind.DEGREE, 1),
        "late": ingest.encode_row(1, 2, time=1),
        "repeat": ingest.encode_row(1, 2, time=9, producer="shop", seq=1),
    }  # fmt: skip
    first = next((i for i, kind in enumerate(records) if kind != "bad"), len(records))
    stops = limit > 0 and first > 0 and (first >= limit or first == len(records))
    with ingest.SqliteLog(folder / "stream.log") as log:
        log.create_topic("updates")
        log.produce_many("updates", [values[kind] for kind in records])
        settings: Any = {"late": "reject", "batch_size": batch_size, "poll_records": poll}
        with pipeline(log, folder / "state", limit, **settings) as stream:
            if stops:
                with pytest.raises(ingest.errors.AllRecordsBad):
                    stream.run("end")
            else:
                stream.run("end")
                rejected = stream.outputs.rejected
                assert rejected >= records.count("bad")
        assert letters_of(log) == (0 if stops else rejected)
        assert (folder / "state").exists() != stops
        if not stops:
            with ingest.Pipeline.resume(folder / "state", log, **settings) as stream:
                assert stream.run("end") == 0


def test_no_checkpoint_is_taken_before_the_dead_letters_left(
    log: ingest.SqliteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Checkpointer, "is_due", lambda self, state: self.is_behind(state))
    log.produce_many("updates", [BAD] * 2)
    with pipeline(log, tmp_path / "state") as stream:
        while stream.outputs.rejected < 2:
            stream.step(drain=True)
        assert stream.step() == 0
        assert stream.stats.checkpoint_figures is not None
        assert stream.stats.checkpoint_figures.number == 0
        assert letters_of(log) == 0
        stream.checkpoint_now()  # whoever asks for one goes on
        assert letters_of(log) == 2
    with ingest.Pipeline.resume(tmp_path / "state", log) as stream:
        assert stream.run("end") == stream.outputs.rejected == 0


def test_what_was_killed_on_trial_is_gone_on_with(log: ingest.SqliteLog, tmp_path: Path) -> None:
    """Nothing was written of the bad records, so they are read again."""
    log.produce_many("updates", [BAD] * 2)
    stream = pipeline(log, tmp_path / "state")
    while stream.outputs.rejected < 2:
        stream.step(drain=True)
    stream.close(checkpoint=False)
    log.produce("updates", GOOD)
    with ingest.Pipeline.resume(tmp_path / "state", log) as again:
        assert again.run("end") == 1
    assert letters_of(log) == 2


def test_what_waits_on_trial_is_journaled_in_its_order(
    log: ingest.SqliteLog, tmp_path: Path
) -> None:
    log.produce_many("updates", [BAD, BAD, GOOD, BAD, GOOD])
    stream = pipeline(log, tmp_path / "state", poll_records=1)
    assert stream.run("end") == 2
    version = stream.graph.version
    stream.close(checkpoint=False)
    with ingest.Pipeline.resume(tmp_path / "state", log) as again:
        assert (again.stats.operations, again.graph.version) == (2, version)
        assert again.outputs.rejected == 3


def test_a_resume_is_on_no_trial(log: ingest.SqliteLog, tmp_path: Path) -> None:
    with pipeline(log, tmp_path / "state"):
        pass
    log.produce_many("updates", [BAD] * 9)
    with ingest.Pipeline.resume(tmp_path / "state", log, stop_if_first_bad=3) as stream:
        assert stream.run("end") == 0
    assert letters_of(log) == 9


def test_bad_records_that_never_cease_let_a_step_end(
    log: ingest.SqliteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a step did not return: nobody could stop it, no checkpoint was taken, and its records
    stayed in memory."""
    monkeypatch.setattr("ingest.pipeline.batching.BARREN_PIECES", 3)
    time = iter(range(1, 10**9, 60))  # ms, at each look
    polls = 0

    def poll(max_records: int, timeout: float = 0.0) -> list[ingest.sources.Polled]:
        nonlocal polls
        polls += 1
        assert polls < 10, "the step goes on for ever"
        return [ingest.sources.Polled(ingest.Partition("updates", 0), polls - 1, BAD)]

    monkeypatch.setattr(log, "poll_many", poll)
    monkeypatch.setattr(log, "at_end", lambda: False)
    clock = {"clock": lambda: next(time)}
    for drain in (False, True):
        polls = 0
        with pipeline(log, None, 0, **clock) as stream:
            assert stream.step(drain=drain) == 0
            assert stream.positions()[ingest.Partition("updates", 0)].offset == polls
