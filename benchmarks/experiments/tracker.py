"""Figures kept from batch to batch on the CPU: updated, beside a snapshot and all anew.

`update` and `scratch` are milliseconds, medians; `updated` says in how many rounds the figure was
updated rather than recomputed, by its own rule. See benchmarks/tracking.py.
"""

from __future__ import annotations

from .. import tracking, workloads
from ..report import Report, Setting

ROUNDS = 5


def run(setting: Setting) -> Report:
    report = Report("tracker", "milliseconds, median")
    scale, loaded = (12, 40_000) if setting.quick else (18, 2_000_000)
    sizes = (10, 100) if setting.quick else (1_000, 10_000)
    streamed = 2 * (ROUNDS + tracking.WARMUP) * sum(sizes)
    graph = workloads.rmat(scale, loaded, streamed)
    stream = tracking.Stream(graph.src, graph.dst, loaded, "cpu")
    for row in tracking.rows(graph.name, stream, sizes, ROUNDS, lambda: None):
        report.add(row)
    return report
