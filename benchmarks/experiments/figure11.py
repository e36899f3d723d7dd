"""The paper's Figure 11: edges a second by size of batch, hybrid, both settings of global_merge."""

from __future__ import annotations

import statistics

from .. import plots
from ..gpu.growth import graphs, grow
from ..gpu.stores import make
from ..report import Report, Setting

BATCHES = {10**3: 300, 10**4: 200, 10**5: 60, 10**6: 8}
STORES = ("lpma-hybrid", "lpma", "flat")


def run(setting: Setting) -> Report:
    report = Report("figure11", "million edges a second, mean over all batches; half loaded first")
    lines: dict[str, tuple[list[float], list[float]]] = {}
    for stream in graphs(setting, 20_000_000):
        stream = stream.cut(len(stream.keys) // 2)
        for size, most in BATCHES.items():
            batches = min(most, stream.streamed // size - 3)
            for name in filter(setting.wants, STORES if batches >= 3 else ()):
                if setting.out_of_time():
                    continue
                growth = grow(make(name), stream, size, batches)
                rate = size / growth.mean_ms / 1e3
                report.add({
                    "graph": stream.name, "batch": size, "store": name, "M edges/s": rate,
                    "mean ms": growth.mean_ms, "median ms": statistics.median(growth.ms),
                })  # fmt: skip
                if name == "lpma-hybrid":
                    x, y = lines.setdefault(stream.name, ([], []))
                    x.append(size)
                    y.append(rate)
    panel = plots.Panel("hybrid, merge never", "edges a batch", "M edges/s", lines, log="xy")
    report.plots.append(plots.save(setting.folder / "figure11.png", [panel]))
    return report
