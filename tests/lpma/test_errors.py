"""Bad input raises a typed error with a message, and leaves the store exactly as it was."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lpma
from lpma import Batch, BatchError, Columns, Graph, Kind
from tests.support.oracles import agree, assert_same
from tests.support.strategies import Config, columns_of
from tests.support.waiting import HANGS_S

CONFIGS = [
    Config(segment_size=2),
    Config(directed=False, weight_dtype=None),
    Config(weight_dtype="float64"),
]

BAD_UPDATES: dict[str, Callable[[Graph], Any]] = {
    "id too large": lambda g: g.insert([1, 2**32 - 1], [2, 3]),
    "target too large": lambda g: g.insert([1, 2], [2, 2**32 - 1]),
    "id far too large": lambda g: g.insert(2**64, 2),
    "id above uint32": lambda g: g.delete(1, 2**40),
    "negative id": lambda g: g.insert([1, -1], [2, 3]),
    "negative target": lambda g: g.delete(0, -(2**31)),
    "fraction": lambda g: g.insert([1.5], [2]),
    "float too large to be exact": lambda g: g.insert([2.0**54], [2]),
    "bool id": lambda g: g.insert([True], [2]),
    "text": lambda g: g.insert(["a"], [2]),
    "none": lambda g: g.insert(None, [2]),
    "ragged": lambda g: g.insert([[1, 2], [3]], [1, 2]),
    "two dimensions": lambda g: g.insert(np.ones((2, 2), int), np.ones((2, 2), int)),
    "unequal lengths": lambda g: g.insert([1, 2, 3], [1, 2]),
    "unequal weights": lambda g: g.insert([1, 2, 3], [1, 2, 3], [1.0, 2.0]),
    "unequal times": lambda g: g.insert([1, 2, 3], [1, 2, 3], 1.0, [1, 2]),
    "NaN": lambda g: g.insert([1, 2], [2, 3], [1.0, np.nan]),
    "infinity": lambda g: g.insert([1, 2], [2, 3], [1.0, np.inf]),
    "minus infinity": lambda g: g.insert([1, 2], [2, 3], [1.0, -np.inf]),
    "weight too large": lambda g: g.insert([1, 2], [2, 3], np.array([1.0, 1e31])),
    "complex weight": lambda g: g.insert([1], [2], [1j]),
    "text as weight": lambda g: g.insert([1], [2], ["heavy"]),
    "time with a fraction": lambda g: g.insert([1], [2], 1.0, [0.5]),
    "time too large": lambda g: g.insert([1], [2], 1.0, 2**63),
    "marker id": lambda g: g.add_vertices([4, 2**32 - 1]),
    "negative vertex": lambda g: g.remove_vertices([-1]),
    "vertex with a fraction": lambda g: g.add_vertices(0.5),
    "no batch": lambda g: g.apply([(1, 2)]),  # type: ignore[arg-type]
    "unknown kind": lambda g: g.apply(Batch.from_columns([len(Kind)], [1], [2])),
    "no kind": lambda g: g.apply(Batch.from_columns([0.0], [1], [2])),
    "zero hops": lambda g: g.apply(Batch.from_columns([0, Kind.HOPS], [1, 1], [2, 0])),
    "too many hops": lambda g: g.apply(Batch.from_columns([0, Kind.HOPS], [1, 1], [2, 256])),
    "unequal columns": lambda g: g.apply(Batch.from_columns([0, 0], [1, 2], [3])),
}

BAD_QUERIES: dict[str, Callable[[Graph], Any]] = {
    "edges: unequal lengths": lambda g: g.edges([1, 2], [3]),
    "edges: id too large": lambda g: g.edges([1], [2**32 - 1]),
    "successors: negative": lambda g: g.successors([-1]),
    "successors: fraction": lambda g: g.successors(0.5),
    "hops: none": lambda g: g.hops(1, 0),
    "hops: too many": lambda g: g.hops(1, 256),
    "hops: fraction": lambda g: g.hops(1, 1.5),  # type: ignore[arg-type]
    "hops: bool": lambda g: g.hops(1, True),
    "degree: too large": lambda g: g.degree(2**32 - 1),
    "has_vertices: text": lambda g: g.has_vertices("a"),
    "changes: future": lambda g: g.changes(g.version + 1),
    "changes: negative": lambda g: g.changes(-1),
}


@pytest.mark.parametrize("name", [*BAD_UPDATES, *BAD_QUERIES])
def test_bad_input_changes_nothing(device: str, name: str) -> None:
    call = (BAD_UPDATES | BAD_QUERIES)[name]
    for config in CONFIGS:
        g, model = config.graph(device), config.model()
        for graph in (g, model):
            graph.insert([1, 2, 3, 0, 7], [2, 3, 1, 0, 2**32 - 2], [1, 2, 3, 4, 5], 9)
            graph.add_vertices([10, 4], 9)
        before = g.stats().as_dict()
        with pytest.raises(BatchError) as caught:
            call(g)
        assert len(str(caught.value)) > 15
        agree(g, model)
        after = g.stats().as_dict()
        assert (after["batches"], after["operations"]) == (before["batches"], before["operations"])
        for graph in (g, model):
            graph.insert([1, 5], [2, 6], [1.0, 2.0], 10)
        agree(g, model)


def test_predecessors_need_their_store(device: str) -> None:
    g, model = lpma.Graph(device=device), Config().model()
    batch = Batch()
    batch.insert(1, 2)
    batch.predecessors(2)
    for call in (lambda: g.predecessors(2), lambda: g.apply(batch)):
        with pytest.raises(BatchError, match="predecessors=True"):
            call()
    agree(g, model)


@pytest.mark.parametrize("arguments", [
    {"weight": "int32"}, {"weight": np.float32}, {"strategy": "sideways"}, {"segment_size": 1},
    {"segment_size": 48}, {"segment_size": 2048}, {"segment_size": 2.5},
    {"global_merge": "always"}, {"global_merge": True},
])  # fmt: skip
def test_bad_configurations(device: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(BatchError, match=next(iter(arguments))):
        lpma.Graph(device=device, **arguments)


def test_an_unknown_device() -> None:
    with pytest.raises(lpma.DeviceError, match="abacus"):
        lpma.Graph(device="abacus")


def test_errors_are_of_one_family() -> None:
    for error in (lpma.BatchError, lpma.FormatError, lpma.DeviceError, lpma.OutOfMemory,
                  lpma.SnapshotTooLarge, lpma.ConcurrentWrite, lpma.InvariantError):  # fmt: skip
        assert issubclass(error, lpma.LpmaError)
    assert issubclass(lpma.BatchError, ValueError)
    assert issubclass(lpma.OutOfMemory, MemoryError)
    assert lpma.InvariantError(3, "broken").number == 3


def test_a_snapshot_too_large_names_the_way_out(device: str) -> None:
    g, model = lpma.Graph(device=device), Config().model()
    for graph in (g, model):
        graph.insert([0, 2**32 - 2], [2**32 - 2, 1], [1.0, 2.0], [3, 4])
    with pytest.raises(lpma.SnapshotTooLarge, match="compact=True"):
        g.snapshot()
    assert_same(g.snapshot(compact=True), model.snapshot(compact=True))
    small = lpma.Graph(device=device)
    small.insert(0, 99, time=1)
    with pytest.raises(lpma.SnapshotTooLarge):
        small.snapshot(max_bytes=800)
    assert small.snapshot(max_bytes=808).num_rows == 100
    agree(g, model)


def test_a_second_writer_is_refused(device: str) -> None:
    """The clock is called inside a batch, which is where the second writer comes."""
    refused: list[BaseException] = []

    def intrude() -> None:
        try:
            g.insert(5, 6)
        except lpma.ConcurrentWrite as error:
            refused.append(error)

    class Intruder:
        armed = False

        def __call__(self) -> float:
            if self.armed:
                self.armed = False
                thread = threading.Thread(target=intrude)
                thread.start()
                thread.join(HANGS_S)
            return 0.0

    clock = Intruder()
    g = lpma.Graph(device=device, clock=clock)
    clock.armed = True
    g.insert([1, 2], [2, 3])
    assert not clock.armed
    assert [type(error) for error in refused] == [lpma.ConcurrentWrite]
    assert (g.num_edges, g.version) == (2, 1)
    g.insert(5, 6)
    assert (g.num_edges, g.version) == (3, 2)
    g.check()


class FailingAllocations:
    """NumPy's allocating functions, of which call number n (of those that return at least
    `least` bytes) raises MemoryError. Smaller ones come from memory that the interpreter holds."""

    NAMES = ("arange", "argsort", "ascontiguousarray", "concatenate", "cumsum", "diff", "empty",
             "empty_like", "flatnonzero", "full", "isin", "lexsort", "ones", "repeat", "resize",
             "searchsorted", "sort", "zeros", "zeros_like")  # fmt: skip

    def __init__(self, monkeypatch: pytest.MonkeyPatch, n: int, least: int) -> None:
        self.n, self.least, self.calls = n, least, 0
        for name in self.NAMES:
            monkeypatch.setattr(np, name, self.counted(getattr(np, name)))

    def counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            result = function(*args, **options)
            if getattr(result, "nbytes", 0) >= self.least:
                self.calls += 1
                if self.calls == self.n:
                    raise MemoryError(f"allocation {self.n} fails")
            return result

        return call


def random_batch(kinds: list[Kind], n: int, seed: int) -> Columns:
    rng = np.random.default_rng(seed)
    src, dst = rng.integers(0, 150, (2, n))
    kind = rng.choice(kinds, n)
    return columns_of(kind, src, dst, rng.integers(-8, 25, n), np.arange(n))


UPDATES = [Kind.INSERT] * 500 + [Kind.DELETE] * 300 + [Kind.REMOVE_VERTEX, Kind.ADD_VERTEX]
MIXED = [*UPDATES, Kind.EDGE, Kind.EDGE, Kind.SUCCESSORS, Kind.HOPS, Kind.DEGREE, Kind.VERTEX]
OUT_OF_MEMORY: dict[str, Columns] = {
    "updates": random_batch(UPDATES, 3000, 1),
    "deletions": random_batch([Kind.DELETE], 20_000, 2),
    "mixed": random_batch(MIXED, 3000, 3),
}


@pytest.mark.parametrize("config", [
    Config(segment_size=4, predecessors=True), Config(segment_size=2, global_merge="never"),
    Config(directed=False, segment_size=4, global_merge="never", strategy="top-down"),
])  # fmt: skip
@pytest.mark.parametrize("name", OUT_OF_MEMORY)
def test_memory_runs_out_at_every_allocation(name: str, config: Config) -> None:
    """Invariant 7. A batch that only updates is then unapplied; a mixed one is unapplied, or,
    where an answer was too large, applied whole with its version and changes."""
    batch, before = OUT_OF_MEMORY[name], random_batch([Kind.INSERT], 4000, 4)
    unapplied, applied = config.model(), config.model()
    for model in (unapplied, applied):
        model.apply(before)
    applied.apply(batch)
    compiling = config.graph("cpu")  # which allocates, too, and is none of the store's memory
    compiling.apply(before)
    compiling.apply(batch)
    n, failed = 0, True
    while failed:
        n += 1
        g = config.graph("cpu")
        g.apply(before)
        with pytest.MonkeyPatch.context() as monkeypatch:
            FailingAllocations(monkeypatch, n, least=1024)
            try:
                g.apply(batch)
                failed = False
            except lpma.OutOfMemory:
                pass
        g.check()
        done = g.version == applied.version
        assert done or failed
        assert not (done and failed) or batch.num_queries, f"allocation {n}"
        model = applied if done else unapplied
        snapshot, expected = g.snapshot(), model.snapshot()
        assert_same((snapshot.indptr, snapshot.indices), (expected.indptr, expected.indices))
        assert_same((snapshot.weights, snapshot.times), (expected.weights, expected.times))
        changes = g.changes(1)
        if changes is not None or not failed:  # after a failure they may be known no longer
            assert_same(changes, model.changes(1))
    assert n > 3


def test_an_empty_side_inserts_nothing(device: str) -> None:
    g = lpma.Graph(device=device)
    g.insert(5, [])
    g.insert([], 5)
    g.delete([], [])
    assert (g.num_edges, g.version) == (0, 3)


def test_a_batch_refuses_at_once_what_is_no_weight() -> None:
    b = lpma.Batch()
    for bad in ("x", True, [1.0], [0.5, 1.0], 1j, object(), 10**30, np.array(["x"])):
        with pytest.raises(lpma.BatchError, match="weight: "):
            b.insert(1, 2, bad)  # type: ignore[arg-type]
    assert len(b) == 0
    for good in (2, 2.5, np.float32(0.5), np.int8(3), np.array(1.5), None):
        b.insert(1, 2, good)  # type: ignore[arg-type]
    b.insert(1, 2, float("nan"))
    assert b.columns is not None
    with pytest.raises(lpma.BatchError, match="and row 6 has nan"):
        b.columns()
    graph, model = (lpma.Graph(device="cpu") for _ in range(2))
    b._weight.pop()
    b._weight.append(1.0)
    graph.apply(b)
    model.insert(1, 2, 2 + 2.5 + 0.5 + 3 + 1.5 + 1 + 1)
    assert graph.edge(1, 2).weight == model.edge(1, 2).weight  # type: ignore[union-attr]


def test_a_batch_takes_whole_numbers_of_any_type() -> None:
    b = lpma.Batch()
    b.insert(int(np.uint64(1)), 2)
    b.insert(np.uint64(5), np.int8(2))  # type: ignore[arg-type]
    b.insert(3, 4)
    assert b.columns().src.tolist() == [1, 5, 3]
    b.insert(7.0, 2)  # type: ignore[arg-type]
    assert b.columns().src.tolist() == [1, 5, 3, 7]
    for bad in (True, 1.5, 2.0**54, float("nan"), None):
        with pytest.raises(lpma.BatchError):
            b.insert(bad, 2)  # type: ignore[arg-type]
    assert len(b) == 4
