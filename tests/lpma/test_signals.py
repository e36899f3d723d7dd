"""What comes while a batch is applied: signals wait, and whatever else ends it breaks the graph.

The graph's clock, which every batch looks at, is what sends the signals and raises here.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import lpma
from ingest import Pipeline, PipelineError, SqliteLog, encode_updates
from lpma import BrokenStore
from lpma.cpu import threads
from tests.support.cut_batches import assert_broken, ringing
from tests.support.waiting import HANGS_S


def rest(done: Any) -> None:
    """After what was done, until a signal comes, through whichever thread."""
    end = time.monotonic() + HANGS_S
    while time.monotonic() < end:
        time.sleep(0.001)


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
    begun, ended = threading.Barrier(2), threading.Event()
    main, process = threading.get_ident(), os.getpid()

    def kernel(number: int) -> None:
        if threading.get_ident() == main:
            begun.wait(HANGS_S)
            if when == "at work":
                raise KeyboardInterrupt
        elif number < 2:
            begun.wait(HANGS_S)
            for _ in range(5):
                time.sleep(0.02)
                if when == "waiting":
                    os.kill(process, signal.SIGINT)
            ended.set()

    with pytest.raises(KeyboardInterrupt):
        rest(threads.run_all(kernel, [(0,), (1,)]))
    assert ended.is_set()


def test_a_job_is_done_by_no_more_threads_than_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who calls has buffers for so many."""
    for count in (4, 2):
        monkeypatch.setattr(threads, "THREADS", count)
        at_once: list[int] = []
        seen: list[int] = []

        def kernel(number: int) -> None:
            at_once.append(number)  # noqa: B023  # called in this round alone
            seen.append(len(at_once))  # noqa: B023
            time.sleep(0.001)
            at_once.pop()  # noqa: B023

        threads.run_all(kernel, [(number,) for number in range(40)])
        assert len(seen) == 40
        assert max(seen) <= count


def test_a_job_may_be_interrupted_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """At each line that the thread runs for it, and at each return, be it of the standard library:
    the next job finds everything as it should be."""
    monkeypatch.setattr(threads, "THREADS", 3)
    calls = [(number,) for number in range(4)]
    results: list[Any] = []

    def kernel(number: int) -> int:
        time.sleep(0)  # lets a helper run
        return number * number

    def run() -> None:
        results.append(threads.run_all(kernel, calls))

    for last in itertools.count(1):
        events = 0

        def trace(frame: Any, event: str, _: Any) -> Any:
            nonlocal events
            events += 1
            if events == last:  # noqa: B023  # called in this round alone
                sys.settrace(None)
                raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            run()
            break
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        results.clear()
        other = threading.Thread(target=run, daemon=True)
        other.start()
        other.join(HANGS_S)
        assert results == [[0, 1, 4, 9]], f"after an interrupt at event {last}"
    assert last > 30


class Stopped(Exception):
    pass


def test_a_pipeline_stops_with_a_broken_graph(device: str, tmp_path: Path) -> None:
    """It writes no checkpoint of it, says what to do, and resumes from the one before."""

    def ring() -> None:
        if g._stores.written:
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
        assert resumed.stats.operations == 60
        weight = resumed.graph.edges(range(10), range(1, 11)).weights
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
        end.wait(HANGS_S)

    clock.ring = ring
    writer = threading.Thread(target=g.insert, args=(5, 6))
    writer.start()
    assert begun.wait(HANGS_S)
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
