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

import lpma
from algorithms import core_numbers, k_core
from algorithms.core import cpu as own_cpu
from algorithms.core.paper import cpu as paper_cpu
from algorithms.views.simple import simple
from ingest.datasets import generators
from lpma.arrays import array_module
from lpma.cpu import pieces
from lpma.cpu.pieces import SMALL
from tests.conftest import real_graph
from tests.support.graph_forms import BAD_GRAPHS, clustered, inputs, snapshot_of
from tests.support.oracles import assert_same, host
from tests.support.peers import core_numbers_igraph, core_numbers_networkx, networkx_graph
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
            assert core.num_rows == n
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
    ours = {"core_refine": 1, "core_cooperative": 1}
    expected: dict[str, dict[str, int]] = {"auto": ours, "vector": {}}
    for i, by in enumerate(("", "-bc", "-ec")):
        for j, how in enumerate(("", "-sm", "-vp")):
            expected[f"peel{by}{how}"] = {f"scan<{i}>": levels, f"loop<{i}, {j}>": levels}
    for method, kernels in expected.items():
        launched.clear()
        core_numbers(snapshot, method)
        assert launched == kernels, method
    launched.clear()
    core_numbers(snapshot, "h-index")
    assert set(launched) == {"refine_rows", "refine_hubs"}


@contextmanager
def refined(entries: int, rounds: int = 1000) -> Iterator[None]:
    """On a device, graphs of up to so many entries are refined, in so many rounds, or peeled."""
    own = importlib.import_module("algorithms.core.cuda")
    with patch.object(own, "MOST_ENTRIES", entries), patch.object(own, "MOST_ROUNDS", rounds):
        yield


@pytest.mark.gpu
@given(graph=edge_lists())
def test_refined_and_peeled(cupy: Any, graph: tuple[int, Array, Array]) -> None:
    expected = core_numbers_networkx(*graph)
    for most, rounds in ((-1, 1000), (1 << 23, 1000), (1 << 23, 1), (1 << 23, 2)):
        with refined(most, rounds):
            for form in inputs("cuda", *graph)[:2]:
                assert_same(core_numbers(form), expected)


@pytest.mark.gpu
def test_rows_for_warps_and_for_blocks(cupy: Any) -> None:
    long = importlib.import_module("algorithms.core.cuda").LONG
    star = 30_000, np.full(30_000, 7), np.arange(30_000)
    for n, src, dst in (clustered(9), clustered(13), star):
        expected = core_numbers_igraph(n, src, dst)
        for directed in (True, False):
            assert_same(core_numbers(snapshot_of("cuda", n, src, dst, directed)), expected)
    for n in (33, long, long + 1, long + 2, 2500):  # cliques
        snapshot = snapshot_of("cuda", n, *np.triu_indices(n, 1))
        assert_same(core_numbers(snapshot), np.full(n, n - 1, np.int32))
    left, right = np.divmod(np.arange((long + 1) * (long - 1)), long - 1)  # rows of both kinds
    snapshot = snapshot_of("cuda", 2 * long, left, right + long + 1)
    assert_same(core_numbers(snapshot), np.full(2 * long, long - 1, np.int32))


@pytest.mark.gpu
def test_more_long_rows_than_a_block_has_threads(
    cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right = np.divmod(np.arange(1100 * 300), 300)
    snapshot = snapshot_of("cuda", 1400, left, right + 1100)
    core_numbers(snapshot)  # which asks for the shared memory
    launch = importlib.import_module("lpma.cuda.launch")
    monkeypatch.setattr(launch, "resident_blocks", lambda *_, **__: 1)  # as a small device has
    assert_same(core_numbers(snapshot), np.full(1400, 300, np.int32))


@pytest.mark.gpu
def test_a_path_takes_many_rounds(cupy: Any) -> None:
    """Estimates fall from the ends of a path inwards. Marks begin anew after 512 rounds."""
    for n in (1500, 5000):
        path = np.random.default_rng(2).permutation(n)
        snapshot = snapshot_of("cuda", n, path[1:], path[:-1])
        for rounds in (100, 1000, 10_000):
            with refined(1 << 23, rounds):
                assert_same(core_numbers(snapshot), np.ones(n, np.int32))


@pytest.mark.gpu
def test_a_graph_is_refined_up_to_its_size(launched: Counter[str]) -> None:
    own = importlib.import_module("algorithms.core.cuda")
    n, src, dst = clustered(9)
    entries = len(simple(snapshot_of("cuda", n, src, dst)).indices)
    large = own.MOST_VERTICES
    for rows, most, is_refined in (
        (n, entries, True), (n, entries - 1, False), (large, entries, True),
        (large + 1, entries, False),
    ):  # fmt: skip
        snapshot = snapshot_of("cuda", rows, src, dst)
        with refined(most):
            launched.clear()
            numbers = core_numbers(snapshot)
            assert (launched["core_refine"], launched["core_cooperative"]) == (is_refined, 1)
            assert_same(numbers, host(core_numbers(snapshot, "h-index")))


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
        with pytest.raises(lpma.BatchError, match="owners, bz, park, pkc, h-index, not"):
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
@pytest.mark.nightly
def test_a_large_graph_is_the_cpus(cupy: Any) -> None:
    src, dst = generators.rmat(20, 18_000_000)
    expected = core_numbers(snapshot_of("cpu", 1 << 20, src, dst), "bz")
    snapshot = snapshot_of("cuda", 1 << 20, src, dst)
    for method in ("cooperative", "peel", "peel-ec-vp", "h-index", "vector"):
        assert_same(core_numbers(snapshot, method), expected, method)
    core = k_core(snapshot, 100)
    assert int(array_module(core.indptr).diff(core.indptr).max()) > 0
    assert_same(core_numbers(core), np.where(expected >= 100, expected, 0).astype(np.int32))
