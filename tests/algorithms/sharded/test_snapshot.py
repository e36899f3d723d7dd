"""What a ShardedSnapshot refuses, and its files."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import algorithms
import lpma
from algorithms import ShardedSnapshot
from algorithms.sharded import LocalWorkers, Part, read_manifest, read_parquet, split
from lpma.file.atomic import PathError
from tests.algorithms.sharded.test_names import NAMINGS
from tests.support.sharding import Case, cases

NONE = np.empty(0, np.int64)
TRIANGLE = Case(4, np.array([0, 0, 1, 2]), np.array([1, 2, 2, 3]), NONE, 2, False, False)


@pytest.fixture
def s() -> ShardedSnapshot:
    return TRIANGLE.sharded()


MANY: Any = 1.5  # rounds
REFUSED: dict[str, tuple[type[Exception], str, Callable[[Any], Any]]] = {
    "method": (lpma.BatchError, "h-indices", lambda s: algorithms.core_numbers(s, "bz")),
    "source": (lpma.BatchError, "source", lambda s: algorithms.bfs(s, 9)),
    "text": (lpma.BatchError, "source", lambda s: algorithms.bfs(s, "ann")),
    "damping": (lpma.BatchError, "damping", lambda s: algorithms.pagerank(s, damping=2)),
    "tol": (lpma.BatchError, "tol", lambda s: algorithms.pagerank(s, tol=-1)),
    "rounds": (lpma.BatchError, "max_iter", lambda s: algorithms.pagerank(s, max_iter=MANY)),
    "model": (ValueError, "model", lambda s: algorithms.diversity(s, "clique", 2)),
    "k": (lpma.BatchError, "k: .* not 0", lambda s: algorithms.diversity(s, "core", 0)),
    "scorer": (ValueError, "method", lambda s: algorithms.diversity(s, "core", 1, "fast")),
    "t": (lpma.BatchError, "t: .* not -1", lambda s: algorithms.top_diversity(s, "core", 1, -1)),
    "devices": (
        lpma.BatchError, "devices", lambda s: algorithms.top_diversity(s, "core", 1, 1, devices=[0])
    ),
    "k-core": (lpma.BatchError, r"gather\(\)", lambda s: algorithms.k_core(s, 2)),
    "triangles": (lpma.BatchError, r"gather\(\)", lambda s: algorithms.triangles(s)),
    "truss": (lpma.BatchError, r"gather\(\)", lambda s: algorithms.truss_numbers(s)),
    "bicliques": (lpma.BatchError, r"gather\(\)", lambda s: algorithms.count_bicliques(s, 2, 2)),
    "hops": (lpma.BatchError, "steps", lambda s: s.hops([0], [0])),
    "hops of two": (lpma.BatchError, "sources, steps", lambda s: s.hops([0], [1, 2])),
    "program": (lpma.BatchError, "program", lambda s: s.run("sort")),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(s: ShardedSnapshot, name: str) -> None:
    error, words, call = REFUSED[name]
    with pytest.raises(error, match=words):
        call(s)
    assert algorithms.triangle_count(s) == 1  # and works on


def test_a_source_that_is_a_row_and_no_vertex() -> None:
    s = Case(5, np.array([4]), np.array([3]), NONE, 3, True, False).sharded()
    with pytest.raises(lpma.BatchError, match="no vertex 2"):
        algorithms.bfs(s, 2)


def test_weights_are_asked_for_where_there_are_none() -> None:
    graph = lpma.Graph(device="cpu", weight_dtype=None)
    graph.insert([0, 1], [1, 2])
    s = ShardedSnapshot.of(split(graph.snapshot(), 2))
    with pytest.raises(lpma.BatchError, match="no weights"):
        algorithms.pagerank(s, weighted=True)
    parts = TRIANGLE.parts()
    for weight in (-1.0, np.inf, np.nan):  # at one shard
        weights = np.full(len(parts[1].indices), weight, np.float32)
        s = ShardedSnapshot.of(LocalWorkers([parts[0], replace(parts[1], weights=weights)]))
        with pytest.raises(lpma.BatchError, match="not negative"):
            algorithms.pagerank(s, weighted=True)
        assert algorithms.pagerank(s).sum() == pytest.approx(1)


def test_parts_of_two_kinds_are_no_graph() -> None:
    directed = Part.of(lpma.Graph(device="cpu").snapshot(), 1, 2, directed=True)
    with pytest.raises(lpma.BatchError, match="kinds"):
        ShardedSnapshot.of(LocalWorkers([TRIANGLE.parts()[0], directed]))


@pytest.mark.parametrize(
    "change, words",
    [({"shard": 2}, "shard 2 of 2"), ({"bounds": (0, 4)}, "bounds"), ({"shards": 0}, "shard 0")],
)
def test_bad_parts(change: dict[str, Any], words: str) -> None:
    with pytest.raises(lpma.BatchError, match=words):
        LocalWorkers([replace(TRIANGLE.parts()[0], **change)])


def test_what_cannot_be_split() -> None:
    named = lpma.from_edges(["ann"], ["bob"], device="cpu").snapshot()
    with pytest.raises(lpma.BatchError, match="split"):
        split(named, 2)
    with pytest.raises(lpma.BatchError, match=r"shards: .* not 0"):
        split(lpma.Graph(device="cpu").snapshot(), 0)


def test_threads_take_turns(s: ShardedSnapshot) -> None:
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(algorithms.core_numbers(s).tolist()))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[2, 2, 2, 1]] * 8


# Files -------------------------------------------------------------------------------------------


@given(case=cases())
def test_parquet(tmp_path_factory: pytest.TempPathFactory, case: Case) -> None:
    for name in (None, *NAMINGS.values()):
        s, one = case.sharded(name=name), case.one(name=name)
        directory = tmp_path_factory.mktemp("files")
        s.write_parquet(directory)
        manifest = read_manifest(directory)
        assert (manifest.epoch, manifest.edges, manifest.vertices, manifest.directed) == (
            7, one.num_edges, one.num_vertices, case.directed
        )  # fmt: skip
        assert len(manifest.files) == case.shards == len(list(directory.iterdir())) - 1
        table, expected = read_parquet(directory), one.to_arrow()
        if case.directed:
            assert sorted(map(repr, table.to_pylist())) == sorted(map(repr, expected.to_pylist()))
        else:  # which end is called src depends on the rows' numbers
            assert both_ways(table) == both_ways(expected)


def both_ways(table: Any) -> list[Any]:
    """Of each edge its ends, in an order of their own, and the rest."""
    found = []
    for edge in table.to_pylist():
        ends = [(edge.pop(end), edge.pop(f"{end}_number", None)) for end in ("src", "dst")]
        found.append((sorted(map(repr, ends)), edge))
    return sorted(map(repr, found))


def test_a_directory_that_is_no_place(s: ShardedSnapshot, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for directory in (tmp_path, tmp_path / "file", tmp_path / "none" / "there"):
        with pytest.raises(PathError):
            s.write_parquet(directory)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_writer_that_fails_leaves_nothing(
    s: ShardedSnapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(s.workers.workers[1], "write_parquet", fail)  # type: ignore[attr-defined]
    with pytest.raises(OSError, match="full"):
        s.write_parquet(tmp_path / "new")
    assert not list((tmp_path / "new").iterdir())


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "no manifest": lambda d: (d / "manifest.json").unlink(),
    "no json": lambda d: (d / "manifest.json").write_text("{"),
    "other keys": lambda d: (d / "manifest.json").write_text('{"format": 1}'),
    "a file is gone": lambda d: (d / "part-00001-of-00002.parquet").unlink(),
    "a byte is another": lambda d: flip(d / "part-00000-of-00002.parquet"),
    "other edges": lambda d: change(d, lambda m: m.update(edges=m["edges"] + 1)),
    "another format": lambda d: change(d, lambda m: m.update(format="other")),
    "a file elsewhere": lambda d: change(d, lambda m: m["files"][0].update(name="../x")),
}


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def change(directory: Path, how: Callable[[Any], Any]) -> None:
    path = directory / "manifest.json"
    manifest = json.loads(path.read_text())
    how(manifest)
    path.write_text(json.dumps(manifest))


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_found(s: ShardedSnapshot, tmp_path: Path, name: str) -> None:
    s.write_parquet(tmp_path)
    assert len(read_parquet(tmp_path)) == 4
    DAMAGE[name](tmp_path)
    for read in (read_manifest, read_parquet):
        with pytest.raises(lpma.FormatError):
            read(tmp_path)
