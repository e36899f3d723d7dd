"""A saved graph that is only read says what the graph says that `Graph.load` makes of its file."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lpma
from lpma.errors import BatchError, FormatError, SnapshotTooLarge
from lpma.file import container
from lpma.snapshot.stored import StoredGraph, can_read
from tests.support import containers

ARRAYS = ("indptr", "indices", "weights", "times", "ids", "added", "present")
FACTS = (
    "device", "directed", "strategy", "segment_size", "weight_dtype", "has_times",
    "has_predecessors", "version", "time", "num_edges", "num_rows", "num_vertices", "levels",
    "segments", "density", "nbytes",
)  # fmt: skip
OPTIONS: list[dict[str, Any]] = [
    {},
    {"directed": False},
    {"weight_dtype": None},
    {"weight_dtype": "float64", "times": False},
    {"weight_dtype": None, "times": False, "directed": False},
    {"predecessors": True, "segment_size": 4, "strategy": "top-down"},
]


@pytest.fixture(autouse=True)
def pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows lie across pieces."""
    monkeypatch.setattr(container, "PIECE_ROWS", 7)
    assert can_read("cpu")


def filled(ids: int, edges: int, **options: Any) -> lpma.Graph:
    rng = np.random.default_rng(ids)
    g = lpma.Graph(device="cpu", **options)
    src, dst = rng.integers(0, ids, (2, edges))
    times = rng.integers(0, 100, edges) if options.get("times", True) else None
    g.insert(src, dst, rng.random(edges), times)
    g.delete(src[::5], dst[::5])
    return g


def compared(g: lpma.Graph, path: Path) -> None:
    g.save(path)
    loaded, stored = lpma.Graph.load(path, device="cpu"), StoredGraph(path)
    for name in FACTS:
        assert getattr(stored, name) == getattr(loaded, name), name
    for compact in (False, True):
        if loaded.num_rows > 1 << 20 and not compact:
            continue
        ours, wanted = stored.snapshot(compact), loaded.snapshot(compact)
        for name in ARRAYS:
            left, right = getattr(ours, name), getattr(wanted, name)
            assert (left is None) == (right is None), name
            if left is not None:
                assert left.dtype == right.dtype, name
                np.testing.assert_array_equal(left, right, err_msg=name)
        for name in ("num_edges", "num_vertices", "version", "time", "directed"):
            assert getattr(ours, name) == getattr(wanted, name), name


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(("ids", "edges"), [(1, 0), (1, 1), (5, 9), (40, 300), (2**32 - 2, 50)])
def test_it_says_what_the_graph_says(
    tmp_path: Path, options: dict[str, Any], ids: int, edges: int
) -> None:
    compared(filled(ids, edges, **options), tmp_path / "g.lpma")


@pytest.mark.parametrize("added", [[0], [3, 39, 60], range(70)], ids=str)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_vertices_that_were_added_alone(
    tmp_path: Path, options: dict[str, Any], added: Any
) -> None:
    g = filled(40, 60, **options)
    g.add_vertices(list(added))
    compared(g, tmp_path / "g.lpma")


def test_weights_and_times_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "g.lpma"
    g = filled(40, 300)
    g.save(path)
    s = StoredGraph(path).snapshot()
    filled(9, 20).save(path)  # another file by now
    np.testing.assert_array_equal(s.weights, g.snapshot().weights)
    np.testing.assert_array_equal(s.times, g.snapshot().times)


def test_what_is_damaged_after_it_was_opened_is_found(tmp_path: Path) -> None:
    path = tmp_path / "g.lpma"
    filled(40, 300).save(path)
    s = StoredGraph(path).snapshot()
    with open(path, "r+b") as file:
        file.seek(-20, 2)
        file.write(b"\x00" * 8)
    assert len(s.indices) == s.num_edges
    with pytest.raises(FormatError, match="times does not match its checksum"):
        _ = s.times


def test_names(tmp_path: Path) -> None:
    path = tmp_path / "g.lpma"
    g = lpma.Graph(names=True, device="cpu")
    g.insert(["ann", "bob", 7], ["bob", "cem", "ann"])
    g.delete("ann", "bob")
    g.add_vertices("dan")
    g.save(path)
    loaded, stored = lpma.Graph.load(path, device="cpu"), StoredGraph(path)
    for compact in (False, True):
        ours, wanted = stored.snapshot(compact).edges(), loaded.snapshot(compact).edges()
        assert ours.src.tolist() == wanted.src.tolist()
        assert ours.dst.tolist() == wanted.dst.tolist()
    assert stored.names is not None
    assert stored.names.find("dan") == loaded.names.find("dan")  # type: ignore[union-attr]


def test_ids_that_are_too_far_apart(tmp_path: Path) -> None:
    path = tmp_path / "g.lpma"
    g = lpma.Graph(device="cpu")
    g.insert(1, 2**31)
    g.save(path)
    with pytest.raises(SnapshotTooLarge, match="compact"):
        StoredGraph(path).snapshot()
    with pytest.raises(SnapshotTooLarge, match="compact"):
        g.snapshot()


def test_checksums_of_pieces_are_those_of_the_whole() -> None:
    """Of columns of any length around the size of a piece."""
    import io
    import zlib

    for n, dtype in itertools.product(range(30), (np.uint8, np.int64)):
        column = np.arange(n, dtype=dtype)
        file = io.BytesIO()
        container.write_to(file, {}, {"x": column})
        assert file.getvalue()[-4:] == zlib.crc32(column.tobytes()).to_bytes(4, "little")
        np.testing.assert_array_equal(containers.read(file)[1]["x"], column)


def test_a_dictionary_that_is_only_read(tmp_path: Path) -> None:
    path = tmp_path / "g.lpma"
    for names in (["ann", 7, "bob", -3], ["ann", "bob"], [1, 2], [2**64 - 1, -1], []):
        g = lpma.Graph(names=True, device="cpu")
        g.add_vertices(names)
        g.save(path)
        loaded, stored = lpma.Graph.load(path, device="cpu").names, StoredGraph(path).names
        assert loaded is not None
        assert stored is not None
        ids = np.arange(len(names))
        assert len(stored) == len(loaded)
        assert stored.of(ids).tolist() == loaded.of(ids).tolist()
        assert stored.of(ids).dtype == loaded.of(ids).dtype
        assert stored.form(ids) == loaded.form(ids)
        for name in [*names, "cem", 5]:
            assert stored.find(name) == loaded.find(name)
            assert stored.frozen().find(name) == loaded.frozen().find(name)
        ours, wanted = stored.image().columns(), loaded.image().columns()
        for name, column in wanted.items():
            assert ours[name].dtype == column.dtype
            np.testing.assert_array_equal(ours[name], column)


def test_names_that_were_kept_apart(tmp_path: Path) -> None:
    path = tmp_path / "g.lpma"
    g = lpma.Graph(device="cpu")
    g.insert([0, 1], [1, 2])
    g.save(path)
    names = lpma.from_edges(["ann", "bob"], ["bob", "cem"], device="cpu").names
    assert names is not None
    stored = StoredGraph(path)
    stored.take_names(names)
    assert stored.snapshot().edges().dst.tolist() == ["bob", "cem"]
    with pytest.raises(BatchError, match="another dictionary"):
        stored.take_names(names)
    few = lpma.from_edges("ann", "bob", device="cpu").names
    with pytest.raises(BatchError, match="ids up to 2"):
        StoredGraph(path).take_names(few)  # type: ignore[arg-type]


def test_names_go_with_one_graph() -> None:
    """Two locks would guard one dictionary, which its threads write to."""
    first, second = lpma.from_edges("ann", "bob", device="cpu"), lpma.Graph(device="cpu")
    second.insert(0, 1)
    assert first.names is not None
    with pytest.raises(BatchError, match=r"another graph goes by them: give it names.copy\(\)"):
        second.take_names(first.names)
    second.take_names(first.names.copy())
    second.insert("bob", "cem")
    assert (len(first.names), second.neighbors("bob").tolist()) == (2, ["cem"])
