"""Threads and processes: one writer, readers that see whole batches, snapshots for anyone, and a
store that works on in a forked child."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lpma
from tests.support.oracles import host
from tests.support.waiting import HANGS_S

ROUNDS = 60
GROUP = 200  # edges that come and go together


def in_threads(*bodies: Callable[[], Any]) -> list[Any]:
    """Run all bodies at once; returns what they return, raises what one raises."""
    results: list[Any] = [None] * len(bodies)
    errors: list[BaseException] = []
    together = threading.Barrier(len(bodies))

    def run(i: int, body: Callable[[], Any]) -> None:
        try:
            together.wait(30)
            results[i] = body()
        except BaseException as error:  # noqa: BLE001 - raised again below, by the test's thread
            errors.append(error)

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(bodies)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]
    return results


def revolving(g: lpma.Graph, done: threading.Event) -> None:
    """In every batch a group of edges (i, 0) … gives way to the next, (i + 1, 0) …: after each,
    exactly GROUP edges are there, all of one source, all of one weight."""
    try:
        for i in range(1, ROUNDS):
            batch = lpma.Batch()
            for v in range(GROUP):
                batch.delete(i - 1, v, time=i)
                batch.insert(i, v, i / 4, time=i)
            g.apply(batch)
    finally:
        done.set()


def revolving_graph(device: str) -> lpma.Graph:
    g = lpma.Graph(device=device, segment_size=4, predecessors=True, global_merge="never")
    g.insert(np.zeros(GROUP, int), np.arange(GROUP), 0.25, time=0)
    return g


def test_queries_see_whole_batches(device: str) -> None:
    g, done = revolving_graph(device), threading.Event()
    every, targets = np.arange(ROUNDS), np.arange(GROUP)

    def by_degree() -> int:
        seen = 0
        while not done.is_set() or not seen:
            assert sorted(g.degree(every).tolist()) == [0] * (ROUNDS - 1) + [GROUP]
            seen += 1
        return seen

    def by_neighbors() -> int:
        seen = 0
        while not done.is_set() or not seen:
            found = g.successors(every)
            assert found.ids.tolist() == targets.tolist()
            assert found.weights is not None
            assert len(set(found.weights.tolist())) == 1
            sources = g.predecessors(targets)
            assert np.diff(sources.indptr).tolist() == [1] * GROUP
            assert len(set(sources.ids.tolist())) == 1
            seen += 1
        return seen

    _, degrees, neighbors = in_threads(lambda: revolving(g, done), by_degree, by_neighbors)
    assert degrees > 0
    assert neighbors > 0
    assert (g.num_edges, g.version) == (GROUP, ROUNDS)
    assert g.successors(ROUNDS - 1).ids.tolist() == targets.tolist()
    g.check()


def test_figures_are_of_whole_batches(device: str) -> None:
    """Inside a mixed batch the store holds versions beside its edges; a reader counts none. The
    clock is called inside a batch, which is when the readers come; they may have to wait."""
    readers: list[threading.Thread] = []
    seen: list[tuple[int, ...]] = []

    def read() -> None:
        seen.append((g.num_edges, g.num_rows, g.levels, g.segments))

    def clock() -> float:
        if reading:
            readers.append(threading.Thread(target=read))
            readers[-1].start()
            readers[-1].join(0.02)
        return 0.0

    reading = False
    g = lpma.Graph(device=device, segment_size=4, global_merge="never", clock=clock)
    g.insert(np.zeros(GROUP, int), np.arange(GROUP), 0.25, time=0)
    read()
    batch = lpma.Batch()
    batch.degree(0)
    for v in range(GROUP):
        batch.insert(0, v, 0.25, time=1)
    batch.degree(0)
    reading = True
    g.apply(batch)
    reading = False
    for reader in readers:
        reader.join(HANGS_S)
        assert not reader.is_alive()
    assert len(seen) == 1 + len(readers) > 4
    assert {figures[:2] for figures in seen} == {(GROUP, GROUP)}
    assert set(seen[1:]) <= {seen[0], (g.num_edges, g.num_rows, g.levels, g.segments)}


def test_snapshots_do_not_change_under_their_readers(device: str) -> None:
    """Invariant 6. One thread takes snapshots while the writer goes on, others read them."""
    g, done = revolving_graph(device), threading.Event()
    first = g.snapshot()
    copies = [np.array(host(a)) for a in (first.indptr, first.indices, first.weights, first.times)]
    taken: list[lpma.Snapshot] = []

    def read_the_first() -> None:
        while not done.is_set():
            for array, copy in zip(
                (first.indptr, first.indices, first.weights, first.times), copies, strict=True
            ):
                assert np.array_equal(host(array), copy)

    def take_more() -> None:
        while not done.is_set():
            taken.append(g.snapshot())
            del taken[:-200]

    in_threads(lambda: revolving(g, done), read_the_first, take_more)
    taken.append(g.snapshot())
    assert first.version == 1
    assert taken[-1].version == ROUNDS
    for snapshot in taken:
        source = snapshot.version - 1
        assert snapshot.num_edges == len(snapshot.indices) == GROUP
        assert np.flatnonzero(np.diff(snapshot.indptr)).tolist() == [source]
        assert snapshot.weights is not None
        assert set(host(snapshot.weights).tolist()) == {max(source, 1) / 4}
    versions = [snapshot.version for snapshot in taken]
    assert versions == sorted(versions)


def test_writers_are_refused_or_whole(device: str) -> None:
    """Threads that all write: each batch is in, or refused with ConcurrentWrite, and never
    half of both."""
    g = lpma.Graph(device=device, segment_size=4)

    def write(thread: int) -> list[int]:
        applied = []
        for i in range(50):
            row = 1000 * thread + i
            try:
                g.insert(np.full(100, row), np.arange(100), time=1)
                applied.append(row)
            except lpma.ConcurrentWrite:
                continue
        return applied

    parts = in_threads(*(lambda thread=thread: write(thread) for thread in range(4)))
    rows = sorted(row for part in parts for row in part)
    assert rows
    assert g.version == len(rows)
    assert g.num_edges == 100 * len(rows)
    assert (g.degree(rows) == 100).all()
    g.check()


def test_many_graphs_in_many_threads(device: str) -> None:
    """Graphs share the helper threads and nothing else."""

    def fill(seed: int) -> tuple[int, int]:
        rng = np.random.default_rng(seed)
        g = lpma.Graph(device=device, predecessors=True)
        for _ in range(8):
            src, dst = rng.integers(0, 3000, (2, 4000))
            g.insert(src, dst, time=1)
        g.check()
        return g.num_edges, int(g.snapshot().indices.sum(dtype=np.int64))

    alone = [fill(seed) for seed in range(4)]
    assert in_threads(*(lambda seed=seed: fill(seed) for seed in range(4))) == alone


FORKING = """
import multiprocessing, sys
import numpy as np
import lpma

def grow(g, seed):
    u, v = np.random.default_rng(seed).integers(0, 50_000, (2, 60_000))
    g.insert(u, v, time=1)
    g.check()
    return g.num_edges, g.version

def child(queue):
    queue.put((grow(g, 2), grow(lpma.Graph(device="cpu"), 1), g.degree([5, 6]).tolist()))

g = lpma.Graph(predecessors=True, device="cpu")
first = grow(g, 1)
context = multiprocessing.get_context("fork")
queue = context.Queue()
process = context.Process(target=child, args=(queue,))
process.start()
inherited, fresh, degrees = queue.get(timeout=60)
process.join(60)
assert process.exitcode == 0
assert fresh == first and g.version == 1  # what the child did is the child's
assert inherited == grow(g, 2) and degrees == g.degree([5, 6]).tolist()
print("both went on")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("threads", ["1", "3"])
def test_a_forked_child_goes_on(threads: str) -> None:
    """The child inherits the store but none of the threads that worked on it."""
    finished = subprocess.run(
        [sys.executable, "-c", FORKING],
        env={**os.environ, "LPMA_THREADS": threads},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.strip() == "both went on"


KERNELS = """
from lpma.cpu.jit import compiled, inlined

@inlined
def doubled(x):
    return x + x

@compiled
def part(x, n):
    return doubled(x) + n

@compiled
def kernel(a, lo, hi):
    total = 0
    for i in range(lo, hi):
        total += part(a[i], i)
    return total

@compiled
def other(a, lo, hi):
    return kernel(a, lo, hi) + part(lo, hi)
"""
COMPILING = """
import threading
import numpy as np
import kernels
from lpma.cpu.threads import run_all

def call(out, i, dtype, kernel):
    start.wait()
    calls = [(np.arange(100, dtype=dtype), lo, lo + 10) for lo in range(0, 100, 10)]
    out[i] = [int(total) for total in run_all(kernel, calls)]

jobs = [(dtype, kernel) for kernel in (kernels.kernel, kernels.other)
        for dtype in (np.int64, np.float64, np.int32) for _ in range(3)]
start, out = threading.Barrier(len(jobs)), [None] * len(jobs)
threads = [threading.Thread(target=call, args=(out, i, *job)) for i, job in enumerate(jobs)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(kernels.kernel.signatures), sum(kernels.kernel.stats.cache_hits.values()), out)
"""


def test_kernels_are_compiled_from_many_threads_at_once(tmp_path: Path) -> None:
    """In the first process all threads find nothing compiled, in the second all read the cache:
    what `run_all` leaves to Numba."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    expected = []
    for extra in (0, 1):
        one = [3 * sum(range(lo, lo + 10)) + extra * (3 * lo + 10) for lo in range(0, 100, 10)]
        expected += [one] * 9
    for hits in (0, 3):
        finished = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", COMPILING],
            env={**os.environ, "LPMA_THREADS": "4", "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
                 "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}"},
            capture_output=True, text=True, timeout=HANGS_S, check=False,
        )  # fmt: skip
        assert finished.returncode == 0, finished.stderr
        assert finished.stdout.strip() == f"3 {hits} {expected}"


def test_readers_alone_are_never_refused() -> None:
    """A lock that another thread has just taken is not this thread's, though this one held it
    last."""
    g = lpma.Graph(device="cpu")
    g.insert([1, 2], [2, 3])
    refused: list[BaseException] = []

    def read() -> None:
        try:
            for _ in range(250_000):
                g.has_edge(1, 2)
        except lpma.ConcurrentWrite as error:
            refused.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        readers = [threading.Thread(target=read) for _ in range(4)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
    finally:
        sys.setswitchinterval(interval)
    assert refused == []


WAITING_FOR_ITSELF = """
import signal, threading
import lpma
g = lpma.Graph(device="cpu")
g.insert([1, 2], [2, 3])

ends = False

def handle(*_):
    try:
        g.has_edge(1, 2)
    except lpma.ConcurrentWrite:
        pass
    if not ends:  # only now the next one, or on busy cores handlers would nest without end
        signal.setitimer(signal.ITIMER_REAL, 0.0003)

def read():
    while True:
        g.has_edge(1, 2)

threading.Thread(target=read, daemon=True).start()
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.0003)
for _ in range(200_000):
    try:
        g.has_edge(1, 2)
    except lpma.ConcurrentWrite:
        pass
ends = True
signal.setitimer(signal.ITIMER_REAL, 0)
print("done")
"""


def test_a_signals_handler_never_waits_for_its_own_thread() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WAITING_FOR_ITSELF], capture_output=True, text=True, timeout=HANGS_S,
        check=True,
    )  # fmt: skip
    assert done.stdout == "done\n"


_OWN_KERNELS = """
import lpma
from lpma.backend.numba import backend
whole = backend.addresses
backend.addresses = lambda: whole().copy()
graph = lpma.Graph(device="cpu")
for v in range(50):
    graph.insert([v, 1], [2, 3])
print(graph.num_edges)
"""


def test_first_batches_at_once_keep_their_kernels() -> None:
    """Two threads whose first batches come at once each make the table of kernels' addresses, and
    one table is kept by nobody but the call."""
    child = subprocess.run(
        [sys.executable, "-c", _OWN_KERNELS], cwd=Path(__file__).parents[2], capture_output=True
    )
    assert child.returncode == 0
    assert child.stdout == b"51\n"
