"""The structural diversity paper's Table 5: what each of its parts gains, truss model, k = 4,
t = 100: how many times as long it takes without.

NoGPUEgo        ego networks extracted by one thread of the host: the time of MGPU-Div-D, or with
                one device of GPU-Div, its extraction exchanged for CPU-Div's. Put together from
                three measurements, not run as one program.
NoMultipleGPU   GPU-Div to MGPU-Div
NoWorkBalance   MGPU-Div to MGPU-Div-D; the paper's text names MGPU-Div-E there, its table the other

Of its own figures the paper's text names 1.58 to 1.64 for NoMultipleGPU, on four devices.
"""

from __future__ import annotations

from typing import Any

from .. import diversity
from ..diversity import K, T
from ..ego_extraction import extraction
from ..report import Report, Setting

NAMES = ("GPU-Div", "MGPU-Div", "MGPU-Div-D")


def run(setting: Setting) -> Report:
    report = Report("diversity-table5", "times as long without, truss model")
    programs = diversity.runnable(NAMES, setting)
    kinds = programs | diversity.runnable(("CPU-Div",), setting)
    for graph in diversity.graphs(kinds, setting.quick):
        if programs and not setting.out_of_time():
            report.add(_row(programs, graph))
    return report


def _row(programs: dict[str, diversity.Program], graph: diversity.Graph) -> dict[str, Any]:
    seconds = diversity.race_searches(programs, graph, "truss", K, T)
    one, packed, stolen = (seconds.get(name) for name in NAMES)
    row: dict[str, Any] = {"graph": graph.name, "NoGPUEgo": None}
    whole = stolen or one
    on_host = diversity.PROGRAMS["CPU-Div"]
    if whole and "cpu" in graph.on and diversity.takes(on_host, graph):
        parts = {"host": extraction(on_host, graph),
                 "device": extraction(diversity.PROGRAMS["GPU-Div"], graph)}  # fmt: skip
        timings = diversity.race(parts)
        ours = timings["device"].median / (diversity.devices() if stolen else 1)
        row["NoGPUEgo"] = (whole - ours + timings["host"].median) / whole
    row["NoMultipleGPU"] = one / packed if one and packed else None
    row["NoWorkBalance"] = packed / stolen if packed and stolen else None
    return row
