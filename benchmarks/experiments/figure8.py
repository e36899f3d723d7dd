"""The paper's Figure 8: batches that expand, beside a packed-memory array in one piece.

Both stores grow from nothing in batches of one size and have the same segments and bounds, so
they expand at the same batches: ours (bottom-up, `global_merge="never"`) appends a level, the
other doubles its array and spreads everything anew. *moved %* is the share of all segments, the
new ones included, that ours rebalanced in those batches (the paper: under 20 at 10^4).
"""

from __future__ import annotations

import statistics

from .. import plots
from ..gpu.growth import Growth, graphs, grow
from ..gpu.stores import make
from ..report import Report, Setting

SMALLEST = 1 << 10  # segments: expansions of smaller stores say nothing
NAMES = ("lpma-bottom-up", "contiguous")


def run(setting: Setting) -> Report:
    report = Report("figure8", "milliseconds of a batch that expands the store, mean")
    panels = []
    for stream in graphs(setting, 16_500_000):
        for size in (1_000,) if setting.quick else (10**4, 10**5):
            batches = stream.streamed // size - 3
            if setting.out_of_time() or batches < 10:
                continue
            ours, theirs = (grow(make(name), stream, size, batches) for name in NAMES)
            at = [i for i in ours.expansions if ours.segments[i] >= SMALLEST]
            there = [i for i in theirs.expansions if theirs.segments[i] >= SMALLEST]
            if not at or not there:
                continue
            mine, other = _mean(ours, at), _mean(theirs, there)
            report.add({
                "graph": stream.name, "batch": size, "expansions": len(at),
                "lpma": mine, "contiguous": other, "times": other / mine,
                "largest lpma": ours.ms[at[-1]], "largest contiguous": theirs.ms[there[-1]],
                "moved %": statistics.mean(50 * ours.moved[i] / ours.segments[i] for i in at),
                "median lpma": statistics.median(ours.ms),
                "median contiguous": statistics.median(theirs.ms),
            })  # fmt: skip
            lines = {
                name: ([growth.segments[i] for i in places], [growth.ms[i] for i in places])
                for name, growth, places in zip(NAMES, (ours, theirs), (at, there), strict=True)
            }
            title = f"{stream.name}, batches of {size:,}: those that expand"
            panels.append(plots.Panel(title, "segments before", "ms", lines, log="xy"))
    if panels:
        report.plots.append(plots.save(setting.folder / "figure8.png", panels))
    return report


def _mean(growth: Growth, places: list[int]) -> float:
    return statistics.mean(growth.ms[i] for i in places)
