"""The structural diversity paper's Figure 8: throughput by how work is shared, truss model, k = 4.

Vertices a second, all of them scored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from algorithms.ego import cost, schedule

from .. import diversity
from ..diversity import K
from ..keys import Array
from ..report import Report, Setting

NAMES = ("MCPU-Div", "GPU-Div", "MGPU-Div", "MGPU-Div-E", "MGPU-Div-D")


def run(setting: Setting) -> Report:
    report = Report("diversity-figure8", "vertices scored a second, truss model, median")
    programs = diversity.runnable(NAMES, setting)
    for graph in diversity.graphs(programs, setting.quick):
        if setting.out_of_time():
            break
        report.add(_row(programs, graph))
    return report


def _row(programs: dict[str, diversity.Program], graph: diversity.Graph) -> dict[str, Any]:
    taking = {name: p for name, p in programs.items() if diversity.takes(p, graph)}
    timings = diversity.race({name: _scoring(p, graph) for name, p in taking.items()})
    row: dict[str, Any] = {"graph": graph.name}
    for name in programs:
        n = graph.on[programs[name].device].num_vertices
        row[name] = n / timings[name].median if name in timings else None
    alone, shared = row.get("GPU-Div"), row.get("MGPU-Div-D")
    return row | {"devices": shared / alone if alone and shared else None}


def _scoring(program: diversity.Program, graph: diversity.Graph) -> Callable[[], Array]:
    s = graph.on[program.device]
    owners = np.arange(s.num_vertices, dtype=np.uint32)

    def run() -> Array:
        scorers = diversity.scorers_of(program, s, "truss", K)
        costs = cost.estimate(scorers[0], owners, len(scorers))
        return schedule.scores(scorers, owners, costs, program.stealing)

    return run
