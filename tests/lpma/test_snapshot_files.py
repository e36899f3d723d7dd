"""Snapshots as files: what is written comes back, and what cannot be written leaves no trace."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lpma
from lpma.errors import FormatError
from lpma.file.atomic import PathError
from lpma.snapshot.export import ExportError, room
from lpma.snapshot.snapshot import Snapshot
from tests.support.snapshots import DIRECTED, UNDIRECTED, build, random_snapshot


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("columns", [True, False])
def test_npz(directed: bool, columns: bool, tmp_path: Path) -> None:
    edges = DIRECTED if directed else UNDIRECTED
    ids = [1, 2, 3, 5, 8, 13] if columns else None
    s = build(edges, directed=directed, weighted=columns, timed=columns, ids=ids)
    s.write_npz(tmp_path / "s.npz")
    back = Snapshot.read_npz(tmp_path / "s.npz")
    assert set(back.to_numpy()) == set(s.to_numpy())
    for name, array in s.to_numpy().items():
        assert back.to_numpy()[name].dtype == array.dtype
        assert np.array_equal(back.to_numpy()[name], array)
    for name in ("num_edges", "version", "time", "directed"):
        assert getattr(back, name) == getattr(s, name)
        assert type(getattr(back, name)) is type(getattr(s, name))


def test_npz_refuses_what_is_not_a_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "s.npz"
    build(DIRECTED).write_npz(path)
    with np.load(path) as archive:
        good = {name: archive[name] for name in archive.files}
    for changed in (
        {"indptr": good["indptr"][:3]},
        {"indptr": good["indptr"][::-1].copy()},
        {"indices": good["indices"].astype(np.int64)},
        {"indices": good["indices"] + np.uint32(6)},
        {"times": good["times"][:-1]},
        {"version": good["indptr"]},
        {"extra": good["indptr"]},
    ):
        np.savez(path, **{**good, **changed})
        with pytest.raises(FormatError):
            Snapshot.read_npz(path)
    np.savez(path, src=good["indices"])
    with pytest.raises(FormatError):
        Snapshot.read_npz(path)
    single = io.BytesIO()
    np.save(single, good["indices"])
    for content in (b"", b"PK\x03\x04 cut short", b"not an archive", single.getvalue()):
        path.write_bytes(content)
        with pytest.raises(FormatError):
            Snapshot.read_npz(path)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_matrix_market(directed: bool, weighted: bool, tmp_path: Path) -> None:
    scipy_io = pytest.importorskip("scipy.io")
    s = build(DIRECTED if directed else UNDIRECTED, directed=directed, weighted=weighted)
    path = tmp_path / "s.mtx"
    s.write_matrix_market(path)
    header = path.read_text().splitlines()[0].split()
    assert header[3:] == ["real" if weighted else "pattern", "general" if directed else "symmetric"]
    assert np.array_equal(scipy_io.mmread(path).toarray(), s.to_scipy().toarray())


def test_sizes_that_do_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = random_snapshot(directed=True)
    monkeypatch.setattr(room, "available_memory_bytes", lambda: 100)
    with pytest.raises(ExportError, match="free"):
        s.to_networkx()
    with pytest.raises(ExportError, match="free"):
        s.to_edge_index()

    class Usage:
        free = 100

    monkeypatch.setattr("shutil.disk_usage", lambda path: Usage)
    for write, suffix in (
        (s.write_npz, ".npz"),
        (s.write_parquet, ".parquet"),
        (s.write_matrix_market, ".mtx"),
    ):
        with pytest.raises(ExportError, match=r"may take .* [KM]iB and 100 B are free: make room"):
            write(tmp_path / f"s{suffix}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("method", ["write_npz", "write_parquet", "write_matrix_market"])
def test_paths_that_are_refused(method: str, tmp_path: Path) -> None:
    write = getattr(build(DIRECTED), method)
    suffix = {"write_npz": ".npz", "write_parquet": ".parquet", "write_matrix_market": ".mtx"}
    (tmp_path / f"folder{suffix[method]}").mkdir()
    (tmp_path / "file").write_text("")
    for name in ("s.txt", f"none/s{suffix[method]}", f"folder{suffix[method]}",
                 f"file/s{suffix[method]}"):  # fmt: skip
        before = sorted(tmp_path.iterdir())
        with pytest.raises(PathError):
            write(tmp_path / name)
        assert sorted(tmp_path.iterdir()) == before


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.npz"
    path.write_bytes(b"old")

    def fail(file: Any, **arrays: Any) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="No space"):
        build(DIRECTED).write_npz(path)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["s.npz"]


@pytest.mark.parametrize("compact", [False, True])
def test_npz_has_the_names_of_its_rows(tmp_path: Path, compact: bool) -> None:
    g = lpma.Graph(names=True, device="cpu")
    g.insert(["ann", 5, -7], ["5", "ann", 2**64 - 1])
    g.add_vertices(["gone", " alone "])
    g.remove_vertices(["gone"])
    s, path = g.snapshot(compact=compact), tmp_path / "s.npz"
    s.write_npz(path)
    back = Snapshot.read_npz(path)
    assert s.names is not None
    assert back.names is not None
    assert len(back.names) == back.num_rows
    rows = range(s.num_rows)
    assert back.names.of(rows).tolist() == s.names.of(rows).tolist()
    assert back.names.find("5") != back.names.find(5)
    with np.load(path) as archive:
        good = {name: archive[name] for name in archive.files}
    for changed in (
        {"name_kinds": good["name_kinds"][:-1]},
        {"name_keys": good["name_keys"].astype(np.int64)},
        {"name_text": good["name_text"][:-1]},
    ):
        np.savez(path, **{**good, **changed})
        with pytest.raises(FormatError):
            Snapshot.read_npz(path)
    del good["name_text"]
    np.savez(path, **good)
    with pytest.raises(FormatError, match="names"):
        Snapshot.read_npz(path)


@pytest.mark.parametrize("names", [True, False])
def test_a_damaged_archive_is_a_format_error(names: bool, tmp_path: Path) -> None:
    """Bytes cut out, put in and changed, by chance: it is found, or does no harm."""
    g = lpma.Graph(device="cpu", names=names)
    g.insert([0, 1, 2], [1, 2, 5])
    path = tmp_path / "s.npz"
    g.snapshot().write_npz(path)
    good = path.read_bytes()
    expected = g.snapshot().to_numpy()
    rng = np.random.default_rng(7)
    damaged = [good[:40] + good[60:]]
    for _ in range(400):
        at, more = int(rng.integers(len(good))), int(rng.integers(1, 60))
        damaged.append(good[:at] + good[at + more :])
        damaged.append(good[:at] + rng.bytes(more) + good[at:])
        damaged.append(good[:at] + rng.bytes(1) + good[at + 1 :])
    found = 0
    for data in damaged:
        path.write_bytes(data)
        try:
            back = Snapshot.read_npz(path).to_numpy()
        except FormatError:
            found += 1
            continue
        assert all(np.array_equal(back[name], array) for name, array in expected.items())
    assert found > 800
    with pytest.raises(FileNotFoundError):
        Snapshot.read_npz(tmp_path / "absent.npz")
