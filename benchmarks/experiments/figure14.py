"""The paper's Figure 14: a CSR of all edges, on the device.

Ours exports row offsets, targets, weights and times; *bytes/s* counts every edge's slot read once
and its row written once, and *copy* is a device copy of as many bytes. Flat: offsets and targets.
One edge is inserted before every export, so that no cached answer is timed.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

from ..gpu import streams
from ..gpu.device import seconds
from ..gpu.growth import graphs
from ..gpu.stores import Flat, Ours
from ..gpu.streams import Stream, to_host
from ..report import Report, Setting
from .gpu_updates import DRAWS

READ, WRITTEN = 20, 16  # bytes an edge
ROUNDS, WARMUP = 9, 2


def run(setting: Setting) -> Report:
    report = Report("figure14", "milliseconds for a CSR of all edges, median")
    for stream in graphs(setting, 20_000_000):
        of_paper = (11_000_000, 15_000_000, 20_000_000) if stream.name == "RMAT 20" else ()
        for edges in of_paper or (len(stream.keys) - ROUNDS - WARMUP,):
            report.add(_row(stream.cut(min(edges, len(stream.keys) - ROUNDS - WARMUP))))
    if not setting.quick and not setting.out_of_time():
        report.add(_row(streams.rmat(20, 75_000_000, 0, draws=DRAWS)))
    return report


def _row(stream: Stream) -> dict[str, Any]:
    base = stream.base()
    ours, flat = Ours("lpma"), Flat()
    for store in (ours, flat):
        store.load(base, stream.vertices, len(base) + ROUNDS + WARMUP)
    taken = _export(ours, stream)
    ours.verify(stream.upto(ROUNDS + WARMUP))
    nbytes = (READ + WRITTEN) * len(base) + 8 * stream.vertices
    return {
        "graph": stream.name, "edges": len(base), "lpma": taken, "flat": _export(flat, stream),
        "copy": _copy_ms(nbytes), "GB/s": nbytes / taken / 1e6,
    }  # fmt: skip


def _export(store: Ours | Flat, stream: Stream) -> float:
    times = []
    for i in range(ROUNDS + WARMUP):
        store.insert(store.prepare(to_host(stream.batch(i, 1))))
        times.append(seconds(store.csr) * 1e3)
    return statistics.median(times[WARMUP:])


def _copy_ms(nbytes: int) -> float:
    """A device copy that reads and writes so many bytes together."""
    import cupy

    source = cupy.zeros(nbytes // 2, np.uint8)
    target = cupy.empty_like(source)
    return statistics.median(seconds(lambda: cupy.copyto(target, source)) for _ in range(9)) * 1e3
