"""The biclique paper's Table V: what making truncated bitmaps, Border and counting take.

Border serves every p and q, the bitmaps one layer. *counting* is GBC's on the reordered graph,
*ours* the whole count by compact bitmaps, which need neither.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

from algorithms.biclique.gbc import GBC, Switches
from algorithms.biclique.paper.border import reordered
from algorithms.biclique.paper.truncated import truncated

from .. import bicliques
from ..gpu.device import seconds
from ..report import Report, Setting
from .biclique_figure7 import DEVICE

P, Q = 3, 3


def run(setting: Setting) -> list[Report]:
    report = Report("biclique-table5", f"seconds of each part, ({P}, {Q})")
    for name, b in bicliques.graphs(DEVICE, setting.quick):
        if setting.out_of_time():
            break
        reordered(b, 0)  # compiles
        begun = time.perf_counter()
        graph = reordered(b)
        border = time.perf_counter() - begun
        transform = partial(truncated, graph.left_indptr, graph.left_indices)
        transform()
        programs = {"counting": replace(GBC, border=False), "ours": Switches()}
        row = {"HTB": seconds(transform), "reorder": border}
        report.add(bicliques.about(name, b) | row | bicliques.times(graph, P, Q, programs)[1])
    quoted = bicliques.published(bicliques.TABLE_5)
    return [report, Report("biclique-table5-published", "(8, 8), seconds, quoted", quoted)]
