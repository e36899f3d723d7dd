"""What no copy may follow is refused, and the message says what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ingest
import lpma
from ingest import ClusterError, OffsetError, Pipeline, PipelineError, SourceError, SqliteLog
from ingest.errors import IdentityError, UnknownSetting
from tests.support.fed_stream import state_of


def produce(log: SqliteLog, *edges: tuple[int, int], time: int = 5) -> None:
    for src, dst in edges:
        log.produce("updates", ingest.encode_updates([src], [dst], time=[time]))


def write(log: SqliteLog, state: Path, to: Any, **how: Any) -> lpma.Graph:
    """Start, or go on, to the end of the log."""
    given: Any = {"changes": to, "batch_size": 1, "batch_interval": 1e6}
    if ingest.has_checkpoint(state):
        pipeline = Pipeline.resume(state, log, device="cpu", **given)
    else:
        pipeline = Pipeline(log, lpma.Graph(device="cpu", **how), state, **given)
    with pipeline:
        pipeline.run("end")
    graph = pipeline.graph
    assert isinstance(graph, lpma.Graph)
    return graph


@pytest.fixture
def log(tmp_path: Path) -> Any:
    with SqliteLog(tmp_path / "log") as log:
        produce(log, (1, 2), (2, 3), (3, 4))
        yield log


def feed(log: SqliteLog, topic: str = "changes") -> SqliteLog:
    return SqliteLog(log.path, [topic])


def test_a_feed_that_was_trimmed_past_the_copy_is_refused(log: SqliteLog, tmp_path: Path) -> None:
    graph = write(log, tmp_path / "w", log)
    graph.save(tmp_path / "3.lpma")
    ingest.follow(feed(log), tmp_path / "r", device="cpu").close()  # stands at version 0
    assert log.trim("changes", 0, 2) == 2
    with pytest.raises(OffsetError, match=r"was trimmed.*start again from a newer snapshot"):
        ingest.follow(feed(log), tmp_path / "r", device="cpu")
    old = lpma.Graph(device="cpu")
    with pytest.raises(OffsetError, match=r"nothing of version 0 any more.*--from SNAPSHOT"):
        ingest.follow(feed(log), start=old, device="cpu")
    with pytest.raises(SourceError, match="does not begin with an empty graph"):
        ingest.follow(feed(log), device="cpu")
    with ingest.follow(feed(log), tmp_path / "r2", start=tmp_path / "3.lpma", device="cpu") as copy:
        assert copy.run("end") == 0
    produce(log, (9, 9))
    graph = write(log, tmp_path / "w", log)
    with ingest.follow(feed(log), tmp_path / "r2", device="cpu") as copy:
        copy.run("end")
    assert state_of(copy.graph) == state_of(graph)  # type: ignore[arg-type]


def test_a_copy_that_falls_behind_what_is_kept_stops(log: SqliteLog, tmp_path: Path) -> None:
    write(log, tmp_path / "w", log)
    copy = ingest.follow(feed(log), tmp_path / "r", device="cpu")
    log.trim("changes", 0, 3)
    with pytest.raises(OffsetError, match="What the copy has still to read is gone"):
        copy.run("end")
    copy.close()


@pytest.mark.parametrize("other", ["edges", "options", "version", "weights"])
def test_the_snapshot_of_another_graph_is_refused(
    log: SqliteLog, tmp_path: Path, other: str
) -> None:
    graph = write(log, tmp_path / "w", log)
    wrong = lpma.Graph(device="cpu", directed=other != "options")
    edges = [(1, 2), (2, 3), (4, 3) if other == "edges" else (3, 4)]
    for src, dst in edges:
        wrong.insert(src, dst, time=6 if other == "weights" else 5)
    if other == "version":
        wrong.insert(3, 4, 0.0, time=5)
    assert graph.num_edges == wrong.num_edges
    said = {"options": "is of a graph that is directed", "version": "has come to version 3"}
    with pytest.raises(IdentityError, match=said.get(other, "had other edges")):
        ingest.follow(feed(log), start=wrong, device="cpu")


def test_a_feed_that_began_anew_is_refused(log: SqliteLog, tmp_path: Path) -> None:
    write(log, tmp_path / "w", log)
    copy = ingest.follow(feed(log), tmp_path / "r", device="cpu")
    copy.run("end")
    graph = write(log, tmp_path / "other", (log, "changes"))  # a writer without its checkpoint
    with pytest.raises(IdentityError, match=r"began anew at version 0.*--from SNAPSHOT"):
        copy.run("end")
    copy.close(checkpoint=False)
    with pytest.raises(IdentityError, match=r"follows another feed.*began anew"):
        ingest.follow(feed(log), tmp_path / "r", device="cpu")
    with ingest.follow(feed(log), tmp_path / "r2", device="cpu") as again:
        again.run("end")
    assert state_of(again.graph) == state_of(graph)  # type: ignore[arg-type]


def test_another_feed_is_refused(log: SqliteLog, tmp_path: Path) -> None:
    write(log, tmp_path / "w", log)
    write(log, tmp_path / "w2", (log, "others"))
    ingest.follow(feed(log), tmp_path / "r", device="cpu").close()
    with pytest.raises(IdentityError, match="follows another feed"):
        ingest.follow(feed(log, "others"), tmp_path / "r", device="cpu")


def test_what_is_no_feed_is_refused(log: SqliteLog, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="holds no feed yet"):
        ingest.follow(feed(log), device="cpu")
    with pytest.raises(SourceError, match="holds no feed yet"):
        ingest.follow(feed(log, "updates"), device="cpu")
    with pytest.raises(SourceError, match="a feed lies in partition 0 of one topic"):
        ingest.follow(SqliteLog(log.path), device="cpu")
    with pytest.raises(SourceError, match="cannot be read"):
        ingest.follow(tmp_path / "nothing", device="cpu")
    write(log, tmp_path / "w", log)
    log.produce("changes", ingest.encode_row(1, 2))
    with (
        pytest.raises(SourceError, match="a record is no part of a feed"),
        ingest.follow(feed(log), device="cpu") as copy,
    ):
        copy.run("end")


def test_a_version_that_is_not_there_is_refused(log: SqliteLog, tmp_path: Path) -> None:
    write(log, tmp_path / "w", tmp_path / "feed")
    lines = (tmp_path / "feed").read_bytes().splitlines(keepends=True)
    (tmp_path / "cut").write_bytes(b"".join([*lines[:2], *lines[3:]]))
    with (
        pytest.raises(SourceError, match="version 2 is not there, but 3 is"),
        ingest.follow(tmp_path / "cut", device="cpu") as copy,
    ):
        copy.run("end")


def test_settings_that_a_feed_says_itself_are_refused(log: SqliteLog, tmp_path: Path) -> None:
    write(log, tmp_path / "w", log)
    with pytest.raises(PipelineError, match="window: a feed says itself how it is read"):
        ingest.follow(feed(log), device="cpu", window="1h")
    with pytest.raises(UnknownSetting, match="has no setting 'trak'"):
        ingest.follow(feed(log), device="cpu", trak=["core"])  # type: ignore[call-arg]
    with pytest.raises(PipelineError, match="start is 7"):
        ingest.follow(feed(log), start=7, device="cpu")  # type: ignore[arg-type]


@pytest.mark.parametrize(("changes", "said"), [
    (7, "expected a log"), ("", "a name is missing"), ((1, 2, 3), "expected a log"),
])  # fmt: skip
def test_a_place_that_is_none_is_refused(log: SqliteLog, changes: Any, said: str) -> None:
    with pytest.raises(PipelineError, match=said):
        Pipeline(log, lpma.Graph(device="cpu"), changes=changes)


def test_a_topic_that_has_another_use_is_refused(log: SqliteLog) -> None:
    for topic in ("updates", "replies", "dead-letters"):
        with pytest.raises(PipelineError, match="changes is the topic"):
            Pipeline(log, lpma.Graph(device="cpu"), changes=(log, topic))
    with pytest.raises(PipelineError, match="changes is the topic 'results'"):
        Pipeline(log, lpma.Graph(device="cpu"), changes=(log, "results"), results=log,
                 track=["core"])  # fmt: skip


def test_a_cluster_publishes_no_feed(log: SqliteLog, tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="changes: each shard has versions of its own"):
        ingest.Cluster(log.path, 2, checkpoint=tmp_path / "c", changes=log)


@pytest.mark.parametrize(("names", "was", "now"), [
    (False, '"inserted"', '"changed"'), (False, '"inserted"', '"removed"'),
    (False, '"edges":4', '"edges":3'), (False, '"src":[9]', '"src":[8]'),
    (True, '"src":["9"]', '"src":["3"]'), (True, '"inserted"', '"removed"'),
])  # fmt: skip
def test_an_altered_record_is_refused_and_not_applied(
    log: SqliteLog, tmp_path: Path, names: bool, was: str, now: str
) -> None:
    log.delete_topic("updates")
    log.create_topic("updates")
    for u, v in ((1, 2), (2, 3), (3, 4), (9, 3)):
        ends: Any = {"src": [str(u)], "dst": [str(v)]} if names else {"src": [u], "dst": [v]}
        log.produce("updates", ingest.encode_updates(**ends, time=[5], names=names))
    path = tmp_path / "feed"
    with Pipeline(log, lpma.Graph(device="cpu", names=names), names=names, changes=path,
                  batch_size=1, batch_interval=1e6) as pipeline:  # fmt: skip
        pipeline.run("end")
    lines = path.read_text().splitlines()
    assert was in lines[-1]
    path.write_text("\n".join([*lines[:-1], lines[-1].replace(was, now), ""]))
    with (
        pytest.raises(SourceError, match=r"version 4: .* was a record altered\? start again"),
        ingest.follow(path, device="cpu") as copy,
    ):
        copy.run("end")
    assert copy.graph.version < 4
