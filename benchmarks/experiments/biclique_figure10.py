"""The biclique paper's Figure 10: graphs counted in independent parts, within budgets of memory.

*throughput*: bicliques a second. *peak*: the most bytes of the device that a count held beside the
graph, against the budget. METIS, with which the paper compares, parts graphs that then need each
other; it is not ours to run.
"""

from __future__ import annotations

from typing import Any

from algorithms.biclique import gbc
from algorithms.biclique.bipartite import Bipartite, trimmed

from .. import bicliques
from ..measure import WrongAnswer
from ..report import Report, Setting
from .biclique_figure7 import DEVICE

QUERIES = ((3, 3), (3, 5))
BUDGETS_MB = (None, 256, 64, 16)


def run(setting: Setting) -> Report:
    report = Report("biclique-figure10", "counting within a budget of memory (BCPar)")
    for graph, b in bicliques.graphs(DEVICE, setting.quick):
        for p, q in QUERIES:
            whole = None
            for budget in BUDGETS_MB:
                if setting.out_of_time():
                    return report
                row = _within(b, p, q, budget)
                if whole not in (None, row["bicliques"]) and row["bicliques"] is not None:
                    raise WrongAnswer(f"{graph} ({p}, {q}), {budget} MB: {row['bicliques']}")
                whole = whole or row["bicliques"]
                report.add(bicliques.about(graph, b) | {"p": p, "q": q, "budget MB": budget} | row)
    report.notes.append("–: no budget, or one root needs more.")
    return report


def _within(b: Bipartite, p: int, q: int, megabytes: int | None) -> dict[str, Any]:
    import cupy

    limit = None if megabytes is None else megabytes * 10**6
    core = trimmed(b, p, q)
    pool, used = cupy.cuda.MemoryPool(), 0

    def allocate(size: int) -> Any:
        nonlocal used
        memory = pool.malloc(size)
        used = max(used, pool.used_bytes())
        return memory

    try:
        count, seconds = bicliques.median(core, lambda b: gbc.count(b, p, q, memory_limit=limit))
        with cupy.cuda.using_allocator(allocate):
            gbc.count(core, p, q, memory_limit=limit)
    except ValueError:  # too small for one root
        return {"bicliques": None, "seconds": None, "throughput": None, "peak MB": None}
    return {
        "bicliques": count, "seconds": seconds, "throughput": count / seconds,
        "peak MB": used / 1e6,
    }  # fmt: skip
