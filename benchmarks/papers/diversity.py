"""The structural diversity paper's Tables 2 to 5 and Figures 8 to 10.

Seconds, medians, k = 4 and t = 100 unless a figure varies them; diversity_programs.py says which
program is which. Ratios: *threads* is CPU-Div to MCPU-Div, *devices* GPU-Div to MGPU-Div-D,
*listing* MCPU-Div to lpma and *listing-gpu* GPU-Div to lpma-gpu.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from algorithms.diversity import schedule
from algorithms.diversity.model import MODELS

from ..keys import Array
from ..report import Report, Setting
from . import diversity_programs as programs
from . import published
from .diversity_programs import PROGRAMS, Graph, K, Program, T
from .ego_extraction import extraction


def table2(setting: Setting) -> list[Report]:
    """The paper's programs, and ours by listing."""
    report = Report("diversity-table2", "the best by structural diversity, seconds, median")
    programs.sweep(report, list(PROGRAMS), [(model, K, T) for model in MODELS], setting)
    return [report, _quoted("2", published.DIVERSITY_TABLE_2, published.DIVERSITY_TABLE_2_COLUMNS)]


def table3(setting: Setting) -> list[Report]:
    """Beside whole decompositions of every ego network.

    BC-Div and PGL-Div join k-core and k-truss programs of others to an extraction on the host; they
    are not ours to run, and are quoted, with the paper's own column. Run here: the paper's method
    on all devices and on one, and ours."""
    report = Report("diversity-table3", "core and truss models, seconds, median")
    names = ("GPU-Div", "MGPU-Div-D", "lpma-gpu", "lpma-gpus")
    programs.sweep(report, names, [("core", K, T), ("truss", K, T)], setting)
    return [report, _quoted("3", published.DIVERSITY_TABLE_3, published.DIVERSITY_TABLE_3_COLUMNS)]


def figure9(setting: Setting) -> Report:
    """The truss model by k."""
    report = Report("diversity-figure9", "truss model, by k, seconds, median")
    return programs.sweep(
        report, list(PROGRAMS), [("truss", k, T) for k in (2, 3, 4, 5, 6)], setting
    )


def figure10(setting: Setting) -> Report:
    """The truss model by t, k = 3."""
    report = Report("diversity-figure10", "truss model, by t, seconds, median")
    return programs.sweep(
        report, list(PROGRAMS), [("truss", 3, t) for t in (10, 100, 1000)], setting
    )


def _quoted(table: str, values: published.Table, columns: tuple[str, ...]) -> Report:
    rows = published.by_model(values, columns)
    return Report(f"diversity-table{table}-published", "seconds, quoted from the paper", rows)


def _by_graph(
    report: Report, names: tuple[str, ...], setting: Setting,
    row: Callable[[dict[str, Program], Graph], dict[str, Any]],
) -> Report:  # fmt: skip
    """A row for every graph that some of the programs take."""
    runnable = programs.runnable(names, setting)
    for graph in programs.graphs(runnable, setting.quick):
        if setting.out_of_time():
            break
        report.add(row(runnable, graph))
    return report


def _taken(runnable: dict[str, Program], graph: Graph) -> dict[str, Program]:
    return {name: p for name, p in runnable.items() if programs.takes(p, graph)}


def table4(setting: Setting) -> list[Report]:
    """Extracting the ego networks alone, all of them.

    From a prepared scorer, which knows how large each is. *R_e*: CPU-Div to the device."""
    report = Report("diversity-table4", "ego networks extracted, seconds, median")
    _by_graph(report, ("CPU-Div", "MCPU-Div", "GPU-Div"), setting, _extracted)
    return [report, _quoted("4", published.DIVERSITY_TABLE_4, published.DIVERSITY_TABLE_4_COLUMNS)]


def _extracted(runnable: dict[str, Program], graph: Graph) -> dict[str, Any]:
    taken = _taken(runnable, graph)
    timings = programs.race({name: extraction(p, graph) for name, p in taken.items()})
    row: dict[str, Any] = {"graph": graph.name, "edges": graph.ego_edges}
    row |= {name: timings[name].median if name in timings else None for name in runnable}
    slow, fast = row.get("CPU-Div"), row.get("GPU-Div")
    return row | {"R_e": slow / fast if slow and fast else None}


def figure8(setting: Setting) -> Report:
    """Throughput by how work is shared, truss model: vertices scored per second, all of them."""
    report = Report("diversity-figure8", "vertices scored a second, truss model, median")
    names = ("MCPU-Div", "GPU-Div", "MGPU-Div", "MGPU-Div-E", "MGPU-Div-D")
    return _by_graph(report, names, setting, _scored)


def _scored(runnable: dict[str, Program], graph: Graph) -> dict[str, Any]:
    taken = _taken(runnable, graph)
    timings = programs.race({name: _scoring(p, graph) for name, p in taken.items()})
    row: dict[str, Any] = {"graph": graph.name}
    for name in runnable:
        n = graph.on[runnable[name].device].num_rows
        row[name] = n / timings[name].median if name in timings else None
    alone, shared = row.get("GPU-Div"), row.get("MGPU-Div-D")
    return row | {"devices": shared / alone if alone and shared else None}


def _scoring(program: Program, graph: Graph) -> Callable[[], Array]:
    s = graph.on[program.device]
    owners = np.arange(s.num_rows, dtype=np.uint32)

    def run() -> Array:
        scorers = programs.scorers_of(program, s, "truss", K)
        return schedule.scores(scorers, owners, scorers[0].costs(owners), program.stealing)

    return run


def table5(setting: Setting) -> Report:
    """What each part of the paper's program gains, truss model: how many times as long it takes
    without.

    NoGPUEgo        ego networks extracted by one thread of the host: the time of MGPU-Div-D, or
                    with one device of GPU-Div, its extraction exchanged for CPU-Div's. Put together
                    from three measurements, not run as one program.
    NoMultipleGPU   GPU-Div to MGPU-Div; the paper's text names 1.58 to 1.64, on four devices
    NoWorkBalance   MGPU-Div to MGPU-Div-D; the paper's text names MGPU-Div-E there, its table the
                    other
    """
    report = Report("diversity-table5", "times as long without, truss model")
    runnable = programs.runnable(("GPU-Div", "MGPU-Div", "MGPU-Div-D"), setting)
    kinds = runnable | programs.runnable(("CPU-Div",), setting)
    for graph in programs.graphs(kinds, setting.quick):
        if runnable and not setting.out_of_time():
            report.add(_without(runnable, graph))
    return report


def _without(runnable: dict[str, Program], graph: Graph) -> dict[str, Any]:
    seconds = programs.race_searches(runnable, graph, "truss", K, T)
    one, packed, stolen = (seconds.get(name) for name in ("GPU-Div", "MGPU-Div", "MGPU-Div-D"))
    row: dict[str, Any] = {"graph": graph.name, "NoGPUEgo": None}
    whole = stolen or one
    on_host = PROGRAMS["CPU-Div"]
    if whole and "cpu" in graph.on and programs.takes(on_host, graph):
        parts = {"host": extraction(on_host, graph),
                 "device": extraction(PROGRAMS["GPU-Div"], graph)}  # fmt: skip
        timings = programs.race(parts)
        ours = timings["device"].median / (programs.devices() if stolen else 1)
        row["NoGPUEgo"] = (whole - ours + timings["host"].median) / whole
    row["NoMultipleGPU"] = one / packed if one and packed else None
    row["NoWorkBalance"] = packed / stolen if packed and stolen else None
    return row
