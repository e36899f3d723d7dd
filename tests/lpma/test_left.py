"""Which side of a bipartite graph a vertex is on lasts: in every snapshot, and in what is written
of one, or it is told that it does not."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import algorithms
import lpma
from lpma.snapshot.stored import StoredGraph

LEFT = 3


def bipartite(device: str, **options: Any) -> lpma.Graph:
    """Of the left 0 … 2, of the right 5 and 6."""
    graph = lpma.Graph(device=device, left=LEFT, **options)
    graph.insert([0, 1, 2, 2], [5, 5, 5, 6], time=[10, 20, 30, 40])
    return graph


SNAPSHOTS: dict[str, Callable[[lpma.Graph], lpma.Snapshot]] = {
    "rows": lambda g: g.snapshot(),
    "compact": lambda g: g.snapshot(compact=True),
    "in a view": lambda g: g.snapshot(since=20),
    "compact, in a view": lambda g: g.snapshot(compact=True, since=20),
    "of some vertices": lambda g: g.snapshot().subgraph([2, 5]),
    "of some vertices, compact": lambda g: g.snapshot(compact=True).subgraph([2, 5]),
    "to be written to": lambda g: g.snapshot().copy(),
    "pickled": lambda g: pickle.loads(pickle.dumps(g.snapshot())),  # noqa: S301 - our own
    "of a graph of a snapshot": lambda g: g.snapshot().to_graph().snapshot(),
    "of a copy": lambda g: g.copy().snapshot(),
    "its core": lambda g: algorithms.k_core(g.snapshot(), 1),
    "by hand": lambda g: lpma.Snapshot(
        g.snapshot().indptr, g.snapshot().indices, None, None, 4, 1, 0, left=LEFT
    ),
}


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_snapshot_keeps_it(device: str, name: str) -> None:
    assert SNAPSHOTS[name](bipartite(device)).left == LEFT
    if name != "by hand":
        assert SNAPSHOTS[name](bipartite(device)).to_graph().left == LEFT


def test_a_caller_may_say_another(device: str) -> None:
    s = bipartite(device).snapshot()
    assert s.to_graph(left=4).left == 4
    assert s.to_graph(left=None).left is None


@pytest.mark.parametrize("wrong", [-1, 2**32, 1.5, True, "3"])
def test_what_is_no_side(wrong: Any) -> None:
    s = bipartite("cpu").snapshot()
    with pytest.raises(lpma.BatchError, match="left"):
        lpma.Snapshot(s.indptr, s.indices, None, None, 4, 1, 0, left=wrong)


def test_snapshots_of_a_saved_graph_and_archives_keep_it(tmp_path: Path) -> None:
    bipartite("cpu").save(tmp_path / "g.lpma")
    stored = StoredGraph(tmp_path / "g.lpma")
    for compact in (False, True):
        s = stored.snapshot(compact)
        assert s.left == LEFT
        s.write_npz(tmp_path / "s.npz")
        assert lpma.Snapshot.read_npz(tmp_path / "s.npz").left == LEFT
    assert s.to_arrow().schema.metadata[b"lpma.left"] == b"3"


def test_an_archive_without_it_is_read(tmp_path: Path) -> None:
    """As an earlier release wrote them all."""
    graph = lpma.Graph(device="cpu")
    graph.insert(1, 2)
    graph.snapshot().write_npz(tmp_path / "s.npz")
    with np.load(tmp_path / "s.npz") as archive:
        assert "left" not in archive.files
    assert lpma.Snapshot.read_npz(tmp_path / "s.npz").left is None
    assert b"lpma.left" not in graph.snapshot().to_arrow().schema.metadata


@pytest.mark.parametrize("wrong", [np.int64(-1), np.int64(2**32), np.array([1, 2])])
def test_an_archive_with_a_wrong_one_is_refused(tmp_path: Path, wrong: Any) -> None:
    bipartite("cpu").snapshot().write_npz(tmp_path / "s.npz")
    with np.load(tmp_path / "s.npz") as archive:
        arrays = dict(archive)
    np.savez(tmp_path / "s.npz", **{**arrays, "left": wrong})
    with pytest.raises(lpma.FormatError, match="left"):
        lpma.Snapshot.read_npz(tmp_path / "s.npz")


@pytest.mark.parametrize("form", ["csv", "matrix_market", "graphml", "gexf"])
def test_a_file_without_a_place_for_it_is_told(tmp_path: Path, form: str) -> None:
    s = bipartite("cpu").snapshot()
    path = tmp_path / f"s.{'mtx' if form == 'matrix_market' else form}"
    with pytest.warns(UserWarning, match="left side, here those below 3: write_npz") as told:
        getattr(s, f"write_{form}")(path)
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(s._with(left=None), f"write_{form}")(path)
        s.write_npz(tmp_path / "s.npz")
        s.write_parquet(tmp_path / "s.parquet")


def test_the_shards_of_a_graph_keep_it(device: str, tmp_path: Path) -> None:
    import pyarrow.parquet

    s = bipartite("cpu").snapshot()
    devices = None if device == "cpu" else [0]
    whole = algorithms.ShardedSnapshot.of(algorithms.sharded.split(s, 2, devices))
    assert whole.left == whole.gather().left == LEFT
    whole.write_parquet(tmp_path / "parts")
    for part in (tmp_path / "parts").glob("*.parquet"):
        assert pyarrow.parquet.read_schema(part).metadata[b"lpma.left"] == b"3"
