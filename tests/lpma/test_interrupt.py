"""A batch that is cut off: at every line, call and return of its Python code, and by Ctrl-C.

An exception raised by a tracer, as one asked for by another thread would be, comes where no signal
does: also where signals wait. So it tests what is left for the rest: the batch is not there, or
whole, or the graph says that it is broken. Ctrl-C leaves the first two only.
"""

from __future__ import annotations

import copy
import os
import pickle
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import lpma
from ingest import Pipeline, PipelineError, SqliteLog, encode_updates
from lpma import BrokenStore, Columns, Kind
from lpma.cpu import threads
from tests.conftest import SOAK
from tests.support.layout_oracles import fill
from tests.support.oracles import ModelGraph, agree
from tests.support.strategies import Burst, Config

HERE = str(Path(lpma.__file__).parent)
# Of a batch, at the most: evenly over its events, and others in each run of a test.
MOMENTS = 10_000 if SOAK else 60
PRESSES = 1000 if SOAK else 20


class Cut:
    """While it is entered, event number `n` in the package's files, on this thread, raises."""

    def __init__(self, n: int, error: type[BaseException]) -> None:
        self.n, self.error, self.events, self.at = n, error, 0, ""

    def __enter__(self) -> Cut:
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(self._before)

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
    return Columns.edges(Kind.APPEND, u, v, 1.0, np.arange(n))


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
            batch.append(i // 20, i % 20 + 20, 0.5, time=i)
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
CASES: dict[str, tuple[Config, list[Columns], Columns, bool]] = {
    "one edge": (Config(), [dense(90)], sparse(Kind.APPEND, 1, 1), True),
    "deletions": (Config(), [dense(90)], sparse(Kind.DELETE, 90, 30), True),
    "expanding": (small, [dense(40)], dense(300), True),
    "shrinking": (small, [dense(150)], sparse(Kind.DELETE, 140, 1), True),
    "a global merge": (Config(segment_size=4), [dense(30)], dense(200), True),
    "larger": (Config(), [dense(90)], Burst(3, 2500, 400, 0.2, hub=False).columns(), True),
    "mixed": (both, [dense(90)], mixed(40, 0), True),
    "mixed with a head": (both, [dense(90)], mixed(60, 45), True),
    "mixed that shrinks": (Config(segment_size=2, predecessors=True, strategy="top-down"),
                           [dense(150)], mixed(145, 30), True),
    "mixed, undirected": (Config(segment_size=4, directed=False), [dense(90)], mixed(40, 0), True),
    "in pieces": (both, [dense(90)], mixed(40, 0), False),
    "a removal": (both, [dense(90)], Columns.edges(Kind.REMOVE_VERTEX, [0, 3], None, None, 5),
                  True),
    "undirected": (Config(segment_size=4, directed=False), [dense(60)],
                   Burst(5, 60, 30, 0.3, hub=False).columns(), True),
    "queries": (both, [dense(90)], queries(), True),
    "queries in pieces": (both, [dense(90)], queries(), False),
    "nothing": (Config(), [dense(9)], dense(0), True),
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
        lambda: g.insert(1, 2), lambda: g.delete(1, 2), lambda: g.add_vertices(1),
        lambda: g.remove_vertices(1), lambda: g.apply(lpma.Batch()), lambda: g.apply(dense(5)),
        lambda: g.edges(1, 2), lambda: g.successors(1), lambda: g.hops(1, 2), lambda: g.degree(1),
        lambda: g.has_vertices(1), lambda: g.changes(0), lambda: g.touched(0),
        lambda: g.num_edges, lambda: g.num_vertices, lambda: g.levels, lambda: g.segments,
        lambda: g.density, lambda: g.nbytes, lambda: g.unchanged, g.stats, g.snapshot,
        lambda: g.snapshot(compact=True), lambda: g.save(tmp_path / "broken.lpma"), g.image,
        g.check, lambda: fill(g, np.empty(0, np.uint64), None, None),
        *([lambda: g.predecessors(1)] if g.has_predecessors else []),
    ]  # fmt: skip


def assert_broken(g: lpma.Graph, tmp_path: Path) -> None:
    """Every call says so, and none waits for a lock that was never let go."""
    for call in calls(g, tmp_path):
        with pytest.raises(BrokenStore, match="load it again"):
            call()
    assert not list(tmp_path.iterdir())


def rest(done: Any) -> None:
    """After what was done, until a signal comes, through whichever thread."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        time.sleep(0.001)


def moments(events: int, salt: int) -> list[int]:
    """The first, the last, and some between."""
    step = max(1, events // MOMENTS)
    return [1, *range(2 + salt % step, events, step), events]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, MemoryError])
@pytest.mark.parametrize("name", CASES)
def test_cut_off_at_any_line(
    name: str, error: type[BaseException], device: str, tmp_path: Path
) -> None:
    config, before, batch, opera = CASES[name]
    old, new = after(config, before), after(config, [*before, batch])
    g = graph_of(config, device, before)
    g.apply(batch, opera)  # compiles
    g = graph_of(config, device, before)
    with Cut(0, error) as count:
        g.apply(batch, opera)
    agree(g, new)
    ended = {"before": 0, "after": 0, "broken": 0}
    g = graph_of(config, device, before)
    for n in moments(count.events, random.randrange(1 << 30)):
        with Cut(n, error) as cut:
            unapplied = False
            try:
                g.apply(batch, opera)
            except lpma.OutOfMemory as told:
                unapplied = not isinstance(told, lpma.AnswersTooLarge)
            except (error, BrokenStore):
                pass
        assert not g._guard._lock.locked(), cut.at
        assert not unapplied or g.version == old.version, cut.at
        try:
            version = g.version
            agree(g, old if version == old.version else new)
            ended["before" if version == old.version else "after"] += 1
        except BrokenStore:
            assert_broken(g, tmp_path)
            ended["broken"] += 1
            version = -1
        except AssertionError as wrong:
            raise AssertionError(f"cut off at {cut.at}") from wrong
        if version != old.version:
            g = graph_of(config, device, before)
    assert ended["before"] > 0, ended
    assert ended["broken"] + ended["after"] > 0, ended
    g.apply(dense(0))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("name", CASES)
def test_ctrl_c(name: str, device: str) -> None:
    """The program goes on after it, with the batch or without, and the next comes through too."""
    config, before, batch, opera = CASES[name]
    old, new = after(config, before), after(config, [*before, batch])
    started, rounds = time.perf_counter(), 10
    for _ in range(rounds):
        graph_of(config, device, before).apply(batch, opera)
    most = 1.2 * (time.perf_counter() - started) / rounds
    rng, ended, process = random.Random(), set(), os.getpid()
    for _ in range(PRESSES):
        g = graph_of(config, device, before)
        wait, ready = rng.uniform(0, most), threading.Event()

        def press(wait: float = wait, ready: threading.Event = ready) -> None:
            ready.wait()
            end = time.perf_counter() + wait
            while time.perf_counter() < end:
                pass
            os.kill(process, signal.SIGINT)

        def work(ready: threading.Event = ready, g: lpma.Graph = g) -> None:
            ready.set()
            rest(g.apply(batch, opera))

        finger = threading.Thread(target=press)
        finger.start()
        with pytest.raises(KeyboardInterrupt):
            work()
        finger.join()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ended.add(g.version)
        agree(g, old if g.version == old.version else new)
    assert new.version in ended


def test_reading_cut_off_at_any_line(device: str, tmp_path: Path) -> None:
    """Reading changes nothing, so nothing breaks; and the lock is let go."""
    config, before, batch, _ = CASES["mixed"]
    g, model = graph_of(config, device, [*before, batch]), after(config, [*before, batch])
    reads = [
        lambda: g.edges([1, 2], [3, 4]), lambda: g.successors([1, 2]), lambda: g.hops([1, 2], 3),
        lambda: g.degree([1, 2]), lambda: g.predecessors([1]), lambda: g.has_vertices([1, 9]),
        lambda: g.changes(1), lambda: g.touched(1), lambda: g.num_vertices, lambda: g.nbytes,
        g.snapshot, lambda: g.snapshot(compact=True), g.image, lambda: g.save(tmp_path / "saved"),
        g.check,
    ]  # fmt: skip
    for read in reads:
        read()
        with Cut(0, KeyboardInterrupt) as count:
            read()
        for n in moments(4 * count.events, random.randrange(1 << 30)):
            with Cut(n, KeyboardInterrupt) as cut, suppress(KeyboardInterrupt):
                read()
            assert not g._guard._lock.locked(), cut.at
    agree(g, model)
    g.apply(batch)
    model.apply(batch)
    agree(g, model)


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


def test_a_signal_waits_for_the_batch(device: str) -> None:
    g, clock = ringing(device)
    clock.ring = lambda: signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        g.insert(5, 6, time=2)
    assert (g.version, g.num_edges) == (2, 3)
    clock.ring = None
    g.insert(7, 8, time=3)
    g.check()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_programs_own_handler_is_called_after(number: int, device: str) -> None:
    """Once a signal, as ever, and it stays the program's; one that is ignored stays so."""
    g, clock = ringing(device)
    versions: list[int] = []

    def note(number: int, frame: Any) -> None:
        versions.append(g.version)
        assert g.num_edges == g.version + 1  # nothing is held by whoever was interrupted

    clock.ring = lambda: signal.raise_signal(number)
    before = signal.signal(number, note)
    try:
        g.insert(5, 6, time=2)
        assert set(versions) == {2}
        assert signal.getsignal(number) is note
        signal.signal(number, signal.SIG_IGN)
        g.insert(7, 8, time=2)
        assert signal.getsignal(number) is signal.SIG_IGN
        signal.signal(number, signal.SIG_DFL)
        clock.ring = None
        g.insert(9, 10, time=2)
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)
    assert g.version == 4


def test_another_thread_has_no_signals_to_hold(device: str) -> None:
    g, clock = ringing(device)
    seen: list[Any] = []
    clock.ring = lambda: seen.append(signal.getsignal(signal.SIGINT))
    thread = threading.Thread(target=g.insert, args=(5, 6))
    thread.start()
    thread.join()
    assert set(seen) == {signal.getsignal(signal.SIGINT)}
    assert g.version == 2


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit, lpma.BatchError])
def test_whatever_a_clock_raises_is_told(
    error: type[BaseException], device: str, tmp_path: Path
) -> None:
    """At its last look the batch is there, but not yet noted."""
    looks = 0

    def ring() -> None:
        nonlocal looks
        looks -= 1
        if looks == 0:
            raise error("no time")

    g, clock = ringing(device)
    clock.ring = ring
    g.insert(5, 6, time=2)
    looks = -looks
    g, clock = ringing(device)
    clock.ring = ring
    told = error if error is SystemExit else BrokenStore
    with pytest.raises(told) as raised:
        g.insert(5, 6, time=2)
    assert error is SystemExit or isinstance(raised.value.__cause__, error)
    assert_broken(g, tmp_path)


@pytest.mark.parametrize("when", ["at work", "waiting"])
def test_no_helper_is_left_at_work(when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What kernels read and write may go as soon as `run_all` is left."""
    monkeypatch.setattr(threads, "THREADS", 3)
    monkeypatch.setattr(threads, "_pool", None)
    begun, ended = threading.Barrier(2), threading.Event()
    main, process = threading.get_ident(), os.getpid()

    def kernel(number: int) -> None:
        if threading.get_ident() == main:
            begun.wait(30)
            if when == "at work":
                raise KeyboardInterrupt
        elif number < 2:
            begun.wait(30)
            for _ in range(5):
                time.sleep(0.02)
                if when == "waiting":
                    os.kill(process, signal.SIGINT)
            ended.set()

    with pytest.raises(KeyboardInterrupt):
        rest(threads.run_all(kernel, [(0,), (1,)]))
    assert ended.is_set()
    assert threads._pool is not None
    threads._pool.shutdown()


class Stopped(Exception):
    pass


def test_a_pipeline_stops_with_a_broken_graph(device: str, tmp_path: Path) -> None:
    """It writes no checkpoint of it, says what to do, and resumes from the one before."""

    looks = iter([False])  # the first is before anything is written

    def ring() -> None:
        if next(looks, True):
            raise Stopped

    with SqliteLog(tmp_path / "log") as log:
        log.produce_many("updates", [encode_updates(range(10), range(1, 11))] * 6)
        g, clock = ringing(device)
        pipeline = Pipeline(log, g, tmp_path / "c", batch_size=10)
        pipeline.run(until=20)
        pipeline.checkpoint_now()
        pipeline.run(until=10)
        kept = sorted(path.name for path in (tmp_path / "c").iterdir())
        clock.ring = ring
        with pytest.raises(BrokenStore, match="resume the pipeline from its checkpoint"):
            pipeline.step()
        clock.ring = None
        for refused in (pipeline.step, pipeline.checkpoint_now):
            with pytest.raises(PipelineError):
                refused()
        pipeline.close()
        assert sorted(path.name for path in (tmp_path / "c").iterdir()) == kept
        with pytest.raises(BrokenStore):
            g.image()
    with SqliteLog(tmp_path / "log") as log, Pipeline.resume(tmp_path / "c", log) as resumed:
        assert isinstance(resumed.graph, lpma.Graph)
        resumed.run(until="end")
        assert resumed.operations == 60
        weight = resumed.graph.edges(range(10), range(1, 11)).weight
        assert weight is not None
        assert weight.tolist() == [6, 7, 7, *7 * [6]]
        resumed.graph.check()


def test_what_fails_before_anything_is_written_changes_nothing(device: str) -> None:
    g, clock = ringing(device)

    def ring() -> None:
        raise Stopped

    clock.ring = ring
    with pytest.raises(Stopped):
        g.insert(5, 6)
    clock.ring = None
    assert g.version == 1
    g.insert(5, 6)
    g.check()
    assert g.num_edges == 3


def test_a_clock_or_a_handler_that_uses_its_graph_is_told(device: str) -> None:
    """It would wait for itself for ever."""
    g, clock = ringing(device)
    clock.ring = lambda: g.num_edges
    with pytest.raises(lpma.ConcurrentWrite, match="within a call"):
        g.insert(5, 6)


def test_a_fork_beside_a_writer_does_not_wait_for_it(device: str) -> None:
    """The child has none of the parent's threads, so no lock of theirs either."""
    if device != "cpu":
        pytest.skip("a CUDA context does not survive a fork")
    g, clock = ringing(device)
    begun, end = threading.Event(), threading.Event()

    def ring() -> None:
        begun.set()
        end.wait(60)

    clock.ring = ring
    writer = threading.Thread(target=g.insert, args=(5, 6))
    writer.start()
    assert begun.wait(60)
    child = os.fork()
    if not child:  # ends here, whatever happens
        status = 1
        try:
            print(g.num_edges)
        except BrokenStore:
            status = 0
        finally:
            os._exit(status)
    end.set()
    writer.join()
    assert os.waitpid(child, 0)[1] == 0
    assert g.num_edges == 3


def test_a_graph_has_one_face(device: str) -> None:
    g, _ = ringing(device)
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="save"):
            copied(g)
