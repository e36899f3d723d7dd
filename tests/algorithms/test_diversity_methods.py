"""How the methods of structural diversity work: the choice of "auto", and where owners go."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from algorithms import diversity, top_diversity
from algorithms.arrays import ranges_within
from algorithms.diversity.methods import METHODS
from algorithms.diversity.model import MODELS
from algorithms.triangles.ranked import lister
from algorithms.views.simple import simple
from ingest.datasets import generators
from lpma.arrays import to_host
from tests.algorithms.test_diversity import as_lists, caveman, strip
from tests.algorithms.test_truss import snapshot_of
from tests.support.graph_forms import inputs

Array = npt.NDArray[Any]


def test_owners_that_are_too_large(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ego networks whose matrix has no room go through the algorithms for graphs."""
    src, dst = generators.rmat(9, 5_000, seed=6)
    snapshot = snapshot_of(device, src, dst)
    for model in MODELS:
        scorer: Any = METHODS["listing"](snapshot, model, 3)
        owners = np.argsort(-np.diff(to_host(snapshot.indptr)), kind="stable")[:60]
        scores, contexts = scorer.scores(owners), scorer.contexts(owners)
        monkeypatch.setattr(scorer._device, "largest_row", lambda _: 20)
        assert int((scorer.egos.row_lengths(scorer.egos.rank_of[owners]) > 20).sum()) > 5
        assert (scorer.scores(owners) == scores).all()
        assert list(map(as_lists, scorer.contexts(owners))) == list(map(as_lists, contexts))
        monkeypatch.undo()


def test_the_method_that_is_faster(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = importlib.import_module("algorithms.diversity.methods")
    snapshot = snapshot_of(device, *caveman([5, 7], True)[1:])
    listing: Any = METHODS["listing"]
    small: Any = METHODS["extract"] if device == "cuda" else listing
    assert isinstance(rule.faster(snapshot, "truss", 4), small)
    for few in ("FEW_EDGES", "FEW_EGO_EDGES"):
        with monkeypatch.context() as patch:
            patch.setattr(rule, few, 1)
            assert isinstance(rule.faster(snapshot, "truss", 4), listing)


def pairs_around_a_hub(pairs: int) -> tuple[Array, Array]:
    """Triangles that share one vertex, the one of the largest id."""
    hub = 2 * pairs
    ends = np.arange(hub)
    return np.concatenate((ends[::2], ends)), np.concatenate((ends[1::2], np.full(hub, hub)))


def test_a_sparse_hub_is_extracted_on_the_cpu() -> None:
    """Where there are more than 32 words an ego edge, not at as many, and not in the component
    model. Of p pairs, p a multiple of 32, there are 3p ego edges, and 2p rows of p / 32 words at
    the hub, 2p rows of two entries with a word each."""
    rule = importlib.import_module("algorithms.diversity.methods")
    few, most = 32 * 46, 32 * 47
    for pairs, of_matrices in ((few, "listing"), (most, "extract")):
        words = 2 * pairs * (pairs // 32) + 4 * pairs
        assert (words > 32 * 3 * pairs) == (pairs == most)
        src, dst = pairs_around_a_hub(pairs)
        for form in inputs("cpu", 2 * pairs + 1, src, dst)[:3]:
            for model, k, method in (
                ("component", 2, "listing"), ("core", 1, of_matrices), ("truss", 2, of_matrices)
            ):  # fmt: skip
                scorer: Any = rule.faster(form, model, k)
                assert isinstance(scorer, METHODS[method])  # type: ignore[arg-type]
                scores = diversity(form, model, k)
                assert scores.tolist() == [1] * (2 * pairs) + [pairs]
                ((vertex, score, contexts),) = top_diversity(form, model, k, 1)
                assert (vertex, score) == (2 * pairs, pairs)
                assert as_lists(contexts) == [[2 * i, 2 * i + 1] for i in range(pairs)]
    # The cliques are too small for the model, so nothing is left to put into matrices.
    assert isinstance(rule.faster(form, "truss", 4), METHODS["listing"])  # type: ignore[arg-type]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pairs", [32, 32 * 47])  # "auto" takes either on the CPU
def test_triangles_are_listed_once(
    device: str, method: str, pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = snapshot_of(device, *pairs_around_a_hub(pairs))
    tools: Any = lister(simple(snapshot))
    support, calls = tools.support, []

    def counted(ranks: Any) -> Any:
        calls.append(ranks)
        return support(ranks)

    monkeypatch.setattr(tools, "support", counted)
    for number, model in enumerate(("core", "truss")):
        assert int(diversity(snapshot, model, 2 - (model == "core"), method).max()) == pairs
        assert len(calls) == number + 1


def test_parts_keep_to_their_budget() -> None:
    assert ranges_within(np.array([50, 20, 10, 3, 1]), 64) == [(0, 1), (1, 5)]
    assert ranges_within(np.array([70, 60, 4, 1, 1]), 64, 1) == [(1, 3), (3, 5)]
    assert ranges_within(np.array([90, 90]), 64) == [(0, 1), (1, 2)]
    assert ranges_within(np.array([], np.int64), 64) == []


@pytest.mark.gpu
def test_rooms_in_parts(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = importlib.import_module("algorithms.diversity.listing.cuda")
    src, dst = generators.rmat(12, 100_000, seed=7)
    snapshot = snapshot_of("cuda", src, dst)
    expected = [diversity(snapshot, model, 4, "listing") for model in MODELS]
    monkeypatch.setattr(tools, "ROOM_BYTES", 1 << 18)
    for model, scores in zip(MODELS, expected, strict=True):
        assert (diversity(snapshot, model, 4, "listing") == scores).all()


@pytest.mark.gpu
def test_owners_that_have_the_whole_device(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = importlib.import_module("algorithms.diversity.listing.cuda")
    src, dst = generators.rmat(12, 100_000, seed=7)
    _, *of_strip = strip(3000)
    for ends in ((src, dst), of_strip):
        snapshot = snapshot_of("cuda", *ends)
        monkeypatch.setattr(tools, "huge_owners", lambda length, model: 0)
        expected = [diversity(snapshot, model, 3, "listing") for model in MODELS]
        best = [top_diversity(snapshot, model, 3, 20, method="listing") for model in MODELS]
        monkeypatch.setattr(tools, "huge_owners", lambda length, model: len(length))
        for model, scores, winners in zip(MODELS, expected, best, strict=True):
            assert (diversity(snapshot, model, 3, "listing") == scores).all()
            found = top_diversity(snapshot, model, 3, 20, method="listing")
            assert [(v, s, as_lists(c)) for v, s, c in found] == [
                (v, s, as_lists(c)) for v, s, c in winners
            ]


@pytest.mark.gpu
def test_who_has_the_whole_device(cupy: Any) -> None:
    tools = importlib.import_module("algorithms.diversity.listing.cuda")
    equal = np.full(5000, 900)  # as many as fill the device several times over
    for model in MODELS:
        assert tools.huge_owners(equal, model) == 0
        assert tools.huge_owners(equal[:0], model) == 0
        assert tools.huge_owners(np.concatenate(([90_000], equal)), model) == 1
        assert tools.huge_owners(np.array([90_000, 80_000]), model) == 2
