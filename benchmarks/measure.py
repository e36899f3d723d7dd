"""The stopwatch: several kernels, one after the other in every round, and no figure without proof.

All kernels of one measurement run in the same process and take turns, in an order that rotates from
round to round, so that a slow moment of the machine falls on all of them. Inputs are prepared
outside the timed part, each in the form its kernel likes best. After a kernel's last round its
result is verified; a wrong one ends the benchmark.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


class WrongAnswer(AssertionError):
    """A kernel's result differs from the model's: its time means nothing."""


@dataclass(frozen=True)
class Kernel:
    """`run(prepare(i))` is round i; only `run` is timed."""

    prepare: Callable[[int], Any]
    run: Callable[[Any], Any]


@dataclass
class Timing:
    """What one kernel took. `seconds` leaves the warm-up rounds out."""

    seconds: list[float] = field(default_factory=list)
    rounds: int = 0  # rounds run, warm-up included

    @property
    def median(self) -> float:
        return statistics.median(self.seconds) if self.seconds else float("nan")

    @property
    def slowest(self) -> float:
        return max(self.seconds, default=float("nan"))


def measure(
    kernels: Mapping[str, Kernel],
    verify: Callable[[str, int, Any], None],
    *,
    rounds: int,
    warmup: int = 1,
    budget_s: float = float("inf"),
) -> dict[str, Timing]:
    """Run `warmup + rounds` rounds of every kernel, interleaved, and time all but the warm-up.

    verify(name, rounds_run, last_result) is called once a kernel, after its last round; it raises
    WrongAnswer. A kernel that has used up budget_s seconds takes no further round."""
    timings = {name: Timing() for name in kernels}
    results: dict[str, Any] = {}
    spent = dict.fromkeys(kernels, 0.0)
    names = list(kernels)
    for i in range(warmup + rounds):
        turn = i % max(1, len(names))
        for name in names[turn:] + names[:turn]:
            if spent[name] > budget_s:
                continue
            seconds, results[name] = _timed(kernels[name], i)
            spent[name] += seconds
            timings[name].rounds += 1
            # One that is out of time after its warm-up is still worth its one figure.
            if i >= warmup or spent[name] > budget_s:
                timings[name].seconds.append(seconds)
    for name in names:
        verify(name, timings[name].rounds, results.get(name))
    return timings


def _timed(kernel: Kernel, i: int) -> tuple[float, Any]:
    prepared = kernel.prepare(i)
    gc.disable()  # a collection of another store's objects is no part of this one's time
    try:
        start = time.perf_counter()
        result = kernel.run(prepared)
        return time.perf_counter() - start, result
    finally:
        gc.enable()
