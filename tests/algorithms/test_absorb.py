"""Scores from what one context leaves, against NetworkX and against scoring whole rows: hubs whose
neighbours are a dense part, from which the head is taken, and small communities, apart from it or
tied to it by a few edges."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms import top_diversity
from algorithms.diversity.listing import Scorer, absorb
from ingest.datasets import generators
from lpma.arrays import to_host
from tests.algorithms.test_diversity import as_lists, caveman, contexts_networkx, strip
from tests.algorithms.test_truss import snapshot_of
from tests.support.peers import networkx_graph

Array = npt.NDArray[Any]
Ends = tuple[Array, Array]

SHRUNK = ("core", "truss")


@st.composite
def around_hubs(draw: st.DrawFn) -> tuple[int, Array, Array]:
    """A graph of a dense part of more vertices than a head has, and communities, all of which one
    hub or two are joined to."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    dense = draw(st.sampled_from([0, 90, 150, 200]))
    share = draw(st.sampled_from([0.05, 0.15, 0.5, 1.0]))
    u, v = np.triu_indices(dense, 1)
    kept = rng.random(len(u)) < share
    src, dst, first = [u[kept]], [v[kept]], dense
    for size in draw(st.lists(st.integers(1, 9), min_size=1, max_size=30)):
        u, v = np.triu_indices(size, 1)
        kept = rng.random(len(u)) < draw(st.sampled_from([0.7, 1.0]))
        src.append(first + u[kept])
        dst.append(first + v[kept])
        ties = draw(st.integers(0, 6)) if dense else 0  # to few vertices of the dense part, so that
        src.append(first + rng.integers(0, size, ties))  # some are in triangles
        dst.append(rng.integers(0, min(dense, 8) or 1, ties))
        first += size
    hubs = draw(st.integers(1, 2))
    for hub in range(first, first + hubs):
        members = np.flatnonzero(rng.random(first) < draw(st.sampled_from([0.9, 1.0])))
        src.append(members)
        dst.append(np.full(len(members), hub))
    return first + hubs, np.concatenate(src), np.concatenate(dst)


@pytest.mark.parametrize("model", SHRUNK)
@settings(max_examples=15)
@given(graph=around_hubs(), k=st.integers(1, 6))
def test_against_networkx(device: str, model: str, graph: tuple[int, Array, Array], k: int) -> None:
    n, src, dst = graph
    whole = networkx_graph(n, src, dst)
    scorer = Scorer(snapshot_of(device, src, dst), model, k)
    largest = np.arange(max(0, n - 4), n, dtype=np.uint32)[: len(scorer.bounds())]
    expected = [contexts_networkx(whole, int(v), model, k) for v in largest]
    scores = [len(contexts) for contexts in expected]
    assert to_host(scorer.scores(largest)).tolist() == scores
    values, exact = map(to_host, scorer.refined(largest))
    assert (values >= scores).all()
    assert (values[exact] == np.array(scores)[exact]).all()
    assert [as_lists(c) for c in scorer.contexts(largest)] == expected


def tools_of(device: str) -> Any:
    return importlib.import_module(f"algorithms.diversity.listing.{device}")


def whole_scores(scorer: Scorer, owners: Array) -> Array:
    """Without absorbing."""
    scores: Array = to_host(scorer._scored(owners, labelled=False)[0])
    return scores


@pytest.mark.parametrize("model", SHRUNK)
@pytest.mark.parametrize("k", [1, 2, 3, 4, 6, 12, 40])
def test_against_whole_rows(device: str, model: str, k: int) -> None:
    src, dst = generators.rmat(12, 60_000, seed=3)
    scorer = Scorer(snapshot_of(device, src, dst), model, k)
    owners = np.arange(len(scorer.bounds()), dtype=np.uint32)
    expected = whole_scores(scorer, owners)
    assert (to_host(scorer.scores(owners)) == expected).all()
    values, exact = map(to_host, scorer.refined(owners))
    assert (values >= expected).all()
    assert (values[exact] == expected[exact]).all()
    if 2 < k < 12:
        is_long = to_host(scorer.egos.row_lengths(scorer.egos.rank_of)) > scorer._device.HEAD
        assert is_long.sum() > 50
        assert exact[is_long].mean() > 0.9  # it is worth it


@pytest.mark.parametrize("model", SHRUNK)
def test_a_budget_for_one_owner_at_a_time(
    device: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is streamed, and what has no matrix goes through the algorithms for graphs."""
    src, dst = generators.rmat(9, 8_000, seed=6)
    snapshot = snapshot_of(device, src, dst)
    best = top_diversity(snapshot, model, 3, 40, method="listing")
    scorer: Any = Scorer(snapshot, model, 3)
    owners = np.arange(512, dtype=np.uint32)
    expected = to_host(scorer.scores(owners))
    assert (expected > 0).sum() > 100
    tools = scorer._device
    monkeypatch.setattr(tools, "room_bytes", lambda: 1 << (9 if device == "cpu" else 12))
    assert tools.largest_row(model) <= tools.HEAD
    assert (to_host(scorer.scores(owners)) == expected).all()
    found = top_diversity(snapshot, model, 3, 40, method="listing")
    assert [(v, s, as_lists(c)) for v, s, c in found] == [(v, s, as_lists(c)) for v, s, c in best]


@pytest.mark.parametrize("model", SHRUNK)
def test_no_context_to_begin_with(device: str, model: str) -> None:
    """Nothing stands in the head, or nothing at all."""
    for graph in (strip(700), caveman([5] * 60, False), caveman([2] * 300, True)):
        hub, src, dst = graph
        owner = np.array([hub], np.uint32)
        for k in (2, 3, 4, 5):
            scorer = Scorer(snapshot_of(device, src, dst), model, k)
            (score,) = whole_scores(scorer, owner)
            assert to_host(scorer.scores(owner)).tolist() == [score]
            assert int(to_host(scorer.refined(owner)[0])[0]) >= score


def hubs_of_cliques(numbers: list[int], blob: int) -> Ends:
    """For each number a hub with that many cliques of four, apart from all else, and with `blob`
    vertices that are joined pairwise, the same for all hubs. Hubs come first."""
    hubs = len(numbers)
    u, v = np.triu_indices(blob, 1)
    src, dst, first = [u + hubs], [v + hubs], hubs + blob
    u, v = np.triu_indices(4, 1)
    for hub, number in enumerate(numbers):
        for start in range(first, first + 4 * number, 4):
            src.append(start + u)
            dst.append(start + v)
        members = np.append(np.arange(hubs, hubs + blob), np.arange(first, first + 4 * number))
        src.append(members)
        dst.append(np.full(len(members), hub))
        first += 4 * number
    return np.concatenate(src), np.concatenate(dst)


@pytest.mark.parametrize("model", SHRUNK)
def test_ties_at_the_last_place(device: str, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hubs that score the same, with bounds of which none settles it; t up to more than there are
    vertices that are worth scoring."""
    numbers = [3, 5, 5, 2, 5, 0, 5, 3, 5, 1]
    src, dst = hubs_of_cliques(numbers, 150)
    snapshot = snapshot_of(device, src, dst)
    k = 3 if model == "core" else 4
    for at_once in (1, 3, 8192):
        monkeypatch.setattr(tools_of(device), "AT_ONCE", at_once)
        order = sorted(range(len(numbers)), key=lambda hub: (-numbers[hub], hub))
        for t in (1, 3, 4, 5, 6, 9, 10, 1000):
            best = top_diversity(snapshot, model, k, t, method="listing")
            hubs = [(v, score) for v, score, _ in best if v < len(numbers)]
            assert hubs[:t] == [(hub, 1 + numbers[hub]) for hub in order][: len(hubs)]
            assert len(best) == min(t, len(snapshot.indptr) - 1)
            assert len(hubs) >= min(t, 9)


def test_what_is_not_needed_is_not_scored(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hubs whose bounds fall below the t-th best are not scored as a whole."""
    src, dst = hubs_of_cliques([9] * 3 + [4] * 40, 150)
    snapshot = snapshot_of(device, src, dst)
    scored: list[int] = []
    whole = Scorer._scored

    def noted(self: Scorer, owners: Array, labelled: bool) -> Any:
        scored.extend(() if labelled else to_host(owners).tolist())
        return whole(self, owners, labelled)

    monkeypatch.setattr(Scorer, "_scored", noted)
    refined, batches = absorb.refined, []

    def counted(*args: Any) -> Any:
        batches.append(len(args[1]))
        return refined(*args)

    monkeypatch.setattr(absorb, "refined", counted)
    monkeypatch.setattr(tools_of(device), "AT_ONCE", 3)
    best = top_diversity(snapshot, "truss", 4, 3, method="listing")
    assert [(v, score) for v, score, _ in best] == [(0, 10), (1, 10), (2, 10)]
    assert sum(batches) >= 43
    assert sorted(v for v in scored if v < 43) == [0, 1, 2]
