"""Where results lie: whoever reads a place knows the figures, whatever happened to the place or to
the checkpoint between two starts. A reader drops repeats and starts over at another run."""

from __future__ import annotations

import itertools
import logging
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingest
import lpma
from ingest import LockedError, Pipeline, SqliteLog
from ingest.errors import SourceError
from ingest.events import Event
from ingest.results.reading import once, read_results, totals
from ingest.state.checkpointer import Checkpointer
from ingest.state.directory import has_checkpoint
from tests.conftest import soak
from tests.ingest.test_results import TRACK, Ops, Reader, encoded, oracle

Given = dict[str, Any]
RULES = ("core >= 2",)


def told_in(path: Path) -> Reader:
    return Reader().read(read_results(path))


def told_in_topic(log: SqliteLog, topic: str = "results") -> list[ingest.Result]:
    with SqliteLog(log.path, [topic]) as reader:
        return [ingest.decode_result(record.value) for record in reader.poll(10**6)]  # type: ignore[arg-type]


def runs_in(results: Sequence[ingest.Result]) -> list[str]:
    """The runs in order, each stretch once."""
    return [run for run, _ in itertools.groupby(result.run for result in results)]


def pipeline_of(log: SqliteLog, checkpoint: Path, results: Any, **more: Any) -> Pipeline:
    """A start, or a resume if there is a checkpoint."""
    given: Given = {"track": TRACK, "results": results, "batch_size": 1, **more}
    if has_checkpoint(checkpoint):
        return Pipeline.resume(checkpoint, log, device="cpu", **given)
    return Pipeline(log, lpma.Graph(device="cpu"), checkpoint, **given)


EDGES = [(1, 2), (2, 3), (3, 1), (1, 4), (4, 2), (4, 3)]


def produce(log: SqliteLog, *edges: tuple[int, int]) -> None:
    for src, dst in edges:
        log.produce("updates", ingest.encode_updates([src], [dst]))


@pytest.fixture
def log(tmp_path: Path) -> Any:
    with SqliteLog(tmp_path / "log") as log:
        produce(log, *EDGES[:4])
        yield log


def whys(caplog: pytest.LogCaptureFixture) -> list[str]:
    events = [record.msg for record in caplog.records if isinstance(record.msg, Event)]
    return [event.fields["why"] for event in events if event.name == "results begin anew"]


# A resume --------------------------------------------------------------------------------------


def cut_last_line(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def cut_half_a_line(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (Path.unlink, "holds no results"),
        (empty, "holds no results"),
        (cut_last_line, "lost its newest"),
        (cut_half_a_line, "lost its newest"),
    ],
)
def test_a_place_that_lost_results_is_told_all_in_another_run(
    log: SqliteLog,
    tmp_path: Path,
    harm: Callable[[Path], None],
    why: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = tmp_path / "r.jsonl"
    with pipeline_of(log, tmp_path / "c", path) as first:
        first.run("end")
        assert first.results is not None
        assert first.results.published is not None
        run = first.results.published.run
    harm(path)
    produce(log, *EDGES[4:])
    with caplog.at_level(logging.WARNING), pipeline_of(log, tmp_path / "c", path) as second:
        assert second.results is not None
        assert why in second.results.begun
        second.run("end")
        found = told_in(path)
        assert found.run != run
        found.agrees_with(second.graph)
    assert len(whys(caplog)) == 1
    with pipeline_of(log, tmp_path / "c", path) as third:  # now all is well
        assert third.results is not None
        assert not third.results.begun


def test_another_place_is_told_all_in_another_run(log: SqliteLog, tmp_path: Path) -> None:
    with pipeline_of(log, tmp_path / "c", tmp_path / "r.jsonl") as first:
        first.run("end")
    for place in (tmp_path / "other.jsonl", (log, "told"), tmp_path / "r.jsonl", (log, "told")):
        produce(log, EDGES[4])
        with pipeline_of(log, tmp_path / "c", place) as next_:
            next_.run("end")
            told = (
                list(read_results(place)) if isinstance(place, Path) else told_in_topic(log, "told")
            )
            Reader().read(told).agrees_with(next_.graph)


def test_a_function_behind_a_file_is_told_all_in_another_run(
    log: SqliteLog, tmp_path: Path
) -> None:
    """And the file behind it again, which what the function was told is missing from."""
    path, found = tmp_path / "r.jsonl", list[ingest.Result]()
    for place in (path, found.append, found.append, path):
        produce(log, EDGES[4])
        with pipeline_of(log, tmp_path / "c", place) as pipeline:
            pipeline.run("end")
            told = list(read_results(path)) if place is path else found
            Reader().read(told).agrees_with(pipeline.graph)
    assert len(runs_in(found)) == 1
    assert len(runs_in(list(read_results(path)))) == 2


def test_what_a_crash_left_is_gone_on_with(
    log: SqliteLog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Behind what was told, but not behind the checkpoint."""
    path = tmp_path / "r.jsonl"
    first = pipeline_of(log, tmp_path / "c", path)
    first.run("end")
    first.close(checkpoint=False)
    whole = path.read_bytes()
    for harm in (cut_half_a_line, cut_last_line):
        harm(path)
        again = pipeline_of(log, tmp_path / "c", path)
        assert path.read_bytes() == whole
        again.close(checkpoint=False)
    assert not whys(caplog)


def test_a_name_of_a_run_is_never_given_to_what_another_place_is_told(
    log: SqliteLog, tmp_path: Path
) -> None:
    """Two places that were told the same run and then diverged would not be told apart."""
    path, other, checkpoint = tmp_path / "r.jsonl", tmp_path / "other.jsonl", tmp_path / "c"
    first = pipeline_of(log, checkpoint, path)
    first.run(2)
    first.close(checkpoint=False)  # the checkpoint is of the start: nothing had been told
    shutil.copytree(checkpoint, tmp_path / "old")
    with pipeline_of(log, checkpoint, path) as second:
        second.run("end")
    shutil.rmtree(checkpoint)
    shutil.copytree(tmp_path / "old", checkpoint)
    produce(log, (1, 5), (1, 6))  # another version 4, of as many results
    with pipeline_of(log, checkpoint, other, batch_size=2) as third:
        third.run("end")
    with pipeline_of(log, checkpoint, path) as fourth:
        told_in(path).agrees_with(fourth.graph)


def test_a_checkpoint_that_is_older_than_what_was_told_begins_another_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, checkpoint, old = tmp_path / "r.jsonl", tmp_path / "c", tmp_path / "old"
    with SqliteLog(tmp_path / "log") as log:
        produce(log, EDGES[0])
        with pipeline_of(log, checkpoint, path) as first:
            first.run("end")
        shutil.copytree(checkpoint, old)
        produce(log, *EDGES[1:])
        with pipeline_of(log, checkpoint, path) as second:
            second.run("end")
        shutil.rmtree(checkpoint)
        shutil.copytree(old, checkpoint)
        with pipeline_of(log, checkpoint, path, batch_size=2) as third:
            assert third.results is not None
            assert "older one" in third.results.begun
            third.run("end")
            assert third.graph.version < told_in(path).place[0] + 2  # other versions
            told_in(path).agrees_with(third.graph)
            produce(log, (1, 5))
            third.run("end")
            told_in(path).agrees_with(third.graph)
    assert len(whys(caplog)) == 1


@pytest.mark.parametrize("how", ["another stream", "an older checkpoint"])
@pytest.mark.parametrize("kind", ["file", "topic"])
def test_a_run_of_figures_that_are_all_0_is_told_where_another_one_lies(
    tmp_path: Path, how: str, kind: str
) -> None:
    """Invariant 4: else readers would go on with the figures of the run before."""
    with SqliteLog(tmp_path / "log") as log, SqliteLog(tmp_path / "other") as other:
        place: Any = tmp_path / "r.jsonl" if kind == "file" else (log, "results")

        def told() -> list[ingest.Result]:
            return list(read_results(place)) if kind == "file" else told_in_topic(log)

        produce(log, *EDGES)
        other.create_topic("updates")
        with pipeline_of(log, tmp_path / "c", place) as first:
            shutil.copytree(tmp_path / "c", tmp_path / "old")  # of the start: nothing was told
            first.run("end")
        source, checkpoint = (other, "d") if how == "another stream" else (log, "old")
        with pipeline_of(source, tmp_path / checkpoint, place) as second:
            Reader().read(told()).agrees_with(second.graph)
            begun = told()
            assert [r.rows for r in begun if r.run == begun[-1].run] == [1]
        with pipeline_of(source, tmp_path / checkpoint, place) as third:
            assert third.results is not None
            assert not third.results.begun
            assert len(told()) == len(begun)
            produce(source, *EDGES)
            third.run("end")
            Reader().read(told()).agrees_with(third.graph)


class Crash(BaseException):
    pass


def crash(*_: Any, **__: Any) -> None:
    raise Crash


def test_rules_that_were_changed_and_changed_back_before_a_checkpoint(
    log: SqliteLog, tmp_path: Path
) -> None:
    path = tmp_path / "r.jsonl"
    first = pipeline_of(log, tmp_path / "c", path, alerts=["core >= 2"])
    first.run(2)
    first.checkpoint_now()
    first.run("end")
    first.close(checkpoint=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpointer, "begin", crash)
        with pytest.raises(Crash):
            pipeline_of(log, tmp_path / "c", path, alerts=["core >= 3"])
    with pipeline_of(log, tmp_path / "c", path, alerts=["core >= 2"]) as third:
        third.run("end")
        told_in(path).agrees_with(third.graph)
    assert len(runs_in(list(read_results(path)))) == 3


@pytest.mark.parametrize("kind", ["file", "topic"])
def test_two_streams_with_one_place_are_told_all_again_at_each_change(
    tmp_path: Path, kind: str
) -> None:
    with SqliteLog(tmp_path / "a") as a, SqliteLog(tmp_path / "b") as b:
        path = tmp_path / "r.jsonl"
        place: Any = path if kind == "file" else (a, "results")
        for edge in EDGES:
            for log, name in ((a, "ca"), (b, "cb")):
                produce(log, edge if log is a else edge[::-1], (7, 8))
                with pipeline_of(log, tmp_path / name, place) as pipeline:
                    pipeline.run("end")
                    told = list(read_results(path)) if kind == "file" else told_in_topic(a)
                    Reader().read(told).agrees_with(pipeline.graph)
                    drawn = totals(once(told))
                    now = oracle(pipeline.graph)[1]
                    assert {name: values[-1] for name, (_, values) in drawn.items()} == {
                        name: value for name, value in now.items() if value or name in drawn
                    }


# While a pipeline runs -------------------------------------------------------------------------


def test_a_file_has_one_writer(log: SqliteLog, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with pipeline_of(log, tmp_path / "c", path) as first:
        first.run("end")
        whole = path.read_bytes()
        with pytest.raises(LockedError, match="name another file"):
            pipeline_of(log, tmp_path / "d", path)
        assert path.read_bytes() == whole
    with pipeline_of(log, tmp_path / "d", path):
        pass


@pytest.mark.parametrize("how", ["moved", "removed", "copied and emptied", "written to"])
def test_a_file_that_is_changed_under_a_pipeline_is_begun_anew(
    log: SqliteLog, tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    path, old = tmp_path / "r.jsonl", tmp_path / "r.old"
    with pipeline_of(log, tmp_path / "c", path) as pipeline:
        pipeline.run("end")
        whole = path.read_bytes()
        if how == "moved":
            path.rename(old)
        elif how == "removed":
            path.unlink()
        elif how == "copied and emptied":
            empty(path)
        else:
            cut_last_line(path)
        produce(log, *EDGES[4:])
        pipeline.run("end")
        assert not old.exists() or old.read_bytes() == whole
        told_in(path).agrees_with(pipeline.graph)
        last: Any = pipeline.graph
    assert len(whys(caplog)) == 1
    with pipeline_of(log, tmp_path / "c", path) as again:
        assert again.results is not None
        assert not again.results.begun
        told_in(path).agrees_with(last)


def test_a_reader_that_follows_a_file_which_was_moved_away_hears_of_figures_that_are_all_0(
    log: SqliteLog, tmp_path: Path
) -> None:
    path, old = tmp_path / "r.jsonl", tmp_path / "r.old"
    with pipeline_of(log, tmp_path / "c", path, batch_size=4) as pipeline:
        pipeline.run("end")
        path.rename(old)
        log.produce("updates", encoded([(1, *edge) for edge in EDGES[:4]]))
        pipeline.run("end")
        Reader().read([*read_results(old), *read_results(path)]).agrees_with(pipeline.graph)


def test_a_file_of_something_else_that_took_the_place_is_left_alone(
    log: SqliteLog, tmp_path: Path
) -> None:
    path = tmp_path / "r.jsonl"
    with pipeline_of(log, tmp_path / "c", path) as pipeline:
        pipeline.run("end")
        path.rename(tmp_path / "old")
        path.write_text("notes\n")
        produce(log, *EDGES[4:])
        with pytest.raises(SourceError, match="no file of results"):
            pipeline.run("end")
    assert path.read_text() == "notes\n"
    path.unlink()
    with pipeline_of(log, tmp_path / "c", path) as again:
        again.run("end")
        told_in(path).agrees_with(again.graph)


# Anything --------------------------------------------------------------------------------------

EDGE = st.tuples(st.sampled_from([0, 0, 0, 1]), st.integers(0, 7), st.integers(0, 7))
STEP = st.fixed_dictionaries({
    "operations": st.lists(EDGE, min_size=1, max_size=6),
    "batch_size": st.integers(1, 4),
    "place": st.sampled_from(["a", "a", "a", "b"]),
    "alerts": st.sampled_from([(), (), RULES]),
    "leaves": st.sampled_from(["checkpoint", "crash", "crash in the replay"]),
    "restores": st.none() | st.none() | st.integers(0, 3),
    "harm": st.sampled_from([None, None, None, "cut", "removed", "emptied"]),
    "at": st.sampled_from(["between", "running"]),
    "cut": st.floats(0, 1),
})  # fmt: skip


def harmed(path: Path, step: Given) -> None:
    if step["harm"] == "removed":
        path.unlink(missing_ok=True)
    elif step["harm"] is not None and path.exists():
        content = path.read_bytes()
        kept = 0 if step["harm"] == "emptied" else int(len(content) * step["cut"])
        path.write_bytes(content[:kept])


def one_start(log: SqliteLog, at: Path, step: Given) -> None:
    """Start or resume, and read some; the place agrees with the graph at every version."""
    path = at / f"{step['place']}.jsonl"
    given_: Given = {"alerts": step["alerts"], "batch_size": step["batch_size"]}
    if step["at"] == "between":
        harmed(path, step)
    if step["leaves"] == "crash in the replay" and has_checkpoint(at / "c"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Checkpointer, "begin", crash)
            try:
                pipeline_of(log, at / "c", path, **given_).close(checkpoint=False)
            except Crash:
                return
    pipeline = pipeline_of(log, at / "c", path, **given_)
    told_in(path).agrees_with(pipeline.graph)
    if step["at"] == "running":
        harmed(path, step)
    operations: Ops = step["operations"]
    log.produce_many("updates", [encoded([operation]) for operation in operations])
    told: list[bool] = []

    def look(running: Pipeline) -> bool:
        told.append(True)
        told_in(path).agrees_with(running.graph)
        return len(told) == len(operations)

    if pipeline.run(1):  # whatever waits
        look(pipeline)
    pipeline.run("end")
    told_in(path).agrees_with(pipeline.graph)
    pipeline.close(checkpoint=step["leaves"] == "checkpoint")


@pytest.mark.soak
@settings(max_examples=soak(25, 400), deadline=None)
@given(st.lists(STEP, min_size=2, max_size=7))
def test_a_reader_of_the_place_knows_the_figures_whatever_happened(steps: list[Given]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        at = Path(directory)
        with SqliteLog(at / "log") as log:
            log.create_topic("updates")
            for number, step in enumerate(steps):
                backup = at / f"backup{step['restores']}"
                if backup.exists():
                    shutil.rmtree(at / "c")
                    shutil.copytree(backup, at / "c")
                one_start(log, at, step)
                shutil.copytree(at / "c", at / f"backup{number}")


@pytest.mark.parametrize("kind", ["results", "changes"])
@pytest.mark.parametrize(
    ("value", "what"),
    [
        (ingest.encode_row(1, 2), "an update"),
        (ingest.encode_query("q", lpma.Kind.DEGREE, 1), "a query"),
        (b'{"user": 1}', "an object of JSON"),
        (b"?", "of no form known here"),
        (None, "other"),
    ],
)
def test_a_topic_that_holds_something_else_is_refused(
    log: SqliteLog, tmp_path: Path, kind: str, value: bytes | None, what: str
) -> None:
    if value is None:  # what the other of the two publishes
        other, what = {
            "results": ("changes", "part of an edge feed"), "changes": ("results", "a result"),
        }[kind]  # fmt: skip
        settings: Any = {other: (log, "told")}
        with Pipeline(log, lpma.Graph(device="cpu"), track=TRACK, **settings) as first:
            first.run("end")
    else:
        log.create_topic("told")
        log.produce("told", value)
    before = list(SqliteLog(log.path, ["told"]).end_offsets().values())
    settings = {kind: (log, "told")}
    with pytest.raises(ingest.PipelineError, match=f"whose newest record is {what}: name another"):
        Pipeline(log, lpma.Graph(device="cpu"), tmp_path / "c", track=TRACK, **settings)
    assert list(SqliteLog(log.path, ["told"]).end_offsets().values()) == before
    assert not has_checkpoint(tmp_path / "c")


@pytest.mark.parametrize("kind", ["results", "changes"])
def test_a_new_stream_where_another_one_was_told_says_so(log: SqliteLog, kind: str) -> None:
    settings: Any = {kind: (log, "told")}
    for why in ("", f"the newest {kind} in the place are of another stream"):
        with Pipeline(log, lpma.Graph(device="cpu"), track=TRACK, **settings) as pipeline:
            publisher = pipeline.results if kind == "results" else pipeline.feed
            assert publisher is not None
            assert publisher.begun == why
            pipeline.run("end")
        log.seek(log.first_offsets())


@pytest.mark.parametrize("kind", ["results", "changes"])
def test_two_pipelines_that_write_one_topic(tmp_path: Path, kind: str) -> None:
    """The one that comes second stops, before it has written."""
    with SqliteLog(tmp_path / "log") as log, SqliteLog(tmp_path / "other") as other:
        for each in (log, other):
            produce(each, *EDGES)
        given: list[Given] = [{"results": None, "changes": None, kind: log} for _ in range(2)]
        with pipeline_of(log, tmp_path / "c1", **given[0]) as first:
            with pipeline_of(other, tmp_path / "c2", **given[1]) as second:
                first.step()
                first.step()
                with pytest.raises(LockedError, match=r"another pipeline writes its .*: stop it"):
                    second.run("end")
            first.run("end")
        with SqliteLog(log.path, [kind]) as reader:
            decode = ingest.decode_result if kind == "results" else ingest.decode_changes
            runs = {decode(record.value).run for record in reader.poll(10**6)}  # type: ignore[arg-type]
    assert len(runs) == 1
