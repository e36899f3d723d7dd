"""The biclique paper's Table IV: balancing work before it runs, while it runs, both, and neither.

Before: tasks are second vertices, not roots. While: tasks are taken as workers come free.
"""

from __future__ import annotations

from dataclasses import replace

from algorithms.biclique.gbc import GBC, Switches

from .. import bicliques
from ..report import Report, Setting
from .biclique_figure7 import DEVICE

P, Q = 3, 3


def run(setting: Setting) -> list[Report]:
    ours = _balanced(setting, "biclique-table4-compact", "ours", Switches())
    paper = _balanced(setting, "biclique-table4", "GBC", replace(GBC, border=False))
    rows = bicliques.published(bicliques.TABLE_4, bicliques.GRAPHS_OF_TABLE_4)
    return [paper, ours, Report("biclique-table4-published", "(8, 8), seconds, quoted", rows)]


def _balanced(setting: Setting, name: str, what: str, program: Switches) -> Report:
    report = Report(name, f"{what} by how work is balanced, ({P}, {Q}), seconds")
    programs = {
        "joint": program,
        "pre-runtime": replace(program, stealing=False),
        "runtime": replace(program, edges=False),
        "no balance": replace(program, edges=False, stealing=False),
    }
    for graph, b in bicliques.graphs(DEVICE, setting.quick):
        if setting.out_of_time():
            break
        report.add(bicliques.about(graph, b) | bicliques.times(b, P, Q, programs)[1])
    return report
