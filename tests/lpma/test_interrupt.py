"""A batch that is cut off: at every line, call and return of its Python code, and by Ctrl-C.

An exception raised by a tracer, as one asked for by another thread would be, comes where no signal
does: also where signals wait. So it tests what is left for the rest: the batch is not there, or
whole, or the graph says that it is broken. Ctrl-C leaves the first two only.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import threading
import time
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import lpma
from lpma import BrokenStore
from tests.support.cut_batches import (
    CASES,
    PRESSES,
    Cut,
    after,
    assert_broken,
    dense,
    graph_of,
    moments,
)
from tests.support.oracles import agree
from tests.support.waiting import HANGS_S


def rest(done: Any) -> None:
    """After what was done, until a signal comes, through whichever thread."""
    end = time.monotonic() + HANGS_S
    while time.monotonic() < end:
        time.sleep(0.001)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, MemoryError])
@pytest.mark.parametrize("name", CASES)
def test_cut_off_at_any_line(
    name: str, error: type[BaseException], device: str, tmp_path: Path
) -> None:
    config, before, batch = CASES[name]
    old, new = after(config, before), after(config, [*before, batch])
    g = graph_of(config, device, before)
    g.apply(batch)  # compiles
    g = graph_of(config, device, before)
    with Cut(0, error) as count:
        g.apply(batch)
    agree(g, new)
    ended = {"before": 0, "after": 0, "broken": 0}
    g = graph_of(config, device, before)
    planned = moments(count.events, random.randrange(1 << 30))
    # A wait on a device has more events in one run than in another: on, until nothing is cut off.
    for n in chain(planned, itertools.count(count.events + 1, 1 + count.events // 60)):
        with Cut(n, error) as cut:
            unapplied = False
            try:
                g.apply(batch)
            except lpma.OutOfMemory as told:
                unapplied = not isinstance(told, lpma.AnswersTooLarge)
            except (error, BrokenStore):
                pass
        assert not g._lock.is_held(), cut.at
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
        if n > count.events and not cut.at:
            break
        if version != old.version:
            g = graph_of(config, device, before)
    assert ended["before"] > 0, ended
    assert ended["broken"] + ended["after"] > 0, ended
    g.apply(dense(0))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("name", CASES)
def test_ctrl_c(name: str, device: str) -> None:
    """The program goes on after it, with the batch or without, and the next comes through too."""
    config, before, batch = CASES[name]
    old, new = after(config, before), after(config, [*before, batch])
    started, rounds = time.perf_counter(), 10
    for _ in range(rounds):
        graph_of(config, device, before).apply(batch)
    most = 1.2 * (time.perf_counter() - started) / rounds
    rng, ended, process = random.Random(), set(), os.getpid()
    for number in range(PRESSES):
        g = graph_of(config, device, before)
        wait, ready = rng.uniform(0, most), threading.Event()
        comes_after = number == PRESSES - 1  # so that one does

        def press(wait: float = wait, ready: threading.Event = ready) -> None:
            ready.wait()
            end = time.perf_counter() + wait
            while time.perf_counter() < end:
                pass
            os.kill(process, signal.SIGINT)

        def work(
            ready: threading.Event = ready, g: lpma.Graph = g, comes_after: bool = comes_after
        ) -> None:
            if not comes_after:
                ready.set()
            done = g.apply(batch)
            ready.set()
            rest(done)

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
    config, before, batch = CASES["mixed"]
    g, model = graph_of(config, device, [*before, batch]), after(config, [*before, batch])
    reads = [
        lambda: g.edges([1, 2], [3, 4]), lambda: g.successors([1, 2]), lambda: g.hops([1, 2], 3),
        lambda: g.degree([1, 2]), lambda: g.predecessors([1]), lambda: g.has_vertices([1, 9]),
        lambda: g.changes(1), lambda: g.touched(1), lambda: g.num_rows, lambda: g.nbytes,
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
            assert not g._lock.is_held(), cut.at
    agree(g, model)
    g.apply(batch)
    model.apply(batch)
    agree(g, model)
