"""The k-core paper's Table III: programs for the GPU.

Run again: the paper's own program, VETGA's method and h-indices, beside ours. Published: the
systems that are quoted from the paper, on its graphs and its Tesla P100; Medusa's, Gunrock's and
GSwitch's programs are not ours to run.
"""

from __future__ import annotations

from .. import kcore
from ..report import Report, Setting
from .kcore_table2 import compare

METHODS = {"Ours": "peel", "VETGA": "vector", "h-index": "h-index", "cooperative": "cooperative"}


def run(setting: Setting) -> list[Report]:
    rows = kcore.published(kcore.PUBLISHED_MS)
    quoted = Report("kcore-table3-published", "milliseconds, quoted from the paper", rows)
    return [compare("kcore-table3", METHODS, setting), quoted]
