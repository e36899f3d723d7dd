"""Processes that are killed at named points of their code, the same on every machine.

A point is a function by its name: "os:fsync", "ingest.state.journal:Journal.sync". A process dies
at a `Place`: before or after the n-th call of a point. An unbroken run tells how often it calls
each (`Ended.calls`), and `drawn` picks places that it comes by.

    whole = run(work, log, points=POINTS)
    for place in drawn(rng, whole.calls, 20):
        assert run(work, fresh_log, points=POINTS, place=place).killed

REQUIRES, where kills are asserted: a run calls its points as often each time, whatever the machine.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import multiprocessing
import os
import pkgutil
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Self

import numpy as np

from tests.support.compiled import IMPORTED_LATE
from tests.support.waiting import HANGS_S


class Place(NamedTuple):
    """Before or after one call of a point; calls count from 0."""

    point: str
    call: int
    after: bool = False


class Ended(NamedTuple):
    """Whether a process was killed; if not, how often it called each point."""

    killed: bool
    calls: Counter[str]


def watch(points: Iterable[str], place: Place | None = None) -> Counter[str]:
    """Count each point's calls in this process from now on, and kill it at `place`. A coroutine
    function returns when it has been awaited. Returns the counter, which goes on."""
    calls: Counter[str] = Counter()
    turn = threading.Lock()  # threads may share a point
    for point in points:
        _watch_one(point, place, calls, turn)
    return calls


def _watch_one(point: str, place: Place | None, calls: Counter[str], turn: threading.Lock) -> None:
    path, _, attribute = point.replace(":", ".").rpartition(".")
    owner = pkgutil.resolve_name(path)
    function = getattr(owner, attribute)

    def begun() -> int:
        with turn:
            number = calls[point]
            calls[point] += 1
        if place == (point, number, False):
            kill_this_process()
        return number

    def ended(number: int) -> None:
        if place == (point, number, True):
            kill_this_process()

    @functools.wraps(function)
    def watched(*args: Any, **named: Any) -> Any:
        number = begun()
        result = function(*args, **named)
        ended(number)
        return result

    @functools.wraps(function)
    async def awaited(*args: Any, **named: Any) -> Any:
        number = begun()
        result = await function(*args, **named)
        ended(number)
        return result

    setattr(owner, attribute, awaited if inspect.iscoroutinefunction(function) else watched)


def kill_this_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def run(
    work: Callable[..., Any], *args: Any, points: Iterable[str] = (), place: Place | None = None
) -> Ended:
    """Call `work(*args)` in a process of its own, which dies at `place`. See `Started`."""
    with Started(work, *args, points=points, place=place) as started:
        return started.wait()


class Started:
    """A process that calls `work(*args)`, and dies at `place`; leaving the block kills it.

    REQUIRES: `work` and its arguments can be pickled. The process is forked from one that has
    `work`'s module imported and no threads, so that dozens take seconds; what a test has patched
    in its own process is not patched there."""

    def __init__(
        self, work: Callable[..., Any], *args: Any, points: Iterable[str] = (),
        place: Place | None = None,
    ) -> None:  # fmt: skip
        self._place = place
        context = multiprocessing.get_context("forkserver")
        module = getattr(work, "func", work).__module__
        context.set_forkserver_preload([__name__, module, *IMPORTED_LATE])
        self._calls, sender = context.Pipe(duplex=False)
        told = sender, tuple(points), place, work, args
        self._process = context.Process(target=_child, args=told)
        self._process.start()
        sender.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.kill()
        self._process.join()
        self._calls.close()

    def wait(self, seconds: float = HANGS_S) -> Ended:
        """Wait until it has ended. Raises AssertionError where it failed by itself, or hangs."""
        calls: Counter[str] = Counter()
        if self._calls.poll(seconds):
            with contextlib.suppress(EOFError):  # it died
                calls = self._calls.recv()
            self._process.join(seconds)
        status = self._process.exitcode
        assert status is not None, f"it hangs, on its way to {self._place}"
        assert status in (0, -signal.SIGKILL), f"it failed by itself: {status}"
        return Ended(status != 0, calls)


def _child(
    sender: Connection,
    points: tuple[str, ...],
    place: Place | None,
    work: Callable[..., Any],
    args: tuple[Any, ...],
) -> None:
    calls = watch(points, place)
    work(*args)
    sender.send(calls)


def drawn(rng: np.random.Generator, calls: Counter[str], count: int) -> list[Place]:
    """Places that a run with these calls comes by: each point about as often, in any order, before
    and after its calls, at random."""
    points = rng.permutation(sorted(point for point, number in calls.items() if number)).tolist()
    places = []
    for number in range(count):
        point = points[number % len(points)]
        places.append(Place(point, int(rng.integers(calls[point])), bool(rng.integers(2))))
    return places
