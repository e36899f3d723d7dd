"""Ego networks by extraction: the networks themselves, scores and contexts, against NetworkX."""

from __future__ import annotations

import importlib
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import algorithms
import lpma
from algorithms.diversity import schedule
from algorithms.diversity.extract import Scorer
from algorithms.diversity.extract import cpu as extract_cpu
from algorithms.diversity.model import MODELS
from algorithms.diversity.schedule import STEALING
from lpma.arrays import array_module, on_device, to_host
from tests.conftest import missing, real_graph
from tests.support.graph_forms import cliques_in_a_chain, clustered, inputs, snapshot_of
from tests.support.oracles import assert_same
from tests.support.peers import networkx_graph
from tests.support.strategies import edge_lists

Array = npt.NDArray[Any]


def contexts_networkx(graph: nx.Graph, owner: int, model: str, k: int) -> list[list[int]]:
    """By the definitions, sorted."""
    ego = nx.Graph(graph.subgraph(graph[owner]))
    if model == "core":
        ego = nx.k_core(ego, k)
    elif model == "truss":
        ego = nx.k_truss(ego, max(k, 2))
        ego.remove_nodes_from([v for v in list(ego) if ego.degree(v) == 0])
    parts = [sorted(part) for part in nx.connected_components(ego)]
    return sorted(part for part in parts if model != "component" or len(part) >= k)


def all_owners(scorer: Scorer) -> Array:
    return np.arange(scorer.egos.view.num_rows, dtype=np.uint32)


def arrays(device: str, n: int, src: Array, dst: Array) -> tuple[Array, Array]:
    """(indptr, indices) with repeats, on the device."""
    order = np.argsort(src, kind="stable")
    indptr, indices = np.searchsorted(src[order], np.arange(n + 1)), dst[order]
    if device == "cpu":
        return indptr, indices
    cupy = importlib.import_module("cupy")
    return cupy.asarray(indptr), cupy.asarray(indices)


def lists(contexts: list[list[Array]]) -> list[list[list[int]]]:
    return [[to_host(part).tolist() for part in parts] for parts in contexts]


@pytest.mark.parametrize("model", MODELS)
@given(graph=edge_lists(max_vertices=16), k=st.integers(1, 6))
def test_scores_and_contexts(
    device: str, model: str, graph: tuple[int, Array, Array], k: int
) -> None:
    n, src, dst = graph
    whole = networkx_graph(n, src, dst)
    expected = [contexts_networkx(whole, v, model, k) for v in range(n)]
    scorer = Scorer(arrays(device, n, src, dst), model, k)
    owners = all_owners(scorer)
    found = scorer.scores(owners)
    assert on_device(found) == (device == "cuda")
    assert_same(to_host(found), np.array([len(parts) for parts in expected], np.int32))
    assert lists(scorer.contexts(owners)) == expected
    most = scorer.bounds()
    assert most.dtype == np.int32
    assert (to_host(found) <= most).all()


@settings(max_examples=5)
@given(graph=edge_lists())
def test_every_form_of_a_graph(device: str, graph: tuple[int, Array, Array]) -> None:
    forms = inputs(device, *graph)
    first = Scorer(forms[0], "truss", 3)
    expected = to_host(first.scores(all_owners(first)))
    for form in forms:
        scorer = Scorer(form, "truss", 3)
        found = scorer.scores(all_owners(scorer))
        assert on_device(found) == on_device(scorer.egos.view.indptr)
        assert_same(to_host(found), expected)


@given(graph=edge_lists(max_vertices=16))
def test_ego_networks_are_extracted(device: str, graph: tuple[int, Array, Array]) -> None:
    """The CSR itself: rows sorted, numbers in the order of the owner's row, edges numbered."""
    n, src, dst = graph
    whole = networkx_graph(n, src, dst)
    scorer = Scorer(arrays(device, n, src, dst), "truss", 4)
    owners = all_owners(scorer)
    vertices, edges = scorer.egos.vertices, scorer.egos.edges
    expected = []
    for owner in range(n):
        row = sorted(whole[owner])
        place = {v: i for i, v in enumerate(row)}
        expected.append([sorted(place[w] for w in whole[v] if w in place) for v in row])
    assert vertices.tolist() == [len(rows) for rows in expected]
    assert edges.tolist() == [sum(map(len, rows)) // 2 for rows in expected]
    assert extracted(device, scorer, owners) == expected


def extracted(device: str, scorer: Scorer, owners: Array) -> list[list[list[int]]]:
    """Every owner's rows."""
    if device == "cuda":
        ego_extract = importlib.import_module("algorithms.diversity.extract.cuda")
        there = importlib.import_module("cupy").asarray(owners)
        starts, view = ego_extract.extracted(scorer.egos, owners, there)
        starts = to_host(starts).tolist()
        rows = np.split(to_host(view.indices), to_host(view.indptr)[1:-1])
        return [
            [(row.astype(np.int64) - first).tolist() for row in rows[first:end]]
            for first, end in pairwise(starts)
        ]
    found = []
    view = scorer.egos.view
    for owner in owners.tolist():
        d, most = int(scorer.egos.vertices[owner]), int(scorer.egos.edges[owner])
        place_of, ends = np.zeros(view.num_rows, np.int32), np.empty((most, 2), np.int32)
        assert extract_cpu.edges(owner, view.indptr, view.indices, place_of, ends) == most
        assert not place_of.any()
        assert ends.tolist() == sorted(ends.tolist())
        row_starts, mark = np.empty(d + 1, np.int64), np.zeros(d, np.int64)
        adjacent, edge = np.empty(2 * most, np.int32), np.empty(2 * most, np.int32)
        extract_cpu.rows(d, ends, row_starts, adjacent, edge, mark)
        starts = row_starts.tolist()
        for v in range(d):
            for i in range(starts[v], starts[v + 1]):
                assert ends[edge[i]].tolist() == sorted((v, int(adjacent[i])))
        found.append([adjacent[starts[v] : starts[v + 1]].tolist() for v in range(d)])
    return found


def test_owners_come_in_any_order_and_twice(device: str) -> None:
    n, src, dst = clustered(7)
    for model in MODELS:
        scorer = Scorer(snapshot_of(device, n, src, dst), model, 3)
        scores = to_host(scorer.scores(all_owners(scorer)))
        contexts = lists(scorer.contexts(all_owners(scorer)))
        owners = np.random.default_rng(1).integers(0, n, 2 * n).astype(np.uint32)
        given = array_module(scorer.egos.view.indptr).asarray(owners)
        assert_same(to_host(scorer.scores(given)), scores[owners])
        assert lists(scorer.contexts(owners)) == [contexts[v] for v in owners]
        assert len(scorer.scores(owners[:0])) == 0
        assert scorer.contexts(owners[:0]) == []


def test_a_hubs_row_is_searched(device: str) -> None:
    """Rows of all lengths beside each other: a star over everything, cliques of many sizes."""
    src, dst = cliques_in_a_chain([70, 3, 40, 9, 5, 4, 33])
    n = int(max(src.max(), dst.max())) + 2
    hub = np.full(n - 1, n - 1)
    src, dst = np.append(src, hub), np.append(dst, np.arange(n - 1))
    whole = networkx_graph(n, src, dst)
    for model in MODELS:
        for k in (3, 4, 8, 33, 69):
            scorer = Scorer(snapshot_of(device, n, src, dst), model, k)
            expected = [contexts_networkx(whole, v, model, k) for v in (0, 69, 71, n - 1)]
            owners = np.array([0, 69, 71, n - 1], np.uint32)
            assert lists(scorer.contexts(owners)) == expected


def test_a_large_clique(device: str) -> None:
    """Rows longer than a few lanes take."""
    size = 320
    src, dst = np.triu_indices(size, 1)
    snapshot = snapshot_of(device, size, src, dst)
    for model, k, found in (
        ("component", size - 1, 1), ("component", size, 0), ("core", size - 2, 1),
        ("core", size - 1, 0), ("truss", size - 1, 1), ("truss", size, 0),
    ):  # fmt: skip
        scorer = Scorer(snapshot, model, k)
        (contexts,) = scorer.contexts(np.array([5], np.uint32))
        assert lists([contexts]) == [[[v for v in range(size) if v != 5]] * found], (model, k)


def test_peeling_goes_in_rounds(device: str) -> None:
    """An owner of a strip of triangles: in the 4-truss nothing is left, and it goes from the ends
    on; in the 2-core everything but a tail."""
    m = 400
    u = np.arange(m)
    strip = np.concatenate((u[:-1], u[:-2])), np.concatenate((u[:-1] + 1, u[:-2] + 2))
    tail = np.arange(m - 1, m + 200)
    src = np.concatenate((strip[0], tail, np.full(m + 201, m + 201)))
    dst = np.concatenate((strip[1], tail + 1, np.arange(m + 201)))
    snapshot = snapshot_of(device, m + 202, src, dst)
    owner = np.array([m + 201], np.uint32)
    for model, k, sizes in (
        ("component", 1, [m + 201]), ("core", 1, [m + 201]), ("core", 2, [m]), ("core", 3, []),
        ("truss", 2, [m + 201]), ("truss", 3, [m]), ("truss", 4, []),
    ):  # fmt: skip
        (contexts,) = Scorer(snapshot, model, k).contexts(owner)
        assert [len(part) for part in contexts] == sizes, (model, k)


def test_batches_of_any_size_give_the_same(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if device == "cpu":
        pytest.skip("the CPU takes one ego network after the other")
    ego_extract = importlib.import_module("algorithms.diversity.extract.cuda")
    n, src, dst = clustered(9)
    for model in MODELS:
        scorer = Scorer(snapshot_of(device, n, src, dst), model, 4)
        owners = all_owners(scorer)
        scores = to_host(scorer.scores(owners))
        contexts = lists(scorer.contexts(owners))
        for room in (1, 100_000):
            monkeypatch.setattr(ego_extract, "BATCH_BYTES", room)
            assert_same(to_host(scorer.scores(owners)), scores)
        assert lists(scorer.contexts(owners)) == contexts
        monkeypatch.undo()


@pytest.mark.gpu
@pytest.mark.parametrize("model", MODELS)
def test_batches_keep_to_their_room(cupy: Any, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool with no more room than a batch may take, and the answer, is enough."""
    ego_extract = importlib.import_module("algorithms.diversity.extract.cuda")
    n, src, dst = clustered(12)
    scorer = Scorer(snapshot_of("cuda", n, src, dst), model, 4)
    owners, room = all_owners(scorer), 24 << 20
    expected = to_host(scorer.scores(owners))
    answer = 8 * int(scorer.egos.vertices.sum())
    size = ego_extract.EDGE_BYTES * scorer.egos.edges
    assert 4 * size.max() < room < size.sum() / 4
    monkeypatch.setattr(ego_extract, "BATCH_BYTES", room)
    pool = cupy.cuda.MemoryPool()
    pool.set_limit(size=room + answer)
    with cupy.cuda.using_allocator(pool.malloc):
        assert_same(to_host(scorer.scores(owners)), expected)


KNOWN = {  # sums over all vertices for k = 4, and the largest
    "wiki-Vote": {"component": (3257, 2), "core": (2235, 1), "truss": (2523, 3)},
    "email-Enron": {"component": (16333, 6), "core": (10301, 4), "truss": (15547, 10)},
    "facebook-combined": {"component": (3780, 2), "core": (3414, 2), "truss": (3652, 6)},
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", KNOWN)
def test_real_graphs(device: str, name: str) -> None:
    columns = real_graph(name)
    src, dst = columns["src"], columns["dst"]
    snapshot = snapshot_of(device, 0, src, dst)
    for model, (total, most) in KNOWN[name].items():
        scorer = Scorer(snapshot, model, 4)
        owners = np.flatnonzero(scorer.bounds()).astype(np.uint32)
        workers = workers_of(scorer, device, 2)
        scores = schedule.scores(workers, owners, scorer.costs(owners))
        assert (int(scores.sum()), int(scores.max())) == (total, most)


def workers_of(scorer: Scorer, device: str, number: int) -> list[Scorer]:
    """As many as the device can have; on CUDA all on one."""
    make = Scorer if device == "cuda" else lambda *_: scorer
    return [make(scorer.egos.view, scorer.model, scorer.k) for _ in range(number)]


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=10)
@given(graph=edge_lists(max_vertices=24), t=st.integers(0, 30))
def test_searches_agree(device: str, model: str, graph: tuple[int, Array, Array], t: int) -> None:
    """Any stealing and any number of workers find what sorting all scores does."""
    n, src, dst = graph
    scorer = Scorer(arrays(device, n, src, dst), model, 3)
    owners = all_owners(scorer)
    scores = to_host(scorer.scores(owners)).tolist()
    expected = sorted(enumerate(scores), key=lambda item: (-item[1], item[0]))[:t]
    most, costs = scorer.bounds(), scorer.costs(owners)
    for number in (1, 2, 3):
        workers = workers_of(scorer, device, number)
        for stealing in STEALING:
            assert schedule.top(workers, owners, most, costs, t, stealing) == expected
            assert schedule.scores(workers, owners, costs, stealing).tolist() == scores


@pytest.mark.gpu
@pytest.mark.parametrize("model", MODELS)
def test_two_devices(cupy: Any, model: str) -> None:
    if cupy.cuda.runtime.getDeviceCount() < 2:
        missing("gpus", "one CUDA device: work is shared by two")
    n, src, dst = clustered()
    scorer = Scorer(snapshot_of("cuda", n, src, dst), model, 4)
    owners = all_owners(scorer)
    views = schedule.spread(scorer.egos.view, [0, 1])
    assert views[0].indices is scorer.egos.view.indices
    here, there = workers = [Scorer(view, model, 4) for view in views]
    assert there.egos.view.indices.device.id == there.egos.support.device.id == 1
    scores = to_host(scorer.scores(owners))
    assert_same(to_host(there.scores(owners)), scores)
    costs = here.costs(owners)
    assert_same(schedule.scores(workers, owners, costs), scores)
    most = scorer.bounds()
    best = sorted(enumerate(scores.tolist()), key=lambda item: (-item[1], item[0]))
    assert schedule.top(workers, owners, most, costs, 50) == best[:50]
    assert cupy.cuda.runtime.getDevice() == 0


def test_bad_models_are_refused(device: str) -> None:
    s = snapshot_of(device, 3, np.array([0, 1]), np.array([1, 2]))
    with pytest.raises(lpma.BatchError, match="choose one of component, core, truss"):
        algorithms.diversity(s, "clique", 3, method="extract")
    with pytest.raises(lpma.BatchError, match=r"k: .* not 0"):
        algorithms.diversity(s, "core", 0, method="extract")
