"""When the feed leaves, what becomes of it at a resume, and what is said of it."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from ingest import Pipeline, SqliteLog
from ingest.feed import writer
from ingest.metrics import PipelineCollector
from ingest.results import sinks
from ingest.state.checkpointer import Checkpointer
from ingest.state.journal import Journal
from tests.support.fed_stream import records, state_of
from tests.support.noted import note_calls
from tests.support.waiting import wait_for


def stream(log: SqliteLog, count: int = 20, seed: int = 1) -> None:
    log.produce_many("updates", list(records(np.random.default_rng(seed), count, queries=False)))


def test_the_feed_leaves_after_the_journal_and_before_the_checkpoint(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []
    for owner, name in ((Journal, "append"), (Journal, "sync"), (Checkpointer, "begin")):
        note_calls(monkeypatch, happened, owner, name)
    with SqliteLog(tmp_path / "log") as log:
        stream(log)
        with Pipeline(
            log, lpma.Graph(device=device), tmp_path / "c", batch_size=7, checkpoint_operations=20,
            changes=lambda part: happened.append(f"part {part.version}"),
        ) as pipeline:  # fmt: skip
            pipeline.run("end")
    parts = [at for at, what in enumerate(happened) if what.startswith("part") and at]
    assert len(parts) > 5
    for at in parts[1:]:
        assert happened[at - 1] == "sync" or happened[at - 1].startswith("part")
    begun = [at for at, what in enumerate(happened) if what == "begin"]
    versions = [int(what[5:]) for what in happened if what.startswith("part")]
    assert versions == list(range(len(versions)))
    assert len(begun) > 2


def test_a_slow_feed_holds_the_stream_back_and_the_metrics_say_so(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, asked = threading.Event(), threading.Event()
    send = sinks._File.send

    def slow(self: Any, parts: Any) -> None:
        if parts[0].version == 2:
            asked.set()
            goes_on.wait()
        send(self, parts)

    monkeypatch.setattr(sinks._File, "send", slow)
    monkeypatch.setattr("ingest.timers.SLOW_S", 0.0)
    monkeypatch.setattr(writer, "MOST_WAITING", 1)
    with SqliteLog(tmp_path / "log") as log:
        stream(log)
        graph = lpma.Graph(device=device)
        with Pipeline(log, graph, batch_size=7, changes=tmp_path / "feed") as pipeline:
            runs = threading.Thread(target=lambda: pipeline.run("end"))
            runs.start()
            asked.wait()
            wait_for(lambda: graph.version == 4)  # one waits, one is applied, and no other
            time.sleep(0.05)
            assert graph.version == 4
            found = {family.name: family for family in PipelineCollector(pipeline).collect()}
            assert found["lpma_changes_waiting"].samples[0].value == 1
            trouble = pipeline.stats.waits_for()
            assert trouble is not None
            assert "changes are not written" in trouble
            goes_on.set()
            runs.join()
            assert pipeline.stats.waits_for() is None
            assert pipeline.feed is not None
            assert pipeline.feed.waiting == 0
            found = {family.name: family for family in PipelineCollector(pipeline).collect()}
            values = {s.name: s.value for family in found.values() for s in family.samples}
            assert values["lpma_changes_records_total"] == pipeline.feed.records > 3
            assert values["lpma_changes_rows_total"] == pipeline.feed.rows > 3
            assert values["lpma_changes_repeats_total"] == 0
    with ingest.follow(tmp_path / "feed", device=device) as copy:
        copy.run("end")
    assert state_of(copy.graph) == state_of(graph)  # type: ignore[arg-type]


def test_an_error_of_the_feed_stops_the_stream(device: str, tmp_path: Path) -> None:
    def broken(part: ingest.EdgeChanges) -> None:
        if part.version == 2:
            raise ValueError("no room")

    with SqliteLog(tmp_path / "log") as log:
        stream(log)
        options: Any = {"batch_size": 7}
        with (
            pytest.raises(ValueError, match="no room"),
            Pipeline(log, lpma.Graph(device=device), tmp_path / "c", changes=broken,
                     **options) as pipeline,
        ):  # fmt: skip
            pipeline.run("end")
        found: list[ingest.EdgeChanges] = []
        with Pipeline.resume(tmp_path / "c", log, device=device, changes=found.append,
                             **options) as resumed:  # fmt: skip
            resumed.run("end")
        versions = [part.version for part in found]
        assert versions == sorted(versions)
        assert {2, 3} <= set(versions)


def test_memory_that_runs_out_behind_a_batch_does_not_apply_it_twice(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = lpma.Watch.finish

    def short(self: lpma.Watch, stores: Any) -> None:
        if stores.version == 2:
            monkeypatch.setattr(lpma.Watch, "finish", finish)
            raise MemoryError("none left")
        finish(self, stores)

    monkeypatch.setattr(lpma.Watch, "finish", short)
    given: Any = {"batch_size": 7, "changes": tmp_path / "feed"}
    with SqliteLog(tmp_path / "log") as log:
        stream(log)
        pipeline = Pipeline(log, lpma.Graph(device=device), tmp_path / "c", **given)
        with pytest.raises(lpma.OutOfMemory):
            pipeline.run("end")
        with pytest.raises(ingest.PipelineError, match="an earlier error"):
            pipeline.step()
        pipeline.close()
        with Pipeline.resume(tmp_path / "c", log, device=device, **given) as resumed:
            resumed.run("end")
    with ingest.follow(tmp_path / "feed", device=device) as copy:
        copy.run("end")
    assert state_of(copy.graph) == state_of(resumed.graph)  # type: ignore[arg-type]


def test_a_file_that_was_moved_away_begins_anew(device: str, tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log") as log:
        stream(log)
        graph = lpma.Graph(device=device)
        with Pipeline(log, graph, batch_size=7, changes=tmp_path / "feed") as pipeline:
            pipeline.step(7)
            pipeline.step(7)
            (tmp_path / "feed").rename(tmp_path / "old")
            graph.save(tmp_path / "2.lpma")
            pipeline.step(7)
            graph.save(tmp_path / "3.lpma")
            pipeline.run("end")
            assert pipeline.feed is not None
            assert "moved away" in pipeline.feed.begun
    with pytest.raises(ingest.OffsetError, match="nothing of version 2"):
        ingest.follow(tmp_path / "feed", start=tmp_path / "2.lpma", device=device)
    with ingest.follow(tmp_path / "feed", start=tmp_path / "3.lpma", device=device) as copy:
        copy.run("end")
    assert state_of(copy.graph) == state_of(graph)  # type: ignore[arg-type]


def test_why_a_feed_begins_anew_names_it(tmp_path: Path) -> None:
    feed, state, old = tmp_path / "feed", tmp_path / "c", tmp_path / "old"
    given: Any = {"batch_size": 7, "changes": feed}
    with SqliteLog(tmp_path / "log") as log:
        stream(log)
        with Pipeline(log, lpma.Graph(device="cpu"), state, **given) as pipeline:
            pipeline.step(7)
            pipeline.checkpoint_now()
            shutil.copytree(state, old)
            pipeline.run("end")
        shutil.copytree(old, tmp_path / "older")
        with Pipeline.resume(tmp_path / "older", log, device="cpu", **given) as pipeline:
            assert pipeline.feed is not None
            assert pipeline.feed.begun.startswith(
                "the place holds later changes of the edge feed than the checkpoint"
            )
        with Pipeline.resume(state, log, device="cpu", **given) as pipeline:
            assert pipeline.feed is not None
            assert pipeline.feed.begun.startswith(
                "the newest changes of the edge feed in the place are of another run"
            )
        feed.write_bytes(b"")
        with Pipeline.resume(state, log, device="cpu", **given) as pipeline:
            assert pipeline.feed is not None
            assert pipeline.feed.begun.startswith("the place holds no changes of the edge feed")


def test_a_stream_that_resumed_without_its_feed_begins_another_run(
    device: str, tmp_path: Path
) -> None:
    with SqliteLog(tmp_path / "log") as log:
        graphs = []
        for turn, changes in enumerate((log, None, log)):
            stream(log, 8, turn)
            given: Any = {"batch_size": 7, "changes": changes}
            if turn:
                pipeline = Pipeline.resume(tmp_path / "c", log, device=device, **given)
            else:
                pipeline = Pipeline(log, lpma.Graph(device=device), tmp_path / "c", **given)
            with pipeline:
                begun = pipeline.graph.version
                pipeline.run("end")
            graphs.append(pipeline.graph)
    with SqliteLog(tmp_path / "log", ["changes"]) as feed:
        parts = [ingest.decode_changes(p.value) for p in feed.poll(10**6)]  # type: ignore[arg-type]
        runs = list(dict.fromkeys(part.run for part in parts))
        assert len(runs) == 2
        first = next(part for part in parts if part.run == runs[1])
        assert (first.version, first.rows) == (begun, 0)
        feed.seek({ingest.Partition("changes", 0): 0})
        with ingest.follow(feed, start=tmp_path / "c", device=device) as copy:
            copy.run("end")
        assert state_of(copy.graph) == state_of(graphs[-1])  # type: ignore[arg-type]


def test_a_copy_may_be_followed_and_tracked(device: str, tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log") as log:
        stream(log, 12)
        with Pipeline(log, lpma.Graph(device=device), batch_size=7, changes=log,
                      track=["core"]) as pipeline:  # fmt: skip
            pipeline.run("end")
        with (
            SqliteLog(tmp_path / "log", ["changes"]) as feed,
            ingest.follow(
                feed, device=device, changes=tmp_path / "again", track=["core"],
                results=tmp_path / "results",
            ) as copy,
        ):  # fmt: skip
            copy.run("end")
            assert copy.tracked is not None
            assert pipeline.tracked is not None
            assert copy.tracked.figures() == pipeline.tracked.figures()
    with ingest.follow(tmp_path / "again", device=device) as third:
        third.run("end")
    assert state_of(third.graph) == state_of(pipeline.graph)  # type: ignore[arg-type]
