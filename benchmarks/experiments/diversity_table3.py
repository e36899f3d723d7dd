"""The structural diversity paper's Table 3: beside whole decompositions of every ego network.

BC-Div and PGL-Div join k-core and k-truss programs of others to an extraction on the host; they are
not ours to run, and are quoted, *published*, with the paper's own column. Run here: the paper's
method on all devices and on one, and ours. Seconds, k = 4, t = 100.
"""

from __future__ import annotations

from .. import diversity
from ..diversity import K, T
from ..diversity_published import TABLE_3, TABLE_3_COLUMNS, rows
from ..report import Report, Setting

NAMES = ("GPU-Div", "MGPU-Div-D", "lpma-gpu", "lpma-gpus")


def run(setting: Setting) -> list[Report]:
    report = Report("diversity-table3", "core and truss models, seconds, median")
    diversity.sweep(report, NAMES, [("core", K, T), ("truss", K, T)], setting)
    quoted = rows(TABLE_3, TABLE_3_COLUMNS)
    return [report, Report("diversity-table3-published", "seconds, quoted from the paper", quoted)]
