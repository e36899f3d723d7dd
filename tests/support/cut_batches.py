"""Batches to cut off, at any line of their Python code, and what a graph must be then."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import lpma
from lpma import BrokenStore, Columns, Kind
from tests.conftest import SOAK
from tests.support.layout_oracles import fill
from tests.support.oracles import ModelGraph
from tests.support.strategies import Burst, Config

HERE = str(Path(lpma.__file__).parent)
# Of a batch, at the most: evenly over its events, and others in each run of a test.
MOMENTS = 10_000 if SOAK else 60
PRESSES = 1000 if SOAK else 20


class Cut:
    """While it is entered, event number `n` in the package's files, on this thread, raises. No
    garbage is collected meanwhile: it would raise in the finalizer of another graph, where errors
    are ignored; runs in which it did failed with "'traceback' object is not callable"."""

    def __init__(self, n: int, error: type[BaseException]) -> None:
        self.n, self.error, self.events, self.at = n, error, 0, ""

    def __enter__(self) -> Cut:
        self._before, self._collects = sys.gettrace(), gc.isenabled()
        gc.disable()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(self._before)
        if self._collects:
            gc.enable()

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(HERE):
            return None
        if event != "exception":
            self.events += 1
            if self.events == self.n:
                self.at = f"{event} {frame.f_code.co_filename}:{frame.f_lineno}"
                raise self.error("cut off")
        return self._trace


def dense(n: int) -> Columns:
    u, v = np.divmod(np.arange(n), 20)
    return Columns.edges(Kind.INSERT, u, v, 1.0, np.arange(n))


def sparse(kind: Kind, n: int, every: int) -> Columns:
    u, v = np.divmod(np.arange(0, n, every), 20)
    return Columns.edges(kind, u, v, None, 7)


def mixed(n: int, first: int) -> Columns:
    batch = lpma.Batch()
    for i in range(n):
        if i >= first and i % 10 == 0:
            batch.degree(i // 20)
            batch.successors(i // 20)
            batch.predecessors(i % 20)
            batch.edge(i // 20, i % 20)
        if i % 3:
            batch.delete(i // 20, i % 20, time=i)
        else:
            batch.insert(i // 20, i % 20 + 20, 0.5, time=i)
    batch.remove_vertex(1, time=n)
    batch.hops(0, 2)
    return batch.columns()


def queries() -> Columns:
    batch = lpma.Batch()
    for u in range(4):
        batch.degree(u)
        batch.successors(u)
    return batch.columns()


small = Config(segment_size=4, global_merge="never")
both = Config(segment_size=4, predecessors=True)
CASES: dict[str, tuple[Config, list[Columns], Columns]] = {
    "one edge": (Config(), [dense(90)], sparse(Kind.INSERT, 1, 1)),
    "sets": (both, [dense(90)], sparse(Kind.SET, 180, 7)),
    "deletions": (Config(), [dense(90)], sparse(Kind.DELETE, 90, 30)),
    "expanding": (small, [dense(40)], dense(300)),
    "shrinking": (small, [dense(150)], sparse(Kind.DELETE, 140, 1)),
    "a global merge": (Config(segment_size=4), [dense(30)], dense(200)),
    "larger": (Config(), [dense(90)], Burst(3, 2500, 400, 0.2, hub=False).columns()),
    "mixed": (both, [dense(90)], mixed(40, 0)),
    "mixed with a head": (both, [dense(90)], mixed(60, 45)),
    "mixed that shrinks": (Config(segment_size=2, predecessors=True, strategy="top-down"),
                           [dense(150)], mixed(145, 30)),
    "mixed, undirected": (Config(segment_size=4, directed=False), [dense(90)], mixed(40, 0)),
    "a removal": (both, [dense(90)], Columns.edges(Kind.REMOVE_VERTEX, [0, 3], None, None, 5)),
    "undirected": (Config(segment_size=4, directed=False), [dense(60)],
                   Burst(5, 60, 30, 0.3, hub=False).columns()),
    "queries": (both, [dense(90)], queries()),
    "nothing": (Config(), [dense(9)], dense(0)),
}  # fmt: skip


def after(config: Config, batches: list[Columns]) -> ModelGraph:
    model = config.model()
    for batch in batches:
        model.apply(batch)
    return model


def graph_of(config: Config, device: str, batches: list[Columns]) -> lpma.Graph:
    g = config.graph(device)
    for batch in batches:
        g.apply(batch)
    return g


def calls(g: lpma.Graph, tmp_path: Path) -> list[Callable[[], Any]]:
    """All that a graph can be asked and told."""
    return [
        lambda: g.insert(1, 2), lambda: g.set(1, 2), lambda: g.delete(1, 2),
        lambda: g.add_vertices(1), lambda: g.remove_vertices(1),
        lambda: g.apply(lpma.Batch()), lambda: g.apply(dense(5)),
        lambda: g.edges(1, 2), lambda: g.successors(1), lambda: g.hops(1, 2), lambda: g.degree(1),
        lambda: g.has_vertices(1), lambda: g.changes(0), lambda: g.touched(0),
        lambda: g.num_edges, lambda: g.num_rows, lambda: g.levels, lambda: g.segments,
        lambda: g.density, lambda: g.nbytes, lambda: g.unchanged, g.stats, g.snapshot,
        lambda: g.snapshot(compact=True), lambda: g.save(tmp_path / "broken.lpma"), g.image,
        g.check, lambda: fill(g, np.empty(0, np.uint64), None, None),
        *([lambda: g.predecessors(1)] if g.has_predecessors else []),
    ]  # fmt: skip


def assert_broken(g: lpma.Graph, tmp_path: Path) -> None:
    """Every call says so, and none waits for a lock that was never let go."""
    for call in calls(g, tmp_path):
        with pytest.raises(BrokenStore, match="reload it"):
            call()
    assert not list(tmp_path.iterdir())


def moments(events: int, salt: int) -> list[int]:
    """The first, the last, and some between."""
    step = max(1, events // MOMENTS)
    return [1, *range(2 + salt % step, events, step), events]


class Ringing:
    """A clock that sends the process a signal, or raises, whenever it is looked at."""

    def __init__(self) -> None:
        self.ring: Callable[[], Any] | None = None

    def __call__(self) -> float:
        if self.ring is not None:
            self.ring()
        return 0.0


def ringing(device: str) -> tuple[lpma.Graph, Ringing]:
    clock = Ringing()
    g = lpma.Graph(device=device, clock=clock)
    g.insert([1, 2], [2, 3], time=1)
    return g, clock
