"""Vertices named by records: the same ids after any crash."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingest
import lpma
from ingest import Pipeline, PipelineError, SqliteLog
from ingest.errors import VertexLimitError
from ingest.formats.encode import encode_updates
from ingest.formats.records import decode_record
from ingest.pipeline import recovery
from lpma import Kind
from tests.conftest import soak
from tests.support.named_stream import JSON, NAMES, named_edges, random_records, said, serial
from tests.support.stream_model import SavedModel

names = (
    st.sampled_from(NAMES)
    | st.integers(-(2**63), 2**64 - 1)
    | st.text(st.characters(codec="utf-8"), min_size=1, max_size=16)
)


@given(st.lists(st.tuples(names, names, st.integers(0, 3)), max_size=20))
def test_columns_of_names_come_back(rows: list[tuple[Any, Any, int]]) -> None:
    src, dst = [row[0] for row in rows], [row[1] for row in rows]
    kind = np.array([row[2] for row in rows], np.uint8)
    record = decode_record(encode_updates(src, dst, None, None, kind, names=True), names=True)
    assert record.names is not None
    assert (record.names.src.tolist(), record.names.dst.tolist()) == (src, dst)
    np.testing.assert_array_equal(record.batch.kind, kind)


def columns(**fields: Any) -> bytes:
    import msgpack

    data: bytes = msgpack.packb({"rows": 2, "src": b"\0" * 8, **fields})
    return data


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"dst": b"\0" * 12},
        {"dst": b"\0" * 8, "dst_signed": b"\0" * 16},
        {"dst_signed": b"\0" * 8},
        {"dst": b"\0" * 8, "dst_number": b"\0" * 2},
        {"dst_text": b"ab"},
        {"dst_text": b"ab", "dst_ends": b"\1\0\0\0\3\0\0\0"},
        {"dst_text": b"ab", "dst_ends": b"\2\0\0\0\2\0\0\0"},
        {"dst_text": b"ab", "dst_ends": b"\3\0\0\0\2\0\0\0"},
        {"dst_text": b"a" * 1026, "dst_ends": b"\1\0\0\0\x02\x04\0\0"},
        {"dst_text": "ab", "dst_ends": b"\1\0\0\0\2\0\0\0"},
        {"dst_text": "é".encode(), "dst_ends": b"\1\0\0\0\2\0\0\0"},
        {"dst_text": b"1a", "dst_ends": b"\1\0\0\0\2\0\0\0", "dst_number": b"\1\1"},
        {"dst_text": b"107", "dst_ends": b"\1\0\0\0\3\0\0\0", "dst_number": b"\1\1"},
        {"dst_text": b"17", "dst_ends": b"\1\0\0\0\2\0\0\0", "dst_number": b"\1\2"},
        {"dst_text": b"1" + b"9" * 20, "dst_ends": b"\1\0\0\0\x15\0\0\0", "dst_number": b"\1\1"},
    ],
)
def test_bad_columns_of_names_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ingest.RecordError):
        decode_record(columns(**fields), names=True)


def test_dense_ids_take_wide_columns_and_no_other_names() -> None:
    wide = encode_updates(np.array([2**40], np.uint64), [1], names=True)
    with pytest.raises(ingest.RecordError, match="names=True takes others"):
        decode_record(wide)
    fits = columns(src=b"\7" + b"\0" * 15, dst=b"\0" * 8)
    assert decode_record(fits).batch.src.tolist() == [7, 0]
    assert decode_record(fits).batch.src.dtype == np.uint32
    for bad in (["a"], [-1]):
        with pytest.raises(ingest.RecordError, match="only with names=True"):
            decode_record(encode_updates(bad, [1], names=True))
    with pytest.raises(ingest.RecordError, match="at most 65536"):
        encode_updates(["a"] * 65537, ["b"] * 65537, names=True)
    for bad_name in ([True], [1.5], [2**64], [""], ["x" * 1025], ["\ud800"], [None], [[1]]):
        with pytest.raises(ingest.RecordError):
            encode_updates(bad_name, [1], names=True)


# Through the pipeline ------------------------------------------------------------------------


def cuts(data: st.DataObject) -> dict[str, Any]:
    """Where a pipeline cuts its batches and takes its checkpoints."""
    return {
        "batch_size": data.draw(st.integers(1, 40)),
        "poll_records": data.draw(st.integers(1, 20)),
        "batch_interval": data.draw(st.sampled_from([0.0, 10.0])),
        "checkpoint_operations": data.draw(st.integers(1, 60)),
    }


@pytest.mark.soak
@given(st.data())
@settings(max_examples=soak(12, 500))
def test_any_cut_and_any_crash_lead_to_the_same_ids(data: st.DataObject) -> None:
    """Stop without a last word at any place, resume with batches of another size: edges, replies,
    dead letters, late rows and the dictionary are those of a serial reading."""
    records = random_records(np.random.default_rng(data.draw(st.integers(0, 10**6))), 60)
    late = data.draw(st.sampled_from(["apply", "dead-letter", "reject"]))
    expected = serial(records, late, 30)
    got: dict[str, Any] = {}
    letters: set[int] = set()

    def reply(r: ingest.Reply) -> None:
        r = ingest.decode_reply(ingest.formats.replies.encode_reply(r))
        assert got.setdefault(r.id, said(r)) == said(r)

    def options() -> dict[str, Any]:
        taking = {"replies": reply, "dead_letters": lambda letter: letters.add(letter.offset)}
        return cuts(data) | taking

    reading: dict[str, Any] = {"records": JSON, "names": True, "late": late}
    reading["max_lateness"] = 0 if late == "apply" else 30
    with tempfile.TemporaryDirectory() as name, SqliteLog(Path(name) / "log") as log:
        log.produce_many("updates", records)
        directory = Path(name) / "checkpoint"
        source = SqliteLog(log.path)
        graph = SavedModel(predecessors=True)
        pipeline = Pipeline(source, graph, directory, **reading, **options())
        for _ in range(data.draw(st.integers(1, 4))):
            for _ in range(data.draw(st.integers(0, 6))):
                pipeline.step(drain=True)
            pipeline.close(checkpoint=data.draw(st.booleans()))
            source.close()
            source = SqliteLog(log.path)
            pipeline = Pipeline.resume(directory, source, load=SavedModel.load, **options())
        pipeline.run(until="end")
        assert pipeline.stats.operations == expected.operations
        pipeline.close()
        source.close()
    assert pipeline.vertices is not None
    found = pipeline.vertices.of(np.arange(len(pipeline.vertices))).tolist()
    assert found == expected.names
    assert [type(n) for n in found] == [type(n) for n in expected.names]
    assert named_edges(pipeline) == expected.edges
    assert got == expected.answers
    assert letters == set(expected.letters)


def test_the_store_speaks_its_clients_names(tmp_path: Path) -> None:
    """With the store itself: a graph of text and integers, queried before and behind an update."""
    q: Any = lambda id, kind, *ends, **rest: ingest.encode_query(  # noqa: E731
        id, kind, *ends, names=True, **rest
    )
    with SqliteLog(tmp_path / "log") as log:
        log.produce_many("updates", [
            q("before", Kind.SUCCESSORS, "alice"),
            encode_updates(["alice", "alice", 2**60], ["bob", -7, "alice"], names=True),
            q("behind", Kind.SUCCESSORS, "alice"),
            q("hops", Kind.HOPS, 2**60, steps=2),
            q("edge", Kind.EDGE, "alice", "bob"),
            q("nobody", Kind.EDGE, "nobody", "nothing"),
            q("degree", Kind.DEGREE, 2**60),
            ingest.encode_row("alice", kind=Kind.REMOVE_VERTEX, names=True),
            q("gone", Kind.VERTEX, "alice"),
        ])  # fmt: skip
        pipeline = Pipeline(log, lpma.Graph(device="cpu"), tmp_path / "c", names=True)
        pipeline.run(until="end")
        pipeline.close()
        with SqliteLog(log.path, topics=("replies",)) as reader:
            replies = [ingest.decode_reply(bytes(r.value)) for r in reader.poll(99)]  # type: ignore[arg-type]
        answers = {r.id: said(r) for r in replies}
        assert answers == {
            "before": [], "behind": ["bob", -7], "hops": ["alice", "bob", -7], "edge": True,
            "nobody": False, "degree": 1, "gone": False,
        }  # fmt: skip
        resumed = Pipeline.resume(tmp_path / "c", log)
        assert resumed.vertices is not None
        assert resumed.vertices.of([0, 1, 2, 3]).tolist() == ["alice", "bob", -7, 2**60]
        resumed.close()
        with pytest.raises(PipelineError, match=r"names is False, but .* True"):
            Pipeline.resume(tmp_path / "c", log, names=False)
        for file in sorted((tmp_path / "c").glob("checkpoint-*/graph.lpma")):
            file.write_bytes(file.read_bytes()[:-1] + b"?")
        with pytest.raises(ingest.CheckpointError, match=r"graph\.lpma is damaged"):
            Pipeline.resume(tmp_path / "c", log)


def test_a_dictionary_beside_a_graph_is_still_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As releases kept it whose graphs had no names of their own."""
    with SqliteLog(tmp_path / "log") as log:
        log.produce("updates", encode_updates(["alice"], [2**60], names=True))
        with monkeypatch.context() as patch:
            none = lambda value, kind: kind is ingest.Source and isinstance(value, kind)  # noqa: E731
            patch.setattr(recovery, "isinstance", none, raising=False)
            pipeline = Pipeline(log, lpma.Graph(device="cpu"), tmp_path / "c", names=True)
            pipeline.run(until="end")
            pipeline.close()
        assert lpma.Graph.load(pipeline_file(tmp_path, "graph.lpma"), "cpu").names is None
        good = pipeline_file(tmp_path, "vertices").read_bytes()
        log.produce("updates", encode_updates([2**60], ["bob"], names=True))
        with Pipeline.resume(tmp_path / "c", log, device="cpu") as resumed:
            resumed.run(until="end")
            assert isinstance(resumed.graph, lpma.Graph)
            assert resumed.graph.hops("alice", 2).ids.tolist() == [2**60, "bob"]
        assert lpma.Graph.load(pipeline_file(tmp_path, "graph.lpma"), "cpu").names is not None
        for file in sorted((tmp_path / "c").glob("checkpoint-*/vertices")):
            file.write_bytes(good[:-1] + b"?")
        for file in sorted((tmp_path / "c").glob("checkpoint-*/graph.lpma"))[1:]:
            file.write_bytes(b"?")
        with pytest.raises(ingest.CheckpointError, match="is damaged"):
            Pipeline.resume(tmp_path / "c", log, device="cpu")


def pipeline_file(folder: Path, name: str) -> Path:
    """A file of the newest checkpoint."""
    return sorted((folder / "c").glob(f"checkpoint-*/{name}"))[-1]


def test_a_full_dictionary_stops_the_pipeline_and_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqliteLog(tmp_path / "log") as log:
        log.produce_many("updates", [encode_updates([1, 2], [2, 1]), encode_updates([9], [1])])
        pipeline = Pipeline(log, SavedModel(), tmp_path / "c", batch_size=1, poll_records=1,
                            names=True)  # fmt: skip
        assert pipeline.vertices is not None
        pipeline.vertices.limit = 2
        pipeline.step()
        pipeline.step()
        with pytest.raises(VertexLimitError):
            pipeline.step()
        with pytest.raises(PipelineError, match="resume"):
            pipeline.step()
        pipeline.close()
        resumed = Pipeline.resume(tmp_path / "c", SqliteLog(log.path), load=SavedModel.load)
        resumed.run(until="end")
        assert len(named_edges(resumed)) == 3


def test_a_deletion_gives_no_id_to_a_name_that_nothing_inserted(tmp_path: Path) -> None:
    """As in a graph with names; else what is deleted would fill the dictionary for ever."""
    updates = [
        encode_updates(["alice", "bob", "nobody", "carol"], ["bob", "nothing", "alice", "dora"],
                       kind=[Kind.INSERT, Kind.DELETE, Kind.DELETE, Kind.ADD_VERTEX], names=True),
        ingest.encode_row("nobody", "nothing", kind=Kind.DELETE, names=True),
        ingest.encode_row("nobody", kind=Kind.REMOVE_VERTEX, names=True),
        ingest.encode_row("nothing", "alice", names=True),
    ]  # fmt: skip
    expected = ["alice", "bob", "carol", "nothing"]
    with SqliteLog(tmp_path / "log") as log:
        log.produce_many("updates", updates)
        graph = lpma.Graph(device="cpu", names=True)
        with Pipeline(log, graph, tmp_path / "c") as pipeline:
            pipeline.run("end")
            assert pipeline.vertices is not None
            assert pipeline.vertices.of(np.arange(len(pipeline.vertices))).tolist() == expected
        assert list(graph) == expected
        assert graph.num_edges == 2
        with Pipeline.resume(tmp_path / "c", log, device="cpu") as resumed:
            assert list(resumed.graph) == expected  # type: ignore[call-overload]


def test_a_file_can_have_names_too(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("70 5\n5 90\n70 90\n")
    pipeline = Pipeline(ingest.FileSource(path), SavedModel(), names=True)
    pipeline.run()
    assert pipeline.graph.num_edges == 3
    assert set(named_edges(pipeline)) == set(itertools.combinations([70, 5, 90], 2))


@pytest.mark.soak
@given(st.data())
@settings(max_examples=soak(8, 300))
def test_a_graph_with_names_is_its_own_dictionary(data: st.DataObject) -> None:
    """The same stream into a graph with names, stopped without a last word and resumed: what it
    holds and answers, by name, is what a serial reading gives."""
    records = random_records(np.random.default_rng(data.draw(st.integers(0, 10**6))), 60)
    expected = serial(records, "apply", 0)
    got: dict[str, Any] = {}

    def reply(r: ingest.Reply) -> None:
        r = ingest.decode_reply(ingest.formats.replies.encode_reply(r))
        assert got.setdefault(r.id, said(r)) == said(r)

    def options() -> dict[str, Any]:
        return cuts(data) | {"replies": reply, "dead_letters": lambda letter: None}

    with tempfile.TemporaryDirectory() as name, SqliteLog(Path(name) / "log") as log:
        log.produce_many("updates", records)
        directory = Path(name) / "checkpoint"
        source = SqliteLog(log.path)
        graph = lpma.Graph(names=True, predecessors=True, device="cpu")
        pipeline = Pipeline(source, graph, directory, records=JSON, **options())
        for _ in range(data.draw(st.integers(1, 3))):
            for _ in range(data.draw(st.integers(0, 6))):
                pipeline.step(drain=True)
            pipeline.close(checkpoint=data.draw(st.booleans()))
            source.close()
            source = SqliteLog(log.path)
            pipeline = Pipeline.resume(directory, source, device="cpu", **options())
        pipeline.run(until="end")
        pipeline.close()
        source.close()
    kept = pipeline.graph
    assert isinstance(kept, lpma.Graph)
    assert kept.names is pipeline.vertices
    assert kept.names is not None
    assert kept.names.of(np.arange(len(kept.names))).tolist() == expected.names
    for (u, v), weight in expected.edges.items():
        edge = kept.edge(u, v)
        assert edge is not None
        assert edge.weight == pytest.approx(weight)
    assert kept.num_edges == len(expected.edges)
    assert got == expected.answers
    kept.insert("by hand", expected.names[0])
    assert kept.has_edge("by hand", expected.names[0])


def test_a_stream_goes_on_with_a_graph_that_has_names(tmp_path: Path) -> None:
    """Names given by hand and by records are the same vertices; a graph of ids has none."""
    graph = lpma.Graph(names=True, device="cpu")
    graph.insert("alice", "bob")
    with SqliteLog(tmp_path / "log") as log:
        log.produce("updates", encode_updates(["bob"], ["carol"], names=True))
        with Pipeline(log, graph, tmp_path / "c") as pipeline:
            pipeline.run(until="end")
        assert graph.hops("alice", 2).ids.tolist() == ["bob", "carol"]
        with Pipeline.resume(tmp_path / "c", log, device="cpu") as resumed:
            assert isinstance(resumed.graph, lpma.Graph)
            assert resumed.graph.hops("alice", 2).ids.tolist() == ["bob", "carol"]
        plain = lpma.Graph(device="cpu")
        plain.insert(1, 2)
        with pytest.raises(PipelineError, match=r"names=True"):
            Pipeline(log, plain, names=True)
