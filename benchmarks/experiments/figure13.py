"""The paper's Figure 13: mean latency of all batches while a graph is built from nothing.

Expansions are in it. Ours hybrid with both settings of `global_merge`, beside our contiguous
packed-memory array and the flat merge; the paper's other stores are not rerun here.
"""

from __future__ import annotations

from typing import Any

from ..gpu.growth import graphs, grow
from ..gpu.stores import make
from ..report import Report, Setting

STORES = ("lpma-hybrid", "lpma", "contiguous", "flat")


def run(setting: Setting) -> Report:
    report = Report("figure13", "milliseconds a batch, mean over all batches from nothing")
    for stream in graphs(setting, 10_000_000):
        for size in (1_000,) if setting.quick else (10**4, 10**5):
            batches = stream.streamed // size - 3
            if setting.out_of_time() or batches < 10:
                continue
            row: dict[str, Any] = {"graph": stream.name, "edges": stream.streamed, "batch": size}
            growths = {
                name: grow(make(name), stream, size, batches)
                for name in filter(setting.wants, STORES)
            }
            for name in STORES:
                row[name] = growths[name].mean_ms if name in growths else float("nan")
            row["times contiguous"] = row["contiguous"] / row["lpma-hybrid"]
            row["times flat"] = row["flat"] / row["lpma-hybrid"]
            report.add(row)
    return report
