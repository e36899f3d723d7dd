"""The paper's Figure 9: the latency of every batch through a cycle, by strategy.

RMAT 20 from half full to past an expansion, `global_merge="never"`; "auto" and the flat merge
beside. The paper has Pokec here.
"""

from __future__ import annotations

import numpy as np

from .. import plots
from ..gpu import streams
from ..gpu.growth import grow
from ..gpu.stores import make
from ..report import Report, Setting

STORES = ("lpma-bottom-up", "lpma-top-down", "lpma-hybrid", "lpma", "flat")


def run(setting: Setting) -> Report:
    report = Report("figure9", "milliseconds of each batch, by strategy")
    # With 32 slots a segment and a bound of 0.9, the expansion comes at 15.1 M (59 k) edges.
    scale, loaded, size, batches = (20, 9_000_000, 10**4, 650)
    if setting.quick:
        scale, loaded, size, batches = (14, 40_000, 500, 60)
    stream = streams.rmat(scale, loaded, (batches + 3) * size)
    latency, marks = {}, {}
    for name in filter(setting.wants, STORES):
        if setting.out_of_time():
            continue
        growth = grow(make(name), stream, size, batches)
        ms = np.array(growth.ms)
        spikes = [growth.ms[i] for i in growth.expansions]
        report.add({
            "store": name, "batch": size, "median": float(np.median(ms)),
            "99 %": float(np.quantile(ms, 0.99)), "slowest": float(ms.max()),
            "slowest/median": float(ms.max() / np.median(ms)),
            "mean": float(ms.mean()), "expansions": len(spikes),
            "slowest expansion": max(spikes, default=float("nan")),
        })  # fmt: skip
        report.series[name] = growth.ms
        latency[name] = (growth.edges, growth.ms)
        marks[name] = [growth.edges[i] for i in growth.expansions]
    title = f"{stream.name}, batches of {size:,}; lines mark expansions"
    panel = plots.Panel(title, "edges", "ms", latency, log="y", points=False, marks=marks)
    report.plots.append(plots.save(setting.folder / "figure9.png", [panel]))
    return report
