"""Core numbers by every method, against NetworkX, igraph and what is known of real graphs; the
k-core."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from algorithms import core_numbers, k_core
from algorithms.core import cpu as own_cpu
from algorithms.core.paper import cpu as paper_cpu
from ingest.datasets import generators
from lpma.arrays import array_module
from lpma.cpu import pieces
from lpma.cpu.pieces import SMALL
from tests.conftest import real_graph
from tests.support.graph_forms import BAD_GRAPHS, clustered, inputs, snapshot_of
from tests.support.oracles import (
    assert_same,
    core_numbers_igraph,
    core_numbers_networkx,
    host,
    networkx_graph,
)
from tests.support.strategies import edge_lists

Array = npt.NDArray[Any]

PEELS = [f"peel{by}{how}" for by in ("", "-bc", "-ec") for how in ("", "-sm", "-vp")]
METHODS = {
    "cpu": ["auto", "owners", "bz", "park", "pkc", "h-index"],
    "cuda": ["auto", "cooperative", *PEELS, "h-index", "vector"],
}


@given(graph=edge_lists())
def test_core_numbers(device: str, graph: tuple[int, Array, Array]) -> None:
    n, src, dst = graph
    expected = core_numbers_networkx(n, src, dst)
    assert_same(core_numbers_igraph(n, src, dst), expected)
    forms = inputs(device, n, src, dst)
    for form in forms:
        assert_same(core_numbers(form), expected)
    entries = len(src)
    for few in (0, entries, 2 * entries, 2 * entries + 1):  # a large graph, or a small one
        with patch.object(pieces, "FEW", few), patch.object(own_cpu, "LARGE", 3):
            for form in inputs(device, n, src, dst):
                assert_same(core_numbers(form), expected)
    for method in METHODS[device]:
        assert_same(core_numbers(forms[0], method=method), expected, method)


@pytest.mark.parametrize("directed", [True, False])
def test_methods_agree(device: str, directed: bool) -> None:
    n, src, dst = clustered()
    expected = core_numbers_igraph(n, src, dst)
    snapshot = snapshot_of(device, n, src, dst, directed)
    for method in METHODS[device]:
        assert_same(core_numbers(snapshot, method=method), expected, method)


@given(graph=edge_lists())
def test_k_core(device: str, graph: tuple[int, Array, Array]) -> None:
    n, src, dst = graph
    graph_there = networkx_graph(n, src, dst)
    for form in inputs(device, n, src, dst)[:4]:
        for k in (0, 1, 2, 3, 30):
            core, expected = k_core(form, k), nx.k_core(graph_there, k)
            assert core.num_vertices == n
            assert core.num_edges == expected.number_of_edges()
            rows = np.repeat(np.arange(n), np.diff(host(core.indptr))).tolist()
            entries = list(zip(rows, core.indices.tolist(), strict=True))
            both = [pair for u, v in expected.edges for pair in ((u, v), (v, u))]
            assert entries == sorted(both)


def test_a_k_core_is_a_snapshot_like_its_source(device: str) -> None:
    g = lpma.Graph(device=device)
    g.insert([2**31, 7, 9, 2**31], [7, 9, 2**31, 3], time=5)
    source = g.snapshot(compact=True)
    core = k_core(source, 2)
    assert_same(core.ids, source.ids)
    assert (core.version, core.time, core.directed) == (source.version, source.time, False)
    assert type(core.indptr) is type(source.indptr)
    assert_same(core_numbers(core), np.array([0, 2, 2, 2], np.int32))
    assert sorted(core.to_networkx().edges) == [(7, 9), (7, 2**31), (9, 2**31)]


# How the methods work ---------------------------------------------------------------------------


@pytest.mark.parametrize("owners", [1, 2, 3, 5])
def test_frontiers_shared_by_owners(monkeypatch: pytest.MonkeyPatch, owners: int) -> None:
    """Frontiers of any size are handed over, to fewer and to more threads than there are."""
    monkeypatch.setattr(pieces, "FEW", 0)
    monkeypatch.setattr(own_cpu, "LARGE", 3)
    monkeypatch.setattr(own_cpu, "THREADS", owners)
    for n, src, dst in (clustered(9), (3, np.array([0, 1]), np.array([1, 2]))):
        form = inputs("cpu", n, src, dst)[2]
        assert_same(core_numbers(form, "owners"), core_numbers(form, "bz"))


@pytest.mark.parametrize("method", ["park", "pkc"])
def test_many_pieces(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    monkeypatch.setattr(paper_cpu, "PIECE", 2)
    form = inputs("cpu", *clustered(9))[2]
    assert_same(core_numbers(form, method), core_numbers(form, "bz"))


@pytest.fixture
def launched(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each of the algorithms' kernels was launched since."""
    launch = importlib.import_module("lpma.cuda.launch")
    started, count = launch.start, Counter[str]()

    def start(name: str, *args: Any) -> None:
        count[name] += 1
        started(name, *args)

    monkeypatch.setattr(launch, "start", start)
    return count


@pytest.mark.gpu
def test_every_method_has_kernels_of_its_own(launched: Counter[str]) -> None:
    n, src, dst = clustered(10)  # with a hub of more than 1024 neighbours
    snapshot = snapshot_of("cuda", n, src, dst)
    levels = 1 + int(core_numbers(snapshot).max())
    expected: dict[str, dict[str, int]] = {"auto": {"core_cluster": 1}, "vector": {}}
    for i, by in enumerate(("", "-bc", "-ec")):
        for j, how in enumerate(("", "-sm", "-vp")):
            expected[f"peel{by}{how}"] = {f"scan<{i}>": levels, f"loop<{i}, {j}>": levels}
    for method, kernels in expected.items():
        launched.clear()
        core_numbers(snapshot, method)
        assert launched == kernels, method
    with on_cuda_with(0, 4096):
        launched.clear()
        core_numbers(snapshot)
        assert launched == {"core_cooperative": 1}
    launched.clear()
    core_numbers(snapshot, "h-index")
    assert set(launched) == {"refine_rows", "refine_hubs"}


@contextmanager
def on_cuda_with(most_entries: int, places: int) -> Iterator[None]:
    """On a device a cluster peels graphs of so many entries, with so many places for tasks."""
    own = importlib.import_module("algorithms.core.cuda")
    with patch.object(own, "MOST_ENTRIES", most_entries), patch.object(own, "PLACES", places):
        yield


@pytest.mark.gpu
@given(graph=edge_lists(), places=st.sampled_from([1, 2, 5, 4096]))
def test_the_grid_and_a_cluster(cupy: Any, graph: tuple[int, Array, Array], places: int) -> None:
    expected = core_numbers_networkx(*graph)
    for most in (-1, 1 << 23):
        with on_cuda_with(most, places):
            for form in inputs("cuda", *graph)[:2]:
                assert_same(core_numbers(form), expected)


@pytest.mark.gpu
@pytest.mark.parametrize("places", [1, 3, 40, 1000, 4096])
def test_lists_of_tasks_that_are_full(cupy: Any, places: int) -> None:
    """Vertices found late, one or thousands; a row longer than the list; and a long chain."""
    path = np.random.default_rng(2).permutation(5000)
    star = np.full(30_000, 7), np.arange(30_000)
    for n, src, dst in (clustered(9), clustered(13), (5000, path[1:], path[:-1]), (30_000, *star)):
        expected = core_numbers_igraph(n, src, dst)
        for directed in (True, False):
            snapshot = snapshot_of("cuda", n, src, dst, directed)
            with on_cuda_with(1 << 23, places):
                for _ in range(3):
                    assert_same(core_numbers(snapshot), expected)


@pytest.mark.gpu
def test_as_many_vertices_as_a_cluster_takes(launched: Counter[str]) -> None:
    own = importlib.import_module("algorithms.core.cuda")
    most = own.CLUSTER * own.MOST_DEGREES
    for n, kernel in ((most, "core_cluster"), (most + 1, "core_cooperative")):
        src, dst = np.random.default_rng(n).integers(0, n, (2, 3 * n))
        snapshot = snapshot_of("cuda", n, np.append(src, n - 1), np.append(dst, 0))
        launched.clear()
        assert_same(core_numbers(snapshot), host(core_numbers(snapshot, "h-index")))
        assert launched[kernel] == 1


@pytest.mark.gpu
@pytest.mark.parametrize("ring", [1, 40])
def test_rings_that_overflow(
    launched: Counter[str], monkeypatch: pytest.MonkeyPatch, ring: int
) -> None:
    monkeypatch.setattr(importlib.import_module("algorithms.core.paper.cuda"), "RING", ring)
    n, src, dst = clustered(9 if ring == 1 else 13)
    snapshot = snapshot_of("cuda", n, src, dst)
    expected = core_numbers(snapshot)
    for method in PEELS:
        launched.clear()
        assert_same(core_numbers(snapshot, method), host(expected), method)
        assert launched["refill"] > 0


@pytest.mark.gpu
def test_results_are_ordered_on_the_callers_stream(cupy: Any) -> None:
    n, src, dst = clustered()
    expected = core_numbers(snapshot_of("cpu", n, src, dst))
    snapshot = snapshot_of("cuda", n, src, dst)
    for _ in range(3):
        with cupy.cuda.Stream(non_blocking=True) as stream:
            doubled = 2 * core_numbers(snapshot)
            stream.synchronize()
            assert_same(doubled, 2 * expected)


def test_a_method_unknown_names_those_known() -> None:
    for method in ("guess", "cooperative"):
        with pytest.raises(ValueError, match="auto, owners, bz, park, pkc, h-index on the CPU"):
            core_numbers((np.zeros(1, int), np.zeros(0, int)), method=method)


@pytest.mark.parametrize("name", BAD_GRAPHS)
def test_what_is_no_graph_is_refused(name: str) -> None:
    for algorithm in (core_numbers, lambda graph: k_core(graph, 2)):
        with pytest.raises(lpma.BatchError):
            algorithm(BAD_GRAPHS[name])


@pytest.mark.gpu
def test_what_is_no_graph_is_refused_on_the_device(cupy: Any) -> None:
    for name in ("end too early", "falling", "target too large", "negative target", "fractions"):
        with pytest.raises(lpma.BatchError):
            core_numbers(tuple(cupy.asarray(array) for array in BAD_GRAPHS[name]))
    with pytest.raises(lpma.BatchError, match="two devices"):
        core_numbers((cupy.zeros(2, int), np.zeros(0, int)))


@pytest.mark.parametrize("name, core, members", [
    ("wiki-Vote", 53, 336), ("email-Enron", 43, 275), ("facebook-combined", 115, 158),
    ("CollegeMsg", 20, 201), ("ca-HepTh", 31, 32), ("soc-sign-bitcoinotc", 21, 153),
    ("p2p-Gnutella31", 6, 1004), ("road-NY", 3, 58), ("sx-mathoverflow", 78, 263),
    ("uk-2007-05-100k", 131, 132), ("cit-HepPh", 30, 40), ("dblp-2010", 74, 75),
    ("ego-twitter", 96, 130), ("email-Eu-core-temporal", 34, 79),
])  # fmt: skip
def test_known_cores(device: str, name: str, core: int, members: int) -> None:
    columns = real_graph(name)
    n = 1 + int(max(columns["src"].max(), columns["dst"].max()))
    snapshot = snapshot_of(device, n, columns["src"], columns["dst"])
    numbers = host(core_numbers(snapshot))
    assert numbers.dtype == np.int32
    assert (int(numbers.max()), int((numbers == numbers.max()).sum())) == (core, members)
    if len(snapshot.indices) < 10 * SMALL:
        assert_same(numbers, core_numbers_igraph(n, columns["src"], columns["dst"]))
    for method in METHODS[device]:
        if method != "h-index" or len(snapshot.indices) < 10 * SMALL:
            assert_same(core_numbers(snapshot, method), numbers, method)


@pytest.mark.gpu
@pytest.mark.slow
def test_a_large_graph_is_the_cpus(cupy: Any) -> None:
    src, dst = generators.rmat(20, 18_000_000)
    expected = core_numbers(snapshot_of("cpu", 1 << 20, src, dst), "bz")
    snapshot = snapshot_of("cuda", 1 << 20, src, dst)
    for method in ("cooperative", "peel", "peel-ec-vp", "h-index", "vector"):
        assert_same(core_numbers(snapshot, method), expected, method)
    core = k_core(snapshot, 100)
    assert int(array_module(core.indptr).diff(core.indptr).max()) > 0
    assert_same(core_numbers(core), np.where(expected >= 100, expected, 0).astype(np.int32))
