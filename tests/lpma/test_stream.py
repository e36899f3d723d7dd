"""Operation streams: a Hypothesis state machine drives a graph and the dictionary model side by
side, over all configurations. After every step the invariants of the store hold, and snapshot,
counts, version and answers are the model's. `make soak` runs 10 000 streams, and so does
`LPMA_HYPOTHESIS=long` on a device."""

from __future__ import annotations

import tempfile
from pathlib import Path

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
from lpma import Columns, Kind, Snapshot
from tests.lpma.conftest import every_backend
from tests.support.oracles import agree, assert_same
from tests.support.strategies import QUERIES, Burst, Config, batches, bursts, configs, ids

ROUND = 500


class Stream(RuleBasedStateMachine):
    device = "cpu"

    def __init__(self) -> None:
        super().__init__()
        self.held: list[tuple[Snapshot, Snapshot]] = []
        self.known_since = 0

    @initialize(config=configs())
    def open(self, config: Config) -> None:
        self.config = config
        self.g, self.model = config.graph(self.device), config.model()

    def run_batch(self, columns: Columns) -> None:
        answers = self.g.apply(columns)
        assert_same(answers, self.model.apply(columns), "answers")

    @rule(data=st.data())
    def drawn_batch(self, data: st.DataObject) -> None:
        self.run_batch(data.draw(batches(self.config.queries)))

    @rule(burst=bursts(), mixed=st.booleans())
    def burst(self, burst: Burst, mixed: bool) -> None:
        self.run_batch(burst.columns(self.config.queries if mixed else ()))

    @rule(quarters=st.lists(st.integers(-20, 20), min_size=1, max_size=300), u=ids(), v=ids())
    def flood_of_one_key(self, quarters: list[int], u: int, v: int) -> None:
        n = len(quarters)
        time = np.arange(n)
        self.g.insert(np.full(n, u), np.full(n, v), np.array(quarters) / 4, time)
        self.model.insert(u, v, np.array(quarters) / 4, time)

    @rule(quarters=st.lists(st.integers(-4, 20), min_size=1, max_size=300), seed=st.integers(0, 99))
    def set_what_is_there(self, quarters: list[int], seed: int) -> None:
        """A batch that only sets: edges that are there, and a few others."""
        n, rng = len(quarters), np.random.default_rng(seed)
        keys = np.array([*sorted(self.model.state), (1, 2), (2, 2), (4, 40)], np.uint32)
        src, dst = keys[rng.integers(0, len(keys), n)].T
        weight = np.array(quarters) / 4 if seed % 2 else np.abs(quarters) / 4 + 1
        for graph in (self.g, self.model):
            graph.set(src, dst, weight, seed)

    @rule(share=st.sampled_from([0.2, 0.7, 1.0]), seed=st.integers(0, 2**32))
    def delete_what_is_there(self, share: float, seed: int) -> None:
        keys = np.array(sorted(self.model.state), np.uint32).reshape(-1, 2)
        gone = keys[np.random.default_rng(seed).random(len(keys)) < share]
        self.g.delete(gone[:, 0], gone[:, 1], 3)
        self.model.delete(gone[:, 0], gone[:, 1], 3)

    @rule(v=st.lists(ids(), max_size=5), add=st.booleans())
    def vertices(self, v: list[int], add: bool) -> None:
        for graph in (self.g, self.model):
            (graph.add_vertices if add else graph.remove_vertices)(v, 4)

    @rule(u=st.lists(ids(), max_size=6), v=ids(), k=st.integers(1, 4))
    def ask(self, u: list[int], v: int, k: int) -> None:
        g, model = self.g, self.model
        targets = [v] * len(u)
        assert_same(g.edges(u, targets), model.edges(u, targets), "edges")
        assert_same(g.successors(u), model.successors(u), "successors")
        assert_same(g.hops(u, k), model.hops(u, k), "hops")
        assert_same(g.degree(u), model.degree(u), "degree")
        assert_same(g.has_vertices(u), model.has_vertices(u), "has_vertices")
        if self.config.queries == QUERIES:
            assert_same(g.predecessors(u), model.predecessors(u), "predecessors")

    @rule(back=st.integers(0, 8))
    def ask_for_changes(self, back: int) -> None:
        since = max(self.known_since, self.model.version - back)
        assert_same(self.g.changes(since), self.model.changes(since), "changes")

    @rule()
    def hold_a_snapshot(self) -> None:
        self.held.append((self.g.snapshot(compact=True), self.model.snapshot(compact=True)))

    @rule()
    def save_and_load(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "graph.lpma"
            self.g.save(path)
            self.g = lpma.Graph.load(path, device=self.device)
        self.known_since = self.g.version

    @rule(columns=batches(), where=st.integers(0, 30), fault=st.sampled_from(["id", "nan", "inf"]))
    def bad_batch(self, columns: Columns, where: int, fault: str) -> None:
        """One bad row anywhere makes the whole batch change nothing."""
        n = len(columns) + 1
        bad = lpma.pinned_batch(n)
        for name in ("kind", "src", "dst", "weight", "time"):
            getattr(bad, name)[:-1] = getattr(columns, name)
        row = where % n
        bad.kind[row] = Kind.INSERT
        if fault == "id":
            bad.dst[row] = 2**32 - 1
        else:
            assert bad.weight is not None
            bad.weight[row] = np.nan if fault == "nan" else np.inf
        with pytest.raises(lpma.BatchError):
            self.g.apply(bad)

    @invariant()
    def agrees(self) -> None:
        if hasattr(self, "g"):
            agree(self.g, self.model, dense_below=1000)

    def teardown(self) -> None:
        for got, expected in self.held:
            assert_same(got, expected, "a snapshot held while the graph went on")


@every_backend
@pytest.mark.soak
def test_stream(device: str) -> None:
    machine = type("StreamOn", (Stream,), {"device": device})
    asked = settings().max_examples
    for done in range(0, asked, ROUND):
        # Hypothesis remembers every example of a run, which takes gigabytes for 10 000 of them.
        run_state_machine_as_test(machine, settings=settings(max_examples=min(ROUND, asked - done)))
