"""The structural diversity paper's Figure 10: the truss model by t, k = 3; seconds."""

from __future__ import annotations

from .. import diversity
from ..report import Report, Setting

K = 3
TS = (10, 100, 1000)


def run(setting: Setting) -> Report:
    report = Report("diversity-figure10", "truss model, by t, seconds, median")
    settings = [("truss", K, t) for t in TS]
    return diversity.sweep(report, list(diversity.PROGRAMS), settings, setting)
