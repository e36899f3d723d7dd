"""The biclique paper's Figures 7 to 10 and Tables III to V, and its programs on the CPU.

Its other programs (BCL and BCLP, for the CPU) and the tools that it compares parts of its own with
(METIS, Gorder) are not ours to run; rows of its tables are quoted.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from algorithms.biclique import gbc
from algorithms.biclique.bipartite import Bipartite, trimmed
from ingest import datasets

from ..report import Report, Setting
from ..stopwatch import WrongAnswer, alone, on_host
from . import biclique_programs as programs
from . import published
from .biclique_programs import OURS, about, times
from .border import reordered
from .gbc import GBC, Program
from .gbc.truncated import truncated

DEVICE = "cuda"
P, Q = 3, 3  # of the tables, on graphs smaller than those of the paper, which has (8, 8)
BUDGETS_MB = (None, 256, 64, 16)
OFF = {
    "NH": {"hybrid": False},
    "NB": {"truncated": False},
    "NW": {"edges": False, "stealing": False},
    "no priority": {"priority": False},
    "no anchor": {"anchor": False},
    "all two-hop": {"common": False},
}


def figure7(setting: Setting) -> Report:
    """The paper's program, its baseline and ours, p + q = 16. *ratio*: GBC to ours."""
    return _queries(setting, "biclique-figure7", programs.QUERIES)


def figure8(setting: Setting) -> Report:
    """The same with growing queries: p = q = 4, 6, … 12."""
    halves = (4, 6) if setting.quick else (4, 6, 8, 10, 12)
    return _queries(setting, "biclique-figure8", tuple((half, half) for half in halves))


def _queries(setting: Setting, name: str, queries: tuple[tuple[int, int], ...]) -> Report:
    """One row per graph and query."""
    report = Report(name, "(p, q)-bicliques, seconds, median, everything included")
    for graph, b in programs.graphs(DEVICE, setting.quick):
        ordered = reordered(b)
        for p, q in queries:
            if setting.out_of_time():
                return report
            count, seconds = times(b, p, q, ordered=ordered)
            row = about(graph, b) | {"p": p, "q": q, "bicliques": f"{count:.4g}"}
            report.add(row | seconds | {"ratio": seconds["GBC"] / seconds[OURS]})
    return report


def figure9(setting: Setting) -> Report:
    """GBC without one of its parts.

    NH: without the hybrid exploration. NB: without truncated bitmaps and Border, that is, by binary
    search in plain rows. NW: without the balancing of work before and while it runs. Numbers are
    how many times longer the program takes."""
    report = Report("biclique-figure9", "GBC without a part: times longer than `all`, seconds")
    without = {name: GBC._replace(**parts) for name, parts in OFF.items()}
    for graph, b in programs.graphs(DEVICE, setting.quick):
        ordered = reordered(b)
        for p, q in ((3, 3), (4, 4), (4, 12), (3, 5), (5, 3), (12, 4)):
            if setting.out_of_time():
                return report
            _, seconds = times(b, p, q, {"all": GBC} | without, ordered)
            whole = seconds.pop("all")
            row = about(graph, b) | {"p": p, "q": q, "all": whole}
            report.add(row | {name: taken / whole for name, taken in seconds.items()})
    return report


def figure10(setting: Setting) -> Report:
    """Graphs counted in independent parts, within budgets of memory.

    *throughput*: bicliques per second. *peak*: the most bytes of the device that a count held
    besides the graph, against the budget. METIS parts graphs that then need each other."""
    report = Report("biclique-figure10", "counting within a budget of memory (BCPar)")
    for graph, b in programs.graphs(DEVICE, setting.quick):
        for p, q in ((3, 3), (3, 5)):
            whole = None
            for budget in BUDGETS_MB:
                if setting.out_of_time():
                    return report
                row = _within(b, p, q, budget)
                if whole not in (None, row["bicliques"]) and row["bicliques"] is not None:
                    raise WrongAnswer(f"{graph} ({p}, {q}), {budget} MB: {row['bicliques']}")
                whole = whole or row["bicliques"]
                report.add(about(graph, b) | {"p": p, "q": q, "budget MB": budget} | row)
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
        count, seconds = programs.median(core, lambda b: gbc.count(b, p, q, memory_limit=limit))
        with cupy.cuda.using_allocator(allocate):
            gbc.count(core, p, q, memory_limit=limit)
    except ValueError:  # too small for one root
        return {"bicliques": None, "seconds": None, "throughput": None, "peak MB": None}
    return {
        "bicliques": count, "seconds": seconds, "throughput": count / float(seconds),
        "peak MB": used / 1e6,
    }  # fmt: skip


def _in_time(setting: Setting) -> Iterator[tuple[str, Bipartite]]:
    for name, b in programs.graphs(DEVICE, setting.quick):
        if setting.out_of_time():
            return
        yield name, b


def _quoted(
    table: int, columns: published.Columns, graphs: tuple[str, ...] = published.BICLIQUE_GRAPHS
) -> Report:
    rows = published.by_graph(columns, graphs)
    return Report(f"biclique-table{table}-published", "(8, 8), seconds, quoted", rows)


def table3(setting: Setting) -> list[Report]:
    """The paper's program on graphs in their own order, and in Border's.

    Seconds of the count alone, the order given; *words*: of the truncated bitmaps of the layer that
    is searched from the left."""
    report = Report("biclique-table3", f"GBC on graphs by their order, ({P}, {Q}), seconds")
    for name, b in _in_time(setting):
        row = about(name, b)
        for order, graph in (("no reorder", b), ("Border", reordered(b))):
            _, seconds = times(graph, P, Q, {"GBC": GBC})
            words = len(truncated(graph.left_indptr, graph.left_indices).words)
            row |= {f"words, {order}": words, order: seconds["GBC"]}
        report.add(row | {"ratio": row["no reorder"] / row["Border"]})
    return [report, _quoted(3, published.BICLIQUE_TABLE_3)]


def table4(setting: Setting) -> list[Report]:
    """Balancing work before it runs, while it runs, both, and neither.

    Before: tasks are second vertices, not roots. While: tasks are taken as workers come free."""
    report = Report("biclique-table4", f"GBC by how work is balanced, ({P}, {Q}), seconds")
    by_balance = {
        "joint": GBC,
        "pre-runtime": GBC._replace(stealing=False),
        "runtime": GBC._replace(edges=False),
        "no balance": GBC._replace(edges=False, stealing=False),
    }
    for name, b in _in_time(setting):
        report.add(about(name, b) | times(b, P, Q, by_balance)[1])
    return [report, _quoted(4, published.BICLIQUE_TABLE_4, published.BICLIQUE_GRAPHS_OF_TABLE_4)]


def table5(setting: Setting) -> list[Report]:
    """How long making truncated bitmaps, Border and counting take.

    Border serves every p and q, the bitmaps one layer. *counting* is GBC's on the reordered graph,
    *ours* the whole count by compact bitmaps, which need neither."""
    report = Report("biclique-table5", f"seconds of each part, ({P}, {Q})")
    for name, b in _in_time(setting):
        reordered(b, 0)  # compiles
        border, graph = on_host(partial(reordered, b))
        transform = partial(truncated, graph.left_indptr, graph.left_indices)
        row = {"HTB": alone(transform, rounds=1), "reorder": border}
        parts: dict[str, Program | None] = {"counting": GBC, "ours": None}
        report.add(about(name, b) | row | times(graph, P, Q, parts)[1])
    return [report, _quoted(5, published.BICLIQUE_TABLE_5)]


def on_cpu(setting: Setting) -> Report:
    """The paper's programs on a graph small enough for two cores."""
    report = Report("bicliques", "the paper's programs on the CPU, seconds, median")
    name = "bip-jodie-wikipedia"
    if setting.quick or datasets.find(name) is None:
        b, name = programs.synthetic("cpu", *programs.QUICK), "synthetic"
    else:
        b = programs.real("cpu", name)
    for p, q in ((3, 3), (4, 4)):
        core = trimmed(b, p, q)
        count, seconds = times(core, p, q, ordered=reordered(core))
        row = about(name, b) | {"p": p, "q": q, "bicliques": count}
        report.add(row | seconds | {"ratio": seconds["GBL"] / seconds[OURS]})
    return report
