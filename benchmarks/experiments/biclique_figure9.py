"""The biclique paper's Figure 9: GBC without one of its parts, and ours without one of its.

NH: without the hybrid exploration. NB: without truncated bitmaps and Border, that is, by binary
search in plain rows. NW: without the balancing of work before and while it runs. Numbers are how
many times longer the program takes, over the queries that all of them were run on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from algorithms.biclique.bipartite import Bipartite
from algorithms.biclique.border import reordered
from algorithms.biclique.gbc import GBC, Switches

from .. import bicliques
from ..report import Report, Setting
from .biclique_figure7 import DEVICE

QUERIES = ((3, 3), (3, 5), (5, 3), (4, 4), (4, 12), (12, 4))
OFF = {
    "NH": {"hybrid": False},
    "NB": {"rows": "csr", "border": False},
    "NW": {"edges": False, "stealing": False},
    "no priority": {"priority": False},
    "no anchor": {"anchor": False},
    "all two-hop": {"common": False},
}


def variants(program: Switches) -> dict[str, Switches]:
    """The program, and without one part each."""
    without = {name: replace(program, **parts) for name, parts in OFF.items()}  # type: ignore[arg-type]
    if program.rows != "htb":
        del without["NB"]
    return {"all": program} | without


def run(setting: Setting) -> list[Report]:
    return [
        _ablation(setting, "biclique-figure9", "GBC", GBC),
        _ablation(setting, "biclique-figure9-compact", "ours", Switches()),
    ]


def _ablation(setting: Setting, name: str, what: str, program: Switches) -> Report:
    report = Report(name, f"{what} without a part: times longer, geometric mean over queries")
    programs = variants(program)
    for graph, b in bicliques.graphs(DEVICE, setting.quick):
        if setting.out_of_time():
            break
        report.add(bicliques.about(graph, b) | _longer(b, programs, setting))
    return report


def _longer(b: Bipartite, programs: dict[str, Switches], setting: Setting) -> dict[str, Any]:
    ordered = reordered(b) if programs["all"].border else b
    ratios: dict[str, list[float]] = {name: [] for name in programs if name != "all"}
    queries = 0
    for p, q in QUERIES:
        if setting.out_of_time():
            break
        _, seconds = bicliques.times(b, p, q, programs, ordered)
        whole = seconds.pop("all")
        if any(np.isnan(list(seconds.values()))):
            continue
        queries += 1
        for name, taken in seconds.items():
            ratios[name].append(taken / whole)
    means = {name: float(np.exp(np.log(r).mean())) if r else None for name, r in ratios.items()}
    return {"queries": queries} | means
