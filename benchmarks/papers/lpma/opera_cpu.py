"""The paper's Figure 16 on the CPU, with the paper's own form of a mixed batch.

*mixed*, *updates*, *queries* and *serial* are as in opera.py; *versions* is the whole batch by the
paper's form, in a store of its own (versions.py). Answers are compared between the three ways.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import lpma
from ingest.datasets import generators

from ...keys import Array, distinct, keys_of
from ...report import Report, Setting
from ...stopwatch import WrongAnswer, median, on_host
from .mixed import compare, each, mixed_batch, work_of
from .versions import Versions

DEGREE = 16
BATCHES, SERIAL_BATCHES, WARMUP = 12, 3, 2


def figure16_cpu(setting: Setting) -> Report:
    report = Report("figure16-cpu", "milliseconds a mixed batch, median, 3 % queries")
    scale = 14 if setting.quick else 18
    keys = keys_of(*generators.rmat(scale, DEGREE << scale, seed=1))
    for size in (1_000,) if setting.quick else (10**4, 10**5):
        report.add(_row(f"RMAT {scale}", keys, 1 << scale, size))
    return report


def _row(name: str, keys: Array, vertices: int, size: int) -> dict[str, Any]:
    first = len(keys) // 2
    base = distinct(keys[:first])
    graphs = {way: lpma.Graph(device="cpu", times=False) for way in ("mixed", "parts", "serial")}
    for graph in graphs.values():
        graph.insert(base >> np.uint64(32), base & np.uint64(0xFFFFFFFF))
    versions, rng = Versions(base), np.random.default_rng(size)
    ms: dict[str, list[float]] = {
        way: [] for way in ("mixed", "updates", "queries", "serial", "versions")
    }
    for i in range(BATCHES):
        lo = first + i * size % (len(keys) - first - size)
        batch = mixed_batch(rng, keys[lo : lo + size], vertices)
        answers = {}
        for held, way, parts in work_of(batch, i < SERIAL_BATCHES):
            apply = graphs[held].apply
            seconds, answers[way] = on_host(lambda: [apply(part) for part in parts])  # noqa: B023
            if i >= WARMUP or way == "serial":
                ms[way].append(seconds * 1e3)
        versions.make_room(batch)
        seconds, found = on_host(lambda: versions.apply(batch))  # noqa: B023
        if i >= WARMUP:
            ms["versions"].append(seconds * 1e3)
        ours = each(answers["mixed"])
        compare(ours, versions.each(batch, found), rng)
        if "serial" in answers:
            compare(ours, each(answers["serial"]), rng)
    _verify(graphs["mixed"], versions)
    figures = {way: median(times) for way, times in ms.items()}
    row = {"graph": name, "batch": size} | figures
    row["to parts"] = float(figures["mixed"]) / (figures["updates"] + figures["queries"])
    row["serial/mixed"] = figures["serial"] / figures["mixed"]
    return row | {"versions/mixed": figures["versions"] / figures["mixed"]}


def _verify(graph: lpma.Graph, versions: Versions) -> None:
    s, (keys, weights) = graph.snapshot(), versions.edges()
    src = np.repeat(np.arange(s.num_rows), np.diff(s.indptr))
    held: list[Any] = [keys_of(src, s.indices), s.weights]
    if not all(map(np.array_equal, held, (keys, weights))):
        raise WrongAnswer("the two stores do not hold the same edges")
