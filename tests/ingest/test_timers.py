"""The clock of stages: what it counts, and that a pipeline passes each stage when it says so."""

from __future__ import annotations

from pathlib import Path

import pytest

import ingest
from ingest import Pipeline, SqliteLog
from ingest.timers import BOUNDS_S, Stage, Stages
from lpma import Kind
from tests.support.stream_model import SavedModel


def test_a_stage_counts_each_passage_under_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = [0.0, 1e-5, 1.1e-5, 0.3, 60.0, 61.0]
    now = [t for i, length in enumerate(lengths) for t in (100.0 * i, 100.0 * i + length)]
    ticks = iter(now)
    monkeypatch.setattr("ingest.timers.time.perf_counter", lambda: next(ticks))
    stage = Stage()
    for _ in lengths:
        with stage:
            pass
    expected = [0] * (len(BOUNDS_S) + 1)
    for begin, end in zip(now[::2], now[1::2], strict=True):
        expected[sum(bound < end - begin for bound in BOUNDS_S)] += 1
    assert stage.counts == expected
    assert stage.passages == len(lengths)
    assert stage.seconds == pytest.approx(sum(lengths))
    assert stage.last == 61.0


def test_an_exception_is_a_passage_and_passes() -> None:
    stage = Stage()
    with pytest.raises(KeyError), stage:
        raise KeyError
    assert stage.passages == 1
    assert stage.seconds == stage.last > 0


def test_bounds_rise_and_stages_have_their_names() -> None:
    assert list(BOUNDS_S) == sorted(set(BOUNDS_S))
    stages = Stages()
    names = ["poll", "buffer", "journal", "apply", "track", "results", "feed", "reply",
             "checkpoint"]  # fmt: skip
    assert [name for name, _ in stages] == names
    assert stages.seconds() == dict.fromkeys(names, 0.0)


def test_a_pipeline_passes_its_stages(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log") as log:
        log.produce("updates", ingest.encode_updates(range(10), range(10)))
        with Pipeline(log, SavedModel(), tmp_path / "c", batch_size=5) as pipeline:
            stages = pipeline.stats.stages
            assert pipeline.step(drain=True) == 5
            # One poll, buffered and cut, both written down; no query, one checkpoint at the start.
            passages = {name: stage.passages for name, stage in stages}
            assert passages == {
                "poll": 1, "buffer": 2, "journal": 2, "apply": 1, "track": 0,
                "results": 0, "feed": 0, "reply": 0, "checkpoint": 1,
            }  # fmt: skip
            assert pipeline.stats.history[-1].seconds == stages.apply.last
            log.produce("updates", ingest.encode_query("q", Kind.DEGREE, 1))
            log.produce("updates", b"bad")
            assert pipeline.run(until="end") == 6
            assert stages.apply.passages == pipeline.stats.batches == 3
            assert stages.reply.passages == 2, "the reply, and the dead letter"
            pipeline.checkpoint_now()
            assert stages.checkpoint.passages == 2
            assert pipeline.stats.queries == 1
            assert sum(stages.seconds().values()) < pipeline.stats.history[-1].since_start + 60
