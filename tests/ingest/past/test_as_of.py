"""Past views: what was, and nothing else, at every version and every time."""

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
from ingest import CheckpointError, PastError, Pipeline, PipelineError, SqliteLog, past
from ingest.past import view
from ingest.past.reach import described, reachable
from ingest.state import checkpointer
from ingest.state import directory as directory_module
from ingest.state.checkpoint import GRAPH, State, read_checkpoint
from ingest.state.directory import checkpoint_numbers, checkpoint_path
from ingest.state.journal import Chunk, segment_numbers, segment_path
from ingest.state.journal_reader import read_journal
from ingest.types import Partition
from lpma.arrays import to_host
from tests.conftest import soak
from tests.support import named_stream
from tests.support.stream_model import random_records
from tests.support.topics import Ticking, dead_letters, replies

Content = tuple[Any, ...]
TAKEN_AT = [10**12]  # ms since 1970


def content(graph: lpma.Graph) -> Content:
    """All that a past view must bring back: edges with weights and times, vertices, names."""
    s = graph.snapshot(compact=True)
    arrays = [s.ids, s.indptr, s.indices, s.weights, s.times]
    found = [None if a is None else to_host(a).tolist() for a in arrays]
    names = graph.names
    # What only waits has its names already: those of the vertices count.
    named = None if names is None else names.of(to_host(s.ids)).tolist()
    return (*found, named, graph.version, graph.time, graph.num_edges)


class Recorder:
    """A pipeline that is stopped and taken up again, with the graph after every version."""

    def __init__(self, path: Path, topics: tuple[str, ...] = ("wide",)) -> None:
        self.log, self.state, self._topics = path / "log", path / "state", topics
        self.after: dict[int, Content] = {}
        self.stamps: list[tuple[int, int]] = []  # of each batch's last operation, its version
        self.clock = Ticking()

    def source(self) -> SqliteLog:
        return SqliteLog(self.log, topics=self._topics)

    def open(self, graph: lpma.Graph, **options: Any) -> Pipeline:
        options = {"clock": self.clock, "query_interval": 10.0, **options}
        if ingest.has_checkpoint(self.state):
            return Pipeline.resume(self.state, self.source(), device="cpu", **options)
        pipeline = Pipeline(self.source(), graph, self.state, **options)
        self.note(pipeline)
        return pipeline

    def note(self, pipeline: Pipeline) -> None:
        graph: Any = pipeline.graph
        now = content(graph)
        assert self.after.setdefault(graph.version, now) == now, "batches of queries change nothing"
        if pipeline.stats.history:
            self.stamps.append((pipeline.stats.history[-1].time, graph.version))


def graph_for(data: st.DataObject, **more: Any) -> lpma.Graph:
    return lpma.Graph(
        device="cpu", directed=data.draw(st.booleans()), predecessors=data.draw(st.booleans()),
        **more,
    )  # fmt: skip


@pytest.mark.soak
@given(st.data(), st.booleans())
@settings(max_examples=soak(12, 300), deadline=None)
def test_every_version_and_time_comes_back(device: str, data: st.DataObject, named: bool) -> None:
    """Random streams, cuts, checkpoints and stops; then every version, and times between stamps,
    against the graph as it was noted while the stream flowed."""
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    reading: dict[str, Any] = {"keep_checkpoints": "1s=1000"}
    if named:
        records = named_stream.random_records(rng, 40)
        late = data.draw(st.sampled_from(["apply", "dead-letter", "reject"]))
        reading |= {"names": True, "records": named_stream.JSON, "late": late}
        reading["max_lateness"] = 0 if late == "apply" else 20
    else:
        records = random_records(rng, 40)
    with tempfile.TemporaryDirectory() as name:
        run = Recorder(Path(name))
        with SqliteLog(run.log) as log:
            log.create_topic("wide", 3)
            for i, record in enumerate(records):
                log.produce("wide", record, partition=i % 3)
        graph = graph_for(data, names=named)
        while True:
            pipeline = run.open(graph, **reading, batch_size=data.draw(st.integers(1, 20)),
                                poll_records=data.draw(st.integers(1, 15)),
                                batch_interval=data.draw(st.sampled_from([0.0, 10.0])),
                                max_hops=1)  # fmt: skip
            steps = data.draw(st.integers(1, 8))
            for _ in range(steps):
                if pipeline.step(drain=True):
                    run.note(pipeline)
                if data.draw(st.integers(0, 3)) == 0:
                    pipeline.checkpoint_now()
            ended = pipeline.source.at_end() and not pipeline.step(drain=True)
            pipeline.close(checkpoint=data.draw(st.booleans()))
            pipeline.source.close()  # type: ignore[attr-defined]
            if ended:
                break
            run.note(pipeline)
        with run.source() as source:
            for version, expected in run.after.items():
                found = ingest.as_of(run.state, source, version=version, device=device)
                assert content(found) == expected
            check_times(run, source)


def check_times(run: Recorder, source: SqliteLog) -> None:
    """At the stamp of a batch's last operation the state is that after the batch, unless the next
    one has operations of the same stamp; a ms before the first one there is nothing."""
    stamps = dict(reversed(run.stamps))  # the last batch of each stamp
    assert stamps
    for stamp, version in dict(run.stamps).items():
        found = ingest.as_of(run.state, source, time=stamp, device="cpu")
        assert found.version in (version, version + 1)
        if found.version == version:
            assert content(found) == run.after[version]
    before = ingest.as_of(run.state, source, time=10**12 - 1, device="cpu")
    assert content(before) == run.after[0]


@given(st.data())
@settings(max_examples=soak(15, 200), deadline=None)
def test_a_time_is_a_prefix_of_the_stream(device: str, data: st.DataObject) -> None:
    """Whatever the batches: the operations with stamps up to the time, as the journal has them."""
    size, polled = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 6))
    edges = np.random.default_rng(size).integers(0, 9, (60, 2)).tolist()
    with tempfile.TemporaryDirectory() as name:
        run = Recorder(Path(name), ("updates",))
        with SqliteLog(run.log) as log:
            log.produce_many("updates", [ingest.encode_row(u, v) for u, v in edges])
        pipeline = run.open(lpma.Graph(device=device), batch_size=size, poll_records=polled,
                            batch_interval=10.0, checkpoint_operations=17,
                            keep_checkpoints="1s=100")  # fmt: skip
        pipeline.run(until=data.draw(st.integers(1, 60)))
        pipeline.close(checkpoint=False)
        pipeline.source.close()  # type: ignore[attr-defined]
        history = read_journal(run.state, segment_numbers(run.state)[0]).entries
        chunks = [entry for entry in history if isinstance(entry, Chunk)]
        with run.source() as source:
            for time in range(chunks[0].stamp - 1, chunks[-1].stamp + 2):
                graph = ingest.as_of(run.state, source, time=time, device=device)
                expected: dict[tuple[int, int], int] = {}
                for chunk in chunks:
                    if chunk.stamp <= time:
                        for u, v in edges[chunk.first : chunk.last + 1]:
                            expected[u, v] = chunk.stamp
                s = graph.snapshot()
                rows = np.repeat(np.arange(s.num_rows), np.diff(to_host(s.indptr))).tolist()
                keys = zip(rows, s.indices.tolist(), strict=True)
                assert dict(zip(keys, to_host(s.times).tolist(), strict=True)) == expected


@pytest.fixture
def run(tmp_path: Path) -> Recorder:
    """Ten versions of five rows each, every second one with a checkpoint that is kept."""
    run = Recorder(tmp_path, ("updates", "queries"))
    with SqliteLog(run.log) as log:
        for i in range(10):
            log.produce("updates", ingest.encode_updates(range(5), [i + 7] * 5))
            log.produce("queries", ingest.encode_query(f"q{i}", lpma.Kind.DEGREE, 0))
            log.produce("updates", b"bad")
    pipeline = run.open(lpma.Graph(device="cpu"), batch_size=6, batch_interval=10.0, poll_records=3,
                        keep_checkpoints="1s=100,1d=7", checkpoint_operations=10**9)  # fmt: skip
    for i in range(10):
        assert pipeline.step(drain=True) == 6
        run.note(pipeline)
        if i % 2 == 0:
            keep_this(pipeline)
    pipeline.close(checkpoint=False)
    pipeline.source.close()  # type: ignore[attr-defined]
    return run


def keep_this(pipeline: Pipeline) -> None:
    """A checkpoint in a second of its own."""
    TAKEN_AT[0] += 1000
    pipeline.checkpoint_now()


@pytest.fixture(autouse=True)
def own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints are taken at the times that a test says."""
    monkeypatch.setattr(checkpointer, "now_ms", lambda: TAKEN_AT[0])


def files(path: Path) -> dict[str, tuple[int, bytes]]:
    return {str(p): (p.stat().st_mtime_ns, p.read_bytes()) for p in sorted(path.rglob("*"))
            if p.is_file()}  # fmt: skip


def test_nothing_is_written_and_nothing_leaves(run: Recorder) -> None:
    before = files(run.state)
    with run.source() as source:
        sent = len(replies(source)), len(dead_letters(source))
        assert sent[0] == 10
        for version, expected in run.after.items():
            assert content(ingest.as_of(run.state, source, version=version)) == expected
        assert (len(replies(source)), len(dead_letters(source))) == sent
    assert files(run.state) == before


def test_the_nearest_checkpoint_is_used(device: str, run: Recorder) -> None:
    with run.source() as source:
        for version in range(1, 11):
            found = view(run.state, source, version=version, device=device)
            assert (
                found.checkpoint.state.version == (version - 1) // 2 * 2 + 1 if version < 9 else 9
            )
            assert found.replayed == 6 * (version - found.checkpoint.state.version)
    spans = reachable(run.state)
    assert [span.first_version for span in spans] == [0, 1, 3, 5, 7, 9]
    assert described(spans).startswith("versions 0 … 10 (the beginning … 2001-09-09T01:46:40")


def test_without_a_source_a_checkpoint_alone(device: str, run: Recorder) -> None:
    assert content(ingest.as_of(run.state, version=5, device=device)) == run.after[5]
    with pytest.raises(PastError, match=r"version 6 cannot be had: .* give the source; there are"):
        ingest.as_of(run.state, version=6, device=device)


def test_what_the_stream_has_not_come_to(device: str, run: Recorder) -> None:
    with run.source() as source:
        with pytest.raises(PastError, match="has come to version 10; there are versions 0 … 10"):
            ingest.as_of(run.state, source, version=11, device=device)
        with pytest.raises(PastError, match="before the oldest"):
            ingest.as_of(run.state, source, version=-1, device=device)
        with pytest.raises(PastError, match="in the future"):
            ingest.as_of(run.state, source, time=10**16, device=device)


@pytest.mark.parametrize(
    "asked",
    [{}, {"version": 1, "time": 1}, {"version": 1.5}, {"version": True}, {"time": "now"}],
    ids=str,
)
def test_what_is_no_place(run: Recorder, asked: dict[str, Any]) -> None:
    with pytest.raises(PipelineError, match="as_of: "):
        ingest.as_of(run.state, **asked)


def test_a_log_that_lost_its_records(device: str, run: Recorder) -> None:
    """The versions of kept checkpoints, and those whose records are there, and no other."""
    with SqliteLog(run.log) as log:
        log.trim("updates", 0, before=10)  # the first five batches
    with run.source() as source:
        for version, expected in run.after.items():
            if version not in (2, 4):
                found = ingest.as_of(run.state, source, version=version, device=device)
                assert content(found) == expected
                continue
            with pytest.raises(PastError, match="gone") as refused:
                ingest.as_of(run.state, source, version=version, device=device)
            assert "there are version 0 (the beginning), version 1 (" in str(refused.value)
            assert "versions 5 … 10" in str(refused.value)
        with pytest.raises(PastError, match="gone"):
            ingest.as_of(run.state, source, time=run.stamps[1][0], device=device)
        assert content(
            ingest.as_of(run.state, source, time=run.stamps[7][0], device=device)
        ) == run.after[8]  # fmt: skip


def test_a_damaged_checkpoint_means_an_older_one_and_is_told(device: str, run: Recorder) -> None:
    numbers = checkpoint_numbers(run.state)
    path = checkpoint_path(run.state, numbers[3]) / GRAPH
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with run.source() as source:
        found = view(run.state, source, version=6, device=device)
        assert content(found.graph) == run.after[6]
        assert found.checkpoint.number == numbers[2]
        assert f"checkpoint {numbers[3]}" in found.problems[0]
    for number in numbers[:3]:
        (checkpoint_path(run.state, number) / GRAPH).write_bytes(b"")
    with run.source() as source, pytest.raises(PastError, match=f"checkpoint {numbers[3]}: "):
        ingest.as_of(run.state, source, version=6, device=device)


def test_a_damaged_journal_ends_what_can_be_had(device: str, run: Recorder) -> None:
    with run.source() as source:
        kept = view(run.state, source, version=5, device=device).checkpoint
        segment_path(run.state, kept.segment).unlink()
        assert content(ingest.as_of(run.state, source, version=5)) == run.after[5]
        assert content(ingest.as_of(run.state, source, version=8)) == run.after[8]
        with pytest.raises(PastError, match=r"journal-\d+ is missing; there are versions 0 … 5"):
            ingest.as_of(run.state, source, version=6, device=device)
        with pytest.raises(PastError, match=r"journal-\d+ is missing"):
            ingest.as_of(run.state, source, time=run.stamps[5][0], device=device)


def test_what_is_missing_between_past_views_is_said(run: Recorder) -> None:
    assert "cannot be had" not in described(reachable(run.state))
    with run.source() as source:
        kept = view(run.state, source, version=5).checkpoint
    segment_path(run.state, kept.segment).unlink()
    said = described(reachable(run.state))
    assert "versions 0 … 5 (" in said
    assert "versions 7 … 10 (" in said
    assert said.endswith("; version 6 between them cannot be had")


def test_what_a_stream_went_on_without_is_no_past_view(run: Recorder) -> None:
    """Known without the source, which says the same."""
    with run.source() as source:
        source.produce_many("updates", [ingest.encode_row(5, 70 + i) for i in range(9)])
        end = source.end_offsets()[Partition("updates", 0)]
        source.trim("updates", 0, before=end - 4)
        settings: Any = {"clock": run.clock, "batch_size": 2, "batch_interval": 10.0}
        with Pipeline.resume(run.state, source, accept_gap=True, device="cpu", **settings) as again:
            keep_this(again)
            again.run("end")
            newest = again.graph.version
        spans = reachable(run.state)
        assert spans == reachable(run.state, source)
        assert spans[-1].last_version == newest
        assert [s.first_version for s in spans if s.first_version == s.last_version][:6] == [
            0, 1, 3, 5, 7, 9
        ]  # fmt: skip
        assert "versions 2, " not in (said := described(spans))
        assert "; version 2, version 4, version 6, version 8" in said
        for span in spans:
            for version in range(span.first_version, span.last_version + 1):
                found = ingest.as_of(run.state, source, version=version, device="cpu")
                assert found.version == version


def test_another_source_is_refused(device: str, run: Recorder, tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "other") as other:
        other.produce("updates", b"1")
        with pytest.raises(ingest.errors.IdentityError):
            ingest.as_of(run.state, other, version=2, device=device)


def test_a_directory_that_holds_none(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        ingest.as_of(tmp_path, version=1)
    (tmp_path / "shard-0000").mkdir()
    with pytest.raises(PastError, match="belongs to a cluster"):
        ingest.as_of(tmp_path, version=1)


def test_a_shard_is_refused(device: str, run: Recorder) -> None:
    """It has versions of its own, which say nothing of the cluster's."""
    assert reachable(run.state)
    (run.state / "cluster.json").write_bytes(b"{}")
    with run.source() as source, pytest.raises(PastError, match="belongs to a cluster"):
        ingest.as_of(run.state, source, version=2, device=device)
    assert reachable(run.state) == []


def test_a_checkpoint_that_vanishes_is_looked_for_again(
    device: str, run: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a pipeline that prunes may do at any moment."""
    load = lpma.Graph.load
    left = checkpoint_numbers(run.state)

    def vanishing(path: Path, device: str) -> lpma.Graph:
        if len(left) > 2:
            directory_module.remove_checkpoint(run.state, left.pop())
        return load(path, device)

    monkeypatch.setattr(lpma.Graph, "load", vanishing)
    with run.source() as source:
        found = view(run.state, source, version=10, device=device)
        assert content(found.graph) == run.after[10]
    assert len(left) == 2
    assert found.problems == [], "nothing is damaged"


def test_a_journal_that_vanishes_is_no_damage(
    device: str, run: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipeline prunes between the graph and its journal."""
    newest = checkpoint_numbers(run.state)[-1]

    def pruned(directory: Path, first: int, last: int | None) -> Any:
        kept = read_checkpoint(checkpoint_path(directory, newest), newest)
        directory_module.remove_below(directory, newest, kept.segment)
        return read_journal(directory, first, last)

    monkeypatch.setattr(past, "read_journal", pruned)
    with run.source() as source:
        with pytest.raises(PastError, match=r"before the oldest checkpoint .* versions 9 … 10"):
            ingest.as_of(run.state, source, version=6, device=device)
        assert content(ingest.as_of(run.state, source, version=10)) == run.after[10]


def test_the_ladder_keeps_what_it_says(device: str, run: Recorder) -> None:
    """A resume that says nothing keeps what was kept; one that says "" keeps the newest two."""
    numbers = checkpoint_numbers(run.state)
    assert len(numbers) == 6
    pipeline = run.open(lpma.Graph(device=device))
    keep_this(pipeline)
    pipeline.close()
    assert checkpoint_numbers(run.state)[:6] == numbers
    pipeline = run.open(lpma.Graph(device=device), keep_checkpoints="")
    pipeline.checkpoint_now()
    pipeline.close()
    assert len(checkpoint_numbers(run.state)) == 2
    assert len(segment_numbers(run.state)) <= 3


def test_a_resume_that_asks_other_queries(device: str, run: Recorder) -> None:
    """Which queries are asked decides which batches have versions: a checkpoint parts them."""
    with SqliteLog(run.log) as log:
        hops = [ingest.encode_query(f"h{i}", lpma.Kind.HOPS, 0, steps=3) for i in range(4)]
        log.produce_many("queries", hops)
        log.produce("updates", ingest.encode_row(3, 3))
    for most in (3, 2):
        pipeline = run.open(lpma.Graph(device=device), max_hops=most, batch_size=1, poll_records=1)
        for _ in range(2):
            pipeline.step()
            run.note(pipeline)
        if most == 2:
            pipeline.run(until="end")
            run.note(pipeline)
        pipeline.close(checkpoint=False)
        pipeline.source.close()  # type: ignore[attr-defined]
    assert max(run.after) == 13, "ten, two that were asked, and the row"
    with run.source() as source:
        for version, expected in run.after.items():
            assert content(ingest.as_of(run.state, source, version=version)) == expected


def test_an_older_checkpoint_says_nothing_of_it() -> None:
    """What a release before the ladder wrote is read as its defaults."""
    state = State(ingest.sources.Identity("cluster", {}), {})
    known = state.to_json()
    assert State.from_json(known, []) == state
    for name in ("keep_checkpoints", "reply_topics", "max_hops"):
        del known[name]
    assert State.from_json(known, []) == state


@pytest.mark.parametrize("wrong", [[1], (1, 2), np.array([1]), True, 1.0, "1", {}], ids=repr)
@pytest.mark.parametrize("name", ["version", "time"])
def test_what_is_no_place_is_told(tmp_path: Path, name: str, wrong: Any) -> None:
    asked: dict[str, Any] = {name: wrong}
    with pytest.raises(ingest.PipelineError, match=f"{name} is .*: expected"):
        ingest.as_of(tmp_path, **asked)


def test_what_is_no_source_is_told(run: Recorder) -> None:
    """The command line takes a path there, so it is likely here."""
    wrong: Any
    for wrong in (str(run.log), run.log):
        with pytest.raises(ingest.PipelineError, match=r"open source, as ingest.SqliteLog\(path\)"):
            ingest.as_of(run.state, wrong, version=2, device="cpu")
    with run.source() as source:
        for number in (np.int64(2), np.array(2)):
            graph = ingest.as_of(run.state, source, version=number, device="cpu")  # type: ignore[arg-type]
            assert graph.version == 2


@pytest.mark.parametrize("wrong", [b"state", 5, None], ids=repr)
def test_what_is_no_directory_is_told(run: Recorder, wrong: Any) -> None:
    said = "expected the path of a directory"
    with run.source() as source:
        with pytest.raises(CheckpointError, match=said):
            ingest.as_of(wrong, source, version=2)
        with pytest.raises(CheckpointError, match=said):
            ingest.Pipeline.resume(wrong, source)
        if wrong is not None:
            with pytest.raises(CheckpointError, match=said):
                ingest.Pipeline(source, lpma.Graph(device="cpu"), wrong)
