"""The structural diversity paper's Table 4: extracting the ego networks alone, all of them.

Seconds from a prepared scorer, which knows how large each is. *R_e*: CPU-Div to the device.
"""

from __future__ import annotations

from typing import Any

from .. import diversity
from ..diversity_published import TABLE_4, TABLE_4_COLUMNS, rows
from ..ego_extraction import extraction
from ..report import Report, Setting

NAMES = ("CPU-Div", "MCPU-Div", "GPU-Div")


def run(setting: Setting) -> list[Report]:
    report = Report("diversity-table4", "ego networks extracted, seconds, median")
    programs = diversity.runnable(NAMES, setting)
    for graph in diversity.graphs(programs, setting.quick):
        if setting.out_of_time():
            break
        report.add(_row(programs, graph))
    quoted = rows(TABLE_4, TABLE_4_COLUMNS)
    return [report, Report("diversity-table4-published", "seconds, quoted from the paper", quoted)]


def _row(programs: dict[str, diversity.Program], graph: diversity.Graph) -> dict[str, Any]:
    runs = {
        name: extraction(program, graph)
        for name, program in programs.items()
        if diversity.takes(program, graph)
    }
    timings = diversity.race(runs)
    row: dict[str, Any] = {"graph": graph.name, "edges": graph.ego_edges}
    row |= {name: timings[name].median if name in timings else None for name in programs}
    slow, fast = row.get("CPU-Div"), row.get("GPU-Div")
    return row | {"R_e": slow / fast if slow and fast else None}
