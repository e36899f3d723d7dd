"""Triangles on one undirected snapshot, beside other libraries.

Graphs are those of `traversal`. Ours starts from the snapshot alone in every round: the ranked view
is part of what is timed, as taking the matrix apart is of GraphBLAS's count, while networkit and
igraph begin with their own structures made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import algorithms
from lpma import Snapshot
from lpma.cpu.threads import THREADS

from .. import triangle_counters
from ..measure import Kernel, Timing, WrongAnswer, measure
from ..report import Report, Setting
from .traversal import graphs

PEERS = ("graphblas", "networkit", "igraph")
ROUNDS, BUDGET_S = 5, 20.0


def run(setting: Setting) -> Report:
    report = Report("triangles", "seconds, median")
    for name, s in graphs(setting.quick):
        expected = algorithms.triangle_count(s)
        counts = {"lpma": _ours(s), **triangle_counters.by_library(s, THREADS)}
        timings = _race(
            {who: count for who, count in counts.items() if setting.wants(who)}, expected
        )
        row: dict[str, Any] = {"graph": name, "edges": s.num_edges, "triangles": expected}
        row |= {who: timings[who].median if who in timings else None for who in ("lpma", *PEERS)}
        others = [timing.median for who, timing in timings.items() if who != "lpma"]
        ours = timings["lpma"].median if "lpma" in timings else float("nan")
        report.add(row | {"ratio": min(others, default=float("nan")) / ours})
    report.notes.append("ratio: the fastest of the others to lpma.")
    return report


def _ours(s: Snapshot) -> triangle_counters.Count:
    return lambda: algorithms.triangle_count(bare(s))


def bare(s: Snapshot) -> Snapshot:
    """The same arrays without the views that algorithms left on them."""
    return replace(s, views={})


def _race(counts: dict[str, triangle_counters.Count], expected: int) -> dict[str, Timing]:
    def verify(name: str, _: int, answer: Any) -> None:
        if answer != expected:
            raise WrongAnswer(f"{name}: {answer} triangles instead of {expected}")

    kernels = {name: Kernel(lambda _: None, _ignoring(count)) for name, count in counts.items()}
    return measure(kernels, verify, rounds=ROUNDS, budget_s=BUDGET_S)


def _ignoring(count: triangle_counters.Count) -> Callable[[Any], int]:
    return lambda _: count()
