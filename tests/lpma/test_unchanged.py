"""Operations that change nothing are counted, by why; and sums are rounded alike everywhere.

The model goes through a batch one operation at a time. A graph folds runs of one key, by blocks of
threads on a device where they are long: neither its weights nor its counts may show that."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import ingest
import lpma
from ingest.cli import app
from ingest.metrics import MetricsServer
from lpma import Batch, Columns, Kind, Unchanged
from tests.support.oracles import ModelGraph, agree, assert_same
from tests.support.strategies import Config, configs
from tests.support.waiting import HANGS_S

Array = npt.NDArray[Any]

# What float32 rounds away, to 0 or against another; what stays exact; what does not.
WEIGHTS = (0.0, 1.0, -1.0, 0.25, 0.1, -0.1, 1e-60, -1e-60, 1e-30, 2.0**24, -(2.0**24), 2.0**53)


def counted(*appended: float | None, weight: str | None = "float32", device: str) -> Unchanged:
    """What appends to one edge (None: its deletion) leave unchanged, each a batch; checked to be
    the same in one batch."""
    apart, together = (lpma.Graph(weight_dtype=weight, device=device) for _ in range(2))
    batch = Batch()
    for d in appended:
        if d is None:
            apart.delete(1, 2)
            batch.delete(1, 2)
        else:
            apart.insert(1, 2, d)
            batch.insert(1, 2, d)
    together.apply(batch)
    assert apart.unchanged == together.unchanged
    return apart.unchanged


@pytest.mark.parametrize(
    "appended, expected",
    [
        ((0.0,), Unchanged(not_positive=1)),
        ((-5.0,), Unchanged(not_positive=1)),
        ((2.0, -3.0), Unchanged()),
        ((5.0, -3.0), Unchanged()),
        ((-3.0, 5.0), Unchanged(not_positive=1)),
        ((1e-60,), Unchanged(underflow=1)),
        ((-1e-60,), Unchanged(underflow=1)),
        ((1.0, 1e-60), Unchanged(underflow=1)),
        ((1.0, 0.0), Unchanged()),
        ((None,), Unchanged(delete_absent=1)),
        ((1.0, None, None), Unchanged(delete_absent=1)),
        ((2.0**24, 1.0, 1.0), Unchanged(rounded_off=2)),
        ((2.0**24, 2.0, -1.0), Unchanged()),
        ((1.0, 1e-30), Unchanged(rounded_off=1)),
    ],
)
def test_each_reason(appended: tuple[Any, ...], expected: Unchanged, device: str) -> None:
    assert counted(*appended, device=device) == expected


def test_float64_goes_further(device: str) -> None:
    assert counted(1e-60, 1.0, weight="float64", device=device) == Unchanged()
    assert counted(2.0**24, 1.0, weight="float64", device=device) == Unchanged()
    assert counted(2.0**53, 1.0, weight="float64", device=device) == Unchanged(rounded_off=1)


def test_without_weights(device: str) -> None:
    seen = counted(-1.0, 1.0, 1.0, 0.0, -1.0, None, weight=None, device=device)
    assert seen == Unchanged(not_positive=2, delete_absent=1)


def test_a_thousand_ones_on_a_full_sum(device: str) -> None:
    """The plainest batch there is, whose weights nobody reads before they are added."""
    g = lpma.Graph(device=device)
    g.insert(0, 1, 2.0**24)
    g.insert(np.zeros(1000, np.uint32), np.ones(1000, np.uint32))
    assert_same(g.edges(0, 1).weights, np.array([2.0**24], np.float32))
    assert g.unchanged == Unchanged(rounded_off=1000)


def test_threads_count_what_they_move(device: str) -> None:
    g = lpma.Graph(device=device, global_merge="never")
    n = 30_000
    rng = np.random.default_rng(1)
    src, dst = (rng.integers(0, 5000, n).astype(np.uint32) for _ in range(2))
    pairs = np.unique(src.astype(np.uint64) << np.uint64(32) | dst)
    full = (pairs >> np.uint64(32)).astype(np.uint32), pairs.astype(np.uint32)
    g.insert(*full, 2.0**24)
    g.insert(src, dst)
    assert g.unchanged == Unchanged(rounded_off=n)


@pytest.mark.parametrize("predecessors", [False, True])
def test_an_edge_of_two_stores_or_of_two_ways_counts_once(predecessors: bool, device: str) -> None:
    g = lpma.Graph(directed=False, predecessors=predecessors, device=device)
    g.delete([5, 1, 7], [9, 1, 2])
    g.insert([5, 5], [1, 1], [2.0**24, 1.0])
    assert g.unchanged == Unchanged(delete_absent=3, rounded_off=1)
    g = lpma.Graph(predecessors=True, device=device)
    g.insert(5, 1, 2.0**24)
    g.insert(5, 1)
    g.delete(1, 5)
    assert g.unchanged == Unchanged(delete_absent=1, rounded_off=1)


def test_removing_vertices_deletes_no_absent_edge(device: str) -> None:
    """The deletions that a removal implies are not the caller's."""
    g = lpma.Graph(device=device)
    g.insert([1, 2], [2, 1])
    batch = Batch()
    batch.delete(1, 2)
    batch.remove_vertex(1)
    batch.remove_vertex(1)
    g.apply(batch)
    assert g.unchanged == Unchanged()


def test_what_a_refused_batch_would_not_have_changed_does_not_count(device: str) -> None:
    g = lpma.Graph(device=device)
    with pytest.raises(lpma.BatchError):
        g.insert([1, 2], [2, 3], [0.0, float("nan")])
    assert g.unchanged == Unchanged()


def _columns(rng: np.random.Generator, size: int, span: int, hot: float, queries: bool) -> Columns:
    """Mostly appends of whatever is hard to add up; the share `hot` of them to one edge."""
    kind = rng.choice([Kind.INSERT] * 8 + [Kind.SET, Kind.DELETE], size).astype(np.uint8)
    if queries:
        kind[rng.random(size) < 0.02] = Kind.EDGE
    src, dst = rng.integers(0, span, (2, size))
    src[rng.random(size) < hot] = dst[rng.random(size) < hot] = 0
    weight = rng.choice([*WEIGHTS, *rng.random(4)], size)
    return Batch.from_columns(kind, src, dst, weight, np.arange(size))


@given(
    config=configs(),
    seed=st.integers(0, 2**32),
    sizes=st.lists(st.sampled_from([1, 3, 60, 700]), min_size=1, max_size=4),
    hot=st.sampled_from([0.0, 0.3, 0.97]),
    queries=st.booleans(),
)
def test_weights_and_counts_are_those_of_one_operation_at_a_time(
    config: Config, seed: int, sizes: list[int], hot: float, queries: bool, device: str
) -> None:
    g, model, rng = config.graph(device), config.model(), np.random.default_rng(seed)
    for size in sizes:
        batch = _columns(rng, size, 6, hot, queries)
        assert_same(g.apply(batch), model.apply(batch), "answers")
    agree(g, model)
    assert g.unchanged == model.unchanged


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("size", [70, 300, 5000])
def test_a_hot_edge(exact: bool, size: int, device: str) -> None:
    """Whole numbers may be added in any order; these fractions may not."""
    rng = np.random.default_rng(size)
    weight = rng.integers(-3, 5, size) if exact else rng.random(size) * 8 - 3
    for start in (None, 3.0, 2.0**24):
        g, model = lpma.Graph(device=device), ModelGraph()
        for graph in (g, model):
            if start is not None:
                graph.insert(1, 2, start, 0)
            ends = np.ones(size, int), np.full(size, 2)
            graph.insert(*ends, weight.astype(float), np.arange(size))
        agree(g, model)
        assert g.unchanged == model.unchanged


def _stream(path: Any) -> ingest.SqliteLog:
    log = ingest.SqliteLog(path)
    log.produce_many(
        "updates",
        [
            ingest.encode_updates([1, 2, 3, 3], [2, 3, 4, 4], [0.0, -5.0, 2.0, -3.0]),
            ingest.encode_row(5, 6, weight=1e-60),
            ingest.encode_row(5, 6, kind=Kind.DELETE),
            ingest.encode_updates([7, 7], [8, 8], [2.0**24, 1.0]),
        ],
    )
    return log


ALL = {"not_positive": 2, "underflow": 1, "delete_absent": 1, "rounded_off": 1}


def test_a_stream_tells(tmp_path: Path, device: str) -> None:
    pytest.importorskip("uvicorn")  # a machine with a GPU need not have it
    with _stream(tmp_path / "s.log") as log:
        told: list[ingest.BatchStats] = []
        graph = lpma.Graph(device=device)
        graph.delete(1, 1)  # before the stream, and none of its business
        pipeline = ingest.Pipeline(log, graph, batch_size=4)
        pipeline.run(until="end", progress=told.append)
        assert pipeline.stats.unchanged.as_dict() == ALL
        assert [batch.unchanged.total for batch in told] == [2, 3]
        with MetricsServer(pipeline, 0) as server:
            url = f"http://{server.host}:{server.port}/metrics"
            page = urllib.request.urlopen(url, timeout=HANGS_S).read().decode()
    for reason, count in ALL.items():
        assert f'lpma_unchanged_total{{reason="{reason}"}} {count}.0' in page


def test_the_command_line_tells(tmp_path: Path) -> None:
    _stream(tmp_path / "s.log").close()
    result = CliRunner().invoke(
        app, ["ingest", str(tmp_path / "s.log"), "-c", str(tmp_path / "c"), "--json"]
    )
    assert json.loads(result.stdout)["unchanged"] == ALL
    edges = tmp_path / "e.csv"
    edges.write_text("1,2,0\n1,3,1e-60\n1,4,1\n")
    arguments = ["load", str(edges), str(tmp_path / "g.lpma"), "--columns", "src,dst,weight"]
    result = CliRunner().invoke(app, arguments)
    assert "not_positive 1, underflow 1" in " ".join(result.stdout.split())
