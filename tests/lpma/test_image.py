"""A graph's file and its image: what is saved comes back, and what never was a graph is refused."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import lpma
from lpma import FormatError
from lpma.backend.numba import allocate, export
from lpma.snapshot.stored import StoredGraph, can_read
from tests.lpma.conftest import every_backend
from tests.support import containers
from tests.support.oracles import agree, assert_same
from tests.support.strategies import Config, bursts, configs


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.lpma"


@every_backend
@given(config=configs(), burst=bursts())
def test_a_graph_comes_back(
    tmp_path_factory: pytest.TempPathFactory, device: str, config: Config, burst: Any
) -> None:
    path = tmp_path_factory.mktemp("graphs") / "graph.lpma"
    g, model = config.graph(device), config.model()
    columns = burst.columns(config.queries)
    for graph in (g, model):
        graph.insert([2**32 - 2, 0], [5, 2**32 - 2], [1.5, 2.5], [-1, 7])
        graph.add_vertices(2**31, 8)
        graph.apply(columns)
    g.save(path)
    agree(g, model, dense_below=1000)
    loaded = lpma.Graph.load(path, device=device)
    agree(loaded, model, dense_below=1000)
    for name in ("directed", "strategy", "segment_size", "global_merge", "weight_dtype",
                 "has_times", "has_predecessors", "device"):  # fmt: skip
        assert getattr(loaded, name) == getattr(g, name)
    assert_same(loaded.apply(columns), model.apply(columns))
    agree(loaded, model, dense_below=1000)


@pytest.mark.parametrize("options", [
    {}, {"directed": False, "weight_dtype": "float64"}, {"weight_dtype": None, "names": True},
    {"times": False, "segment_size": 64},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("edges", [0, 1, 70, 30_000])
def test_a_graph_is_written_in_pieces_as_its_image_is(
    path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], edges: int
) -> None:
    monkeypatch.setattr(export, "PIECE_SLOTS", 500)
    monkeypatch.setattr(export, "SEGMENTS_PER_TASK", 4)
    graph = lpma.Graph(device="cpu", **options)
    rng = np.random.default_rng(edges)
    src, dst = rng.integers(0, 900, (2, edges))
    graph.insert(src, dst, rng.integers(1, 9, edges) if "weight_dtype" not in options else 1.0)
    graph.add_vertices([5, 2_000])
    graph.delete(src[::3], dst[::3])
    graph.image().save(path)
    expected = path.read_bytes()
    graph.save(path)
    assert path.read_bytes() == expected
    assert lpma.Graph.load(path, "cpu").num_edges == graph.num_edges


def test_saving_takes_no_memory_for_the_edges(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocate, "HAS_HUGE_PAGES", False)  # so that NumPy has all memory
    graph = lpma.Graph(device="cpu")
    graph.insert(*np.random.default_rng(5).integers(0, 1 << 18, (2, 1_200_000), np.uint32))
    tracemalloc.start()
    graph.save(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < path.stat().st_size / 3


@pytest.mark.parametrize("options", [{}, {"directed": False}, {"predecessors": True}], ids=str)
def test_a_load_takes_little_memory_beside_the_graph(
    path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setattr(allocate, "HAS_HUGE_PAGES", False)  # so that NumPy has all memory
    src, dst = np.random.default_rng(5).integers(0, 1 << 18, (2, 1_200_000), np.uint32)
    graph = lpma.Graph(device="cpu", **options)
    graph.insert(src, dst)
    graph.save(path)
    lpma.Graph.load(path, device="cpu")  # what is imported
    tracemalloc.start()
    try:
        loaded = lpma.Graph.load(path, device="cpu")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert loaded.num_edges == graph.num_edges
    assert peak < 1.2 * loaded.nbytes


@every_backend
@given(config=configs(), burst=bursts())
def test_an_image_is_what_a_save_would_have_written_then(
    tmp_path_factory: pytest.TempPathFactory, device: str, config: Config, burst: Any
) -> None:
    path = tmp_path_factory.mktemp("images")
    g = config.graph(device)
    old = None
    for step in range(3):
        image = g.image(old)
        g.save(path / "then")
        g.apply(burst.columns(config.queries))
        g.insert(range(100 * step), 7)
        image.save(path / "later")
        assert (path / "later").read_bytes() == (path / "then").read_bytes()
        old = image
    assert old is not None
    assert g.image().nbytes <= g.nbytes


def test_an_images_memory_is_used_again_where_it_fits(device: str, path: Path) -> None:
    g = lpma.Graph(device=device)
    g.insert(range(100_000), 1)
    first = g.image()
    memory = first._memory
    assert first.nbytes == 20 * 100_000
    g.insert(range(10_000), 2)
    second = g.image(first)
    assert second._memory is memory, "there is some to spare"
    assert (second.nbytes, first.nbytes) == (20 * 110_000, 0)
    second.save(path)
    assert lpma.Graph.load(path, device).num_edges == 110_000
    g.insert(range(300_000), 3)
    third = g.image(second)
    assert third._memory is not memory
    g.remove_vertices(range(299_990))
    assert g.image(third)._memory.nbytes < 20 * 1000, "far too much is given back"


def test_what_is_known_after_a_load(device: str, path: Path) -> None:
    g = lpma.Graph(device=device)
    g.insert([1, 2], [2, 3])
    g.insert(5, 6)
    g.save(path)
    loaded = lpma.Graph.load(path, device=device)
    assert loaded.version == 2
    assert loaded.changes(1) is None
    empty = loaded.changes(2)
    assert empty is not None
    assert len(empty.src) == 0
    loaded.delete(5, 6)
    gone = loaded.changes(2)
    assert gone is not None
    assert (gone.src.tolist(), gone.inserted.tolist()) == ([5], [False])


def refused(path: Path, device: str) -> None:
    """By whatever reads a saved graph."""
    with pytest.raises(FormatError):
        lpma.Graph.load(path, device=device)
    if can_read(device):
        with pytest.raises(FormatError):
            _ = StoredGraph(path).names


def test_a_damaged_graph_is_refused(device: str, path: Path) -> None:
    g = lpma.Graph(device=device)
    g.insert([1, 2, 3], [2, 3, 1], [0.5, 1.0, 2.0], [1, 2, 3])
    g.add_vertices(9)
    g.save(path)
    whole = path.read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        refused(path, device)
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        refused(path, device)


def first_set(column: Any, value: float) -> Any:
    return np.concatenate([np.array([value], column.dtype), column[1:]])


SPOILED: dict[str, Callable[[dict[str, Any], dict[str, Any]], Any]] = {
    "keys fall": lambda h, c: (h, c | {"keys": c["keys"][::-1]}),
    "a key twice": lambda h, c: (h, c | {"keys": first_set(c["keys"], c["keys"][1])}),
    "a forbidden id": lambda h, c: (h, c | {"keys": c["keys"] | np.uint64(2**64 - 2**32)}),
    "keys of another dtype": lambda h, c: (h, c | {"keys": c["keys"].astype(np.int64)}),
    "weights of another dtype": lambda h, c: (h, c | {"weights": c["weights"].astype(float)}),
    "a negative weight": lambda h, c: (h, c | {"weights": first_set(c["weights"], -1)}),
    "a weight of NaN": lambda h, c: (h, c | {"weights": first_set(c["weights"], np.nan)}),
    "a time too few": lambda h, c: (h, c | {"times": c["times"][1:]}),
    "no times": lambda h, c: (h, {"keys": c["keys"], "weights": c["weights"]}),
    "an unknown strategy": lambda h, c: (h | {"strategy": "sideways"}, c),
    "text as version": lambda h, c: (h | {"version": "two"}, c),
    "a negative version": lambda h, c: (h | {"version": -2}, c),
    "no direction": lambda h, c: ({k: v for k, v in h.items() if k != "directed"}, c),
    "undirected with one side": lambda h, c: (h | {"directed": False}, c),
}


@pytest.mark.parametrize("spoil", SPOILED)
def test_a_whole_file_of_a_broken_graph_is_refused(device: str, path: Path, spoil: str) -> None:
    """Its checksums hold, but it is not what `save` writes."""
    g = lpma.Graph(device=device)
    g.insert([1, 2, 2], [2, 3, 4], [0.5, 1.0, 2.0], [1, 2, 3])
    g.save(path)
    containers.write(path, *SPOILED[spoil](*containers.read(path)))
    refused(path, device)


@pytest.mark.parametrize("column", ["weights", "times"])
def test_an_undirected_edge_whose_sides_differ_is_refused(
    device: str, path: Path, column: str
) -> None:
    """Else it would half expire, and what is saved then could not be loaded."""
    g = lpma.Graph(device=device, directed=False)
    g.insert([1, 1, 2, 3], [2, 3, 3, 3], 1.0, [4, 5, 6, 7])
    g.save(path)
    assert lpma.Graph.load(path, device=device).num_edges == 4
    header, columns = containers.read(path)
    containers.write(path, header, columns | {column: first_set(columns[column], 3)})
    refused(path, device)


DTYPES = [np.int64, np.uint16, np.int8, np.float32, np.bool_]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("column", ["name_kinds", "name_keys", "name_ends", "name_text"])
def test_names_of_another_dtype_are_refused(
    device: str, path: Path, column: str, dtype: Any
) -> None:
    g = lpma.Graph(device=device, names=True)
    g.insert(["a", "a", 7], ["bcd", 7, -7])
    g.save(path)
    header, columns = containers.read(path)
    containers.write(path, header, columns | {column: columns[column].astype(dtype)})
    refused(path, device)


def test_a_negative_name_that_is_none_is_refused(device: str, path: Path) -> None:
    g = lpma.Graph(device=device, names=True)
    g.insert([1, 1, 2], [2, 3, 3])
    g.save(path)
    header, columns = containers.read(path)
    columns["name_kinds"] = first_set(columns["name_kinds"], 1)
    containers.write(path, header, columns)
    refused(path, device)
