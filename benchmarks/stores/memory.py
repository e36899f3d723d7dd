"""Bytes per edge after a random load, with the default columns: float32 weights and int64 times.

The store's own count is taken after every batch, so that the worst moment, just after an expansion,
is in it. It is checked against the growth of resident memory, in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np

from .. import workloads
from ..report import Report, Setting
from ..stopwatch import Figure
from ..workloads import Workload
from .base import Lpma

BATCH = 100_000

_RESIDENT = """
import gc, sys
import numpy as np
import lpma

def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def load(graph, batches, size):
    rng = np.random.default_rng(0)
    for _ in range(batches):
        graph.insert(*rng.integers(0, 1 << 20, (2, size), dtype=np.uint32))
    return graph

load(lpma.Graph(device="cpu"), 20, 1000)
before = resident()
graph = load(lpma.Graph(device="cpu"), int(sys.argv[1]), int(sys.argv[2]))
print((resident() - before) / graph.num_edges, graph.nbytes / graph.num_edges)
"""


def memory(setting: Setting) -> Report:
    report = Report("memory", "bytes an edge, batches of 100,000 edges")
    edges = 400_000 if setting.quick else 8_400_000
    graphs = [workloads.uniform(20, 0, edges)]
    if not setting.quick:
        graphs.append(workloads.rmat(20, 0, edges))
    for workload in graphs:
        report.add(_row(workload, edges))
    grown, counted = _resident(edges)
    report.notes.append(
        f"Resident memory grew by {grown:.1f} bytes an edge over the uniform load, "
        f"where the store counts {counted:.1f}."
    )
    return report


def _row(workload: Workload, edges: int) -> dict[str, object]:
    store = Lpma()
    store.load(*workload.stream(0, BATCH), workload.n)
    found = []
    for start in range(BATCH, edges, BATCH):
        store.insert(store.prepare(*workload.stream(start, BATCH)))
        found.append(store.graph.nbytes / store.graph.num_edges)
    second_half = found[len(found) // 2 :]
    row: dict[str, object] = {"graph": workload.name, "edges": store.graph.num_edges}
    row |= {"at the end": found[-1], "least": min(second_half)}
    median = Figure(float(np.median(second_half)), second_half)
    return row | {"median": median, "most": max(second_half)}


def _resident(edges: int) -> tuple[float, float]:
    """(what resident memory grew by, what the store counts), bytes per edge."""
    command = [sys.executable, "-c", _RESIDENT, str(edges // BATCH), str(BATCH)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    grown, counted = map(float, output.stdout.split())
    return grown, counted
