"""Structural diversity by every method, against NetworkX on each ego network and what is known of
real graphs."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from algorithms import diversity, top_diversity
from algorithms.diversity.methods import METHODS
from algorithms.diversity.model import LARGEST_K, MODELS, fewest_vertices
from ingest.datasets import generators
from lpma.arrays import on_device, to_host
from tests.algorithms.test_truss import snapshot_of
from tests.conftest import real_graph
from tests.support.graph_forms import BAD_GRAPHS, cliques_in_a_chain, inputs
from tests.support.peers import networkx_graph
from tests.support.strategies import edge_lists

Array = npt.NDArray[Any]

EVERY_METHOD = pytest.mark.parametrize("method", METHODS)


def contexts_networkx(graph: Any, owner: int, model: str, k: int) -> list[list[int]]:
    """The definitions, word for word."""
    ego = graph.subgraph(graph.neighbors(owner))
    if model == "core":
        ego = nx.k_core(ego, k)
    elif model == "truss":
        ego = nx.k_truss(ego, max(k, 2))
        ego = ego.edge_subgraph(ego.edges)  # without vertices that have no edge
    least = k if model == "component" else 1
    return sorted(sorted(c) for c in nx.connected_components(ego) if len(c) >= least)


def oracle(n: int, src: Array, dst: Array, model: str, k: int) -> list[list[list[int]]]:
    graph = networkx_graph(n, src, dst)
    return [contexts_networkx(graph, owner, model, k) for owner in range(n)]


def as_lists(contexts: list[Array]) -> list[list[int]]:
    return [to_host(context).tolist() for context in contexts]


@EVERY_METHOD
@given(graph=edge_lists(max_vertices=18), k=st.integers(1, 5))
def test_every_owner(device: str, method: str, graph: tuple[int, Array, Array], k: int) -> None:
    n, src, dst = graph
    for model in MODELS:
        expected = oracle(n, src, dst, model, k)
        for form in inputs(device, n, src, dst)[:3]:
            found = diversity(form, model, k, method)
            assert found.dtype == np.int32
            assert to_host(found).tolist() == [len(contexts) for contexts in expected]
        best = top_diversity(form, model, k, n, method=method)
        order = sorted(range(n), key=lambda u: (-len(expected[u]), u))
        assert [vertex for vertex, _, _ in best] == order
        for vertex, score, contexts in best:
            assert as_lists(contexts) == expected[vertex]
            assert score == len(contexts)


@EVERY_METHOD
@given(graph=edge_lists(max_vertices=18), data=st.data())
def test_some_owners(
    device: str, method: str, graph: tuple[int, Array, Array], data: st.DataObject
) -> None:
    """In any order, repeats too; and no score is above its bound."""
    n, src, dst = graph
    owners = data.draw(st.lists(st.integers(0, max(n - 1, 0)), max_size=6 if n else 0))
    form = inputs(device, n, src, dst)[0]
    for model in MODELS:
        k = data.draw(st.integers(1, 4))
        scorer = METHODS[method](form, model, k)
        expected = oracle(n, src, dst, model, k)
        asked = np.array(owners, np.uint32)
        scores = to_host(scorer.scores(asked))
        assert scores.tolist() == [len(expected[u]) for u in owners]
        assert [as_lists(c) for c in scorer.contexts(asked)] == [expected[u] for u in owners]
        bounds, costs = scorer.bounds(), scorer.costs(asked)
        assert (len(bounds), len(costs)) == (n, len(asked))
        assert (scores <= bounds[asked]).all()
        assert (costs > 0).all()


def caveman(sizes: list[int], bridges: bool) -> tuple[int, Array, Array]:
    """A hub that is joined to cliques of these sizes, which have an edge to the next each if
    `bridges`. The hub has the largest id."""
    src, dst, first = [], [], 0
    for size in sizes:
        u, v = np.triu_indices(size, 1)
        src += (u + first).tolist()
        dst += (v + first).tolist()
        first += size
        if bridges and size != sizes[-1]:
            src.append(first - 1)
            dst.append(first)
    members = np.arange(first)
    return first, np.concatenate((src, members)), np.concatenate((dst, np.full(first, first)))


@EVERY_METHOD
@pytest.mark.parametrize("bridges", [False, True])
def test_a_hub_of_cliques(device: str, method: str, bridges: bool) -> None:
    """Contexts of very different sizes, that keep or lose what joins them."""
    sizes = [3, 50, 4, 20, 5, 90, 2]
    hub, src, dst = caveman(sizes, bridges)
    snapshot = snapshot_of(device, src, dst)
    for model in MODELS:
        for k in (1, 2, 4, 21, 51):
            stays = [size >= fewest_vertices(model, k) for size in sizes]
            score = sum(stays)
            if bridges and model == "component":
                score = 1
            elif bridges and (model == "core" or k <= 2):  # they join what stays side by side
                score = sum(now and not before for before, now in pairwise([False, *stays]))
            assert to_host(diversity(snapshot, model, k, method))[hub] == score
            ((vertex, found, contexts),) = top_diversity(snapshot, model, k, 1, method=method)
            assert found == len(contexts)
            if score > 1:
                assert (vertex, found) == (hub, score)


def strip(n: int) -> tuple[int, Array, Array]:
    """A hub whose ego network is a strip of triangles: peeling goes all along it, over rows of many
    words of bits, in a room beyond shared memory."""
    u = np.arange(n)
    src = np.concatenate((u[:-1], u[:-2], u))
    dst = np.concatenate((u[1:], u[2:], np.full(n, n)))
    return n, src, dst


@EVERY_METHOD
def test_peeling_goes_from_end_to_end(device: str, method: str) -> None:
    hub, src, dst = strip(1500)
    snapshot = snapshot_of(device, src, dst)
    expected = {
        "component": {4: 1, 1500: 1, 1501: 0}, "core": {2: 1, 3: 0}, "truss": {3: 1, 4: 0}
    }  # fmt: skip
    for model, scores in expected.items():
        for k, score in scores.items():
            assert to_host(diversity(snapshot, model, k, method))[hub] == score


def test_methods_agree(device: str) -> None:
    src, dst = generators.rmat(10, 12_000, seed=5)
    snapshot = snapshot_of(device, src, dst)
    for model in MODELS:
        for k in (1, 3, 4, 8, 20):
            expected = diversity(snapshot, model, k)
            best = [(v, s, as_lists(c)) for v, s, c in top_diversity(snapshot, model, k, 20)]
            for method in METHODS:
                assert (diversity(snapshot, model, k, method) == expected).all()
                others = top_diversity(snapshot, model, k, 20, method=method)
                assert [(v, s, as_lists(c)) for v, s, c in others] == best


@pytest.mark.gpu
@EVERY_METHOD
def test_several_devices(cupy: Any, method: str) -> None:
    src, dst = generators.rmat(11, 30_000, seed=8)
    every = list(range(cupy.cuda.runtime.getDeviceCount()))
    for graph in (snapshot_of("cpu", src, dst), snapshot_of("cuda", src, dst)):
        for model in MODELS:
            best = top_diversity(graph, model, 3, 30, method=method)
            for devices in ([0], every):
                found = top_diversity(graph, model, 3, 30, devices, method)
                assert [(v, s, as_lists(c)) for v, s, c in found] == [
                    (v, s, as_lists(c)) for v, s, c in best
                ]


def test_ties_go_to_the_smaller_vertex(device: str) -> None:
    src, dst = cliques_in_a_chain([4] * 9)  # every joint has two contexts, every other vertex one
    snapshot = snapshot_of(device, src, dst)
    best = top_diversity(snapshot, "component", 3, 10)
    assert [(v, score) for v, score, _ in best] == [(3 * i, 2) for i in range(1, 9)] + [
        (0, 1), (1, 1)
    ]  # fmt: skip
    assert as_lists(best[0].contexts) == [[0, 1, 2], [4, 5, 6]]
    assert best[0].contexts[0].dtype == np.uint32
    assert on_device(best[0].contexts[0]) == (device == "cuda")
    assert top_diversity(snapshot, "truss", 3, 0) == []
    assert len(top_diversity(snapshot, "truss", 9, 10**9)) == 28


def test_nothing_to_find(device: str) -> None:
    for n, ends in ((0, []), (3, []), (3, [0, 1])):
        src = np.array(ends[:1], np.int64)
        form = inputs(device, n, src, np.array(ends[1:], np.int64))[0]
        for model in MODELS:
            for k in (1, 4, LARGEST_K):
                found = diversity(form, model, k)
                assert to_host(found).tolist() == [
                    int(model == "component" and k == 1 and v in ends) for v in range(n)
                ]
                assert len(top_diversity(form, model, k, 5)) == n
                assert on_device(found) == (device == "cuda")


def test_bad_arguments_are_refused() -> None:
    triangle = (np.array([0, 2, 3, 3]), np.array([1, 2, 2]))
    with pytest.raises(lpma.BatchError, match="component, core, truss"):
        diversity(triangle, "clique", 3)
    with pytest.raises(lpma.BatchError, match="auto, listing"):
        diversity(triangle, "core", 3, method="guess")
    for k in (0, -1, LARGEST_K + 1):
        with pytest.raises(lpma.BatchError, match=f"k: .* not {k}"):
            diversity(triangle, "truss", k)
    no_integers: list[Any] = [2.5, 2.0, np.float64(2), True, np.True_, "3", None]
    for value in no_integers:
        for method in METHODS:
            with pytest.raises(lpma.BatchError, match="k: an integer"):
                diversity(triangle, "truss", value, method)
            with pytest.raises(lpma.BatchError, match="k: an integer"):
                top_diversity(triangle, "truss", value, 1, method=method)
        with pytest.raises(lpma.BatchError, match="t: an integer"):
            top_diversity(triangle, "truss", 3, value)
    with pytest.raises(lpma.BatchError, match=r"t: .* -1"):
        top_diversity(triangle, "truss", 3, -1)
    no_numbers: list[Any] = [[], ["a"]]
    for devices in no_numbers:
        with pytest.raises(lpma.BatchError, match="one device or more"):
            top_diversity(triangle, "truss", 3, 1, devices=devices)


def test_integers_of_numpy(device: str) -> None:
    """However short: they are not computed with as they are."""
    src, dst = cliques_in_a_chain([4] * 9)
    snapshot = snapshot_of(device, src, dst)
    for method in METHODS:
        for model in MODELS:
            expected = to_host(diversity(snapshot, model, 2, method))
            for k in (np.int8(2), np.uint8(2), np.int64(2), np.uint64(2)):
                found: Any = diversity(snapshot, model, k, method)  # type: ignore[arg-type]
                assert (to_host(found) == expected).all()
                t: Any = k
                assert len(top_diversity(snapshot, model, t, t, method=method)) == 2
            most: Any = np.int8(127)  # one more is no int8
            assert not to_host(diversity(snapshot, model, most, method)).any()


def test_devices_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    triangle = (np.array([0, 2, 3, 3]), np.array([1, 2, 2]))
    for number in (-1, 1 << 20, 2**70):
        with pytest.raises(lpma.DeviceError, match="devices: device "):
            top_diversity(triangle, "core", 3, 1, devices=[number])
    no_numbers: list[Any] = [True, 0.0, "0"]
    for number in no_numbers:
        with pytest.raises(lpma.BatchError, match="devices: a list of the numbers"):
            top_diversity(triangle, "core", 3, 1, devices=[number])
    monkeypatch.setitem(sys.modules, "cupy", None)  # importing it fails
    with pytest.raises(lpma.DeviceError, match="device 0: CuPy cannot be imported"):
        top_diversity(triangle, "core", 3, 1, devices=[0])


@pytest.mark.parametrize("name", BAD_GRAPHS)
def test_what_is_no_graph_is_refused(name: str) -> None:
    with pytest.raises(lpma.BatchError):
        diversity(BAD_GRAPHS[name], "core", 3)
    with pytest.raises(lpma.BatchError):
        top_diversity(BAD_GRAPHS[name], "truss", 3, 2)


KNOWN = {  # k = 4: sum and largest of the component, core and truss scores
    "wiki-Vote": ((3257, 2), (2235, 1), (2523, 3)),
    "email-Enron": ((16333, 6), (10301, 4), (15547, 10)),
    "facebook-combined": ((3780, 2), (3414, 2), (3652, 6)),
}


@EVERY_METHOD
@pytest.mark.parametrize("name", KNOWN)
def test_known_sums(device: str, name: str, method: str) -> None:
    columns = real_graph(name)
    snapshot = snapshot_of(device, columns["src"], columns["dst"])
    for model, expected in zip(MODELS, KNOWN[name], strict=True):
        scores = diversity(snapshot, model, 4, method)
        assert (int(scores.sum()), int(scores.max())) == expected
        best = top_diversity(snapshot, model, 4, 100, method=method)
        order = np.lexsort((np.arange(len(scores)), -to_host(scores)))[:100]
        assert [v for v, _, _ in best] == order.tolist()


@pytest.mark.nightly
@pytest.mark.gpu
@pytest.mark.parametrize("name", ["ego-twitter", "uk-2007-05-100k", "dblp-2010"])
def test_devices_agree_on_large_graphs(cupy: Any, name: str) -> None:
    columns = real_graph(name)
    here = snapshot_of("cpu", columns["src"], columns["dst"])
    there = snapshot_of("cuda", columns["src"], columns["dst"])
    for model in MODELS:
        assert (diversity(here, model, 4) == to_host(diversity(there, model, 4))).all()
