"""The k-core paper's Table IV: programs for the CPU, ours and other libraries beside its methods.

Milliseconds with all of this machine's cores, the graph in the form that each likes; *view* is what
it takes us to bring a directed snapshot, which has each edge once, into ours, and the last columns
what it takes the libraries to read an array of edges. *ratio*: the fastest library to ours;
*with view*: the same with these preparations on both sides.
"""

from __future__ import annotations

import time
from typing import Any

from algorithms import core_numbers
from algorithms.views.simple import simple
from lpma import Snapshot
from lpma.cpu.threads import THREADS

from .. import kcore
from ..report import Report, Setting

METHODS = {"lpma": "auto", "BZ": "bz", "ParK": "park", "MPM": "h-index", "PKC": "pkc"}
LIBRARIES = ("networkit", "igraph", "networkx")
ROUNDS, VIEW_ROUNDS = 5, 3


def run(setting: Setting) -> Report:
    report = Report("kcore-table4", "core numbers on the CPU, milliseconds, median")
    for name, s in kcore.graphs("cpu", setting.quick):
        report.add(_row(name, s, setting))
    return report


def _row(name: str, s: Snapshot, setting: Setting) -> dict[str, Any]:
    right = kcore.expected(s)
    made, reading = kcore.libraries(s, THREADS)
    runs = {title: _by_method(s, m) for title, m in METHODS.items() if setting.wants(title)}
    runs |= {title: run for title, run in made.items() if setting.wants(title)}
    timings = kcore.race(runs, right, ROUNDS)
    ms = {t: timings[t].median * 1e3 if t in timings else None for t in (*METHODS, *LIBRARIES)}
    view = _view_seconds(s) * 1e3
    row = kcore.about(name, s, right) | ms | {"view": view}
    row |= {f"{title} reads": 1e3 * reading[title] if title in reading else None
            for title in LIBRARIES}  # fmt: skip
    others = {title: timings[title].median * 1e3 for title in made if title in timings}
    whole = min((ms + 1e3 * reading[title] for title, ms in others.items()), default=float("nan"))
    ours = timings["lpma"].median * 1e3 if "lpma" in timings else float("nan")
    row["ratio"] = min(others.values(), default=float("nan")) / ours
    row["with view"] = whole / (ours + view)
    return row


def _by_method(s: Snapshot, method: str) -> kcore.Run:
    return lambda: core_numbers(s, method)


def _view_seconds(s: Snapshot) -> float:
    """The fastest of a few times, each with a snapshot that has no view yet."""
    best, directed = float("inf"), kcore.fresh(s)
    for _ in range(VIEW_ROUNDS):
        directed.views.clear()
        start = time.perf_counter()
        simple(directed)
        best = min(best, time.perf_counter() - start)
    return best
