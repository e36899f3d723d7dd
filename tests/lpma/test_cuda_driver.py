"""CUDA's driver, called with the interpreter's lock kept (lpma/cuda/driver.py)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import lpma
from tests.support.counting import Counting
from tests.support.counting import counting as counting_thread
from tests.support.oracles import host

pytestmark = pytest.mark.gpu

SLOW = """
extern "C" __global__ void late(volatile long long* word, long long value, long long clocks) {
  long long began = clock64();
  while (clock64() - began < clocks) {}
  *word = value;
  __threadfence_system();
}
"""
CLOCKS = 300_000_000  # some 200 ms


@pytest.fixture
def counting() -> Iterator[Counting]:
    with counting_thread() as thread:
        yield thread


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("what", ["word", "stream", "event", "number"])
def test_a_long_wait_lets_other_threads_run(
    cupy: Any, counting: Counting, monkeypatch: pytest.MonkeyPatch, compiled: bool, what: str
) -> None:
    """A kernel takes 200 ms. Were the lock kept, the other thread would not count meanwhile."""
    driver = _driver(monkeypatch, compiled)
    memory = cupy.cuda.alloc_pinned_memory(8)
    word = np.frombuffer(memory, np.int64, 1)
    word[0] = 0
    stream, event = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Event(disable_timing=True)
    late = cupy.RawKernel(SLOW, "late")
    there = cupy.zeros(1, np.int64)
    cupy.cuda.runtime.deviceSynchronize()
    with stream:
        late((1,), (1,), (memory.ptr, np.int64(7), np.int64(CLOCKS)))
        driver.record(event, stream)
        before = counting.count
        if what == "word":
            driver.await_word(memory.ptr, 7, stream, memory.ptr)
        elif what == "stream":
            driver.await_stream(stream)
        elif what == "event":
            driver.await_event(event)
        else:
            assert driver.number(there) == 0
        counted = counting.count - before
    assert word[0] == 7
    assert counted > 1000


def _driver(monkeypatch: pytest.MonkeyPatch, compiled: bool) -> Any:
    from lpma.cuda import driver

    driver.compiled.get_ready()
    if not compiled:
        from lpma.cuda.library import by_ctypes

        for name, call in vars(by_ctypes(driver._library)).items():
            monkeypatch.setattr(driver.thread.calls, name, call)
    return driver


def test_without_compiled_calls_the_results_are_the_same(
    cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[list[Any]] = []
    for compiled in (True, False):
        _driver(monkeypatch, compiled)
        rng = np.random.default_rng(3)
        g = lpma.Graph(device="cuda", predecessors=True)
        for n in (1, 100, 20_000, 200_000):
            src, dst = rng.integers(0, 3000, (2, n))
            g.insert(src, dst, time=np.arange(n))
            g.insert(cupy.asarray(dst), cupy.asarray(src), time=cupy.arange(n))
            g.delete(src[::3], dst[::3], time=n)
        batch = lpma.Batch()
        batch.insert(1, 2)
        query = batch.hops(1, 2)
        batch.remove_vertex(2)
        s, answers = g.snapshot(), g.apply(batch)
        reached: Any = answers[query]
        edges, into = g.edges(*rng.integers(0, 3000, (2, 5000))), g.predecessors(range(100))
        found.append([
            reached.ids, edges.found, edges.weights, edges.times, into.indptr, into.ids,
            into.weights, s.indptr, s.indices, s.weights, s.times,
        ])  # fmt: skip
        g.check()
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(host(one), host(other))


@pytest.mark.parametrize("compiled", [True, False])
def test_what_the_driver_refuses_is_raised(
    cupy: Any, monkeypatch: pytest.MonkeyPatch, compiled: bool
) -> None:
    driver = _driver(monkeypatch, compiled)
    stream = cupy.cuda.Stream(non_blocking=True)
    with pytest.raises(cupy.cuda.driver.CUDADriverError, match="INVALID"):
        driver.fail(driver.thread.calls.launch(0, 1, 1, 0, stream.ptr, 0))
    with pytest.raises(cupy.cuda.driver.CUDADriverError, match="INVALID"):
        driver.clear(1 << 20, 8, stream)


def test_a_thread_that_has_called_nothing_before(cupy: Any) -> None:
    from lpma.cuda import driver

    found: list[Any] = []

    def work() -> None:
        found.append(host(driver.zeros(5, np.int64)).tolist())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [[0] * 5]


@pytest.mark.parametrize("kind", ["uint32", "int64", "uint64", "int32", "uint8"])
def test_what_is_asked_for_may_have_any_type_and_length(cupy: Any, kind: str) -> None:
    """Short columns are read where they lie; of long ones and of many, some are copied."""
    g, here = lpma.Graph(device="cuda"), lpma.Graph(device="cpu")
    rng = np.random.default_rng(1)
    for graph in (g, here):
        graph.insert(np.arange(200), (np.arange(200) * 7) % 200)
    for n in (0, 1, 1000, 300_000, 600_000, 3):
        src, dst = rng.integers(0, 200, (2, n)).astype(kind)
        for _ in range(2):  # the second reads the other piece of memory
            np.testing.assert_array_equal(host(g.edges(src, dst).found), here.edges(src, dst).found)
            np.testing.assert_array_equal(host(g.degree(src)), here.degree(src))
    with pytest.raises(lpma.BatchError, match="row 3 has"):
        g.edges(np.array([1, 2, 3, 2**32 - 1]), np.zeros(4, np.int64))
