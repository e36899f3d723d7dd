"""Figures kept from batch to batch: `Tracker.update()` beside starting over.

The graph is directed, and each of its edges arrives once. A round inserts a batch, or inserts half
a batch and deletes as many of the edges that came before, and then times `Tracker.update()` and,
for the same version, a snapshot, its simple view and each figure from that. Every update is
compared with what starting over gave.

`update` and `scratch` are milliseconds, medians; `updated` says in how many rounds the figure was
updated rather than recomputed, by its own rule.

A second table has a real graph in its order of time, from a third of it on, in batches of a
thousand insertions, or of half as many and as many deletions of the oldest edges: thousands of
operations a second, core numbers and triangles updated after each batch, and without.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import algorithms
import lpma
from algorithms.views.simple import simple
from lpma import Snapshot
from lpma.arrays import to_host

from .. import workloads
from ..keys import Array, ends_of
from ..report import Report, Setting
from ..stopwatch import Clock, WrongAnswer, median, on_device, on_host

WARMUP = 2
ROUNDS, GPU_ROUNDS = 5, 7
TIMED, TIMED_SIZE = "sx-mathoverflow", 1_000
SCRATCH: dict[str, Callable[[Snapshot], Any]] = {
    "core": algorithms.core_numbers,
    "triangles": algorithms.triangle_count,
    "components": algorithms.connected_components,
}
VALUES = {"core": "core_numbers", "triangles": "triangle_count", "components": "components"}


def tracker(setting: Setting) -> list[Report]:
    report = Report("tracker", "milliseconds, median")
    scale, loaded = (12, 40_000) if setting.quick else (18, 2_000_000)
    sizes = (10, 100) if setting.quick else (1_000, 10_000)
    graph = workloads.rmat(scale, loaded, 2 * (ROUNDS + WARMUP) * sum(sizes))
    stream = Stream(graph.src, graph.dst, loaded, "cpu")
    for row in rows(graph.name, stream, sizes, ROUNDS, on_host):
        report.add(row)
    return [report, timed("tracker-timed", setting, "cpu", on_host)]


def gpu_tracker(setting: Setting) -> list[Report]:
    from ..gpu import streams

    report = Report("gpu-tracker", "milliseconds, median")
    scale, loaded = (14, 100_000) if setting.quick else (20, 10_000_000)
    sizes = (100, 1_000) if setting.quick else (10**3, 10**4, 10**5)
    graph = streams.rmat(scale, loaded, 2 * (GPU_ROUNDS + WARMUP) * sum(sizes))
    stream = Stream(*ends_of(streams.to_host(graph.keys)), loaded, "cuda")
    for row in rows(graph.name, stream, sizes, GPU_ROUNDS, on_device):
        if setting.out_of_time():
            break
        report.add(row)
    return [report, timed("gpu-tracker-timed", setting, "cuda", on_device)]


class Stream:
    """A tracked graph, and the batches that come to it."""

    def __init__(self, src: Array, dst: Array, loaded: int, device: str) -> None:
        self.src, self.dst, self.at = src, dst, loaded
        self.graph = lpma.Graph(device=device, weight_dtype=None, times=False)
        self.graph.insert(src[:loaded], dst[:loaded])
        self.tracker = algorithms.Tracker(self.graph, list(SCRATCH))
        self.rng = np.random.default_rng(1)

    def apply(self, size: int, mixed: bool) -> None:
        """Bring in the next batch."""
        inserted = size // 2 if mixed else size
        new = slice(self.at, self.at + inserted)
        gone = self.rng.integers(0, self.at, size - inserted)
        self.graph.insert(self.src[new], self.dst[new])
        if mixed:
            self.graph.delete(self.src[gone], self.dst[gone])
        self.at += inserted


def rows(
    name: str, stream: Stream, sizes: tuple[int, ...], rounds: int, clock: Clock
) -> Iterator[dict[str, Any]]:
    """For every batch size and both kinds: a row for each figure, and one for all."""
    for size in sizes:
        for mixed in (False, True):
            updated, recomputed, how = _race(stream, size, mixed, rounds, clock)
            about = {"graph": name, "edges": stream.graph.num_edges, "batch": size,
                     "kind": "mixed" if mixed else "insert"}  # fmt: skip
            for part in (*SCRATCH, "rows", "all"):
                ours, scratch = (median(t[part]) for t in (updated, recomputed))
                yield about | {
                    "figure": part, "update": ours * 1e3, "scratch": scratch * 1e3,
                    "ratio": scratch / ours, "updated": how.get(part),
                }  # fmt: skip


def _race(
    stream: Stream, size: int, mixed: bool, rounds: int, clock: Clock
) -> tuple[dict[str, list[float]], dict[str, list[float]], dict[str, str]]:
    updated, recomputed = defaultdict(list), defaultdict(list)
    how: Counter[str] = Counter()
    for i in range(WARMUP + rounds):
        stream.apply(size, mixed)
        seconds, record = clock(stream.tracker.update)
        ours = {"all": seconds, "rows": record.rows_seconds}
        ours |= {figure.name: figure.seconds for figure in record.figures}
        scratch, values = _from_scratch(stream.graph, clock)
        for name, value in values.items():
            found = getattr(stream.tracker, VALUES[name])
            if not np.array_equal(to_host(found), to_host(value)):
                raise WrongAnswer(f"{name}: the tracker is wrong after {stream.at} edges")
        if i >= WARMUP:
            how.update(figure.name for figure in record.figures if figure.how == "updated")
            for part, taken in ours.items():
                updated[part].append(taken)
                recomputed[part].append(scratch[part])
    return updated, recomputed, {name: f"{how[name]}/{rounds}" for name in SCRATCH}


def _from_scratch(graph: lpma.Graph, clock: Clock) -> tuple[dict[str, float], dict[str, Any]]:
    """Seconds and values; "rows" is the snapshot with its simple view."""

    def viewed() -> Snapshot:
        s = graph.snapshot()
        simple(s)
        return s

    seconds, values = {}, {}
    seconds["rows"], s = clock(viewed)
    for name, figure in SCRATCH.items():
        seconds[name], values[name] = clock(lambda: figure(s))  # noqa: B023  # called at once
    seconds["all"] = sum(seconds.values())
    return seconds, values


def timed(name: str, setting: Setting, device: str, clock: Clock) -> Report:
    """The second table."""
    report = Report(name, "thousand operations a second")
    graph = None if setting.quick else workloads.real(TIMED, loaded_share=1 / 3)
    for kind in ("insert", "mixed"):
        if graph is not None and not setting.out_of_time():
            row: dict[str, Any] = {"graph": TIMED, "batch": TIMED_SIZE, "kind": kind}
            for way, figures in (("tracked", ["core", "triangles"]), ("without", [])):
                row[way] = _rate(graph, figures, kind == "mixed", device, clock)
            report.add(row)
    return report


def _rate(
    graph: workloads.Workload, figures: list[str], mixed: bool, device: str, clock: Clock
) -> float:
    """Of the whole stream, by the median batch."""
    g = lpma.Graph(device=device)
    g.insert(graph.src[: graph.loaded], graph.dst[: graph.loaded])
    tracker = algorithms.Tracker(g, figures) if figures else None
    inserted = TIMED_SIZE // 2 if mixed else TIMED_SIZE

    def bring_in(new: slice, gone: slice) -> None:
        g.insert(graph.src[new], graph.dst[new])
        if mixed:
            g.delete(graph.src[gone], graph.dst[gone])
        if tracker is not None:
            tracker.update()

    seconds = []
    for batch, at in enumerate(range(graph.loaded, len(graph.src) - inserted, inserted)):
        gone = slice(batch * inserted, (batch + 1) * inserted)
        seconds.append(clock(lambda: bring_in(slice(at, at + inserted), gone))[0])  # noqa: B023
    if tracker is not None:
        s = g.snapshot()
        same = np.array_equal(to_host(tracker.core_numbers), to_host(algorithms.core_numbers(s)))
        if not same or tracker.triangle_count != algorithms.triangle_count(s):
            raise WrongAnswer(f"{TIMED}: the tracker is wrong")
    return TIMED_SIZE / median(seconds[WARMUP:]) / 1e3
