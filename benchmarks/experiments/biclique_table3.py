"""The biclique paper's Table III: its program on graphs in their own order, and in Border's.

Seconds of the count alone, the order given; *words*: of the truncated bitmaps of the layer that is
searched from the left. Gorder is not ours to run; the paper's rows are quoted.
"""

from __future__ import annotations

from dataclasses import replace

from algorithms.biclique.gbc import GBC
from algorithms.biclique.paper.border import reordered
from algorithms.biclique.paper.truncated import truncated

from .. import bicliques
from ..report import Report, Setting
from .biclique_figure7 import DEVICE

P, Q = 3, 3
PROGRAM = {"GBC": replace(GBC, border=False)}  # the order is made beforehand


def run(setting: Setting) -> list[Report]:
    report = Report("biclique-table3", f"GBC on graphs by their order, ({P}, {Q}), seconds")
    for name, b in bicliques.graphs(DEVICE, setting.quick):
        if setting.out_of_time():
            break
        row = bicliques.about(name, b)
        for order, graph in (("no reorder", b), ("Border", reordered(b))):
            _, seconds = bicliques.times(graph, P, Q, PROGRAM)
            words = len(truncated(graph.left_indptr, graph.left_indices).words)
            row |= {f"words, {order}": words, order: seconds["GBC"]}
        report.add(row | {"ratio": row["no reorder"] / row["Border"]})
    rows = bicliques.published(bicliques.TABLE_3)
    return [report, Report("biclique-table3-published", "(8, 8), seconds, quoted", rows)]
