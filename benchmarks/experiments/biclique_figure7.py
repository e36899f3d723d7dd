"""The biclique paper's Figure 7: its program, its baseline and ours, p + q = 16.

BCL and BCLP, its other two, are programs for the CPU that are not ours to run. *ratio*: GBC to
ours.
"""

from __future__ import annotations

from algorithms.biclique.paper.border import reordered

from .. import bicliques
from ..bicliques import OURS
from ..report import Report, Setting

DEVICE = "cuda"


def run(setting: Setting) -> Report:
    return over(setting, DEVICE, "biclique-figure7", bicliques.QUERIES)


def over(setting: Setting, device: str, name: str, queries: tuple[tuple[int, int], ...]) -> Report:
    """A row a graph and query."""
    report = Report(name, "(p, q)-bicliques, seconds, median, everything included")
    for graph, b in bicliques.graphs(device, setting.quick):
        ordered = reordered(b)
        for p, q in queries:
            if setting.out_of_time():
                return report
            count, seconds = bicliques.times(b, p, q, ordered=ordered)
            row = bicliques.about(graph, b) | {"p": p, "q": q, "bicliques": f"{count:.4g}"}
            report.add(row | seconds | {"ratio": seconds["GBC"] / seconds[OURS]})
    return report
