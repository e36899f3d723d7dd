"""SingleOperations operation at a time that is cut off, by an error, a signal or another thread."""

from __future__ import annotations

import itertools
import random
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import lpma
from lpma import BrokenStore
from tests.support.cut_batches import Cut, assert_broken, moments
from tests.support.oracles import ModelGraph, agree, assert_same
from tests.support.single_operations import (
    ADD,
    DELETE,
    INSERT,
    Operation,
    counted,
    does_singles,
    pair,
    short_way,
)
from tests.support.strategies import Config


def filled(device: str, clock: Callable[[], float] = lambda: 0.0) -> lpma.Graph:
    """A graph with room in its leaves."""
    g = lpma.Graph(device=device, clock=clock, predecessors=True)
    g.insert(range(40), range(1, 41), time=1)
    return g


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, MemoryError])
@pytest.mark.parametrize("kind", [INSERT, DELETE, ADD])
def test_cut_off_at_any_line(
    kind: int, error: type[BaseException], device: str, tmp_path: Path
) -> None:
    """It is applied, or not, or the graph says that it is broken; and the lock is let go."""
    operation = Operation(kind, 5, 6 if kind == DELETE else 9, 1.0, 2)
    old, new = ModelGraph(predecessors=True), ModelGraph(predecessors=True)
    for model in (old, new):
        model.insert(range(40), range(1, 41), time=1)
    operation.do(new)
    g = filled(device)
    with Cut(0, error) as count:
        operation.do(g)
    agree(g, new)
    ended = {"before": 0, "after": 0, "broken": 0}
    for n in moments(count.events, random.randrange(1 << 30)):
        g = filled(device)
        # A MemoryError may be one that the graph can do without.
        with Cut(n, error) as cut, suppress(error, lpma.LpmaError):
            operation.do(g)
        assert not g._lock.is_held(), cut.at
        try:
            version = g.version
            agree(g, old if version == old.version else new)
            ended["before" if version == old.version else "after"] += 1
        except BrokenStore:
            assert_broken(g, tmp_path)
            with pytest.raises(BrokenStore):
                g.has_edge(1, 2)
            ended["broken"] += 1
    assert ended["before"] > 0, ended
    assert ended["broken"] > 0, ended


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_wait(number: int, device: str) -> None:
    ring: list[Any] = []

    def clock() -> float:
        if ring:
            signal.raise_signal(number)
        return 0.0

    g = filled(device, clock)
    came: list[int] = []
    before = signal.signal(number, lambda *_: came.append(g.version))
    try:
        ring.append(True)
        with counted() as ways:
            g.insert(5, 9, time=2)
        ring.clear()
    finally:
        signal.signal(number, before)
    assert ways.short == does_singles(g._stores)
    assert came
    assert set(came) == {2}
    g.check()


@pytest.mark.parametrize("look", [1, 2])
def test_a_clock_that_raises(look: int, device: str, tmp_path: Path) -> None:
    """At its first look nothing is done; at its last one the edge is there, but not noted."""
    looks: Iterator[int] = iter(())

    def clock() -> float:
        if next(looks, 0) == look:
            raise ZeroDivisionError
        return 0.0

    g = filled(device, clock)
    short_way(g)
    looks = itertools.count(1)
    with pytest.raises(ZeroDivisionError if look == 1 else BrokenStore):
        g.insert(5, 9, time=2)
    looks = iter(())
    if look == 1:
        assert (g.version, g.has_edge(5, 9)) == (1, False)
        g.check()
    else:
        assert_broken(g, tmp_path)


def test_a_clock_that_uses_its_graph_is_told(device: str) -> None:
    ask: list[lpma.Graph] = []
    g = filled(device, lambda: float(bool(ask and ask[0].has_edge(1, 2))))
    ask.append(g)
    with pytest.raises(lpma.ConcurrentWrite, match="within a call"):
        g.insert(5, 9)
    ask.clear()
    assert g.version == 1


def test_writers_are_refused_or_whole(device: str) -> None:
    """Threads that all write one edge at a time, beside those that read."""
    g = filled(device)
    done = threading.Event()

    def write(thread: int) -> int:
        applied = 0
        for i in range(300):
            try:
                g.insert(100 + thread, i, time=1)
                applied += 1
            except lpma.ConcurrentWrite:
                continue
        return applied

    def read() -> None:
        while not done.is_set():
            degree = g.degree(100)
            assert len(g.neighbors(100)) >= degree
            assert g.has_edge(0, 1)

    with ThreadPoolExecutor(6) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        applied = [writer.result() for writer in [pool.submit(write, i) for i in range(4)]]
        done.set()
        for reader in readers:
            reader.result()
    assert sum(applied) > 0
    assert (g.version, g.num_edges) == (1 + sum(applied), 40 + sum(applied))
    assert [g.degree(100 + i) for i in range(4)] == applied
    g.check()


def test_a_long_history_of_single_edges(device: str) -> None:
    """More of them than are packed together, with batches between."""
    short, long = pair(device, Config(segment_size=8))
    for g in (short, long):
        for i in range(1300):
            g.insert(i % 40, i // 40, time=1)
            if i % 500 == 7:
                g.delete([1, 2], [0, 0], time=1)
    for since in (0, 1, 7, 511, 512, 513, 700, short.version - 1, short.version):
        assert_same(short.changes(since), long.changes(since))
