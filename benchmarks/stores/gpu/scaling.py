"""Graphs on several devices, one each, driven from as many threads of one process.

Every graph has 10 M edges of RMAT 20 loaded and takes in the same pinned batches, which follow each
other; they are deleted again before the next round. What is asked is how far the threads hold one
another up, who share an interpreter. *times* is the edges a second of all graphs to those of one.
Numbers of graphs take turns, and what each graph ends with is compared with the stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ... import device, workloads_gpu
from ...device import on_each
from ...report import Report, Setting
from ...stopwatch import median
from ...workloads_gpu import Stream, to_host
from .base import Ours
from .race import Wait, together

BATCHES, WARM_UP = 20, 3  # a round
ROUNDS = 5
COUNTS = (1, 2, 4, 8)
PATIENCE_S = 120  # a thread that fails ends the round for all


def gpu_scaling(setting: Setting) -> Report:
    report = Report("gpu-scaling", "a graph on each device, a thread each; ms a batch and graph")
    counts = [count for count in COUNTS if count <= device.count()]
    sizes = (1_000,) if setting.quick else (10**4, 10**5)
    if setting.wants("lpma"):
        courses = on_each(counts[-1], lambda number: _Course(number, setting.quick, max(sizes)))
        for size in sizes:
            if not setting.out_of_time():
                _measure(report, courses, counts, size)
        on_each(len(courses), lambda number: courses[number].verify())
    if counts[-1] < COUNTS[-1]:
        report.notes.append(f"this host has {device.count()} devices.")
    return report


def _measure(report: Report, courses: list[_Course], counts: list[int], size: int) -> None:
    on_each(len(courses), lambda number: courses[number].make_ready(size))
    ms: dict[int, list[float]] = {count: [] for count in counts}
    for turn in range(ROUNDS + 1):
        for count in counts:
            seconds = _round(courses[:count])
            if turn:  # the first warms up
                ms[count].append(seconds * 1e3 / BATCHES)
    alone = median(ms[1])
    for count in counts:
        taken = median(ms[count])
        report.add({
            "batch": size, "graphs": count, "ms": taken,
            "M edges/s": count * size / 1e3 / taken, "times": count * float(alone) / float(taken),
        })  # fmt: skip


@dataclass
class _Course:
    """A graph on one device, and the batches that it takes in round by round."""

    number: int
    quick: bool
    largest: int

    def __post_init__(self) -> None:
        scale, loaded = (14, 50_000) if self.quick else (20, 10**7)
        self.stream: Stream = workloads_gpu.rmat(scale, loaded, self.largest * (BATCHES + WARM_UP))
        self.store = Ours("lpma", device=f"cuda:{self.number}")
        self.store.load(self.stream.base(), self.stream.vertices, 0)
        self.batches: list[Any] = []
        self.deletions: list[Any] = []

    def make_ready(self, size: int) -> None:
        """Pinned batches of that many edges, and their deletions."""
        self.batches, self.deletions = [], []
        for i in range(BATCHES + WARM_UP):
            keys = to_host(self.stream.batch(i * size, size))
            self.batches.append(self.store.prepare(keys, slot=i))
            self.deletions.append(self.store.prepare(keys, True, BATCHES + WARM_UP + i))

    def take_back(self) -> None:
        for batch in self.deletions:
            self.store.delete(batch)

    def verify(self) -> None:
        self.store.verify(self.stream.base())


def _round(courses: list[_Course]) -> float:
    """Seconds from the first batch until all devices are idle after the last."""
    import cupy

    def follow(number: int, ready: Wait, ended: Wait) -> None:
        course = courses[number]
        with cupy.cuda.Device(course.number) as device:
            for batch in course.batches[:WARM_UP]:
                course.store.insert(batch)
            device.synchronize()
            ready()
            for batch in course.batches[WARM_UP:]:
                course.store.insert(batch)
            device.synchronize()
            ended()
            course.take_back()
            device.synchronize()

    return together(len(courses), follow, PATIENCE_S)
