"""What a shard refines after its first peeling, against counting anew, on both devices."""

from __future__ import annotations

import importlib
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.sharded.programs.cores import Refiner
from algorithms.sharded.programs.cores_cpu import COUNT
from algorithms.views.simple import View
from algorithms.views.simple_cpu import simple
from algorithms.views.transpose_cpu import transpose
from lpma.arrays import array_module, to_host
from tests.support.strategies import edge_lists

Array = npt.NDArray[Any]

cores_module = importlib.import_module("algorithms.sharded.programs.cores")


def csr(n: int, src: Array, dst: Array) -> tuple[Array, Array]:
    order = np.argsort(src, kind="stable")
    indptr = np.searchsorted(src[order], np.arange(n + 1)).astype(np.int64)
    return simple(indptr, dst[order].astype(np.uint32))


def refiner_on(device: str, view: View, estimate: Array) -> tuple[Refiner, Any]:
    """A refiner, and the estimates that it refines, on a device."""
    xp = importlib.import_module("cupy" if device == "cuda" else "numpy")
    there = xp.asarray(estimate)
    rows, holders = (
        View(*map(xp.asarray, one))
        for one in ((view.indptr, view.indices), transpose(view.indptr, view.indices))
    )
    return Refiner(rows, holders, there), there


def on(estimate: Any, *arrays: Array) -> tuple[Any, ...]:
    """The arrays where the estimates are."""
    return tuple(array_module(estimate).asarray(one) for one in arrays)


def refined(
    device: str, n: int, src: Array, dst: Array, is_owned: Array, others: list[Array]
) -> None:
    """Refine own rows while the estimates of the others fall, step by step."""
    indptr, indices = csr(n, src, dst)
    rows = np.flatnonzero(is_owned)
    own = np.concatenate([indices[indptr[v] : indptr[v + 1]] for v in rows] or [indices[:0]])
    starts = np.zeros(n + 1, np.int64)
    np.cumsum(np.where(is_owned, np.diff(indptr), 0), out=starts[1:])
    view = View(starts, own)
    refiner, estimate = refiner_on(device, view, np.diff(indptr).astype(np.int32))
    refiner.refine([])
    for fallen in others:
        ghosts = np.flatnonzero(~is_owned & (fallen < to_host(estimate))).astype(np.uint32)
        refiner.refine([on(estimate, ghosts, fallen[ghosts])])
        found = to_host(estimate)
        np.testing.assert_array_equal(found, settled(view, is_owned, found))
        if refiner.follower is None or device == "cuda":  # peeled anew, or without counts
            continue
        support, _, waits, state = refiner.follower.waiting
        assert not waits.any()
        assert state[COUNT] == 0
        for v in rows:  # invariant 1
            row = own[starts[v] : starts[v + 1]]
            assert support[v] == np.count_nonzero(found[row] >= found[v])


def settled(view: View, is_owned: Array, estimate: Array) -> Array:
    """The h-indices where they settle, from the degrees, others' estimates being as they are."""
    found = np.where(is_owned, np.diff(view.indptr), estimate).astype(np.int32)
    changed = True
    while changed:
        changed = False
        for v in np.flatnonzero(is_owned):
            row = found[view.indices[view.indptr[v] : view.indptr[v + 1]]]
            h = max((k for k in range(found[v] + 1) if np.count_nonzero(row >= k) >= k), default=0)
            changed |= h < found[v]
            found[v] = h
    return found


@pytest.mark.parametrize("few", [1 << 40, 4, 0], ids=["peels", "either", "refines"])
@given(graph=edge_lists(), data=st.data())
def test_refining(
    device: str, few: int, graph: tuple[int, Array, Array], data: st.DataObject
) -> None:
    n, src, dst = graph
    is_owned = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), np.bool_)
    fall = st.lists(st.integers(1, 9), min_size=n, max_size=n)  # 1: they have neighbours
    others = data.draw(st.lists(fall, min_size=1, max_size=3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cores_module, "FEW", few)
        refined(device, n, src, dst, is_owned, [np.array(one, np.int32) for one in others])


def test_many_changes_are_peeled_anew_and_few_are_followed(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 64
    src, dst = np.array(nx.complete_graph(n).edges).T
    indptr, indices = csr(n, src, dst)
    is_owned = np.arange(n) < n // 2
    starts = np.append(0, np.cumsum(np.where(is_owned, np.diff(indptr), 0)))
    view = View(starts, indices[: starts[-1]])
    refiner, estimate = refiner_on(device, view, np.diff(indptr).astype(np.int32))
    times: list[None] = []
    peel = refiner._peel
    monkeypatch.setattr(refiner, "_peel", lambda: times.append(peel()))
    refiner.refine([])
    half = np.arange(n // 2, n, dtype=np.uint32)
    for ghosts, fallen, expected in ((half, 50, 2), (half[:3], 40, 2), (half, 20, 2)):
        refiner.refine([on(estimate, ghosts, np.full(len(ghosts), fallen, np.int32))])
        found = to_host(estimate)
        np.testing.assert_array_equal(found, settled(view, is_owned, found))
        assert len(times) == expected  # once refined, never peeled again


def test_a_row_that_loses_much_at_once_waits_once(device: str) -> None:
    n = 64
    src, dst = np.array(nx.complete_graph(n).edges).T
    is_owned = np.arange(n) % 2 == 0
    refined(device, n, src, dst, is_owned, [np.full(n, k, np.int32) for k in (40, 20, 3)])


def test_a_hub_is_followed(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block refines a row of more than 1,024 entries."""
    monkeypatch.setattr(cores_module, "FEW", 0)
    n = 3000
    src, dst = np.array([*nx.star_graph(n - 1).edges, *nx.cycle_graph(n).edges]).T
    is_owned = np.arange(n) < n // 2
    refined(device, n, src, dst, is_owned, [np.full(n, k, np.int32) for k in (2, 1)])
