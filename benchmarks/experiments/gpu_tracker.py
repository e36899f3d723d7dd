"""Figures kept from batch to batch on the GPU: updated, beside a snapshot and all anew.

As `tracker`, on RMAT 20 with 10 M edges. Batches are applied before the clock starts.
"""

from __future__ import annotations

from .. import tracking
from ..gpu import streams
from ..gpu.device import synchronize
from ..keys import ends_of
from ..report import Report, Setting

ROUNDS = 7


def run(setting: Setting) -> Report:
    report = Report("gpu-tracker", "milliseconds, median")
    scale, loaded = (14, 100_000) if setting.quick else (20, 10_000_000)
    sizes = (100, 1_000) if setting.quick else (10**3, 10**4, 10**5)
    streamed = 2 * (ROUNDS + tracking.WARMUP) * sum(sizes)
    graph = streams.rmat(scale, loaded, streamed)
    src, dst = ends_of(streams.to_host(graph.keys))
    stream = tracking.Stream(src, dst, loaded, "cuda")
    for row in tracking.rows(graph.name, stream, sizes, ROUNDS, synchronize):
        if setting.out_of_time():
            break
        report.add(row)
    return report
