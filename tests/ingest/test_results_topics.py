"""Topics of results: one that the pipeline uses otherwise is refused before anything is made."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ingest
import lpma
from ingest import Pipeline, Settings, SqliteLog
from ingest.errors import PipelineError
from ingest.results.sinks import check_results_topic


@pytest.fixture
def log(tmp_path: Path) -> Any:
    with SqliteLog(tmp_path / "log") as log:
        log.produce("updates", ingest.encode_updates([1, 2, 3], [2, 3, 1]))
        yield log


@pytest.mark.parametrize(
    ("topic", "settings", "said"),
    [
        ("updates", {}, "read"),
        ("queries", {}, "read"),
        ("replies", {}, "for replies"),
        ("dead-letters", {}, "for dead letters"),
        ("b", {"reply_topics": ("a", "b")}, "for replies"),
        ("own", {"dead_letters": "own"}, "for dead letters"),
        ("replies", {"reply_topics": ("a",)}, None),
        ("dead-letters", {"dead_letters": "own"}, None),
        ("replies", {"replies": print}, None),
        ("dead-letters", {"dead_letters": print}, None),
        ("told", {}, None),
    ],
)
@pytest.mark.parametrize("another", [False, True])
def test_a_topic_that_the_pipeline_uses_otherwise_is_refused(
    log: SqliteLog, tmp_path: Path, topic: str, settings: Any, said: str | None, another: bool
) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "log")
    if settings.get("dead_letters") == "own":
        settings = settings | {"dead_letters": (log, "own")}
    with SqliteLog(tmp_path / "link" if another else tmp_path / "log") as same:
        given = {"results": (same if another else log, topic), "track": ["core"], **settings}
        if said is None:
            with Pipeline(log, lpma.Graph(device="cpu"), tmp_path / "c", **given) as pipeline:
                pipeline.run("end")
            with Pipeline.resume(tmp_path / "c", log, device="cpu", **given) as resumed:
                assert resumed.graph.num_edges == 3
            return
        before = log.topic_names()
        with pytest.raises(PipelineError, match=f"'{topic}', which is {said}: name another one"):
            Pipeline(log, lpma.Graph(device="cpu"), tmp_path / "c", **given)
        assert not (tmp_path / "c").exists()
        assert log.topic_names() == before


def test_a_resume_refuses_it_too(log: SqliteLog, tmp_path: Path) -> None:
    given: dict[str, Any] = {"track": ["core"], "device": "cpu"}
    with Pipeline(log, lpma.Graph(device="cpu"), tmp_path / "c", track=["core"]) as pipeline:
        pipeline.run("end")
    with pytest.raises(PipelineError, match="which is read"):
        Pipeline.resume(tmp_path / "c", log, results=(log, "updates"), **given)


def test_the_same_topic_of_another_log_is_another_topic(log: SqliteLog, tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "other") as other, SqliteLog(":memory:") as memory:
        for sink in (other, memory):
            given: dict[str, Any] = {"track": ["core"], "results": (sink, "updates")}
            with Pipeline(log, lpma.Graph(device="cpu"), **given) as pipeline:
                pipeline.run("end")
                assert pipeline.results is not None
                assert pipeline.results.records == 2
            log.seek(dict.fromkeys(log.positions(), 0))


def test_a_kafka_is_known_by_its_brokers() -> None:
    def kafka(bootstrap: str) -> Any:
        return SimpleNamespace(bootstrap=bootstrap, topics=("u",), produce_many=print)

    for brokers, refused in (("b:1,c:1", True), ("c:1", False)):
        own = Settings(track=["core"], results=(kafka(brokers), "u"))
        if refused:
            with pytest.raises(PipelineError, match="which is read"):
                check_results_topic(kafka("a:1,b:1"), own)
        else:
            check_results_topic(kafka("a:1,b:1"), own)
