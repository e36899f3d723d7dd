"""Hypothesis strategies: graph configurations, and batches that make the store work.

Ids are few, so that keys collide; some lie at the limits of what an id may be. A batch is either
*drawn* operation by operation, so that a failure shrinks to a handful of rows, or a *burst* made by
NumPy from a drawn seed, so that a store of tiny segments grows and shrinks by several levels.
Every weight is a multiple of 1/4, and every row has a time.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

import lpma
from lpma import Batch, Columns, Kind
from tests.support.oracles import ModelGraph

Array = npt.NDArray[Any]

LIMITS = (0, 2**31, 2**32 - 2)
IDS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 40, 2**31 - 1, 2**31, 2**32 - 2)
STRATEGIES = ("bottom-up", "top-down", "hybrid")
UPDATES = (Kind.INSERT, Kind.SET, Kind.DELETE, Kind.ADD_VERTEX, Kind.REMOVE_VERTEX)
QUERIES = (Kind.EDGE, Kind.SUCCESSORS, Kind.PREDECESSORS, Kind.HOPS, Kind.DEGREE, Kind.VERTEX)


@dataclass(frozen=True)
class Config:
    """The arguments of a Graph that change what it holds or how it holds it."""

    directed: bool = True
    predecessors: bool = False
    weight_dtype: str | None = "float32"
    times: bool = True
    strategy: str = "hybrid"
    segment_size: int = 32
    global_merge: str = "auto"

    def graph(self, device: str) -> lpma.Graph:
        return lpma.Graph(device=device, clock=Clock(), **asdict(self))

    def model(self) -> ModelGraph:
        return ModelGraph(self.directed, self.predecessors, self.weight_dtype, self.times)

    @property
    def queries(self) -> tuple[Kind, ...]:
        if self.predecessors or not self.directed:
            return QUERIES
        return tuple(kind for kind in QUERIES if kind != Kind.PREDECESSORS)


class Clock:
    """Seconds that pass in uneven steps, the same in every run: the hybrid strategy times its
    batches, and a test must not depend on how fast the machine is."""

    def __init__(self) -> None:
        self.calls = 0
        self.seconds = 0.0

    def __call__(self) -> float:
        self.calls += 1
        self.seconds += self.calls * 7 % 11 / 1000
        return self.seconds


def configs(**fixed: Any) -> st.SearchStrategy[Config]:
    choices: dict[str, st.SearchStrategy[Any]] = {
        "directed": st.booleans(),
        "predecessors": st.booleans(),
        "weight_dtype": st.sampled_from(["float32", "float64", None]),
        "times": st.booleans(),
        "strategy": st.sampled_from(STRATEGIES),
        "segment_size": st.sampled_from([2, 4, 8, 32]),
        "global_merge": st.sampled_from(["auto", "never"]),
    }
    return st.builds(Config, **(choices | {name: st.just(v) for name, v in fixed.items()}))


def ids() -> st.SearchStrategy[int]:
    return st.sampled_from(IDS)


def times() -> st.SearchStrategy[int]:
    """Equal ones, falling ones, and the limits of int64."""
    return st.sampled_from([0, 1, 1, 2, 3, -5, 10**12, -(2**63), 2**63 - 1])


@st.composite
def batches(
    draw: st.DrawFn, queries: tuple[Kind, ...] = (), max_size: int = 30, expires: bool = False
) -> Columns:
    """A drawn batch: mostly insertions, and with `queries` about a third of those."""
    kinds = [Kind.INSERT] * 8 + [Kind.SET] * 3 + [Kind.DELETE] * 3
    kinds += [Kind.ADD_VERTEX, Kind.REMOVE_VERTEX]
    kinds += [Kind.EXPIRE] * 2 if expires else []
    kinds += [queries[i % len(queries)] for i in range(6)] if queries else []
    row = st.tuples(st.sampled_from(kinds), ids(), ids(), st.integers(-64, 64), times())
    rows = draw(st.lists(row, max_size=max_size))
    if draw(st.integers(0, 4)) == 0:
        rows = [(kind, IDS[1], IDS[2], quarters, time) for kind, _, _, quarters, time in rows]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[]] * 5
    return columns_of(*(np.array(column, np.int64) for column in columns))


def columns_of(kind: Array, src: Array, dst: Array, quarters: Array, time: Array) -> Columns:
    """A batch whose weights are `quarters`/4; a query for hops takes 1 to 3 steps."""
    steps = np.where(kind == Kind.HOPS, 1 + dst % 3, dst)
    weight = (quarters / 4).astype(np.float32)
    return Batch.from_columns(kind.astype(np.uint8), src, steps, weight, time)


@dataclass(frozen=True)
class Burst:
    """Hundreds of operations from one seed. `deletes` is the share of deletions, `span` the
    number of ids, `hub` whether half of the edges leave one vertex."""

    seed: int
    size: int
    span: int
    deletes: float
    hub: bool

    def columns(self, queries: tuple[Kind, ...] = ()) -> Columns:
        rng = np.random.default_rng(self.seed)
        n = self.size
        kind = np.where(rng.random(n) < self.deletes, Kind.DELETE, Kind.INSERT).astype(np.int64)
        rare = rng.random(n)
        kind[rare < 0.01] = Kind.ADD_VERTEX
        kind[(rare > 0.01) & (rare < 0.015)] = Kind.REMOVE_VERTEX
        kind[rare > 0.85] = Kind.SET
        if queries:
            asked = rng.random(n) < 0.05
            kind[asked] = rng.choice(queries, int(asked.sum()))
        src, dst = rng.integers(0, self.span, n), rng.integers(0, self.span, n)
        if self.hub:
            src[rng.random(n) < 0.5] = self.span // 2
        return columns_of(kind, src, dst, rng.integers(-8, 25, n), rng.integers(0, 50, n))


def bursts() -> st.SearchStrategy[Burst]:
    return st.builds(
        Burst,
        seed=st.integers(0, 2**32),
        size=st.integers(1, 400),
        span=st.sampled_from([3, 20, 60]),
        deletes=st.sampled_from([0.0, 0.1, 0.5, 0.9]),
        hub=st.booleans(),
    )


@st.composite
def edge_lists(draw: st.DrawFn, max_vertices: int = 24) -> tuple[int, Array, Array]:
    """(n, src, dst) for the algorithms: loops, repeats, isolated vertices, stars and cliques."""
    n = draw(st.integers(0, max_vertices))
    if n == 0:
        return 0, np.empty(0, np.int64), np.empty(0, np.int64)
    vertex = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(vertex, vertex), max_size=4 * n))
    if draw(st.booleans()):
        center = draw(vertex)
        edges += [(center, v) for v in range(n)]
    if draw(st.booleans()):
        members = sorted(draw(st.sets(vertex, max_size=9)))
        edges += [(u, v) for u in members for v in members if u > v]
    pairs = np.array(edges, np.int64).reshape(-1, 2)
    return n, pairs[:, 0], pairs[:, 1]
