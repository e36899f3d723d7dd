"""Snapshots in other libraries' terms, against a plain list of edges."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lpma
from lpma.dependencies import MissingPackage, optional_import
from lpma.errors import DeviceError
from lpma.snapshot.export import edge_chunks, matrices
from lpma.snapshot.export.edges import sources
from lpma.snapshot.snapshot import Snapshot
from tests.conftest import missing
from tests.support.oracles import assert_same
from tests.support.snapshots import DIRECTED, UNDIRECTED, build, random_snapshot


def test_sources_of_any_part() -> None:
    s = random_snapshot(directed=True)
    whole = np.repeat(np.arange(60), np.diff(s.indptr)).astype(np.uint32)
    assert np.array_equal(sources(s.indptr), whole)
    m = len(whole)
    for first in range(0, m, 13):
        for last in {first, first + 1, min(first + 40, m), m}:
            part = sources(s.indptr, first, last)
            assert part.dtype == np.uint32
            assert np.array_equal(part, whole[first:last])
    assert len(sources(build([]).indptr)) == 0


@pytest.mark.parametrize("directed", [True, False])
def test_edge_chunks_join_to_the_edge_list(directed: bool) -> None:
    s = random_snapshot(directed)
    for chunk in (1, 7, 1000):
        tables = list(edge_chunks(s, chunk))
        src = np.concatenate([t["src"] for t in tables])
        dst = np.concatenate([t["dst"] for t in tables])
        assert len(src) == s.num_edges
        assert max(len(t["src"]) for t in tables) <= chunk
        if not directed:
            assert (src <= dst).all()
        assert len({*zip(src.tolist(), dst.tolist(), strict=True)}) == s.num_edges


def test_numpy_and_dlpack() -> None:
    s = build(DIRECTED)
    assert set(s.to_numpy()) == {"indptr", "indices", "weights", "times"}
    alone = lpma.Graph(device="cpu", weight_dtype=None, times=False)
    alone.add_vertices([2, 5])
    assert alone.snapshot().to_numpy()["added"].tolist() == [2, 5]
    assert np.from_dlpack(alone.snapshot().to_dlpack()["added"]).tolist() == [2, 5]
    assert np.shares_memory(s.to_numpy()["indices"], s.indices)
    for name, array in s.to_dlpack().items():
        assert np.array_equal(np.from_dlpack(array), getattr(s, name))
    assert set(build(DIRECTED, weighted=False, timed=False).to_numpy()) == {"indptr", "indices"}


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_scipy(directed: bool, weighted: bool) -> None:
    edges = DIRECTED if directed else UNDIRECTED
    s = build(edges, directed=directed, weighted=weighted)
    expected = np.zeros((6, 6), np.float32)
    for u, v, w, _ in edges:
        expected[u, v] = w if weighted else 1
        if not directed:
            expected[v, u] = expected[u, v]
    matrix = s.to_scipy()
    assert matrix.dtype == np.float32
    assert matrix.nnz == len(s.indices)  # a weight of 0 stays an entry
    assert np.array_equal(matrix.toarray(), expected)
    matrix.check_format(full_check=True)


def test_scipy_beyond_int32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrices, "_index_dtype", lambda s: np.int64)
    matrix = build(DIRECTED).to_scipy()
    assert matrix.shape == (6, 6)
    assert matrix.sum() == 6.75


@pytest.mark.parametrize("directed", [True, False])
def test_networkx(directed: bool) -> None:
    edges = DIRECTED if directed else UNDIRECTED
    graph = build(edges, directed=directed).to_networkx()
    assert graph.is_directed() is directed
    assert sorted(graph.nodes) == list(range(6))
    assert graph.number_of_edges() == len(edges)
    for u, v, w, t in edges:
        assert graph.edges[u, v] == {"weight": w, "time": t}
    bare = build(edges, directed=directed, weighted=False, timed=False).to_networkx()
    assert bare.number_of_edges() == len(edges)
    assert bare.edges[0, 1] == {}


def test_compact_ids() -> None:
    ids = [2, 5, 9, 11, 100, 2**32 - 2]
    s = build(DIRECTED, ids=ids)
    graph = s.to_networkx()
    assert sorted(graph.nodes) == ids
    assert {(ids[u], ids[v]) for u, v, *_ in DIRECTED} == set(graph.edges)
    assert s.to_arrow().column("dst").to_pylist() == [5, 11, 5, 2]
    assert s.to_edge_index().max() == 3  # rows, not ids
    assert s.to_scipy().shape == (6, 6)


@pytest.mark.parametrize("directed", [True, False])
def test_edge_index(directed: bool) -> None:
    s = random_snapshot(directed)
    pairs = s.to_edge_index()
    assert pairs.dtype == np.int64
    assert pairs.shape == (2, len(s.indices))
    dense = np.zeros((60, 60), bool)
    dense[pairs[0], pairs[1]] = True
    matrix = s.to_scipy()
    matrix.data = np.ones_like(matrix.data)
    assert np.array_equal(dense, matrix.toarray() == 1)
    assert np.array_equal(pairs[1], s.indices)
    if not directed:
        assert np.array_equal(dense, dense.T)


@pytest.mark.parametrize("directed", [True, False])
def test_arrow_and_parquet(directed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("lpma.snapshot.export.edges.CHUNK_EDGES", 50)
    s = random_snapshot(directed)
    table = s.to_arrow()
    assert table.schema.metadata[b"lpma.directed"] == str(directed).lower().encode()
    assert table.schema.metadata[b"lpma.rows"] == b"60"
    assert [str(t) for t in table.schema.types] == ["uint32", "uint32", "float", "int64"]
    assert table.num_rows == s.num_edges
    matrix = s.to_scipy()
    for row in table.to_pylist():
        assert matrix[row["src"], row["dst"]] == row["weight"]
    s.write_parquet(tmp_path / "edges.parquet")
    assert parquet.read_table(tmp_path / "edges.parquet").equals(table)
    assert parquet.ParquetFile(tmp_path / "edges.parquet").num_row_groups > 2
    assert build([]).to_arrow().num_rows == 0


@pytest.mark.gpu
@pytest.mark.parametrize("weighted", [True, False])
def test_cupy(weighted: bool) -> None:
    if importlib.util.find_spec("cupy") is None:
        missing("gpu", "CuPy is not installed")
    s = build(DIRECTED, weighted=weighted)
    assert np.array_equal(s.to_cupy().get().toarray(), s.to_scipy().toarray())


def placed(device: str, s: Snapshot) -> Snapshot:
    """The same snapshot with its arrays on a device."""
    if device == "cpu":
        return s
    cupy = importlib.import_module("cupy")
    return replace(s, **{name: cupy.asarray(array) for name, array in s.to_numpy().items()})


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("columns", [True, False])
def test_every_form_from_every_device(
    device: str, directed: bool, columns: bool, tmp_path: Path
) -> None:
    """What is exported does not depend on where the arrays are."""
    edges = DIRECTED if directed else UNDIRECTED
    ids = None if columns else [1, 2, 3, 5, 8, 13]
    s = build(edges, directed=directed, weighted=columns, timed=columns, ids=ids)
    there = placed(device, s)
    assert_same(list(there.to_numpy()), list(s.to_numpy()))
    assert_same(list(there.to_numpy().values()), list(s.to_numpy().values()))
    assert_same(there.to_edge_index(), s.to_edge_index())
    assert_same(there.to_scipy().toarray(), s.to_scipy().toarray())
    assert dict(there.to_networkx().adj) == dict(s.to_networkx().adj)
    assert there.to_arrow().equals(s.to_arrow())
    for write, suffix in (("write_npz", ".npz"), ("write_matrix_market", ".mtx")):
        for name, snapshot in (("here", s), ("there", there)):
            getattr(snapshot, write)(tmp_path / f"{name}{suffix}")
    assert_same(Snapshot.read_npz(tmp_path / "there.npz"), s)
    assert (tmp_path / "there.mtx").read_text() == (tmp_path / "here.mtx").read_text()


@pytest.mark.gpu
def test_consumers_on_a_device_share_memory_with_no_snapshot(device: str) -> None:
    if device == "cpu":
        pytest.skip("CuPy's views are of device memory")
    cupy = importlib.import_module("cupy")
    s = placed(device, random_snapshot(directed=True))
    before = s.to_numpy()
    arrays: dict[str, Any] = s.to_dlpack()
    for array in arrays.values():
        taken = cupy.from_dlpack(array)
        assert taken.data.ptr == array.data.ptr
        taken[:] = 1
    matrix = s.to_cupy()
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array[:] = 1
    assert_same(list(s.to_numpy().values()), list(before.values()))


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(module: str) -> Any:
        raise ImportError(f"No module named {module!r}")

    monkeypatch.setattr("importlib.import_module", absent)
    with pytest.raises(MissingPackage, match="pip install pyarrow"):
        build(DIRECTED).to_arrow()
    with pytest.raises(MissingPackage, match="pip install networkx"):
        build(DIRECTED).to_networkx()
    with pytest.raises(ImportError):
        optional_import("scipy.sparse", "scipy", "this")
    with pytest.raises(DeviceError, match="CuPy"):
        build(DIRECTED).to_cupy()
