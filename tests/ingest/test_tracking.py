"""`Pipeline(track=…)`: figures that agree with the algorithms after every batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import algorithms
import ingest
import lpma
from ingest.errors import PipelineError


def expected(graph: lpma.Graph) -> dict[str, int]:
    s = graph.snapshot()
    cores = algorithms.core_numbers(s)
    sizes = np.bincount(algorithms.connected_components(s)) if len(cores) else np.zeros(0)
    return {
        "core": int(cores.max()) if len(cores) else 0,
        "triangles": algorithms.triangle_count(s),
        "components": int((sizes > 1).sum()),
    }


def test_figures_are_exact_after_every_batch(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    with ingest.SqliteLog(tmp_path / "log") as log:
        log.create_topic("updates")
        log.create_topic("queries")
        track = ("core", "triangles", "components")
        graph = lpma.Graph(device="cpu")
        pipeline = ingest.Pipeline(log, graph, tmp_path / "state", track=track, batch_size=40)
        pipeline.step(drain=True)
        assert pipeline.tracked is not None
        assert pipeline.tracked.figures() == {"core": 0, "triangles": 0, "components": 0}
        for _ in range(20):
            src, dst = rng.integers(0, 12, (2, 40))
            kind = rng.choice([0, 1, 11], 40).astype(np.uint8)
            weight = np.where(kind == 11, rng.integers(0, 3, 40), 1.0)
            log.produce("updates", ingest.encode_updates(src, dst, weight, kind=kind))
            pipeline.step()
            assert pipeline.tracked.version == graph.version
            assert pipeline.tracked.figures() == expected(graph)
        pipeline.close()
        with ingest.Pipeline.resume(tmp_path / "state", log, track=track, device="cpu") as resumed:
            resumed.step(drain=True)
            assert resumed.tracked is not None
            assert resumed.tracked.figures() == expected(graph)


def test_figures_follow_what_expires(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    with ingest.SqliteLog(tmp_path / "log") as log:
        log.create_topic("updates")
        track = ("core", "triangles", "components")
        graph = lpma.Graph(device="cpu")
        pipeline = ingest.Pipeline(log, graph, track=track, window=60)
        for at in range(0, 400, 20):
            src, dst = rng.integers(0, 12, (2, 20))
            times = at + rng.integers(-30, 20, 20)
            log.produce("updates", ingest.encode_updates(src, dst, time=times))
            pipeline.step(drain=True)
            assert pipeline.tracked is not None
            assert pipeline.tracked.figures() == expected(graph)
        assert graph.num_edges < 100


def test_components_of_a_graph_with_gaps_among_its_ids(tmp_path: Path) -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert([0, 7, 3], [5, 9, 3])
    with ingest.SqliteLog(tmp_path / "log") as log:
        log.create_topic("updates")
        with ingest.Pipeline(log, graph, track=("components",)) as pipeline:
            pipeline.step(drain=True)
            assert pipeline.tracked is not None
            assert pipeline.tracked.figures() == {"components": 2}


def test_ranks_follow_and_results_leave_them_out(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    told: list[ingest.Result] = []
    with ingest.SqliteLog(tmp_path / "log") as log:
        log.create_topic("updates")
        graph = lpma.Graph(directed=False, device="cpu")
        track = ("pagerank", "triangles")
        with ingest.Pipeline(log, graph, track=track, results=told.append) as pipeline:
            pipeline.step(drain=True)
            assert pipeline.tracked is not None
            assert pipeline.tracked.figures() == {"triangles": 0, "pagerank": 0.0}
            for _ in range(5):
                src, dst = rng.integers(0, 30, (2, 40))
                apart = src != dst
                log.produce("updates", ingest.encode_updates(src[apart], dst[apart]))
                pipeline.step(drain=True)
                ranks = pipeline.tracked.values["pagerank"]
                exact = algorithms.pagerank(graph.snapshot(), tol=1e-12, max_iter=500)
                assert abs(ranks - exact).sum() < 5.7e-6
                assert pipeline.tracked.figures()["pagerank"] == ranks.max()
    assert {result.figure for result in told} == {"triangles"}


def test_results_need_a_figure_that_they_have() -> None:
    with pytest.raises(PipelineError, match="results are of tracked figures"):
        ingest.Settings(track=("pagerank",), results=print)
    with pytest.raises(PipelineError, match="pagerank"):
        ingest.Settings(track=("pagerank", "core"), results=print, alerts=["pagerank > 0.1"])


def test_an_unknown_figure_is_refused() -> None:
    with pytest.raises(PipelineError, match="expected some of core, triangles"):
        ingest.Settings(track=("cores",))
    with pytest.raises(PipelineError, match="expected some of core, triangles"):
        ingest.Settings(track="core")


def test_butterflies_of_one_side_say_what_to_do(tmp_path: Path) -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert([0, 1, 2], [1, 2, 0])
    with ingest.SqliteLog(tmp_path / "log") as log:
        log.create_topic("updates")
        log.create_topic("queries")
        said = r"butterflies .* leave them out, or give the vertices"
        pipeline = ingest.Pipeline(log, graph, track=("butterflies",))
        with pipeline, pytest.raises(lpma.BatchError, match=said):
            pipeline.step(drain=True)
