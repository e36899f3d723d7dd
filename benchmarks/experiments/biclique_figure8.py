"""The biclique paper's Figure 8: growing queries, p = q = 4, 6, … 12. See `biclique_figure7`."""

from __future__ import annotations

from ..report import Report, Setting
from .biclique_figure7 import DEVICE, over

QUERIES = tuple((half, half) for half in range(4, 13, 2))


def run(setting: Setting) -> Report:
    return over(setting, DEVICE, "biclique-figure8", QUERIES[:2] if setting.quick else QUERIES)
