"""`lpma cluster` with shards that are real: what it answers is what one graph of the same stream
answers, before and after kills, and after a disk is lost."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pytest

import algorithms
import ingest
import lpma
from lpma.sharding import owners_of
from tests.support.command_line import await_cluster, command_line, document, run
from tests.support.waiting import HANGS_S, wait_for

SHARDS = 2
Array = npt.NDArray[Any]


class Written:
    """A sharded stream, and one graph of all that was written to it."""

    def __init__(self, path: Path, directed: bool) -> None:
        self.path = path
        self.graph = lpma.Graph(device="cpu", directed=directed)
        self.directed = directed
        self._rng = np.random.default_rng(7)
        with ingest.SqliteLog(path) as log:
            ingest.create_sharded(log, "updates", 2 * SHARDS)
        self.more()

    @classmethod
    def of(cls, path: Path) -> Self:
        """One that somebody else has written."""
        made = cls.__new__(cls)
        made.path, made.directed = path, True
        return made

    def more(self, count: int = 3000) -> None:
        src, dst = self._rng.integers(0, 400, (2, count)).astype(np.uint32)
        self.graph.insert(src, dst)
        with (
            ingest.SqliteLog(self.path) as log,
            ingest.PartitionedSink(log, directed=self.directed) as sink,
        ):
            sink.produce_many("updates", [ingest.encode_updates(src, dst)])

    @property
    def options(self) -> list[str]:
        return [] if self.directed else ["--undirected"]


@contextmanager
def running(written: Written, state: Path, *options: object) -> Iterator[subprocess.Popen[bytes]]:
    """The command, once all its shards run; ended with the block, if it has not ended."""
    process = subprocess.Popen(
        command_line("cluster", "run", written.path, "--shards", SHARDS, "-c", state,
                     *written.options, *options),
        stdout=subprocess.DEVNULL, stderr=(state.parent / "said").open("ab"),
    )  # fmt: skip
    try:
        await_cluster(process, state)
        yield process
    finally:
        process.kill()
        process.wait()


def columns(state: Path, algorithm: str, *options: str) -> dict[int, float]:
    """What an algorithm gives each vertex, by the command."""
    out = state.parent / "out.csv"
    run("cluster", "run-algorithm", state, algorithm, *options, "--out", out)
    with out.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    return {int(row[0]): float(row[-1]) for row in rows}


def check(written: Written, state: Path) -> None:
    """Everything, beside one graph."""
    whole = written.graph.snapshot(compact=True)
    assert whole.ids is not None
    ids = whole.ids.tolist()

    def each(values: Array) -> dict[int, float]:
        return dict(zip(ids, map(float, values.tolist()), strict=True))

    assert columns(state, "degree") == each(np.diff(whole.indptr))
    assert columns(state, "core") == each(algorithms.core_numbers(whole))
    source = ids[0]
    assert columns(state, "bfs", "--source", str(source)) == each(algorithms.bfs(whole, 0))
    ranks, expected = columns(state, "pagerank"), each(algorithms.pagerank(whole))
    assert ranks.keys() == expected.keys()
    assert np.allclose(list(ranks.values()), list(expected.values()), rtol=1e-6)
    labels = algorithms.connected_components(whole)
    assert columns(state, "components") == each(np.bincount(labels)[labels])
    scores = each(algorithms.diversity(whole, "core", 2))
    assert columns(state, "diversity", "--model", "core", "--k", "2") == scores
    found = document("cluster", "run-algorithm", state, "triangles")
    assert found["top"] == [{"triangles": algorithms.triangle_count(whole)}]
    assert found["edges"] == whole.num_edges
    assert document("cluster", "run-algorithm", state, "degree")["vertices"] == len(ids)


def check_snapshots(written: Written, state: Path) -> None:
    folder, file = state.parent / "parts", state.parent / "whole.npz"
    for target in (folder, file):
        if target.exists():
            shutil.rmtree(target) if target.is_dir() else target.unlink()
        run("cluster", "snapshot", state, target)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest
    expected = written.graph.snapshot()
    with np.load(file) as arrays:
        assert np.array_equal(arrays["indices"], expected.indices)
        assert np.array_equal(arrays["indptr"], expected.indptr)
    import pyarrow.parquet

    parts = [pyarrow.parquet.read_table(path) for path in sorted(folder.glob("*.parquet"))]
    assert len(parts) == SHARDS
    entries = sum(part.num_rows for part in parts)
    assert entries == expected.num_edges, "each edge once"
    for number, part in enumerate(parts):
        src = part.column("src").to_numpy()
        assert (owners_of(src, SHARDS) == number).all()


@pytest.mark.parametrize("directed", [True, pytest.param(False, marks=pytest.mark.integration)])
def test_as_one_graph_whatever_is_killed(tmp_path: Path, directed: bool) -> None:
    written = Written(tmp_path / "log", directed)
    state, kept = tmp_path / "state", tmp_path / "kept"
    options = ["--keep", kept, "--set", "checkpoints.interval=0.2"]
    with running(written, state, *options) as process:
        check(written, state)
        check_snapshots(written, state)
        degree = document("query", "degree", written.path, 3)["results"][0]["degree"]
        assert degree == len(written.graph.successors(3).ids)
        found = document("cluster", "status", state)
        assert [shard["state"] for shard in found["shards"]] == ["running"] * SHARDS
        written.more()
        process.send_signal(signal.SIGKILL)
        process.wait()
    with running(written, state, *options) as process:
        check(written, state)
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANGS_S) == 0
    assert not (state / "control.sock").exists()
    written.more()
    shutil.rmtree(state / "shard-0001")
    with running(written, state, *options, "--log-json") as process:
        check(written, state)
        assert '"event": "restored"' in (tmp_path / "said").read_text()
        assert not [shard for shard in document("cluster", "status", state)["shards"]
                    if shard["status"]["problem"]]  # fmt: skip
    # Killed just now, it resumes without a word of what was lost before.
    with running(written, state, *options):
        check(written, state)


def test_vertices_with_names(tmp_path: Path) -> None:
    path, state = tmp_path / "log", tmp_path / "state"
    src, dst = ["ann", "bob", "5", 5], ["bob", "5", 5, "dan"]
    with ingest.SqliteLog(path) as log:
        ingest.create_sharded(log, "updates", SHARDS)
        with ingest.PartitionedSink(log, names=True) as sink:
            sink.produce_many("updates", [ingest.encode_updates(src, dst, names=True)])
    with running(Written.of(path), state, "--names"):
        found = document("cluster", "run-algorithm", state, "bfs", "--source", "ann")
        hops = {row["vertex"]: row["hops"] for row in found["top"]}
        assert hops == {"ann": 0, "bob": 1, "5": 2, 5: 3, "dan": 4}
        found = document("cluster", "run-algorithm", state, "bfs", "--source", '"5"')
        assert {row["vertex"]: row["hops"] for row in found["top"] if row["hops"] >= 0} == {
            "5": 0, 5: 1, "dan": 2,
        }  # fmt: skip
        (best,) = document("cluster", "run-algorithm", state, "components")["top"]
        assert best["size"] == 5
        assert best["component"] in hops
        refused = run("cluster", "run-algorithm", state, "bfs", "--source", "eve", status=1)
        assert "no vertex eve" in refused.stderr
        refused = run("cluster", "snapshot", state, tmp_path / "whole.mtx", status=1)
        assert "no place for names" in refused.stderr
        run("cluster", "snapshot", state, tmp_path / "whole.csv")
        assert '"ann",false,"bob",false' in (tmp_path / "whole.csv").read_text()
        assert document("query", "degree", path, "bob")["results"][0]["degree"] == 1


def test_a_place_that_refuses_copies_is_told(tmp_path: Path) -> None:
    written = Written(tmp_path / "log", directed=False)
    kept = tmp_path / "kept"
    with running(written, tmp_path / "state", "--keep", kept, "--set", "checkpoints.interval=0.1"):
        manifests = "*/*/checkpoint.json"
        wait_for(lambda: len(list(kept.glob(manifests))) >= SHARDS, "a copy of each shard")
        shutil.rmtree(kept)
        kept.write_text("no folder any more")
        written.more()
        command = "cluster", "status", tmp_path / "state"
        wait_for(lambda: "not kept" in run(*command).stdout, "that it is told")


@pytest.mark.ray
def test_on_ray(ray_cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", ray_cluster.get_runtime_context().gcs_address)
    monkeypatch.setenv("PYTHONPATH", os.fspath(Path(__file__).parents[3]))
    written = Written(tmp_path / "log", True)
    state, options = tmp_path / "state", ["--engine", "ray", "--keep", tmp_path / "kept"]
    with running(written, state, *options) as process:
        check(written, state)
        written.more()
        process.send_signal(signal.SIGKILL)
        process.wait()
    with running(written, state, *options) as process:
        check(written, state)
        found = document("cluster", "status", state)
        assert [shard["status"]["replayed"] for shard in found["shards"]] == [0] * SHARDS, (
            "the shards outlived the process that launched them"
        )
        check_snapshots(written, state)
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANGS_S) == 0
