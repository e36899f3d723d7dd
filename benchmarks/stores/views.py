"""Views in time beside the whole copy: `snapshot(since=…, half_life=…)`, and a snapshot with its
weights and times, of the same graph in turns. Times are spread evenly, in no order.

On the CPU what counts is the processor's time, of all threads; on a device, the clock until it is
idle again. The whole copy is made anew each time: a batch of one edge comes before, and the CPU's
rows of the last snapshot, which it could change instead, are taken away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import lpma

from ..report import Report, Row, Setting
from ..stopwatch import Clock, Kernel, WrongAnswer, measure, of_processor, on_device

SPAN = 10**9  # of times
BATCH = 10**6
VIEWS: dict[str, dict[str, int]] = {
    "whole": {},
    "all": {"since": 0},
    "half": {"since": SPAN // 2},
    "tenth": {"since": SPAN - SPAN // 10},
    "none": {"since": SPAN + 2},
    "decay": {"half_life": SPAN // 10},
    "half, decay": {"since": SPAN // 2, "half_life": SPAN // 10},
}


def views(setting: Setting) -> Report:
    scale, edges = (14, 200_000) if setting.quick else (20, 8_400_000)
    return _report("views", scale, edges, setting, "cpu", of_processor, "ms of all processors")


def gpu_views(setting: Setting) -> Report:
    scale, edges = (14, 200_000) if setting.quick else (22, 76_000_000)
    return _report("gpu-views", scale, edges, setting, "cuda", on_device, "ms")


def _report(
    name: str, scale: int, edges: int, setting: Setting, device: str, clock: Clock, unit: str
) -> Report:
    report = Report(name, f"a view in time beside the whole copy, {unit}, median")
    for weight in ("float32",) if setting.quick else ("float32", "float64", None):
        if not setting.out_of_time():
            graph = _graph(scale, edges, weight, device)
            for row in _rows(graph, 5 if setting.quick else 15, clock):
                report.add(row)
    report.notes.append("ratio: to the whole copy, weights and times read.")
    return report


def _graph(scale: int, edges: int, weight: str | None, device: str) -> Any:
    """About so many edges between 2^scale vertices, uniform; loops and repeats as they come."""
    rng = np.random.default_rng(scale)
    graph = lpma.Graph(device=device, weight_dtype=weight)
    for lo in range(0, edges, BATCH):
        n = min(BATCH, edges - lo)
        src, dst = rng.integers(0, 1 << scale, (2, n), dtype=np.uint32)
        graph.insert(src, dst, 1.0 if weight is None else rng.random(n), rng.integers(0, SPAN, n))
    return graph


def _rows(graph: Any, rounds: int, clock: Clock) -> list[Row]:
    def one_more(_: int) -> None:
        graph.insert(0, 1, time=SPAN)
        graph._stores.last = None

    def taken(asked: dict[str, int]) -> Callable[[Any], Any]:
        def take(_: Any) -> Any:
            s = graph.snapshot(**asked)
            return s._indptr, s._indices, s._weights, s._times

        return take

    times = graph.snapshot()._times
    newest = int(times.max())

    def verify(name: str, _: int, found: Any) -> None:
        expected = int((times >= VIEWS[name].get("since", 0)).sum())
        if abs(len(found[1]) - expected) > 1:  # the one more
            raise WrongAnswer(f"{name}: {len(found[1]):,} edges instead of {expected:,}")
        if "half_life" in VIEWS[name] and not 0 <= float(found[2].min()) <= float(found[2].max()):
            raise WrongAnswer(f"{name}: weights have not decayed to what they are at {newest}")

    kernels = {name: Kernel(one_more, taken(asked)) for name, asked in VIEWS.items()}
    timings = measure(kernels, verify, rounds=rounds, warmup=2, clock=clock)
    whole = timings["whole"].median
    return [
        {"weights": str(graph.weight_dtype), "edges": graph.num_edges, "view": name,
         "ms": timing.median * 1e3, "ratio": timing.median / whole}
        for name, timing in timings.items()
    ]  # fmt: skip
