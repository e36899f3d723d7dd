"""The structural diversity paper's Table 2: its programs, and ours by listing; k = 4, t = 100.

Seconds. *threads*: CPU-Div to MCPU-Div; *devices*: GPU-Div to MGPU-Div-D; *listing*: MCPU-Div to
lpma, *listing-gpu*: GPU-Div to lpma-gpu. Published: the paper's, on four Tesla V100 and six cores.
"""

from __future__ import annotations

from algorithms.ego.model import MODELS

from .. import diversity
from ..diversity import K, T
from ..diversity_published import TABLE_2, TABLE_2_COLUMNS, rows
from ..report import Report, Setting


def run(setting: Setting) -> list[Report]:
    report = Report("diversity-table2", "the best by structural diversity, seconds, median")
    settings = [(model, K, T) for model in MODELS]
    diversity.sweep(report, list(diversity.PROGRAMS), settings, setting)
    quoted = rows(TABLE_2, TABLE_2_COLUMNS)
    return [report, Report("diversity-table2-published", "seconds, quoted from the paper", quoted)]
