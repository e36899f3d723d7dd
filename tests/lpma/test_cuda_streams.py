"""Large random streams: the CUDA backend against the CPU's, batch by batch, and what a long run or
a full device must not do.

Everything comes from a seed: what a batch is like (its *flavour*), how large, which edges. About
10^6 operations by default, 10^7 with LPMA_HYPOTHESIS=long. The CPU backend has its own oracle, a
dictionary (test_graph.py, test_opera.py), which would be too slow here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import lpma
from lpma import AnswersTooLarge, Columns, Kind, OutOfMemory
from lpma.backend.values import MAX_CHANGES
from tests.lpma.test_allocation import burst, state
from tests.support.oracles import agree, assert_same, host
from tests.support.strategies import Config, columns_of

pytestmark = pytest.mark.gpu


SCALE = 10 if os.environ.get("LPMA_HYPOTHESIS") == "long" else 1
SPAN = 3000 * SCALE  # vertices
SIZES = (1, 33, 1000, 9000, 17_000, 30_000)  # operations a batch, times SCALE
FLAVOURS = ("uniform", "hub", "flood", "cluster", "rising", "deletions", "vertices", "mixed")
BATCHES = 10  # of a configuration
MIXED_SHARE = 0.01  # of the rows that are queries

# Three shapes of store, since every shape is compiled: all columns, keys alone, tiny segments.
KEYS_ALONE: dict[str, Any] = {"weight_dtype": None, "times": False}
TINY: dict[str, Any] = {"weight_dtype": "float64", "segment_size": 4}
CONFIGS = [
    Config(strategy="bottom-up", global_merge="never"),
    Config(strategy="top-down", global_merge="never", predecessors=True),
    Config(strategy="hybrid", global_merge="never", directed=False),
    Config(strategy="hybrid", predecessors=True),
    Config(strategy="top-down", directed=False, **KEYS_ALONE),
    Config(strategy="bottom-up", global_merge="never", predecessors=True, **KEYS_ALONE),
    Config(strategy="hybrid", global_merge="never", **KEYS_ALONE),
    Config(strategy="bottom-up", predecessors=True, **TINY),
    Config(strategy="top-down", global_merge="never", directed=False, **TINY),
    Config(strategy="hybrid", global_merge="never", **TINY),
]


def named(config: Config) -> str:
    kept = [
        f"{config.strategy}",
        config.global_merge,
        f"{config.weight_dtype}",
        f"{config.segment_size}",
    ]
    return "-".join([*kept, "directed" if config.directed else "undirected"])


def batch_of(rng: np.random.Generator, flavour: str, size: int, config: Config) -> Columns:
    """One batch of the stream."""
    n = size
    deletes = {"deletions": 0.9, "rising": 0.0}.get(flavour, 0.2)
    kind = np.where(rng.random(n) < deletes, Kind.DELETE, Kind.INSERT).astype(np.int64)
    src, dst = rng.integers(0, SPAN, (2, n))
    if flavour == "hub":
        src[rng.random(n) < 0.5] = SPAN // 3
        dst[rng.random(n) < 0.3] = SPAN // 3
    elif flavour == "flood":
        one_key = rng.random(n) < 0.8
        src[one_key], dst[one_key] = 17, 18
    elif flavour == "cluster":
        src = SPAN // 2 + rng.integers(0, 4, n)
    elif flavour == "rising":
        src, dst = np.sort(src), np.arange(n) % SPAN
    elif flavour == "deletions":
        src //= 8  # where edges are denser
    rare = rng.random(n)
    if flavour in ("vertices", "mixed"):
        kind[rare < 0.01] = Kind.ADD_VERTEX
        kind[(rare > 0.01) & (rare < 0.01 + 20 / n)] = Kind.REMOVE_VERTEX
    if flavour == "mixed":
        asked = rng.random(n) < MIXED_SHARE
        kind[asked] = rng.choice(config.queries, int(asked.sum()))
        # A walk of three steps reaches most of the graph: few are enough.
        steps = np.flatnonzero(kind == Kind.HOPS)
        kind[steps[30:]] = Kind.DEGREE
    return columns_of(kind, src, dst, rng.integers(-8, 25, n), rng.integers(0, 2**40, n))


def stream_of(config: Config, seed: int) -> Iterator[Columns]:
    rng = np.random.default_rng(seed)
    flavours = rng.permutation(FLAVOURS).tolist() + rng.choice(FLAVOURS, BATCHES).tolist()
    for flavour in flavours[:BATCHES]:
        yield batch_of(rng, flavour, int(rng.choice(SIZES)) * SCALE, config)
    # Large enough in any case, whatever was drawn.
    yield batch_of(rng, "uniform", SIZES[-1] * SCALE, config)
    yield batch_of(rng, "mixed", SIZES[-2] * SCALE, config)


def assert_same_work(there: lpma.Graph, here: lpma.Graph, config: Config) -> None:
    """Where the cost rule has no say, both devices move the same windows."""
    counted = [g.stats().as_dict() for g in (there, here)]
    names = ["batches", "operations"]
    if config.global_merge == "never":
        apart = {"seconds", "rounds"}
        if config.strategy != "top-down":
            # What a window held that a later round took in: the host counts what was left in it
            # after the batch, the device what it held when it was moved.
            apart |= {"slots_by_layer", "bytes_moved"}
        names = [name for name in counted[0] if name not in apart]
        assert (there.levels, there.density) == (here.levels, here.density)
    for name in names:
        assert_same(counted[0][name], counted[1][name], name)


@pytest.mark.parametrize("config", CONFIGS, ids=named)
def test_streams(cupy: Any, config: Config) -> None:
    there, here = config.graph("cuda"), config.graph("cpu")
    for turn, columns in enumerate(stream_of(config, 1 + CONFIGS.index(config))):
        expected = here.apply(columns)
        answers = there.apply(columns).on_host()
        assert len(answers) == len(expected) == columns.num_queries
        for kind, (numbers, answer) in expected._groups.items():
            assert_same(answers._groups[kind], (numbers, answer), f"batch {turn}, {Kind(kind)!r}")
        assert_same_work(there, here, config)
        for name in ("num_edges", "num_rows", "version", "time"):
            assert_same(getattr(there, name), getattr(here, name), f"batch {turn}, {name}")
        changes = there.changes(turn)
        # The device has room for a batch's changes only where all its keys, both sides of an
        # undirected edge, would fit into the history.
        if changes is not None or 2 * len(columns) <= MAX_CHANGES:
            assert_same(changes, here.changes(turn), f"batch {turn}, changes")
        if turn % 4 == 3:
            assert_same(there.snapshot(), here.snapshot(), f"batch {turn}")
            there.check()
    there.check()
    assert_same(there.snapshot(), here.snapshot())
    assert_same(there.snapshot(compact=True), here.snapshot(compact=True))
    whole = here.snapshot()
    src = np.repeat(np.arange(whole.num_rows), np.diff(whole.indptr))
    there.delete(src, whole.indices)
    here.delete(src, whole.indices)
    assert there.num_edges == here.num_edges == 0
    assert_same_work(there, here, config)
    there.check()


# Memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["bottom-up", "top-down", "hybrid"])
def test_a_thousand_batches_take_no_more_memory(cupy: Any, strategy: str) -> None:
    """After as many batches as fill the history of changes. Insertions and deletions of the same
    edges take turns, on the host and on the device, with a mixed batch now and then."""
    pool = cupy.get_default_memory_pool()
    g = lpma.Graph(device="cuda", strategy=strategy, predecessors=strategy == "hybrid")
    rng = np.random.default_rng(11)
    g.insert(*rng.integers(0, 20_000, (2, 100_000)))
    n = 4096
    src, dst = np.arange(20_001, 20_001 + n), rng.integers(0, 20_000, n)
    there = cupy.asarray(src), cupy.asarray(dst)
    mixed = lpma.Batch()
    for v in range(40):
        mixed.insert(v, v + 1)
        mixed.successors(v)
        mixed.hops(v, 2)
        mixed.delete(v, v + 1)
    columns = mixed.columns()

    def turns(batches: int) -> int:
        """Bytes in use after so many batches."""
        for i in range(batches // 2):
            given = (src, dst) if i % 4 < 2 else there
            g.insert(*given)
            g.delete(*given)
            if i % 50 == 0:
                g.apply(columns)
                g.snapshot()
        cupy.cuda.runtime.deviceSynchronize()
        return int(pool.used_bytes())

    before = turns(400)
    used = [turns(1000), turns(200)]
    assert max(used) - before <= 1 << 20, f"{before:,} bytes in use, then {used}"
    assert before - min(used) <= 16 << 20
    g.check()


class Failing:
    """While it is entered, this thread's n-th allocation on the device fails."""

    def __init__(self, cupy: Any, n: int) -> None:
        self.n, self.calls = n, 0
        self._error = cupy.cuda.memory.OutOfMemoryError
        self._malloc = cupy.get_default_memory_pool().malloc
        self._allocating = cupy.cuda.using_allocator(self._allocate)

    def _allocate(self, size: int) -> Any:
        self.calls += 1
        if self.calls == self.n:
            raise self._error(size, 0, 0)
        return self._malloc(size)

    def __enter__(self) -> Failing:
        self._allocating.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._allocating.__exit__(*error)


def removals() -> Columns:
    """Vertices removed between insertions: what they imply is made on the host."""
    rng = np.random.default_rng(12)
    kind = np.full(200, int(Kind.INSERT))
    kind[50::25] = Kind.REMOVE_VERTEX
    src, dst = rng.integers(0, 60, (2, 200))
    return columns_of(kind, src, dst, rng.integers(1, 9, 200), np.arange(200))


CASES = {
    "insertions": (burst(1, 60), burst(2, 250)),
    "few insertions": (burst(1, 250), burst(2, 20)),
    "deletions": (burst(3, 250), burst(4, 400, 1.0)),
    "removals": (burst(3, 250), removals()),
    "mixed": (burst(9, 150), burst(6, 150, 0.1, mixed=True)),
    "mixed, shrinking": (burst(9, 150), burst(7, 150, 0.9, mixed=True)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("config", [
    Config(segment_size=4, strategy="bottom-up", global_merge="never", weight_dtype="float64",
           predecessors=True),
    Config(segment_size=4, strategy="top-down", weight_dtype="float64", directed=False),
    Config(strategy="hybrid", predecessors=True),
], ids=named)  # fmt: skip
def test_every_allocation_fails_in_turn(cupy: Any, config: Config, case: str) -> None:
    """Invariant 7. An answer too large leaves the updates applied, and says so."""
    first, batch = CASES[case]
    model = config.model()
    for columns in (first, batch):
        model.apply(columns)
    n, done = 0, False
    while not done:
        n += 1
        assert n < 500
        g = config.graph("cuda")
        g.apply(first)
        old = state(g)
        with Failing(cupy, n) as failing:
            try:
                g.apply(batch)
                applied = True
            except AnswersTooLarge:
                applied = True
            except OutOfMemory:
                applied = False
        done = failing.calls < n
        if not applied:
            g.check()
            assert_same(state(g), old, f"allocation {n}")
            g.apply(batch)
        agree(g, model)


def test_reads_that_do_not_fit(cupy: Any) -> None:
    """Every allocation of a query or a snapshot fails in turn: a typed error, and no harm."""
    config = Config(predecessors=True, segment_size=4, weight_dtype="float64")
    g, model = config.graph("cuda"), config.model()
    for graph in (g, model):
        graph.insert([1, 2, 3, 4, 1], [2, 3, 4, 1, 3], [1, 2, 3, 4, 5], 9)
        graph.add_vertices([8], 9)
    reads = {
        "edges": lambda: g.edges([1, 2], [2, 9]),
        "successors": lambda: g.successors([1, 2]),
        "predecessors": lambda: g.predecessors([1, 2]),
        "hops": lambda: g.hops([1, 2], 2),
        "degree": lambda: g.degree([1, 2]),
        "has_vertices": lambda: g.has_vertices([1, 7]),
        "snapshot": lambda: g.snapshot(),
        "compact": lambda: g.snapshot(compact=True),
    }
    for name, read in reads.items():
        n = 0
        while True:
            n += 1
            with Failing(cupy, n) as failing:
                if n > 200:
                    pytest.fail(f"{name} does not end")
                try:
                    read()
                except OutOfMemory:
                    continue
            if failing.calls < n:
                break
        assert n > 1, name
    agree(g, model)


def test_a_full_device(cupy: Any) -> None:
    """CuPy's pool is at its limit: the error says what to do, and with more room it works."""
    config = Config(global_merge="never")
    g, model = config.graph("cuda"), config.model()
    rng = np.random.default_rng(13)
    src, dst = rng.integers(0, 300, (2, 2000))
    for graph in (g, model):
        graph.insert(src, dst, 0.25, 7)
    old, pool = state(g), cupy.get_default_memory_pool()
    many = rng.integers(0, 1 << 20, (2, 1 << 20))
    pool.free_all_blocks()
    pool.set_limit(size=pool.total_bytes() + (4 << 20))
    try:
        for _ in range(2):
            with pytest.raises(OutOfMemory, match=r"unapplied.*cut it, or free memory"):
                g.insert(*many)
        g.check()
        assert_same(state(g), old)
        for graph in (g, model):
            graph.insert(dst[:50], src[:50], 0.25, 8)  # a smaller one still fits
        agree(g, model)
    finally:
        pool.set_limit(size=0)
    g.insert(*many)
    g.check()
    assert g.num_edges > 1 << 19


# Threads and streams --------------------------------------------------------------------------

ROWS, WIDE = 8, 1500


def test_snapshots_on_other_streams(cupy: Any) -> None:
    """Each batch writes its number as the time of one whole row. Two readers on streams of their
    own take snapshots meanwhile, whose rows are what their version says, then and later."""
    g = lpma.Graph(device="cuda", segment_size=4, weight_dtype="float64", global_merge="never")
    dst = np.arange(WIDE)
    for row in range(ROWS):
        g.insert(np.full(WIDE, row), dst, time=0)
    start, done = g.version, threading.Event()

    def verify(s: Any) -> None:
        row_starts = np.minimum(np.arange(WIDE + 1), ROWS) * WIDE  # targets have no edges out
        assert_same(s.indptr.get(), row_starts)
        assert_same(s.indices.get(), np.tile(dst, ROWS).astype(np.uint32))
        written = s.version - start
        last = [max([i for i in range(1, written + 1) if i % ROWS == row], default=0)
                for row in range(ROWS)]  # fmt: skip
        assert_same(s.times.get(), np.repeat(last, WIDE))

    def read() -> list[Any]:
        kept: list[Any] = []
        with cupy.cuda.Stream(non_blocking=True):
            while not done.is_set() or len(kept) < 3:
                kept.append(g.snapshot())
                verify(kept[-1])
                times: Any = g.successors([3]).times
                assert len(set(times.get().tolist())) == 1
            for s in kept:
                verify(s)
        return kept

    rng = np.random.default_rng(15)
    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        try:
            for i in range(1, 301):
                g.insert(np.full(WIDE, i % ROWS), rng.permutation(WIDE), weight=0.25, time=i)
        finally:
            done.set()
        seen = [s.version for reader in readers for s in reader.result(60)]
    assert g.version == start + 300
    assert len(set(seen)) > 3
    g.check()


def test_a_writer_on_many_streams(cupy: Any) -> None:
    """Batches, queries and snapshots follow each other though every one comes on a new stream."""
    config = Config(predecessors=True)
    g, model = config.graph("cuda"), config.model()
    rng = np.random.default_rng(16)
    kept = []
    for i in range(30):
        src, dst = rng.integers(0, 40, (2, 300))
        with cupy.cuda.Stream(non_blocking=True):
            g.insert(cupy.asarray(src), cupy.asarray(dst), 0.25, i)
            model.insert(src, dst, 0.25, i)
            assert_same(g.degree(src[:20]), model.degree(src[:20]))
            kept.append((g.snapshot(), model.snapshot()))
    for s, expected in kept:
        assert_same(s, expected)
    assert_same(host(g.degree([1])), model.degree([1]))
    agree(g, model)
