"""The stopwatch: rivals take turns, every sample is kept, and no figure comes without proof.

All kernels of one measurement take turns, in an order that rotates from round to round, so that a
slow moment of the machine falls on all of them. Inputs are prepared outside the timed part, each in
the form that suits its kernel best. After a kernel's last round its result is verified; a wrong one
ends the benchmark.

A `Figure`, such as a `median`, is a float that remembers the samples it was made from. Scaling one
(to milliseconds, to a rate) scales the samples with it, so that they reach the JSON file whatever
unit a table uses.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Clock = Callable[[Callable[[], Any]], tuple[float, Any]]  # (seconds, what the action returned)
Action = Callable[[], Any]

NAN = float("nan")


class WrongAnswer(AssertionError):
    """A kernel's result differs from the model's: its time means nothing."""


class Figure(float):
    """A number with the samples that it sums up."""

    samples: tuple[float, ...]

    def __new__(cls, value: float, samples: Iterable[float]) -> Figure:
        made = super().__new__(cls, value)
        made.samples = tuple(samples)
        return made

    def _scaled(self, by: Callable[[float], float]) -> Figure:
        return Figure(by(float(self)), map(by, self.samples))

    def __mul__(self, other: float) -> float:
        if isinstance(other, Figure):
            return float(self) * float(other)
        return self._scaled(lambda value: value * other)

    __rmul__ = __mul__

    def __truediv__(self, other: float) -> float:
        if isinstance(other, Figure):  # a ratio of two figures is a plain number
            return float(self) / float(other)
        return self._scaled(lambda value: value / other)

    def __rtruediv__(self, other: float) -> float:
        return self._scaled(lambda value: other / value)


def median(samples: Iterable[float]) -> Figure:
    """The median of the samples; NaN of none."""
    found = tuple(samples)
    return Figure(statistics.median(found) if found else NAN, found)


def mean(samples: Iterable[float]) -> Figure:
    """The mean of the samples; NaN of none."""
    found = tuple(samples)
    return Figure(statistics.fmean(found) if found else NAN, found)


@dataclass(frozen=True)
class Kernel:
    """`run(prepare(i))` is round i; only `run` is timed."""

    prepare: Callable[[int], Any]
    run: Callable[[Any], Any]


def plain(action: Action) -> Kernel:
    """A kernel that needs nothing prepared."""
    return Kernel(lambda _: None, lambda _: action())


@dataclass
class Timing:
    """What one kernel took. `seconds` leaves the warm-up rounds out."""

    seconds: list[float] = field(default_factory=list)
    rounds: int = 0  # rounds run, warm-up included

    @property
    def median(self) -> Figure:
        return median(self.seconds)

    @property
    def slowest(self) -> float:
        return max(self.seconds, default=NAN)


def on_host(action: Action) -> tuple[float, Any]:
    """The wall clock of a call. Garbage is collected outside the timed part, since a collection of
    another store's objects is not part of this one's time."""
    gc.disable()
    try:
        start = time.perf_counter()
        result = action()
        return time.perf_counter() - start, result
    finally:
        gc.enable()


def of_processor(action: Action) -> tuple[float, Any]:
    """The processor time of a call, of all its threads: what others run meanwhile does not show."""
    gc.disable()
    try:
        start = time.process_time()
        result = action()
        return time.process_time() - start, result
    finally:
        gc.enable()


def synchronize() -> None:
    """Wait until the CUDA device is idle."""
    import cupy

    cupy.cuda.runtime.deviceSynchronize()


def on_device(action: Action) -> tuple[float, Any]:
    """The wall clock of a call on an idle CUDA device, until the device is idle again."""

    def until_idle() -> Any:
        result = action()
        synchronize()
        return result

    synchronize()
    return on_host(until_idle)


def measure(
    kernels: Mapping[str, Kernel],
    verify: Callable[[str, int, Any], None],
    *,
    rounds: int,
    warmup: int = 1,
    budget_s: float = float("inf"),
    clock: Clock = on_host,
) -> dict[str, Timing]:
    """Run `warmup + rounds` rounds of every kernel in turns, and time all but the warm-up.

    verify(name, rounds_run, last_result) is called once for each kernel, after its last round; it
    raises WrongAnswer. A kernel that has used up budget_s seconds takes no further round."""
    timings = {name: Timing() for name in kernels}
    results: dict[str, Any] = {}
    spent = dict.fromkeys(kernels, 0.0)
    names = list(kernels)
    for i in range(warmup + rounds):
        turn = i % max(1, len(names))
        for name in names[turn:] + names[:turn]:
            if spent[name] > budget_s:
                continue
            prepared = kernels[name].prepare(i)
            run = kernels[name].run
            seconds, results[name] = clock(lambda: run(prepared))  # noqa: B023  # called at once
            spent[name] += seconds
            timings[name].rounds += 1
            # One that is out of time after its warm-up is still worth its one figure.
            if i >= warmup or spent[name] > budget_s:
                timings[name].seconds.append(seconds)
    for name in names:
        verify(name, timings[name].rounds, results.get(name))
    return timings


def race(
    actions: Mapping[str, Action],
    check: Callable[[str, Any], None],
    *,
    rounds: int,
    budget_s: float = float("inf"),
) -> dict[str, Timing]:
    """Measure actions that need nothing prepared. check(name, last_answer) raises WrongAnswer."""

    def verify(name: str, _: int, answer: Any) -> None:
        check(name, answer)

    kernels = {name: plain(action) for name, action in actions.items()}
    return measure(kernels, verify, rounds=rounds, budget_s=budget_s)


def alone(action: Action, *, rounds: int, warmup: int = 1, clock: Clock = on_device) -> Figure:
    """The median seconds of one action by itself."""
    kernels = {"": plain(action)}
    timings = measure(kernels, _unverified, rounds=rounds, warmup=warmup, clock=clock)
    return timings[""].median


def _unverified(name: str, rounds: int, result: Any) -> None:
    """The caller has compared the answers already."""
