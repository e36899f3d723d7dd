"""Truss numbers by every method, and the k-truss, against NetworkX, the slides' examples and what
is known of real graphs."""

from __future__ import annotations

import importlib
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given

import lpma
from algorithms import Truss, k_truss, truss, truss_numbers
from algorithms.triangles.ranked import ranked
from algorithms.truss import peel_cpu
from algorithms.truss.incidence_cpu import incidence
from ingest.datasets import generators
from lpma.arrays import on_device, to_host
from tests.conftest import real_graph
from tests.support.graph_forms import BAD_GRAPHS, cliques_in_a_chain, inputs
from tests.support.oracles import assert_same
from tests.support.peers import networkx_graph, truss_networkx
from tests.support.strategies import edge_lists

Array = npt.NDArray[Any]

METHODS = ("auto", *truss.METHODS)


def snapshot_of(device: str, src: Array, dst: Array) -> lpma.Snapshot:
    g = lpma.Graph(device=device, weight_dtype=None, times=False, directed=False)
    g.insert(src, dst)
    return g.snapshot()


@given(graph=edge_lists())
def test_truss_numbers(device: str, graph: tuple[int, Array, Array]) -> None:
    n, src, dst = graph
    expected = Truss(*truss_networkx(n, src, dst))
    for i, form in enumerate(inputs(device, n, src, dst)):
        for method in METHODS if i < 2 else ("auto",):
            assert_same(truss_numbers(form, method), expected, method)


@given(graph=edge_lists(max_vertices=14))
def test_k_truss(device: str, graph: tuple[int, Array, Array]) -> None:
    """NetworkX's convention is ours: k - 2 triangles; but it drops vertices without edges."""
    n, src, dst = graph
    whole = networkx_graph(n, src, dst)
    for form in inputs(device, n, src, dst)[:3]:
        for k in (2, 3, 4, 6):
            found = k_truss(form, k)
            edges = nx.k_truss(whole, k).edges
            both = sorted({(u, v) for u, v in edges} | {(v, u) for u, v in edges})
            indptr, indices = to_host(found.indptr), to_host(found.indices)
            rows = np.repeat(np.arange(n), np.diff(indptr)).tolist()
            assert list(zip(rows, indices.tolist(), strict=True)) == both
            assert (found.num_rows, found.num_edges) == (n, len(edges))
            assert (found.directed, found.weights, found.times) == (False, None, None)


def test_a_k_truss_is_of_its_snapshot(device: str) -> None:
    g = lpma.Graph(device=device)
    g.insert([7, 9, 2**31, 7], [9, 2**31, 7, 5])
    snapshot = g.snapshot(compact=True)
    found = k_truss(snapshot, 3)
    assert on_device(found.indices) == (device == "cuda")
    assert_same(found.ids, snapshot.ids)
    assert (found.version, found.time) == (snapshot.version, snapshot.time)
    assert truss_numbers(found).truss.tolist() == [3, 3, 3]
    assert k_truss(found, 4).num_edges == 0


EXAMPLES = {  # the slides' two graphs: rows, and the entries left in each k-truss
    "first": ([[1, 2], [0, 2, 3, 4], [0, 1, 3, 4], [1, 2, 4], [1, 2, 3]], {3: 16, 4: 12, 5: 0}),
    "second": (
        [[1, 2, 7], [0, 3, 4], [0, 5, 6, 7], [1, 4, 8], [1, 3, 5, 8], [2, 4, 6], [2, 5, 7, 8],
         [0, 2, 6], [3, 4, 6]],
        {3: 24, 4: 0},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("method", METHODS)
def test_the_slides_examples(device: str, name: str, method: str) -> None:
    rows, left = EXAMPLES[name]
    src = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    snapshot = snapshot_of(device, src, np.concatenate(rows))
    numbers = to_host(truss_numbers(snapshot, method).truss)
    for k, entries in left.items():
        assert 2 * int((numbers >= k).sum()) == entries
        assert 2 * k_truss(snapshot, k).num_edges == entries


@pytest.mark.parametrize("method", METHODS)
def test_a_clique_is_a_truss_of_its_size(device: str, method: str) -> None:
    """Lists longer than what a warp takes at once, many levels, and most of them empty."""
    sizes = [140, 3, 5, 100, 2, 40]
    src, dst = cliques_in_a_chain(sizes)
    expected = np.repeat(sizes, [size * (size - 1) // 2 for size in sizes]).astype(np.int32)
    found = truss_numbers(snapshot_of(device, src, dst), method)
    order = np.lexsort((dst, src))
    assert_same(found.truss, expected[order])


def test_a_k_truss_within_a_window_of_levels(device: str) -> None:
    """On CUDA levels are looked at by windows, which k may end in their middle."""
    src, dst = generators.rmat(11, 40_000, seed=8)
    clique = np.stack(np.triu_indices(90, 1))
    src, dst = np.append(src, clique[0]), np.append(dst, clique[1])
    numbers = truss_numbers(snapshot_of(device, src, dst)).truss
    for k in (9, 10, 15, 26, 27, 40, 89, 90, 91):
        assert k_truss(snapshot_of(device, src, dst), k).num_edges == int((numbers >= k).sum())


@pytest.mark.parametrize("spokes", [1000, 5000])
def test_hubs(device: str, spokes: int) -> None:
    """Rows so long that on CUDA a block shrinks them and several warps intersect them, and which
    lose most of their edges early."""
    rim = np.arange(2, spokes + 2)
    src, dst = cliques_in_a_chain([60, 30, 9, 9])
    src = np.concatenate(([0], np.zeros(spokes, int), np.ones(spokes, int), src + 2))
    dst = np.concatenate(([1], rim, rim, dst + 2))
    snapshot = snapshot_of(device, src, dst)
    expected = truss_numbers(snapshot, "affected")
    # The hubs belong to the largest clique, and are joined to the rest by triangles of their own.
    assert int(expected.truss.max()) == 62
    assert int((expected.truss == 3).sum()) > spokes
    for method in ("incidence", "intersect"):
        assert_same(truss_numbers(snapshot, method), expected, method)


def test_a_strip_of_triangles(device: str) -> None:
    """Two levels, and rounds that reach along the whole strip: 3 throughout, but for the ends of a
    tail."""
    n = 3000
    u = np.arange(n)
    src, dst = np.concatenate((u, u[:-1], [n])), np.concatenate((u + 1, u[:-1] + 2, [n + 1]))
    for method in METHODS:
        found = truss_numbers(snapshot_of(device, src, dst), method)
        assert to_host(found.truss).tolist() == [3] * (2 * n - 1) + [2]


def test_methods_agree(device: str) -> None:
    src, dst = generators.rmat(11, 30_000, seed=5)
    snapshot = snapshot_of(device, src, dst)
    expected = truss_numbers(snapshot, "affected")
    assert int(expected.truss.max()) > 10
    for method in METHODS:
        assert_same(truss_numbers(snapshot, method), expected, method)


def test_rounds_in_threads_give_the_same() -> None:
    """What one thread peels by itself, peeled round by round."""
    src, dst = generators.rmat(12, 60_000, seed=6)
    ranks = ranked(snapshot_of("cpu", src, dst))
    found = incidence(ranks)
    state = peel_cpu.start(found.support, truss.NO_LIMIT)
    while peel_cpu.next_level(truss.NO_LIMIT, state):
        while state.counters[peel_cpu.DONE] < state.counters[peel_cpu.QUEUED]:
            peel_cpu.one_round(peel_cpu._peel_round, state, *found)
    assert_same(state.truss, peel_cpu.by_incidence(found, truss.NO_LIMIT))


def test_auto_goes_by_the_memory(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = snapshot_of(device, *cliques_in_a_chain([6, 5]))  # 20 + 10 triangles
    taken: list[tuple[int, str]] = []
    programs: Any = importlib.import_module(
        "algorithms.truss." + ("cpu" if device == "cpu" else "cuda")
    )
    chosen = programs.chosen

    def spy(count: int) -> str:
        taken.append((count, chosen(count)))
        return taken[-1][1]

    monkeypatch.setattr(programs, "chosen", spy)
    needed = 30 * programs.TRIANGLE_BYTES
    for free in (2 * needed, 2 * needed - 1):
        monkeypatch.setattr(programs, "free_bytes", lambda free=free: free)
        assert int(truss_numbers(snapshot).truss.max()) == 6
    assert taken == [(30, "incidence"), (30, "intersect")]
    if device == "cuda":
        monkeypatch.setattr(programs, "free_bytes", lambda: 1 << 40)
        monkeypatch.setattr(programs, "LISTED_MOST", 29)
        assert int(truss_numbers(snapshot).truss.max()) == 6
        assert taken[2:] == [(30, "intersect")]


def test_bad_arguments_are_refused() -> None:
    triangle = (np.array([0, 2, 3, 3]), np.array([1, 2, 2]))
    with pytest.raises(lpma.BatchError, match="auto, incidence, intersect, affected"):
        truss_numbers(triangle, method="guess")
    for k in (1, -3):
        with pytest.raises(lpma.BatchError, match=f"k: .* not {k}"):
            k_truss(triangle, k)


@pytest.mark.parametrize("name", BAD_GRAPHS)
def test_what_is_no_graph_is_refused(name: str) -> None:
    for function in (truss_numbers, lambda s: k_truss(s, 3)):
        with pytest.raises(lpma.BatchError):
            function(BAD_GRAPHS[name])


LARGE = ("ego-twitter", "uk-2007-05-100k")


@pytest.mark.parametrize("name, most", [
    ("wiki-Vote", 23), ("email-Enron", 22), ("facebook-combined", 97), ("dblp-2010", 75),
    pytest.param("ego-twitter", 82, marks=pytest.mark.nightly),
    pytest.param("uk-2007-05-100k", 132, marks=pytest.mark.nightly),
])  # fmt: skip
def test_known_trusses(device: str, name: str, most: int) -> None:
    columns = real_graph(name)
    snapshot = snapshot_of(device, columns["src"], columns["dst"])
    expected = truss_numbers(snapshot)
    assert int(expected.truss.max()) == most
    if device == "cuda" or name not in LARGE:
        assert_same(truss_numbers(snapshot, "intersect"), expected)
    if device == "cuda":
        indptr, indices = to_host(snapshot.indptr), to_host(snapshot.indices)
        assert_same(truss_numbers((indptr, indices)), expected)
        if name not in LARGE:
            assert_same(truss_numbers(snapshot, "affected"), expected)


@pytest.mark.parametrize("name", [
    "CollegeMsg", "ca-HepTh", "cit-HepPh", "email-Eu-core-temporal", "p2p-Gnutella31", "road-NY",
    "soc-sign-bitcoinotc", "sx-mathoverflow",
])  # fmt: skip
def test_methods_agree_on_real_graphs(device: str, name: str) -> None:
    columns = real_graph(name)
    snapshot = snapshot_of(device, columns["src"], columns["dst"])
    assert_same(truss_numbers(snapshot, "incidence"), truss_numbers(snapshot, "intersect"))


@pytest.mark.gpu
def test_what_is_launched(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One launch peels; the slides' program is their kernels in their order."""
    launch = importlib.import_module("lpma.cuda.launch")
    launched: list[str] = []
    start = launch.start

    def spy(name: str, *rest: Any, **options: Any) -> None:
        launched.append(name)
        start(name, *rest, **options)

    monkeypatch.setattr(launch, "start", spy)
    snapshot = snapshot_of("cuda", *cliques_in_a_chain([4, 3]))
    truss_numbers(snapshot, "incidence")
    assert [name for name in launched if name.startswith("peel")] == ["peel_listed"]
    truss_numbers(snapshot, "intersect")
    assert [name for name in launched if name.startswith("peel")][1:] == ["peel_intersected"]
    launched.clear()
    truss_numbers(snapshot, "affected")
    slides = launched[launched.index("select_affected") :]
    level = ["select_affected", "check_affected_edges", "short_update", "select_affected"]
    assert slides[: len(level)] == level
    assert set(slides) == set(level)


@pytest.mark.gpu
def test_without_an_incidence_the_memory_goes_by_the_edges(cupy: Any) -> None:
    """Those of a clique are in so many triangles that an incidence would take 60 times as much."""
    snapshot = snapshot_of("cuda", *np.triu_indices(600, 1))
    ranked(snapshot)
    m, pool = snapshot.num_edges, cupy.get_default_memory_pool()
    before = pool.used_bytes()

    class Most(cupy.cuda.MemoryHook):
        name = "most"
        used = 0

        def malloc_postprocess(self, **_: Any) -> None:
            self.used = max(self.used, pool.used_bytes() - before)

    with Most() as most:
        truss = truss_numbers(snapshot, "intersect").truss
    assert int(truss.min()) == 600
    assert most.used < 90 * m + (1 << 20)


@pytest.mark.nightly
@pytest.mark.gpu
def test_methods_agree_on_rmat_20(cupy: Any) -> None:
    src, dst = generators.rmat(20, 18_000_000, seed=1)
    snapshot = snapshot_of("cuda", src, dst)
    assert_same(truss_numbers(snapshot, "incidence"), truss_numbers(snapshot, "intersect"))
