"""What the tracker's experiments share: a stream, and an update beside starting over.

The graph is directed, of edges each of which comes once. A round inserts a batch, or inserts half
a batch and deletes as many of the edges that came before, and then times `Tracker.update()` and, of
the same version, a snapshot, its simple view and each figure from that. Every update is compared
with what starting over gave.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import algorithms
import lpma
from algorithms.views.simple import simple
from lpma import Snapshot
from lpma.arrays import to_host

from .keys import Array
from .measure import WrongAnswer

WARMUP = 2
SCRATCH: dict[str, Callable[[Snapshot], Any]] = {
    "core": algorithms.core_numbers,
    "triangles": algorithms.triangle_count,
    "components": algorithms.connected_components,
}
VALUES = {"core": "core_numbers", "triangles": "triangle_count", "components": "components"}

Synchronize = Callable[[], None]


class Stream:
    """A tracked graph, and the batches that come to it."""

    def __init__(self, src: Array, dst: Array, loaded: int, device: str) -> None:
        self.src, self.dst, self.at = src, dst, loaded
        self.graph = lpma.Graph(device=device, weight=None, times=False)
        self.graph.insert(src[:loaded], dst[:loaded])
        self.tracker = algorithms.Tracker(self.graph, list(SCRATCH))
        self.rng = np.random.default_rng(1)

    def apply(self, size: int, mixed: bool) -> None:
        """The next batch."""
        inserted = size // 2 if mixed else size
        new = slice(self.at, self.at + inserted)
        gone = self.rng.integers(0, self.at, size - inserted)
        self.graph.insert(self.src[new], self.dst[new])
        if mixed:
            self.graph.delete(self.src[gone], self.dst[gone])
        self.at += inserted


def rows(
    name: str, stream: Stream, sizes: tuple[int, ...], rounds: int, synchronize: Synchronize
) -> Iterator[dict[str, Any]]:
    """For every size of batches and both kinds: a row for each figure, and one for all."""
    for size in sizes:
        for mixed in (False, True):
            updated, recomputed, how = _race(stream, size, mixed, rounds, synchronize)
            about = {"graph": name, "edges": stream.graph.num_edges, "batch": size,
                     "kind": "mixed" if mixed else "insert"}  # fmt: skip
            for part in (*SCRATCH, "rows", "all"):
                ours, scratch = (statistics.median(t[part]) for t in (updated, recomputed))
                yield about | {
                    "figure": part, "update": ours * 1e3, "scratch": scratch * 1e3,
                    "ratio": scratch / ours, "updated": how.get(part),
                }  # fmt: skip


def _race(
    stream: Stream, size: int, mixed: bool, rounds: int, synchronize: Synchronize
) -> tuple[dict[str, list[float]], dict[str, list[float]], dict[str, str]]:
    updated, recomputed = defaultdict(list), defaultdict(list)
    how: Counter[str] = Counter()
    for i in range(WARMUP + rounds):
        stream.apply(size, mixed)
        synchronize()
        start = time.perf_counter()
        record = stream.tracker.update()
        synchronize()
        ours = {"all": time.perf_counter() - start, "rows": record.rows_seconds}
        ours |= {figure.name: figure.seconds for figure in record.figures}
        scratch, values = _from_scratch(stream.graph, synchronize)
        for name, value in values.items():
            found = getattr(stream.tracker, VALUES[name])
            if not np.array_equal(to_host(found), to_host(value)):
                raise WrongAnswer(f"{name}: the tracker is wrong after {stream.at} edges")
        if i >= WARMUP:
            how.update(figure.name for figure in record.figures if figure.how == "updated")
            for part, seconds in ours.items():
                updated[part].append(seconds)
                recomputed[part].append(scratch[part])
    return updated, recomputed, {name: f"{how[name]}/{rounds}" for name in SCRATCH}


def _from_scratch(
    graph: lpma.Graph, synchronize: Synchronize
) -> tuple[dict[str, float], dict[str, Any]]:
    """Seconds and values; "rows" is the snapshot with its simple view."""
    seconds, values = {}, {}
    synchronize()
    first = start = time.perf_counter()
    s = graph.snapshot()
    simple(s)
    synchronize()
    seconds["rows"] = time.perf_counter() - start
    for name, figure in SCRATCH.items():
        start = time.perf_counter()
        values[name] = figure(s)
        synchronize()
        seconds[name] = time.perf_counter() - start
    seconds["all"] = time.perf_counter() - first
    return seconds, values
