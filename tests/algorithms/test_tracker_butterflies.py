"""The butterfly count of a Tracker after every batch: against pairs of rows on graphs that a state
machine grows and tears, and against counting anew on larger ones."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
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

import lpma
from algorithms import Tracker, count_bicliques
from algorithms.tracker.butterflies import ButterflyCount
from ingest.datasets import generators

# Of ids, those whose sum of digits is even are left: both sides are new among the old ones.
LEFT = [v for v in range(24) if sum(map(int, str(v))) % 2 == 0]
RIGHT = [v for v in range(24) if v not in LEFT]
edges = st.tuples(st.sampled_from(LEFT), st.sampled_from(RIGHT))


@pytest.fixture(params=["update", "as it is"])
def policy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Update always, or by the rule, which recounts a small graph."""
    if request.param == "update":
        monkeypatch.setattr(ButterflyCount, "PER_EDGE", {"cpu": 0, "cuda": 0})
    return str(request.param)


class Stream(RuleBasedStateMachine):
    device = "cpu"

    @initialize(directed=st.booleans())
    def start(self, directed: bool) -> None:
        self.graph = lpma.Graph(device=self.device, directed=directed)
        self.tracker = Tracker(self.graph, ["butterflies", "components"])
        self.rows: dict[int, set[int]] = {u: set() for u in LEFT}

    def _apply(self, inserted: set[tuple[int, int]], deleted: set[tuple[int, int]]) -> None:
        """In one batch. A directed edge is inserted in one direction or in both."""
        batch = lpma.Batch()
        for u, v in sorted(inserted):
            for s, t in ((u, v), (v, u))[u % 2 : 1 + v % 3]:
                batch.insert(s, t)
                self.rows[u].add(v)
        for u, v in sorted(deleted):
            batch.delete(u, v)
            batch.delete(v, u)
            self.rows[u].discard(v)
        self.graph.apply(batch)

    @rule(inserted=st.sets(edges, max_size=12), deleted=st.sets(edges, max_size=6))
    def change(self, inserted: set[tuple[int, int]], deleted: set[tuple[int, int]]) -> None:
        self._apply(inserted - deleted, deleted)

    @rule(us=st.sets(st.sampled_from(LEFT), max_size=5), vs=st.sets(st.sampled_from(RIGHT)))
    def insert_biclique(self, us: set[int], vs: set[int]) -> None:
        self._apply({(u, v) for u in us for v in vs}, set())

    @rule(data=st.data())
    def delete_what_is_there(self, data: st.DataObject) -> None:
        there = sorted((u, v) for u, row in self.rows.items() for v in row)
        if there:
            self._apply(set(), data.draw(st.sets(st.sampled_from(there), max_size=9)))

    @rule(v=st.sampled_from(LEFT + RIGHT))
    def remove_vertex(self, v: int) -> None:
        self.graph.remove_vertices(v)
        self.rows[v] = set() if v in self.rows else self.rows.get(v, set())
        if v in RIGHT:
            del self.rows[v]
            for row in self.rows.values():
                row.discard(v)

    @rule(odd=st.sampled_from([LEFT, RIGHT]))
    def close_an_odd_cycle(self, odd: list[int]) -> None:
        """An edge within a side is refused if there is a path between its ends, and only then."""
        u, v = odd[:2]
        components = self.tracker.components
        joined = max(u, v) < len(components) and components[u] == components[v] >= 0
        self.graph.insert(u, v)
        if joined:
            with pytest.raises(lpma.BatchError, match="odd cycle"):
                self.tracker.update()
        else:
            self.tracker.update()
        self.graph.delete(u, v)

    @invariant()
    def agrees(self) -> None:
        self.tracker.update()
        pairs = combinations(self.rows.values(), 2)
        assert self.tracker.butterfly_count == sum(comb(len(a & b), 2) for a, b in pairs)


def test_after_every_batch(device: str, policy: str) -> None:
    machine = type("StreamHere", (Stream,), {"device": device})
    run_state_machine_as_test(machine, settings=settings(max_examples=25, stateful_step_count=12))


def test_larger_streams(device: str, policy: str) -> None:
    """Batches of a hundred and of thousands, insertions and deletions mixed, hubs on both sides."""
    src, dst = (ends.astype(np.int64) for ends in generators.rmat(11, 40_000, seed=2))
    dst += 1 << 11
    rng = np.random.default_rng(3)
    g = lpma.Graph(device=device, weight_dtype=None, times=False)
    tracker = Tracker(g, ["butterflies"])
    done, ways = 0, set()
    for size in (20_000, 100, 5_000, 100, 1, 100, 14_000):
        g.insert(src[done : done + size], dst[done : done + size])
        done += size
        gone = rng.integers(0, done, size // 3)
        g.delete(src[gone], dst[gone])
        ways.add(tracker.update()["butterflies"].how)
        assert tracker.butterfly_count == count_bicliques(g.snapshot(), 2, 2, left=1 << 11)
    assert "updated" in ways
    assert tracker.butterfly_count > 1000


def test_what_is_not_tracked_is_told() -> None:
    tracker = Tracker(lpma.Graph(device="cpu"), ["core"])
    with pytest.raises(lpma.BatchError, match="'butterflies' is not tracked"):
        _ = tracker.butterfly_count
