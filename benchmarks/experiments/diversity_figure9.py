"""The structural diversity paper's Figure 9: the truss model by k, t = 100; seconds."""

from __future__ import annotations

from .. import diversity
from ..diversity import T
from ..report import Report, Setting

KS = (2, 3, 4, 5, 6)


def run(setting: Setting) -> Report:
    report = Report("diversity-figure9", "truss model, by k, seconds, median")
    settings = [("truss", k, T) for k in KS]
    return diversity.sweep(report, list(diversity.PROGRAMS), settings, setting)
