"""(p, q)-bicliques on the CPU: the ten small counts of wiki-Vote, and the paper's programs.

wiki-Vote as voter × candidate, p in 2 … 3 and q in 2 … 6, one after the other through
`gbc.count`: nothing is kept from one to the next.
"""

from __future__ import annotations

import time

from algorithms.biclique import gbc
from algorithms.biclique.bipartite import trimmed
from ingest import datasets

from .. import bicliques
from ..bicliques import OURS
from ..measure import WrongAnswer
from ..report import Report, Setting

SMALL = tuple((p, q) for p in (2, 3) for q in range(2, 7))
KNOWN = {(2, 2): 36_023_154, (2, 6): 103_289_484_437_904, (3, 3): 1_719_957_371}
GRAPH = "wiki-Vote"


def run(setting: Setting) -> list[Report]:
    return [_small(setting), _programs(setting)]


def _small(setting: Setting) -> Report:
    report = Report("bicliques", "small bicliques by enumeration, seconds, median")
    if setting.quick or datasets.find(GRAPH) is None:
        return report
    b = bicliques.real("cpu", GRAPH)
    begun = time.perf_counter()
    for p, q in SMALL:
        count, seconds = bicliques.times(b, p, q, {OURS: gbc.Switches()})
        if KNOWN.get((p, q), count) != count:
            raise WrongAnswer(f"({p}, {q}): {count}")
        report.add({"graph": GRAPH, "p": p, "q": q, "bicliques": count} | seconds)
    total = sum(row[OURS] for row in report.rows)
    report.notes.append(f"all ten: {total:.3g} s (measured in {time.perf_counter() - begun:.0f} s)")
    return report


def _programs(setting: Setting) -> Report:
    """On a graph small enough for the paper's programs on two cores."""
    report = Report("bicliques-programs", "the paper's programs on the CPU, seconds, median")
    name = "bip-jodie-wikipedia"
    if setting.quick or datasets.find(name) is None:
        b, name = bicliques.synthetic("cpu", *bicliques.QUICK), "synthetic"
    else:
        b = bicliques.real("cpu", name)
    for p, q in ((3, 3), (4, 4)):
        count, seconds = bicliques.times(trimmed(b, p, q), p, q)
        row = bicliques.about(name, b) | {"p": p, "q": q, "bicliques": count}
        report.add(row | seconds | {"ratio": seconds["GBL"] / seconds[OURS]})
    return report
