"""The biclique paper's Figure 9: GBC without one of its parts, and ours without one of its.

NH: without the hybrid exploration. NB: without truncated bitmaps and Border, that is, by binary
search in plain rows. NW: without the balancing of work before and while it runs. Numbers are how
many times longer the program takes, over the queries that all of them were run on.
"""

from __future__ import annotations

from dataclasses import replace

from algorithms.biclique.bipartite import Bipartite
from algorithms.biclique.gbc import GBC, Switches
from algorithms.biclique.paper.border import reordered

from .. import bicliques
from ..report import Report, Setting
from .biclique_figure7 import DEVICE

PROGRAMS = {"GBC": GBC, "ours": Switches()}
QUERIES = ((3, 3), (4, 4), (4, 12), (3, 5), (5, 3), (12, 4))
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
    reports = {
        what: Report(f"biclique-figure9-{what}", "without a part: times longer than `all`, seconds")
        for what in PROGRAMS
    }
    for graph, b in bicliques.graphs(DEVICE, setting.quick):
        ordered = reordered(b)
        for p, q in QUERIES:
            for what, program in PROGRAMS.items():
                if setting.out_of_time():
                    return list(reports.values())
                row = bicliques.about(graph, b) | {"p": p, "q": q}
                reports[what].add(row | _longer(b, p, q, variants(program), ordered))
    return list(reports.values())


def _longer(
    b: Bipartite, p: int, q: int, programs: dict[str, Switches], ordered: Bipartite
) -> dict[str, float]:
    _, seconds = bicliques.times(b, p, q, programs, ordered)
    whole = seconds["all"]
    return {name: taken if name == "all" else taken / whole for name, taken in seconds.items()}
