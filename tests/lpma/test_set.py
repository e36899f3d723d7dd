"""Setting an edge: a deletion and an insertion at one place in time, never cut apart. `Kind` says
what that comes to; the tests of streams, mixed batches, expiry, names and single operations hold
it against the model, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma import Batch, BatchError, Columns, Kind, Unchanged
from lpma.batch.columns import (
    OF_EDGES,
    UPDATES,
    WEIGHTED,
    edge_rows,
    last_update,
    query_rows,
    weighted_rows,
)
from tests.lpma.conftest import every_backend
from tests.support.oracles import ModelGraph, agree, assert_same, host
from tests.support.strategies import QUERIES, Config, batches, configs

ALL_KINDS = np.array(list(Kind), np.uint8)
CHANGED, NOT_POSITIVE = Unchanged(), Unchanged(not_positive=1)
UNDERFLOW = Unchanged(underflow=1)

# (the weight before, the weight that is set, the weight after, why nothing changed)
CASES: dict[Any, list[tuple[float | None, float, float | None, Unchanged]]] = {
    "float32": [
        (None, 2.5, 2.5, CHANGED), (7.0, 2.5, 2.5, CHANGED), (2.5, 2.5, 2.5, CHANGED),
        (7.0, 0.0, None, CHANGED), (7.0, -1.0, None, CHANGED), (7.0, 1e-60, None, CHANGED),
        (None, 0.0, None, NOT_POSITIVE), (None, -3.0, None, NOT_POSITIVE),
        (None, 1e-60, None, UNDERFLOW), (None, -1e-60, None, UNDERFLOW),
        (2.0**24, 1.0, 1.0, CHANGED), (0.5, 1e30, float(np.float32(1e30)), CHANGED),
    ],
    "float64": [(None, 1e-60, 1e-60, CHANGED), (7.0, 0.1, 0.1, CHANGED),
                (7.0, -1.0, None, CHANGED), (None, -1e-60, None, NOT_POSITIVE)],
    None: [(None, 2.5, 1.0, CHANGED), (1.0, 1e-60, 1.0, CHANGED), (1.0, 0.0, None, CHANGED),
           (1.0, -2.0, None, CHANGED), (None, 0.0, None, NOT_POSITIVE),
           (None, -2.0, None, NOT_POSITIVE)],
}  # fmt: skip


def set_one(g: Any, way: str, weight: float) -> None:
    """Set (1, 2) at time 9."""
    if way == "scalars":
        g.set(1, 2, weight, 9)
    elif way == "arrays":
        g.set(np.array([1]), np.array([2]), np.array([weight]), np.array([9]))
    elif way == "batch":
        batch = Batch()
        batch.set(1, 2, weight, 9)
        g.apply(batch)
    elif way == "columns":
        g.apply(Batch.from_columns(Kind.SET, [1], [2], weight, 9))
    else:
        batch = Batch()
        batch.set(1, 2, weight, 9)
        batch.edge(1, 2)
        batch.insert(4, 4, time=9)
        g.apply(batch)


@every_backend
@pytest.mark.parametrize("way", ["scalars", "arrays", "batch", "columns", "mixed"])
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("dtype", CASES)
def test_what_it_comes_to(device: str, dtype: str | None, directed: bool, way: str) -> None:
    for before, weight, after, why in CASES[dtype]:
        g = lpma.Graph(directed, predecessors=directed, weight_dtype=dtype, device=device)
        g.insert([3, 3], [1, 2], time=1)
        if before is not None:
            g.insert(1, 2, before, 1)
        set_one(g, way, weight)
        edge, back = g.edge(1, 2), g.predecessors(2).ids.tolist()
        assert (edge is None) == (after is None)
        assert (1 in back) == (after is not None)
        if edge is not None:
            assert edge == lpma.Edge(None if dtype is None else after, 9)
        if not directed:
            assert g.edge(2, 1) == edge
        assert g.unchanged == why
        g.check()


@every_backend
@given(config=configs(times=True), stream=st.lists(batches(QUERIES[:2]), max_size=4))
def test_to_set_is_to_delete_and_to_insert(
    device: str, config: Config, stream: list[Columns]
) -> None:
    """Every answer, every change and what is stored, whatever else is in the batch."""
    one, two = config.graph(device), config.graph(device)
    for columns in stream:
        answers = one.apply(columns)
        sets = columns.kind == Kind.SET
        twice = columns.take(np.repeat(np.arange(len(columns)), 1 + sets))
        first = np.flatnonzero(twice.kind == Kind.SET)[::2]
        twice.kind[first], twice.kind[first + 1] = Kind.DELETE, Kind.INSERT
        expected = two.apply(twice)
        assert len(answers) == len(expected)
        for number in range(len(expected)):
            assert_same(host(answers.on_host()[number]), host(expected.on_host()[number]))
        assert_same(one.snapshot(compact=True), two.snapshot(compact=True))
        assert_same(one.changes(one.version - 1), two.changes(two.version - 1))


@every_backend
@pytest.mark.parametrize("weight", [None, "one", "positive", "any"])
@pytest.mark.parametrize("config", [
    Config(), Config(directed=False, segment_size=4), Config(weight_dtype=None, times=False),
    Config(predecessors=True, weight_dtype="float64"), Config(segment_size=2, global_merge="never"),
])  # fmt: skip
def test_batches_that_only_set(device: str, config: Config, weight: str | None) -> None:
    """Of all sizes: by one launch or call, by several, by threads; new edges, known ones, and some
    more than once. Where all weights are positive no one looks at what is stored."""
    rng = np.random.default_rng(5)
    g, model = config.graph(device), config.model()
    for n, span in ((3, 9), (400, 30), (20_000, 500), (9000, 200), (20, 500)):
        src, dst = rng.integers(0, span, (2, n))
        weights = {None: None, "one": 1.0, "positive": 0.25 + rng.integers(0, 40, n) / 4,
                   "any": rng.integers(-8, 40, n) / 4}[weight]  # fmt: skip
        for graph in (g, model):
            graph.set(src, dst, 1.0 if weights is None else weights, np.arange(n))
            graph.insert(src[: n // 3], dst[: n // 3], 0.5, 7)
    agree(g, model)
    assert g.unchanged == model.unchanged


@pytest.mark.parametrize("fractions", ["none", "set", "all"])
@pytest.mark.parametrize("size", [70, 300, 5000])
def test_a_hot_edge(fractions: str, size: int, device: str) -> None:
    """One key's run, folded by a whole block on a device: whole numbers side by side, fractions in
    order, even if only some of them are set."""
    rng = np.random.default_rng(size)
    for share in (0.02, 0.4, 1.0):
        kind = np.where(rng.random(size) < share, Kind.SET, Kind.INSERT)
        kind[rng.random(size) < 0.05] = Kind.DELETE
        weight = rng.integers(-3, 5, size).astype(float)
        others = {"none": np.zeros(size, bool), "set": kind == Kind.SET}.get(fractions, True)
        weight = np.where(others, rng.random(size) * 8 - 3, weight)
        for start in (None, 3.0, 2.0**24):
            g, model = lpma.Graph(device=device), ModelGraph()
            for graph in (g, model):
                if start is not None:
                    graph.insert(1, 2, start, 0)
                ends = np.ones(size, int), np.full(size, 2)
                graph.apply(Batch.from_columns(kind, *ends, weight, np.arange(size)))
            agree(g, model)
            assert g.unchanged == model.unchanged


def test_what_is_added_to_a_fraction_that_was_set_is_added_in_order(device: str) -> None:
    """The sums of the others are exact in any order, those with it are not."""
    n = 80
    weight = np.concatenate([[0.1], np.resize([65536.0, -65536.0], n)])
    kind = np.where(np.arange(n + 1), Kind.INSERT, Kind.SET)
    g, model = lpma.Graph(device=device), ModelGraph()
    for graph in (g, model):
        graph.insert(1, 2, 7.0, 0)
        ends = np.ones(n + 1, int), np.full(n + 1, 2)
        graph.apply(Batch.from_columns(kind, *ends, weight, np.arange(n + 1)))
    agree(g, model)
    assert model.state[1, 2][0] != np.float32(0.1)


def test_an_edge_that_stays_is_no_change(device: str) -> None:
    g = lpma.Graph(device=device)
    g.insert([1, 2, 3], [2, 3, 4], 5.0, 1)
    version = g.version
    g.set([1, 2, 7, 8], [2, 3, 8, 9], [1.0, 0.0, 2.0, -2.0], 2)
    changes = g.changes(version)
    assert changes is not None
    rows = zip(*(host(c).tolist() for c in (changes.src, changes.dst, changes.inserted)),
               strict=True)  # fmt: skip
    assert list(rows) == [(2, 3, False), (7, 8, True)]


@pytest.mark.parametrize("predecessors", [True, False])
@pytest.mark.parametrize("directed", [True, False])
def test_a_vertex_takes_along_what_was_set_by_then(
    device: str, directed: bool, predecessors: bool
) -> None:
    config = Config(directed=directed, predecessors=predecessors)
    g, model = config.graph(device), config.model()
    batch = Batch()
    for u, v in ((1, 2), (2, 1), (2, 2), (5, 2)):
        batch.set(u, v, 3.0, time=4)
    batch.remove_vertex(2, time=5)
    before = batch.vertex(2)
    batch.set(2, 6, 1.5, time=6)
    entered = batch.vertex(6)
    batch.set(1, 5, 2.5, time=6)
    after = batch.degree(2)
    answers = g.apply(batch)
    assert [host(answers[q])[0] for q in (before, entered, after)] == [False, True, 1]
    model.apply(batch)
    agree(g, model)


@pytest.mark.parametrize("way", ["one", "many", "in the batch"])
def test_what_is_set_expires_by_its_time(device: str, way: str) -> None:
    """The first expiry has noted which edges are old; a set brings others, and younger times."""
    g = lpma.Graph(device=device)
    n = 400
    g.insert(np.arange(n), np.arange(n) + 1, time=np.arange(n) + 1000)
    g.expire(1050)
    if way == "one":
        g.set(9000, 1, 2.0, 1100)
        g.set(100, 101, 2.0, 5000)
        g.expire(1200)
    elif way == "many":
        g.set([9000, 100], [1, 101], 2.0, [1100, 5000])
        g.expire(1200)
    else:
        batch = Batch()
        batch.set(9000, 1, 2.0, 1100)
        batch.set(100, 101, 2.0, 5000)
        batch.set(9001, 1, 2.0, 1150)
        batch.expire(1120)
        batch.set(9000, 2, 2.0, 1100)  # too old only for the next expiry
        batch.expire(1200)
        batch.set(9000, 3, 2.0, 1100)
        g.apply(batch)
        assert host(g.neighbors(9000)).tolist() == [3]
        g.expire(1200)
    assert [g.has_edge(u, v) for u, v in ((9000, 1), (9001, 1), (100, 101), (101, 102))] == [
        False, False, True, False,
    ]  # fmt: skip
    assert g.num_edges == n - 200 + 1
    g.check()


def test_names_are_given_as_by_an_insertion(device: str) -> None:
    g = lpma.Graph(names=True, device=device)
    g.set("ann", "bob", 2.0)
    g.set(["bob", "cid"], ["cid", "ann"], [1.0, 0.0])
    assert g.has_edge("bob", "cid")
    batch = Batch()
    batch.set("cid", "dan", 4.0)
    query = batch.edge("cid", "dan")
    answer: Any = g.apply(batch)[query]
    assert host(answer.weights).tolist() == [4.0]
    assert g.names is not None
    assert g.names.of([0, 1, 2, 3]).tolist() == ["ann", "bob", "cid", "dan"]
    assert g.num_edges == 3
    with pytest.raises(BatchError):
        g.set(["eve", "fay"], ["gil", "hal"], [1.0, np.nan])
    assert len(g.names) == 4


def test_device_arrays(device: str) -> None:
    xp: Any = np
    if device != "cpu":
        xp = pytest.importorskip("cupy")
    g, model = lpma.Graph(device=device), ModelGraph()
    for dtype in (np.float32, np.float64):
        src, dst = xp.arange(900) % 40, xp.arange(900) % 37
        weights, times = (xp.arange(900) % 9 - 1).astype(dtype) / 4, xp.arange(900)
        g.set(src, dst, weights, times)
        model.set(*map(host, (src, dst, weights, times)))
        g.apply(Batch.from_columns(Kind.SET, src[:5], dst[:5], weights[:5] + 1, times[:5]))
        model.set(*(host(c)[:5] for c in (src, dst, weights + 1, times)))
    agree(g, model)


def test_pinned_batches(device: str) -> None:
    g, model = lpma.Graph(device=device), ModelGraph()
    rng = np.random.default_rng(3)
    batch = lpma.pinned_batch(600)
    for kinds in ([Kind.SET], [Kind.SET, Kind.INSERT, Kind.DELETE], [Kind.SET, Kind.EDGE]):
        batch.kind[:] = rng.choice(kinds, 600)
        batch.src[:], batch.dst[:] = rng.integers(0, 25, (2, 600))
        assert batch.weight is not None
        assert batch.time is not None
        batch.weight[:], batch.time[:] = rng.integers(-4, 20, 600), np.arange(600)
        assert_same(g.apply(batch), model.apply(batch))
        agree(g, model)


REFUSED: dict[str, tuple[Any, ...]] = {
    "NaN": (1, 2, np.nan), "infinity": (1, 2, np.inf), "too large": (1, 2, 2e30),
    "a column": ([1, 2], [2, 3], [1.0, np.nan]), "text": (1, 2, "heavy"),
    "an id": (2**32 - 1, 2), "a negative id": (1, -1), "ids": ([1, 2], [2, 2**32 - 1]),
    "lengths": ([1, 2], [2, 3, 4]), "weights": ([1, 2], [2, 3], [1.0]),
    "a time": (1, 2, 1.0, "yesterday"), "large": (np.arange(5000), np.arange(5000),
                                                   np.r_[np.ones(4999), np.inf]),
}  # fmt: skip


@every_backend
@pytest.mark.parametrize("why", REFUSED)
def test_what_is_refused_changes_nothing(device: str, why: str) -> None:
    g = lpma.Graph(device=device)
    g.insert([1, 2], [2, 3], 4.0, 1)
    with pytest.raises(BatchError):
        g.set(*REFUSED[why])
    assert (g.version, g.num_edges, g.edge(1, 2)) == (1, 2, lpma.Edge(4.0, 1))
    assert g.unchanged == CHANGED


@pytest.mark.parametrize("others", [[], [Kind.EDGE], [Kind.EDGE, Kind.ADD_VERTEX]])
@pytest.mark.parametrize("n", [4, 5000])
def test_a_kind_that_there_is_not(device: str, n: int, others: list[Kind]) -> None:
    """12 is behind the last one; wherever it stands, and whoever finds it."""
    g = lpma.Graph(device=device)
    g.insert(np.arange(20_000), 2, 4.0, 1)  # so many that a device applies few rows in one launch
    batch = lpma.pinned_batch(n)
    batch.kind[:] = Kind.SET
    batch.kind[: len(others)] = others
    batch.kind[n // 2] = max(Kind) + 1
    with pytest.raises(BatchError, match="from 0 to 11"):
        g.apply(batch)
    with pytest.raises(BatchError, match="from 0 to 11"):
        Batch.from_columns(batch.kind, batch.src, batch.dst)
    assert (g.version, g.num_edges) == (1, 20_000)
    batch.kind[n // 2] = Kind.SET
    batch.weight[n // 2] = np.nan  # type: ignore[index]
    with pytest.raises(BatchError, match="weight"):
        g.apply(batch)
    assert (g.version, g.num_edges) == (1, 20_000)


def test_what_kinds_have_in_common() -> None:
    """The functions of columns say what the lists of kinds say."""
    for rows, kinds in (
        (query_rows, QUERIES), (edge_rows, OF_EDGES), (weighted_rows, WEIGHTED)
    ):  # fmt: skip
        assert ALL_KINDS[rows(ALL_KINDS)].tolist() == sorted(kinds)
    assert sorted([*UPDATES, *QUERIES]) == ALL_KINDS.tolist()


@given(st.lists(st.sampled_from(list(Kind)), max_size=6))
def test_what_columns_know_of_their_kinds(kinds: list[Kind]) -> None:
    n = len(kinds)
    columns = Columns(np.array(kinds, np.uint8), np.zeros(n, np.uint32), np.ones(n, np.uint32),
                      None, np.zeros(n, np.int64))  # fmt: skip
    assert columns.edges_only == all(kind in OF_EDGES for kind in kinds)
    assert columns.num_queries == sum(kind in QUERIES for kind in kinds)
    assert columns.one_kind == (None if len(set(kinds)) > 1 else kinds[0] if kinds else 0)
    own_keys = not {Kind.EXPIRE, Kind.REMOVE_VERTEX} & set(kinds)
    assert columns.names_its_keys == own_keys
    for stamped in (False, True):
        updates = [row for row, kind in enumerate(kinds)
                   if kind in UPDATES and not (stamped and kind == Kind.EXPIRE)]  # fmt: skip
        assert last_update(columns.kind, stamped) == max(updates, default=-1)
