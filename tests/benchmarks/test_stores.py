"""What stores are compared by: keys, streams, the model, and that each store keeps a set."""

from __future__ import annotations

import numpy as np
import pytest

import lpma
from benchmarks import workloads
from benchmarks.keys import Array, csr_keys, distinct, ends_of, keys_of, ragged_ranges
from benchmarks.model import Fingerprint, Model
from benchmarks.report import Setting
from benchmarks.stopwatch import WrongAnswer
from benchmarks.stores import peers
from benchmarks.stores.base import Lpma, Store
from benchmarks.stores.sets import sets
from benchmarks.stores.windows import windows

STORES: list[type[Store]] = [Lpma, *peers.available()]


def edges(*pairs: tuple[int, int]) -> tuple[Array, Array]:
    src, dst = np.array(pairs, np.uint32).T
    return src, dst


def test_keys_and_ends_are_inverse() -> None:
    src, dst = edges((0, 2**32 - 2), (7, 0), (2**32 - 2, 5))
    assert [a.tolist() for a in ends_of(keys_of(src, dst))] == [src.tolist(), dst.tolist()]
    assert distinct(np.array([3, 1, 3, 2], np.uint64)).tolist() == [1, 2, 3]
    assert len(distinct(np.empty(0, np.uint64))) == 0


def test_ragged_ranges() -> None:
    indptr, place = ragged_ranges(np.array([4, 9, 2]), np.array([6, 9, 5]))
    assert indptr.tolist() == [0, 2, 2, 5]
    assert place.tolist() == [4, 5, 2, 3, 4]


def test_model_follows_a_set() -> None:
    rng = np.random.default_rng(1)
    known = {(1, 2), (3, 4)}
    model = Model(*edges(*known))
    for i in range(30):
        batch = [(int(u), int(v)) for u, v in rng.integers(0, 6, (7, 2))]
        if i % 2:
            known -= set(batch)
            found = model.delete(*edges(*batch))
        else:
            known |= set(batch)
            found = model.insert(*edges(*batch))
        keys = np.array(sorted(u << 32 | v for u, v in known), np.uint64)
        assert model.keys.tolist() == keys.tolist()
        assert found == Fingerprint.of(keys)
    assert model.holds(keys_of(*edges(*known))).all()
    assert not model.holds(keys_of(*edges((9, 9)))).any()


@pytest.mark.parametrize("make", STORES, ids=lambda make: make.__name__)
def test_every_store_keeps_the_set(make: type[Store]) -> None:
    workload = workloads.rmat(8, 600, 900)
    model, store = Model(*workload.base()), make()
    store.load(*workload.base(), workload.n)
    for batch in (workload.stream(0, 700), workload.stream(300, 600)):  # half of it again
        store.insert(store.prepare(*batch))
        store.verify(model.insert(*batch))
    gone = workload.stream(100, 300)
    for _ in range(2):  # the second time they are absent
        store.delete(store.prepare(*gone))
        store.verify(model.delete(*gone))
    asked = workload.stream(0, 800)
    assert np.array_equal(store.has_edges(store.prepare(*asked)), model.holds(keys_of(*asked)))
    u = np.arange(0, workload.n, 3)
    indptr, ids = store.successors(u)
    degree: Array = np.diff(np.asarray(indptr, np.int64))
    mine = keys_of(np.repeat(u, degree), np.asarray(ids))
    there = model.keys[np.isin(ends_of(model.keys)[0], u)]
    assert np.sort(mine).tolist() == there.tolist()
    assert csr_keys(*store.to_csr()).tolist() == model.keys.tolist()


def test_a_wrong_store_is_caught() -> None:
    store = Lpma()
    store.load(*edges((0, 1), (1, 2)), 3)
    store.verify(Model(*edges((0, 1), (1, 2))).fingerprint)
    for wrong in (edges((0, 1)), edges((0, 1), (2, 1)), edges((0, 1), (1, 2), (2, 2))):
        with pytest.raises(WrongAnswer, match="expected"):
            store.verify(Model(*wrong).fingerprint)


def test_streams_hold_every_edge_once() -> None:
    for workload in (workloads.rmat(7, 300, 200), workloads.uniform(7, 300, 200)):
        keys = keys_of(workload.src, workload.dst)
        assert len(np.unique(keys)) == len(keys) == 500
        assert workload.streamed == 200
        assert workload.n <= 128
    grid = workloads.grid(5)
    known = set(zip(grid.src.tolist(), grid.dst.tolist(), strict=True))
    assert len(known) == 2 * 2 * 5 * 4
    assert all((v, u) in known for u, v in known)


def test_sets_beside_insertions(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = sets(Setting(quick=True)).rows
    assert [(row["edges"], row["batch"]) for row in rows] == [("new", 1000), ("known", 1000)]
    assert all(row["insert"] > 0 < row["set"] for row in rows)
    monkeypatch.setattr(lpma.Graph, "set", lpma.Graph.insert)  # adds to what is known
    with pytest.raises(WrongAnswer, match="another weight"):
        sets(Setting(quick=True))


def test_sliding_windows() -> None:
    (row,) = windows(Setting(quick=True)).rows
    assert (row["window"], row["batch"]) == (2000, 40)
    assert row["told"] > 0 < row["expire"]
    assert row["scipy"] > 0
