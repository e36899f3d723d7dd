"""The k-core paper's Table V: the most device memory in use at once, in megabytes.

Ours: what CuPy's allocator hands out beyond the graph's own arrays, *CSR*. The paper's numbers
are the driver's, for the whole process: quoted ones are beside, not to be compared entry by entry.
"""

from __future__ import annotations

from typing import Any

from algorithms import core_numbers
from lpma import Snapshot

from .. import kcore
from ..report import Report, Setting

METHODS = {
    "Ours": "peel", "SM": "peel-sm", "VP": "peel-vp", "EC": "peel-ec", "BC": "peel-bc",
    "VETGA": "vector", "h-index": "h-index", "cooperative": "cooperative",
}  # fmt: skip


def run(setting: Setting) -> list[Report]:
    report = Report("kcore-table5", "peak device memory beyond the graph, megabytes")
    for name, s in kcore.graphs("cuda", setting.quick):
        if setting.out_of_time():
            break
        numbers = kcore.expected(s)
        row = kcore.about(name, s, numbers) | {"CSR": (s.indptr.nbytes + s.indices.nbytes) / 1e6}
        row |= {title: peak_bytes(s, method) / 1e6 for title, method in METHODS.items()}
        report.add(row)
    rows = kcore.published(kcore.PUBLISHED_MB)
    return [report, Report("kcore-table5-published", "megabytes, quoted from the paper", rows)]


def peak_bytes(s: Snapshot, method: str) -> int:
    """The most bytes allocated at once while the method ran, beyond those before."""
    import cupy

    core_numbers(s, method)  # the view, and the kernels
    pool = cupy.get_default_memory_pool()

    class Watch(cupy.cuda.MemoryHook):
        name = "watch"

        def __init__(self) -> None:
            self.before = self.most = pool.used_bytes()

        def malloc_postprocess(self, **_: Any) -> None:
            self.most = max(self.most, pool.used_bytes())

    with Watch() as watch:
        core_numbers(s, method)
    return int(watch.most - watch.before)
