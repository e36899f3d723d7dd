"""The Tracker after every batch: against NetworkX and igraph on graphs that a state machine grows
and tears, against recomputation on larger ones, by updating and by recomputing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

import algorithms
import lpma
from algorithms import Tracker
from algorithms.tracker import Update
from algorithms.tracker import components as components_module
from algorithms.tracker import core as core_module
from algorithms.tracker.triangles import TriangleCount
from ingest.datasets import generators
from lpma import Batch, Kind
from lpma.store.history import History
from tests.algorithms.test_components import components_networkx
from tests.conftest import real_graph
from tests.support.oracles import ModelGraph, assert_same, host
from tests.support.peers import core_numbers_networkx, triangles_igraph

Array = npt.NDArray[Any]

ALL = ["core", "triangles", "components"]
NEVER, ALWAYS = 1 << 40, 0  # recompute, where an edge changed costs so many


@contextmanager
def costs(policy: str) -> Iterator[None]:
    """Make the rules always update, or always recompute, or leave them as they are."""
    kept = (
        TriangleCount.PER_EDGE, components_module.PER_EDGE, core_module.SHARE, core_module.LEAST
    )  # fmt: skip
    if policy != "as it is":
        per_edge = ALWAYS if policy == "update" else NEVER
        TriangleCount.PER_EDGE = dict.fromkeys(TriangleCount.PER_EDGE, per_edge)
        components_module.PER_EDGE = per_edge
        core_module.SHARE = dict.fromkeys(core_module.SHARE, 0.0)
        core_module.LEAST = 1 << 50 if policy == "update" else -1
    try:
        yield
    finally:
        (
            TriangleCount.PER_EDGE, components_module.PER_EDGE,
            core_module.SHARE, core_module.LEAST,
        ) = kept  # fmt: skip


# Small graphs, after every step -----------------------------------------------------------------

vertices = st.integers(0, 13)
pairs = st.lists(st.tuples(vertices, vertices), min_size=1, max_size=12)


class Stream(RuleBasedStateMachine):
    """A graph, a model of it, and a tracker that is updated after some steps."""

    device = "cpu"

    @initialize(
        directed=st.booleans(),
        policy=st.sampled_from(["update", "update", "recompute", "as it is"]),
        remembered=st.sampled_from([6, 1 << 19]),
    )
    def start(self, directed: bool, policy: str, remembered: int) -> None:
        self.policy = policy
        self.graph = lpma.Graph(device=self.device, directed=directed)
        self.graph._stores.history = History(remembered)
        self.model = ModelGraph(directed)
        self.tracker = Tracker(self.graph, ALL)
        self.handed_out: list[tuple[Any, Array]] = []

    def apply(self, change: Any) -> None:
        for g in (self.graph, self.model):
            change(g)

    @rule(edges=pairs)
    def insert(self, edges: list[tuple[int, int]]) -> None:
        src, dst = map(list, zip(*edges, strict=True))
        self.apply(lambda g: g.insert(src, dst, 1.0, 0))

    @rule(edges=pairs, there=st.booleans())
    def set_edges(self, edges: list[tuple[int, int]], there: bool) -> None:
        src, dst = map(list, zip(*edges, strict=True))
        self.apply(lambda g: g.set(src, dst, 2.0 if there else 0.0, 0))

    @rule(edges=pairs)
    def delete(self, edges: list[tuple[int, int]]) -> None:
        src, dst = map(list, zip(*edges, strict=True))
        self.apply(lambda g: g.delete(src, dst, 0))

    @rule(data=st.data())
    def delete_what_is_there(self, data: st.DataObject) -> None:
        there = sorted(self.model.state)
        if there:
            edges = data.draw(st.lists(st.sampled_from(there), min_size=1, max_size=8))
            self.apply(lambda g: g.delete(*map(list, zip(*edges, strict=True)), 0))

    @rule(members=st.sets(vertices, min_size=2, max_size=9))
    def insert_clique(self, members: set[int]) -> None:
        src, dst = zip(*[(u, v) for u in members for v in members if u < v], strict=True)
        self.apply(lambda g: g.insert(list(src), list(dst), 1.0, 0))

    @rule(center=vertices, far=st.integers(14, 40))
    def insert_star(self, center: int, far: int) -> None:
        self.apply(lambda g: g.insert([center] * far, list(range(far)), 1.0, 0))

    @rule(v=st.lists(st.integers(0, 45), min_size=1, max_size=3))
    def add_vertices(self, v: list[int]) -> None:
        self.apply(lambda g: g.add_vertices(v, 0))

    @rule(edges=pairs, before=st.integers(0, 3))
    def expire(self, edges: list[tuple[int, int]], before: int) -> None:
        src, dst = map(list, zip(*edges, strict=True))
        time = [number % 3 for number in range(len(src))]
        self.apply(lambda g: g.insert(src, dst, 1.0, time))
        self.apply(lambda g: g.expire(before))

    @rule(v=st.lists(st.integers(0, 45), min_size=1, max_size=3))
    def remove_vertices(self, v: list[int]) -> None:
        self.apply(lambda g: g.remove_vertices(v, 0))

    @rule(
        rows=st.lists(
            st.tuples(
                st.sampled_from(
                    [Kind.INSERT, Kind.INSERT, Kind.DELETE, Kind.REMOVE_VERTEX, Kind.DEGREE]
                ),
                vertices,
                vertices,
            ),
            min_size=1,
            max_size=25,
        )
    )
    def mixed(self, rows: list[tuple[Kind, int, int]]) -> None:
        kind, src, dst = (np.array(column, np.int64) for column in zip(*rows, strict=True))
        columns = Batch.from_columns(
            kind.astype(np.uint8),
            src,
            dst,
            np.ones(len(kind), np.float32),
            np.zeros(len(kind), np.int64),
        )
        self.apply(lambda g: g.apply(columns))

    @rule()
    def update(self) -> None:
        since = self.tracker.version
        known = self.graph.changes(since) is not None
        with costs(self.policy):
            record = self.tracker.update()
        check(record, self.policy, known)
        assert record.version == self.tracker.version == self.graph.version
        expected = figures_of(self.model)
        assert_same(
            (self.tracker.core_numbers, self.tracker.triangle_count, self.tracker.components),
            expected,
        )
        order_holds(self.tracker)
        self.handed_out.append((self.tracker.core_numbers, expected[0]))
        self.handed_out.append((self.tracker.components, expected[2]))

    @invariant()
    def what_was_handed_out_does_not_change(self) -> None:
        for array, expected in getattr(self, "handed_out", [])[-4:]:
            assert_same(array, expected)


def check(record: Update, policy: str, known: bool) -> None:
    """The record agrees with what the policy must have done."""
    how = {figure.name: figure.how for figure in record.figures}
    assert list(how) == ALL
    assert record["core"].how == how["core"]
    if not known:
        assert record.inserted is record.deleted is None
        assert set(how.values()) == {"recomputed"}
        return
    assert record.inserted is not None
    assert record.deleted is not None
    if record.inserted + record.deleted == 0:
        assert "recomputed" not in how.values() or policy == "recompute"
    elif policy == "update":
        assert how["core"] == how["triangles"] == "updated"
    elif policy == "recompute":
        assert how["triangles"] == "recomputed"
    if record.deleted and policy == "recompute":
        assert how["components"] == "recomputed"


def figures_of(model: ModelGraph) -> tuple[Array, int, Array]:
    n = model.num_rows
    arcs = np.array(list(model.state), np.int64).reshape(-1, 2)
    src, dst = arcs[:, 0], arcs[:, 1]
    return (
        core_numbers_networkx(n, src, dst),
        triangles_igraph(n, src, dst),
        components_networkx(n, src, dst, model.vertices()),
    )


def order_holds(tracker: Tracker) -> None:
    """Invariants 1 and 2 of `tracker.core`, and those of its lists, from counts made anew."""
    figure: Any = tracker._figures["core"]
    if figure._held is None:
        return
    numbers, layer, after, support = (host(a).tolist() for a in (figure.value, *figure._held))
    assert tracker._rows is not None
    indptr, indices = host(tracker._rows.indptr), host(tracker._rows.indices)
    key = [(numbers[u], layer[u], u) for u in range(len(numbers))]
    assert all(figure._front < layer[u] < figure._back for u in range(len(numbers)))
    for u in range(len(numbers)):
        row = indices[indptr[u] : indptr[u + 1]].tolist()
        assert after[u] == sum(key[w] > key[u] for w in row) <= numbers[u]
        assert support[u] == sum(numbers[w] >= numbers[u] for w in row) >= numbers[u]
        if figure._lists is not None:  # 3 and 4 of core/cpu.py
            start, near = int(figure._lists.starts[u]), int(figure._lists.near[u])
            listed = figure._lists.entries[start : start + support[u]].tolist()
            assert sorted(listed) == [w for w in row if numbers[w] >= numbers[u]]
            assert all(numbers[w] > numbers[u] for w in listed[near:])
            assert near <= support[u]
    if figure._lists is not None:
        assert not figure._lists.marks.any()


def test_streams(device: str) -> None:
    machine = type("StreamOnDevice", (Stream,), {"device": device})
    run_state_machine_as_test(machine, settings=settings(settings.default, stateful_step_count=30))


# Larger graphs ----------------------------------------------------------------------------------


def same_as_recomputed(tracker: Tracker, g: lpma.Graph) -> None:
    s = g.snapshot()
    assert tracker.version == s.version
    assert_same(tracker.core_numbers, algorithms.core_numbers(s), "core")
    assert_same(tracker.triangle_count, algorithms.triangle_count(s), "triangles")
    assert_same(tracker.components, algorithms.connected_components(s), "components")


def with_hubs(scale: int) -> tuple[Array, Array]:
    """RMAT, a star longer than any piece that rows are cut to, a clique, paths and pairs."""
    src, dst = generators.rmat(scale, 12 << scale, seed=4)
    n = 2 << scale
    u, v = np.triu_indices(90, 1)
    path = np.arange(n, n + 3000)
    parts = [
        (src, dst),
        (np.full(n, 5), np.arange(n)),
        (np.full(n, 6), np.arange(n)),
        (7 * u, 7 * v),
        (path[:-1], path[1:]),
        (path[::2] + 3000, path[::2] + 3001),
    ]
    columns = (np.concatenate([p[i] for p in parts]) for i in (0, 1))
    order = np.random.default_rng(0).permutation(sum(len(p[0]) for p in parts))
    return tuple(column[order].astype(np.uint32) for column in columns)  # type: ignore[return-value]


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("policy", ["update", "as it is"])
def test_larger_graphs(device: str, directed: bool, policy: str) -> None:
    src, dst = with_hubs(12)
    rng = np.random.default_rng(1)
    g = lpma.Graph(device=device, directed=directed, weight_dtype=None, times=False)
    half = len(src) // 2
    g.insert(src[:half], dst[:half])
    tracker = Tracker(g, ALL)
    at = half
    with costs(policy):
        for size in (1, 3, 40, 500, 4000, 9000):
            gone = rng.integers(0, at, size // 2)
            g.insert(src[at : at + size], dst[at : at + size])
            g.delete(src[gone], dst[gone])
            at += size
            record = tracker.update()
            assert policy != "update" or record["core"].how == "updated"
            same_as_recomputed(tracker, g)
        g.remove_vertices([5, 7])  # a hub and a member of the clique
        tracker.update()
        same_as_recomputed(tracker, g)
        g.insert(dst[at:], src[at:])
        g.insert([3 << 12], [5])
        tracker.update()
        same_as_recomputed(tracker, g)


@pytest.mark.parametrize("policy", ["update", "as it is"])
def test_a_grid_falls_and_rises(device: str, policy: str) -> None:
    """Long paths for every search: in a torus all core numbers are 4 until one edge is deleted."""
    side = 60
    v = np.arange(side * side)
    right = v // side * side + (v + 1) % side
    down = (v + side) % (side * side)
    g = lpma.Graph(device=device, directed=False)
    g.insert(np.concatenate((v, v)), np.concatenate((right, down)))
    tracker = Tracker(g, ALL)
    assert set(host(tracker.core_numbers).tolist()) == {4}
    with costs(policy):
        g.delete(0, 1)
        record = tracker.update()
        same_as_recomputed(tracker, g)
        assert (record.inserted, record.deleted) == (0, 1)
        assert int(tracker.core_numbers.max()) == 3
        g.insert(0, 1)
        tracker.update()
        same_as_recomputed(tracker, g)
        g.insert(v[:200], v[:200] + 2 * side)
        tracker.update()
        same_as_recomputed(tracker, g)


def test_batches_that_gave_up_are_not_tried_at_once(device: str) -> None:
    g = lpma.Graph(device=device)
    tracker = Tracker(g, "core")

    def insert(at: int, size: int) -> str:
        g.insert(np.arange(at, at + size), np.arange(at + 1, at + size + 1))
        how = tracker.update()["core"].how
        assert_same(tracker.core_numbers, algorithms.core_numbers(g.snapshot()))
        return how

    with costs("recompute"):
        assert insert(0, 100) == "recomputed"
    with costs("update"):
        assert insert(1000, 74) == "updated"
        hows = [insert(2000 + 200 * i, 80) for i in range(core_module.PATIENCE + 1)]
    assert hows == ["recomputed"] * core_module.PATIENCE + ["updated"]


def test_cliques_rise_by_many_levels(device: str) -> None:
    """One batch makes a clique of isolated vertices, and one unmakes it."""
    u, v = np.triu_indices(120, 1)
    g = lpma.Graph(device=device)
    g.insert([0, 500], [1, 501])
    tracker = Tracker(g, ALL)
    with costs("update"):
        g.insert(u, v)
        assert tracker.update()["core"].how == "updated"
        same_as_recomputed(tracker, g)
        assert int(tracker.core_numbers.max()) == 119
        g.delete(u[::2], v[::2])
        tracker.update()
        same_as_recomputed(tracker, g)


@pytest.mark.parametrize(
    "name, triangles, core",
    [("wiki-Vote", 608_389, 53), ("facebook-combined", 1_612_010, 115)],
)
def test_known_answers(device: str, name: str, triangles: int, core: int) -> None:
    columns = real_graph(name)
    order = np.random.default_rng(2).permutation(len(columns["src"]))
    src, dst = columns["src"][order], columns["dst"][order]
    g = lpma.Graph(device=device)
    tracker = Tracker(g, ALL)
    with costs("update"):
        for part in np.array_split(np.arange(len(src)), 6):
            g.insert(src[part], dst[part])
            tracker.update()
        assert tracker.triangle_count == triangles
        assert int(tracker.core_numbers.max()) == core
        g.delete(src[::3], dst[::3])
        tracker.update()
        same_as_recomputed(tracker, g)


# The face ---------------------------------------------------------------------------------------


def test_by_hand(device: str) -> None:
    g = lpma.Graph(device=device)
    g.insert([0, 1, 2, 3], [1, 2, 0, 4])
    tracker = Tracker(g, ALL)
    assert (tracker.version, tracker.triangle_count) == (1, 1)
    assert host(tracker.core_numbers).tolist() == [2, 2, 2, 1, 1]
    assert host(tracker.components).tolist() == [0, 0, 0, 3, 3]
    g.insert([1, 2, 7], [0, 3, 7])  # a second direction, a bridge, a loop
    g.delete(0, 1)  # the first direction
    assert host(tracker.components).tolist() == [0, 0, 0, 3, 3]
    with costs("update"):
        record = tracker.update()
        assert (record.version, record.inserted, record.deleted) == (3, 1, 0)
        assert [figure.how for figure in record.figures] == ["updated"] * 3
        assert host(tracker.core_numbers).tolist() == [2, 2, 2, 1, 1, 0, 0, 0]
        assert host(tracker.components).tolist() == [0, 0, 0, 0, 0, -1, -1, 7]
        g.delete([1, 4], [0, 3])
        record = tracker.update()
        assert (record.inserted, record.deleted) == (0, 1)
        assert tracker.triangle_count == 0
        assert [figure.how for figure in tracker.update().figures] == ["unchanged"] * 3
    assert record.seconds >= record.rows_seconds > 0
    with pytest.raises(FrozenInstanceError):
        record.version = 7  # type: ignore[misc]
    with pytest.raises(KeyError):
        record["butter"]


def test_an_empty_graph(device: str) -> None:
    g = lpma.Graph(device=device)
    tracker = Tracker(g, ALL)
    assert len(tracker.core_numbers) == len(tracker.components) == tracker.triangle_count == 0
    g.add_vertices(3)
    tracker.update()
    assert host(tracker.components).tolist() == [-1, -1, -1, 3]
    g.insert(1, 1)  # a loop is an edge, which the simple rows leave out
    g.add_vertices(0)
    record = tracker.update()
    assert record["components"].how == "updated"
    assert host(tracker.components).tolist() == [0, 1, -1, 3]
    g.remove_vertices([0, 1])
    tracker.update()
    assert host(tracker.components).tolist() == [-1, -1, -1, 3]
    g.add_vertices(3)  # it is there already
    assert tracker.update()["components"].how == "unchanged"
    g.remove_vertices(3)
    tracker.update()
    assert len(tracker.core_numbers) == len(tracker.components) == 0


@pytest.mark.parametrize("figures", [[], ["cores"], ["core", "x"], "triangle"])
def test_unknown_figures_are_refused(figures: Any) -> None:
    with pytest.raises(lpma.BatchError, match=r"figures: .* triangles,"):
        Tracker(lpma.Graph(device="cpu"), figures)


def test_what_is_not_tracked_is_refused(device: str) -> None:
    tracker = Tracker(lpma.Graph(device=device), "triangles")
    assert tracker.triangle_count == 0
    with pytest.raises(lpma.BatchError, match="'core' is not tracked"):
        _ = tracker.core_numbers


def test_after_an_error_the_next_update_starts_over(device: str) -> None:
    g = lpma.Graph(device=device)
    g.insert([0, 1], [1, 2])
    tracker = Tracker(g, ALL)
    g.insert([2, 2**32 - 2], [0, 0])
    with pytest.raises(lpma.SnapshotTooLarge):
        tracker.update()
    assert tracker.version == 1
    assert host(tracker.core_numbers).tolist() == [1, 1, 1]
    g.remove_vertices(2**32 - 2)
    assert tracker.update().inserted is None
    same_as_recomputed(tracker, g)


def test_a_writer_beside(device: str) -> None:
    """Each update is of one version, whatever other threads apply meanwhile."""
    src, dst = generators.rmat(9, 40_000, seed=5)
    g = lpma.Graph(device=device)
    tracker = Tracker(g, ALL)

    def write() -> None:
        for part in np.array_split(np.arange(len(src)), 150):
            g.insert(src[part], dst[part])
            g.delete(src[part[::2]], dst[part[::2]])

    thread = threading.Thread(target=write)
    thread.start()
    versions = []
    while thread.is_alive():
        versions.append(tracker.update().version)
    thread.join()
    tracker.update()
    assert versions == sorted(versions)
    same_as_recomputed(tracker, g)


@pytest.mark.parametrize("directed", [True, False])
def test_a_sliding_window_is_followed(device: str, directed: bool) -> None:
    rng = np.random.default_rng(8)
    g = lpma.Graph(device=device, directed=directed)
    tracker = Tracker(g, ALL)
    for now in range(0, 400, 40):
        g.insert(rng.integers(0, 40, 60), rng.integers(0, 40, 60), time=np.arange(60) + now)
        g.expire(now - 60)
        record = tracker.update()
        assert record.inserted is not None  # by what changed, not anew
        same_as_recomputed(tracker, g)
