"""What the conformance tests see of a store and its backend, and what they feed it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import strategies as st

from lpma.arrays import to_host
from lpma.backend import Host
from lpma.backend.numba.backend import NumbaBackend
from lpma.backend.numpy.backend import NumpyBackend
from lpma.backend.protocol import AnyBackend
from lpma.backend.values import FORWARD, REVERSE, Committed, Segments, SlotArrays
from lpma.batch.columns import Columns, Kind
from lpma.engine.opera import apply_staged
from lpma.engine.stores import Stores
from lpma.store.lpma import LPMA
from tests.support.layout_oracles import columns_by_rank
from tests.support.oracles import ModelGraph, assert_same
from tests.support.slow_backend import CountsAhead, SlowBackend
from tests.support.strategies import Burst, Clock

Make = Callable[[], AnyBackend]
MERGES = ("auto", "never")
PLANNERS = ("bottom-up", "top-down")
SIZE = 4  # slots a segment


def on_numpy() -> AnyBackend:
    return cast(AnyBackend, NumpyBackend(lambda: cast(AnyBackend, NumbaBackend())))


def slow() -> AnyBackend:
    return cast(AnyBackend, SlowBackend())


def counting_ahead() -> AnyBackend:
    return cast(AnyBackend, CountsAhead())


def needs_plans(backend: AnyBackend) -> None:
    """Skip a test of what is never asked of a backend that rebuilds the store for every batch."""
    if backend.costs.load == 0:
        pytest.skip("every batch rebuilds the store")


# What tests see of a store -------------------------------------------------------------------


def store_of(
    backend: AnyBackend,
    strategy: str = "bottom-up",
    merges: str = "never",
    weight: str | None = "float32",
    size: int = SIZE,
) -> LPMA:
    dtype = None if weight is None else np.dtype(weight)
    return LPMA(backend, size, dtype, True, strategy, merges, Clock())


def shape(backend: AnyBackend, segments: Segments) -> list[Any]:
    """All that a store publishes: the slots of each segment, the counts, the fences."""
    backend.wait()
    held = [columns_by_rank(segments, name) for name in ("keys", "weights", "times")
            if getattr(segments, name) is not None]  # fmt: skip
    # The head's fence is never read.
    trees = [to_host(segments.counts).astype(np.int64), to_host(segments.fences)[1:].copy()]
    return [segments.m, segments.num_slots, *held, *trees]


def slots(store: LPMA) -> dict[int, tuple[float, int]]:
    return by_key(store.backend.slots(store.segments))


def by_key(columns: tuple[Any, ...]) -> dict[int, tuple[float, int]]:
    """{key: (weight, time)} of (keys, weights, times), in the order in which they are given."""
    keys, weights, times = map(to_host, columns)
    weights = np.zeros(len(keys)) if weights is None else weights
    return dict(zip(keys.tolist(), zip(weights.tolist(), times.tolist(), strict=True), strict=True))


def model_slots(model: ModelGraph, direction: int = FORWARD) -> dict[int, tuple[float, int]]:
    """The slots that a store of a directed graph has to hold."""
    keys = {}
    for (u, v), (weight, time) in model.state.items():
        keys[v << 32 | u if direction == REVERSE else u << 32 | v] = (
            weight if model.weight_dtype is not None else 0.0, time,
        )  # fmt: skip
    return dict(sorted(keys.items()))


def stage(store: LPMA, columns: Columns) -> Any:
    weights = store.segments.weights
    dtype = None if weights is None else weights[0].dtype
    assert columns.time is not None
    return store.backend.stage(columns, columns.time, dtype)


def prepare(store: LPMA, columns: Columns, direction: int = FORWARD, **how: Any) -> tuple[Any, Any]:
    """(staged, prepared)"""
    staged = stage(store, columns)
    rows = store.backend.key_rows(staged, columns, direction)
    return staged, store.prepare(staged, rows, **how)


def apply(store: LPMA, columns: Columns, direction: int = FORWARD) -> Committed:
    """One batch, by the way of prepare and commit."""
    staged, prepared = prepare(store, columns, direction)
    committed = store.commit(prepared, len(columns))
    store.end_batch(staged)
    store.backend.written = store.written = False
    return committed


def updates(kinds: Any, src: Any, dst: Any, weight: Any = 1.0, time: Any = 1) -> Columns:
    n = len(src)
    columns = (np.full(n, x) if np.isscalar(x) else np.asarray(x) for x in (kinds, weight, time))
    kind, weights, times = columns
    return Columns.validated(
        kind.astype(np.uint8), np.asarray(src), np.asarray(dst), weights.astype(np.float32), times
    )


def appends(*keys: int) -> Columns:
    """Edges out of vertex 0, whose keys are their targets."""
    return updates(Kind.INSERT, np.zeros(len(keys), int), keys)


def deletions(*keys: int) -> Columns:
    return updates(Kind.DELETE, np.zeros(len(keys), int), keys)


@dataclass(frozen=True)
class Stream:
    """Batches from one seed: edges alone, and vertices added where `markers`."""

    seed: int
    batches: int
    largest: int
    span: int
    deletes: float
    markers: bool

    def columns(self) -> list[Columns]:
        rng = np.random.default_rng(self.seed)
        made = []
        for _ in range(self.batches):
            burst = Burst(int(rng.integers(1 << 30)), int(rng.integers(1, self.largest)), self.span,
                          self.deletes, hub=bool(rng.integers(2))).columns()  # fmt: skip
            kind = np.where(burst.kind == Kind.REMOVE_VERTEX, Kind.DELETE, burst.kind)
            if not self.markers:
                kind = np.where(kind == Kind.ADD_VERTEX, Kind.INSERT, kind)
            rows = burst.src, burst.dst, burst.weight, burst.time
            made.append(Columns.validated(kind.astype(np.uint8), *rows))
        return made


def streams(markers: bool = True, batches: int = 4) -> st.SearchStrategy[Stream]:
    return st.builds(
        Stream, seed=st.integers(0, 2**32), batches=st.integers(1, batches),
        largest=st.sampled_from([3, 30, 80]), span=st.sampled_from([3, 8, 20]),
        deletes=st.sampled_from([0.0, 0.3, 0.9]), markers=st.just(markers),
    )  # fmt: skip


def filled(make: Make, *options: Any, n: int = 60, **named: Any) -> LPMA:
    """A store of edges (0, 10), (0, 20) …"""
    store = store_of(make(), *options, **named)
    store.load(*loaded(store, np.arange(10, 10 * n + 10, 10)))
    store.written = False
    return store


def loaded(store: LPMA, keys: Any) -> tuple[Segments, int, int]:
    keys = np.asarray(keys, np.uint64)
    weights = np.ones(len(keys), np.float32)
    return store.build(SlotArrays(keys, weights, np.zeros(len(keys), np.int64))), 0, 0


def edges_of(store: LPMA) -> dict[int, tuple[float, int]]:
    return {key: value for key, value in slots(store).items() if key & (2**32 - 1) != 2**32 - 1}


@dataclass(frozen=True)
class Graph:
    """The stores of a graph, and the model of it."""

    stores: Stores
    model: ModelGraph

    def apply(self, columns: Columns) -> list[Any]:
        """Apply a batch to both, and compare the answers. Returns what changed."""
        stores = self.stores
        staged = stage(stores.out, columns)
        outcome = apply_staged(stores, columns, staged)
        expected = self.model.apply(columns)
        assert_same([outcome.answers.on_host()[i] for i in range(len(outcome.answers))], expected)
        for store, direction in stores.all:
            assert edges_of(store) == model_slots(self.model, direction)
            store.end_batch(staged)
        stores.note(outcome.changes, stores.time)  # what is kept between batches follows versions
        stores.settle()
        return outcome.changes


def graph_of(make: Make, strategy: str, both: bool) -> Graph:
    into = store_of(make(), strategy) if both else None
    return Graph(stores_of(store_of(make(), strategy), into), ModelGraph(predecessors=both))


def stores_of(out: LPMA, into: LPMA | None = None) -> Stores:
    """The stores of a directed graph. The tests' fixture has entered their place."""
    return Stores(out, into, True, np.dtype(np.float32), Host())
