"""How long a start takes: the import, and the first use with and without Numba's cache.

Each sample is a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from ..report import Report, Setting
from ..stopwatch import median

REPEATS = 5

_SCRIPT = """
import time
start = time.perf_counter()
import lpma
imported = time.perf_counter()
import numpy as np
rng = np.random.default_rng(0)
graph = lpma.Graph(device="cpu")
for _ in range(4):
    src, dst = rng.integers(0, 1000, (2, 20_000), dtype=np.uint32)
    graph.insert(src, dst)
    graph.delete(src[:100], dst[:100])
assert graph.edges(src[-1:], dst[-1:]).found.all()
assert len(graph.successors([1, 2]).ids) > 0
assert len(graph.snapshot().indices) == graph.num_edges
print(imported - start, time.perf_counter() - imported)
"""


def startup(setting: Setting) -> Report:
    report = Report("startup", "seconds, each in a new process")
    _seconds({})  # fills the cache, if it is not full yet
    repeats = 1 if setting.quick else REPEATS
    warm = [_seconds({}) for _ in range(repeats)]
    report.add({"what": "import lpma", "seconds": median(s[0] for s in warm)})
    report.add({"what": "first use, warm cache", "seconds": median(s[1] for s in warm)})
    if not setting.quick:
        with tempfile.TemporaryDirectory() as empty:
            cold = _seconds({"NUMBA_CACHE_DIR": empty})
        report.add({"what": "first use, no cache", "seconds": cold[1]})
    report.notes.append("First use: insert, delete, edge and successor query, snapshot.")
    return report


def _seconds(environment: dict[str, str]) -> tuple[float, float]:
    """(import, first use)"""
    paths = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": paths, **environment}
    command = [sys.executable, "-c", _SCRIPT]
    output = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    imported, used = map(float, output.stdout.split()[-2:])
    return imported, used
