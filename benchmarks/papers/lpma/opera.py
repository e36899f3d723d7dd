"""The paper's Figure 16: mixed batches, 3 % of them queries, and other ways to do the same.

Half of the queries ask for an edge, half for a vertex's successors, at random places among the
insertions. *mixed* is the whole batch; *updates* and *queries* are its two parts by themselves, *to
parts* mixed over their sum; *serial* is the batch cut at every query, its pieces run one after the
other. On the CPU *versions* is the whole batch by the paper's own form, in a store of its own
(versions.py). Answers are compared between the ways.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import lpma
from ingest.datasets import generators
from lpma import Columns

from ...keys import Array, distinct, ends_of, keys_of
from ...report import Report, Setting
from ...stopwatch import WrongAnswer, median, on_device, on_host
from ...stores.gpu.base import Ours
from ...workloads_gpu import Stream, to_host
from .growth import graphs
from .mixed import WARMUP, compare, mixed_batch, timed
from .versions import Versions

ROUNDS, SERIAL_ROUNDS = 12, 2
CPU_DEGREE, CPU_BATCHES, CPU_SERIAL = 16, 12, 3


def figure16(setting: Setting) -> Report:
    report = Report("figure16", "milliseconds a mixed batch, median, 3 % queries")
    for stream in graphs(setting, 12_000_000):
        stream = stream.cut(len(stream.keys) * 5 // 6)
        for size in (1_000,) if setting.quick else (10**4, 10**5):
            batches = min(stream.streamed // size, ROUNDS + WARMUP)
            if setting.out_of_time() or batches <= SERIAL_ROUNDS:
                continue
            report.add(opera_row(stream, size, batches))
    report.notes.append("the paper claims serial/mixed of 2 to 6 at 10^4 and 4 to 11 at 10^5.")
    return report


def opera_row(
    stream: Stream, size: int, batches: int, serial: int = SERIAL_ROUNDS
) -> dict[str, Any]:
    """`batches` mixed batches, the first `serial` of them in pieces too."""
    kept = ("mixed", "parts", "serial") if serial else ("mixed", "parts")
    stores = {name: Ours("lpma") for name in kept}
    for store in stores.values():
        store.load(stream.base(), stream.vertices, len(stream.keys))
    rng = np.random.default_rng(size)
    given = (
        mixed_batch(rng, to_host(stream.batch(i * size, size)), stream.vertices)
        for i in range(batches)
    )
    by_name = {name: store.graph for name, store in stores.items()}
    ms = timed(by_name, given, serial, on_device)
    stores["mixed"].verify(stream.upto(batches * size))
    stores["parts"].verify(stream.upto(batches * size))
    found = {name: median(times) for name, times in ms.items()}
    row = {"graph": stream.name, "batch": size} | found
    row["to parts"] = float(found["mixed"]) / (found["updates"] + found["queries"])
    return row | ({"serial/mixed": found["serial"] / found["mixed"]} if serial else {})


def figure16_cpu(setting: Setting) -> Report:
    report = Report("figure16-cpu", "milliseconds a mixed batch, median, 3 % queries")
    scale = 14 if setting.quick else 18
    keys = keys_of(*generators.rmat(scale, CPU_DEGREE << scale, seed=1))
    for size in (1_000,) if setting.quick else (10**4, 10**5):
        report.add(_row(f"RMAT {scale}", keys, 1 << scale, size))
    return report


def _row(name: str, keys: Array, vertices: int, size: int) -> dict[str, Any]:
    first = len(keys) // 2
    base = distinct(keys[:first])
    graphs = {way: lpma.Graph(device="cpu", times=False) for way in ("mixed", "parts", "serial")}
    for graph in graphs.values():
        graph.insert(*ends_of(base))
    versions, rng = Versions(base), np.random.default_rng(size)
    by_versions: list[float] = []

    def also(i: int, batch: Columns, ours: list[Any]) -> None:
        versions.make_room(batch)
        seconds, found = on_host(lambda: versions.apply(batch))
        if i >= WARMUP:
            by_versions.append(seconds * 1e3)
        compare(ours, versions.each(batch, found), rng)

    starts = [first + i * size % (len(keys) - first - size) for i in range(CPU_BATCHES)]
    batches = (mixed_batch(rng, keys[lo : lo + size], vertices) for lo in starts)
    ms = timed(graphs, batches, CPU_SERIAL, on_host, also) | {"versions": by_versions}
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
