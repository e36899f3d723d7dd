"""What a caller waits for beside a thread that computes in Python, as one that decodes records
does; with the interpreter's own switch interval.

Whoever lets go of the interpreter's lock has it back when that interval, 5 ms, is over. So a call
that lets go of it five times is 25 ms longer, whatever it does. On a device the clock runs until
the call has returned and the caller's stream is done, which is looked at without letting go of the
lock.

Before each call the other thread has had its 5 ms, in which this one and the device were idle. Both
are slower to begin then, whoever runs beside them: so *rested* is alone, each call after a pause of
as long. What *beside* takes above that is the other thread's doing.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

import algorithms
import lpma

from ..keys import distinct, keys_of
from ..report import Report, Setting
from ..stopwatch import Action, Clock, Kernel, WrongAnswer, measure, on_host, synchronize
from ..workloads import Workload, rmat

SIZES = (10**3, 10**4, 10**5)
ROUNDS, WARMUP = 15, 3  # of the algorithm a third
ALONE, RESTED, BESIDE = "alone", "rested", "beside"


def busy(setting: Setting) -> Report:
    """On the CPU."""
    return _run(setting, "busy", "cpu")


def gpu_busy(setting: Setting) -> Report:
    """On a CUDA device."""
    return _run(setting, "gpu-busy", "cuda")


@contextmanager
def computing() -> Iterator[None]:
    """A thread that computes in Python meanwhile."""
    ends = threading.Event()

    def work() -> None:
        while not ends.is_set():
            sum(range(1000))

    other = threading.Thread(target=work, daemon=True)
    other.start()
    try:
        yield
    finally:
        ends.set()
        other.join()


def _rested(clock: Clock) -> Clock:
    """The same after a pause of a switch interval."""

    def paused(action: Action) -> tuple[float, Any]:
        time.sleep(sys.getswitchinterval())
        return clock(action)

    return paused


def _until_done(action: Action) -> tuple[float, Any]:
    """The wall clock of a call on an idle device, until the current stream is done."""
    import cupy

    from lpma.cuda import driver

    stream = cupy.cuda.get_current_stream()

    def whole() -> Any:
        result = action()
        while not driver.is_done(stream):
            pass
        return result

    synchronize()
    return on_host(whole)


def _run(setting: Setting, name: str, device: str) -> Report:
    report = Report(
        name, "milliseconds, median: alone, alone after a pause, beside a thread that computes"
    )
    clock = on_host if device == "cpu" else _until_done
    scale, loaded = (12, 20_000) if setting.quick else (20, 12_000_000)
    rounds = 3 if setting.quick else ROUNDS
    most = sum(3 * (rounds + WARMUP) * size for size in SIZES) * 4
    graph = _Graph(rmat(scale, loaded, 20_000 if setting.quick else most), device)
    for title, kernel in graph.actions():
        if setting.out_of_time():
            report.notes.append(f"out of time, left out: {title}")
            continue
        times = max(rounds // 3, 1) if "core" in title else rounds
        took = {}
        for how in (ALONE, RESTED, BESIDE):
            with computing() if how == BESIDE else nullcontext():
                timings = measure(
                    {how: kernel}, lambda *_: None, rounds=times, warmup=WARMUP,
                    clock=_rested(clock) if how == RESTED else clock,
                )  # fmt: skip
            took[how] = timings[how].median
        row = {how: 1e3 * seconds for how, seconds in took.items()}
        report.add({"action": title} | row | {"times": took[BESIDE] / took[RESTED]})
    graph.verify()
    return report


def _of(made: Callable[[int], Any], size: int) -> Callable[[int], Any]:
    """What a round is prepared by."""
    return lambda _: made(size)


class _Graph:
    """A loaded graph, and what is done with it."""

    def __init__(self, workload: Workload, device: str) -> None:
        self._workload, self._device = workload, device
        self._graph = lpma.Graph(device=device)
        self._graph.insert(*workload.base())
        self._at, self._wrapped = 0, False
        self._pinned: dict[int, Any] = {}
        self._rng = np.random.default_rng(1)

    def actions(self) -> Iterator[tuple[str, Kernel]]:
        g = self._graph
        forms: dict[str, Callable[[int], Any]] = {"NumPy": self._next}
        if self._device != "cpu":
            forms |= {"pinned": self._pinned_batch, "device": self._on_device}
        for size in SIZES:
            for form, made in forms.items():
                yield f"insert {size:,}, {form}", Kernel(_of(made, size), self._insert)
        for size in SIZES[1:]:
            asked = _of(self._asked, size)
            yield f"{size:,} edges?", Kernel(asked, lambda pairs: g.edges(*pairs))
            yield f"{size:,} successors?", Kernel(asked, lambda pairs: g.successors(pairs[0]))
        yield "snapshot", Kernel(lambda _: self._insert(self._next(1)), lambda _: g.snapshot())
        yield "core numbers", Kernel(lambda _: self._fresh(), algorithms.core_numbers)

    def _next(self, size: int) -> Any:
        size = min(size, self._workload.streamed // 8)
        if self._at + size > self._workload.streamed:
            self._at, self._wrapped = 0, True  # what is there already adds weight
        batch = self._workload.stream(self._at, size)
        self._at += size
        return batch

    def _pinned_batch(self, size: int) -> Any:
        src, dst = self._next(size)
        batch = self._pinned.setdefault(len(src), lpma.pinned_batch(len(src)))
        batch.src[:], batch.dst[:] = src, dst
        return batch

    def _on_device(self, size: int) -> Any:
        import cupy

        return tuple(map(cupy.asarray, self._next(size)))

    def _insert(self, batch: Any) -> None:
        if isinstance(batch, tuple):
            self._graph.insert(*batch)
        else:
            self._graph.apply(batch)

    def _asked(self, size: int) -> tuple[Any, Any]:
        src, dst = self._rng.integers(0, self._workload.n, (2, size)).astype(np.uint32)
        return src, dst

    def _fresh(self) -> Any:
        """A snapshot of a new version, which nobody has computed anything of."""
        self._insert(self._next(1))
        return self._graph.snapshot()

    def verify(self) -> None:
        """Raise WrongAnswer if the graph has other edges than were streamed into it, once each."""
        w = self._workload
        upto = w.loaded + (w.streamed if self._wrapped else self._at)
        expected = len(distinct(keys_of(w.src[:upto], w.dst[:upto])))
        if self._graph.num_edges != expected:
            raise WrongAnswer(f"{self._graph.num_edges:,} edges, expected {expected:,}")
        self._graph.check()
