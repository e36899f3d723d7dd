"""The k-core paper's Table II: its nine programs, and ours in one cooperative kernel.

Milliseconds on the host's clock, launches and the reading back of counts included; the simple view
is there beforehand. *ratio*: the fastest of the nine to ours.
"""

from __future__ import annotations

from algorithms import core_numbers
from lpma import Snapshot

from .. import kcore
from ..gpu.device import synchronize
from ..report import Report, Setting

NINE = {
    "Ours": "peel", "SM": "peel-sm", "VP": "peel-vp",
    "BC": "peel-bc", "BC+SM": "peel-bc-sm", "BC+VP": "peel-bc-vp",
    "EC": "peel-ec", "EC+SM": "peel-ec-sm", "EC+VP": "peel-ec-vp",
}  # fmt: skip
ROUNDS = 7


def run(setting: Setting) -> Report:
    return compare("kcore-table2", NINE | {"cooperative": "cooperative"}, setting)


def compare(table: str, methods: dict[str, str], setting: Setting) -> Report:
    """A row a graph, with the milliseconds of methods by their names in the table."""
    report = Report(table, "core numbers on the device, milliseconds, median")
    for name, s in kcore.graphs("cuda", setting.quick):
        if setting.out_of_time():
            break
        right = kcore.expected(s)
        runs = {title: on_device(s, m) for title, m in methods.items() if setting.wants(m)}
        timings = kcore.race(runs, right, ROUNDS)
        ms = {t: timings[t].median * 1e3 if t in timings else float("nan") for t in methods}
        others = [value for title, value in ms.items() if title != "cooperative"]
        ratio = min(others) / ms["cooperative"]
        report.add(kcore.about(name, s, right) | ms | {"ratio": ratio})
    return report


def on_device(s: Snapshot, method: str) -> kcore.Run:
    def run() -> object:
        numbers = core_numbers(s, method)
        synchronize()
        return numbers

    return run
