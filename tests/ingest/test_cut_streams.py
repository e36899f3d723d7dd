"""A stream cut wherever it can be: polls, records, runs of rows, batches, replies, results, the
pieces of a checkpoint. Each size is 3; then more passes than each takes at once as users have it.

The oracle is a dictionary, filled row by row in plain Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from ingest import PartitionedSink, Pipeline, SqliteLog
from ingest.cluster import routing
from ingest.pipeline import intake
from ingest.results import changes, reading
from ingest.sources.sqlite import order
from ingest.state import checkpoint
from lpma import Batch, Kind
from tests.support.contents import called, check_counts, edges_of
from tests.support.topics import replies

CUT = 3
SIZES = [
    (intake, "POLL_ROWS"), (intake, "FIRST_RECORDS"), (order, "AHEAD_BYTES"),
    (routing, "PIECE_BYTES"), (routing, "MAX_TEXT_ROWS"), (checkpoint, "PIECE_BYTES"),
    (changes, "MAX_RESULT_ROWS"), (reading, "POLL_RECORDS"),
]  # fmt: skip
SETTINGS: dict[str, Any] = {"batch_interval": 0.0, "batch_size": CUT, "poll_records": CUT}

Row = tuple[Any, Any, float, int, Kind]  # src, dst, weight, time, kind
Edges = dict[tuple[Any, Any], tuple[float, int]]

forms = pytest.mark.parametrize("named", [False, True], ids=["ids", "names"])


@pytest.fixture
def at_three(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in SIZES:
        monkeypatch.setattr(module, name, CUT)


def rows_of(named: bool, count: int = 60) -> list[Row]:
    rng = np.random.default_rng(count)
    names: list[Any] = [f"v{v}" if v % 3 else v - 3 for v in range(9)]
    ends = rng.integers(0, 9, (count, 2)).tolist()
    ends = [[names[u], names[v]] if named else [u, v] for u, v in ends]
    kinds = rng.choice([Kind.INSERT, Kind.INSERT, Kind.INSERT, Kind.DELETE, Kind.SET], count)
    weights = rng.integers(1, 9, count) / 4
    weights[(kinds == Kind.SET) & (rng.random(count) < 0.3)] = 0
    return [(*ends[i], float(weights[i]), 1000 + i, Kind(kinds[i])) for i in range(count)]


def applied(rows: list[Row]) -> Edges:
    found: Edges = {}
    for u, v, weight, time, kind in rows:
        if kind != Kind.INSERT:
            found.pop((u, v), None)
        if kind == Kind.INSERT or (kind == Kind.SET and weight > 0):
            found[u, v] = found.get((u, v), (0.0, 0))[0] + weight, time
    return found


def records_of(rows: list[Row], named: bool) -> Iterator[bytes]:
    """Records of columns, and of a row each, in turn: so runs, cuts and both meet."""
    first, turn = 0, 0
    while first < len(rows):
        some = rows[first : first + (8 if turn % 2 else 1)]
        src, dst, weight, time, kind = map(list, zip(*some, strict=True))
        if turn % 2:
            columns: dict[str, Any] = {"weight": weight, "time": time, "kind": kind, "names": named}
            yield ingest.encode_updates(src, dst, **columns)
        else:
            delete = kind[0] == Kind.DELETE
            fields: dict[str, Any] = {} if delete else {"weight": weight[0]}
            yield ingest.encode_row(
                src[0], dst[0], time=time[0], kind=kind[0], names=named, **fields
            )
        first, turn = first + len(some), turn + (first % 5 > 1)


def contents(graph: lpma.Graph) -> Edges:
    graph.check()
    s = graph.snapshot()
    assert s.weights is not None
    assert s.times is not None
    return edges_of(s)


@forms
def test_a_stream_makes_one_graph_wherever_it_is_cut(
    tmp_path: Path, at_three: None, named: bool
) -> None:
    """Taken up again from a checkpoint after each seven operations, in a record's middle too."""
    rows = rows_of(named)
    with SqliteLog(tmp_path / "log") as log:
        log.produce_many("updates", list(records_of(rows, named)))
    graph: Any = None
    done = 0
    while done < len(rows):
        with SqliteLog(tmp_path / "log") as log:
            if graph is None:
                graph = lpma.Graph(device="cpu", names=named)
                pipeline = Pipeline(log, graph, tmp_path / "state", names=named, **SETTINGS)
            else:
                pipeline = Pipeline.resume(tmp_path / "state", log, device="cpu")
            with pipeline:
                while pipeline.stats.operations < min(done + 7, len(rows)):
                    pipeline.step(drain=True)
                done, graph = pipeline.stats.operations, pipeline.graph
                assert contents(graph) == applied(rows[:done])
    assert done == len(rows)


@forms
def test_a_sharded_stream_is_one_wherever_its_records_are_cut(
    tmp_path: Path, at_three: None, named: bool
) -> None:
    rows = rows_of(named)
    with SqliteLog(tmp_path / "log") as log:
        ingest.create_sharded(log, "updates", 3)
        with PartitionedSink(log, names=named) as sink:
            for first in range(0, len(rows), 20):
                src, dst, weight, time, kind = map(
                    list, zip(*rows[first : first + 20], strict=True)
                )
                sink.write(Batch.from_columns(kind, src, dst, weight, time, names=named))
        graph = lpma.Graph(device="cpu", names=named)
        with Pipeline(log, graph, names=named, **SETTINGS) as pipeline:
            while pipeline.step(drain=True):
                pass
            assert pipeline.stats.operations == len(rows)
    assert contents(graph) == applied(rows)


@forms
def test_replies_are_whole_wherever_they_are_cut(
    tmp_path: Path, at_three: None, named: bool
) -> None:
    rows = rows_of(named)
    expected = applied(rows)
    with SqliteLog(tmp_path / "log") as log:
        log.produce_many("updates", list(records_of(rows, named)))
        graph = lpma.Graph(device="cpu", names=named)
        settings = {**SETTINGS, "max_reply_rows": CUT, "names": named}
        with Pipeline(log, graph, **settings) as pipeline:
            while pipeline.step(drain=True):
                pass
            for u in {u for u, _ in expected}:
                found: list[Any] = []
                after = None
                while True:
                    query = ingest.encode_query("q", Kind.SUCCESSORS, u, after=after, names=named)
                    log.produce("queries", query)
                    while not pipeline.step(drain=True):
                        pass
                    reply = replies(log)[-1]
                    assert reply.rows <= CUT
                    answer: Any = reply.answer
                    columns = (answer.ids, answer.weights, answer.times)
                    found += zip(*(column.tolist() for column in columns), strict=True)
                    after = reply.cursor
                    if not reply.more:
                        break
                own = {(v, *value) for (w, v), value in expected.items() if w == u}
                assert len(found) == len(own)
                assert set(found) == own


@forms
def test_results_are_whole_wherever_they_are_cut(
    tmp_path: Path, at_three: None, named: bool
) -> None:
    rows = [(*row[:4], Kind.INSERT) for row in rows_of(named)]
    with SqliteLog(tmp_path / "log") as log:
        log.produce_many("updates", list(records_of(rows, named)))
        graph = lpma.Graph(device="cpu", names=named)
        options = {**SETTINGS, "names": named, "track": ["core"], "results": tmp_path / "r.jsonl"}
        with Pipeline(log, graph, **{**options, "batch_size": 20}) as pipeline:
            while pipeline.step(drain=True):
                pass
    cores: dict[Any, int] = {}
    cut = 0
    for result in ingest.read_results(tmp_path / "r.jsonl"):
        if result.figure == "core" and result.vertex is not None:
            assert result.rows <= CUT
            cut += result.rows == CUT
            cores.update(zip(result.vertex.tolist(), result.new.tolist(), strict=True))
    assert cut > 1
    from algorithms import core_numbers

    s = graph.snapshot()
    expected = dict(zip(called(s), core_numbers(s).tolist(), strict=True))
    assert {v: core for v, core in cores.items() if core} == {
        v: core for v, core in expected.items() if core
    }


MANY, VERTICES = 250_000, 20_000  # more than one write, poll or batch takes


@forms
def test_a_stream_of_more_than_a_batch_makes_one_graph(tmp_path: Path, named: bool) -> None:
    """Compared with what NumPy makes of the numbers by sorting."""
    pairs = np.random.default_rng(9).integers(0, VERTICES, (2, MANY)) // 2 * 2
    names = np.array([f"v{v}" for v in range(VERTICES)], object)
    src, dst = names[pairs] if named else pairs
    with SqliteLog(tmp_path / "log") as log:
        ingest.create_sharded(log, "updates", 2)
        with PartitionedSink(log, names=named) as sink:
            sink.write(Batch.from_columns(Kind.INSERT, src, dst, names=named))
        graph = lpma.Graph(device="cpu", names=named)
        with Pipeline(log, graph, names=named, batch_interval=0.0) as pipeline:
            while pipeline.step(drain=True):
                pass
            assert (pipeline.stats.operations, pipeline.stats.batches > 2) == (MANY, True)
    check_counts(graph.snapshot(), pairs, VERTICES)
