"""Exporting all edges as a CSR, beside one pass of `memcpy` over the bytes this reads and writes.

Ours reads a key, a weight and a time per edge (20 bytes) and writes row offsets, a target, a weight
and a time (8 per vertex, 16 per edge). The two `memcpy` figures copy half the sum of both, so that
they read and write as many bytes together: once into existing memory and once, as an export must,
into newly allocated memory. One edge is inserted before every export, so that no cached answer is
timed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import workloads
from ..keys import Array
from ..model import Fingerprint, Model
from ..report import Report, Setting
from ..stopwatch import Kernel, Timing, measure
from ..workloads import Workload
from . import peers
from .base import Lpma, Store

ROUNDS = 7
BUDGET_S = 4.0
TOO_SLOW_S = 0.5  # an export of the smaller graph that took longer is not tried on the larger


def csr(setting: Setting) -> Report:
    report = Report("csr", "milliseconds for a CSR of all edges, median")
    graphs = [(14, 100_000)] if setting.quick else [(18, 2_100_000), (20, 8_400_000)]
    candidates: list[type[Store]] = [Lpma, *peers.available()]
    for scale, edges in graphs:
        workload = workloads.rmat(scale, edges, 1 + ROUNDS)
        stores = {kind().name: kind() for kind in candidates if setting.wants(kind().name)}
        timings = export(workload, stores, with_memcpy=True)
        report.add(_row(workload, timings))
        slow = {name for name, timing in timings.items() if timing.median > TOO_SLOW_S}
        candidates = [kind for kind in candidates if kind().name not in slow]
    report.notes.append(
        "lpma exports weights and times too, scipy and graphblas have a CSR and copy it; "
        "ratio: lpma to memcpy; ratio fresh: to memcpy into new memory."
    )
    return report


def export(
    workload: Workload, stores: dict[str, Store], with_memcpy: bool = False
) -> dict[str, Timing]:
    model = Model(*workload.base())
    for store in stores.values():
        store.load(*workload.base(), workload.n)
    edges = [workload.stream(i, 1) for i in range(1 + ROUNDS)]
    expected = [model.insert(*edge) for edge in edges]

    def kernel(store: Store) -> Kernel:
        return Kernel(lambda i: store.insert(store.prepare(*edges[i])), lambda _: store.to_csr())

    def verify(name: str, rounds: int, _: Any) -> None:
        if name in stores:
            stores[name].verify(expected[rounds - 1])

    kernels = {name: kernel(store) for name, store in stores.items()}
    kernels |= _memcpy(workload, expected[-1]) if with_memcpy else {}
    return measure(kernels, verify, rounds=ROUNDS, budget_s=BUDGET_S)


def _memcpy(workload: Workload, edges: Fingerprint) -> dict[str, Kernel]:
    read, written = 20 * edges.count, 8 * (workload.n + 1) + 16 * edges.count
    source = np.ones((read + written) // 2, np.uint8)
    target = np.ones_like(source)

    def copy(into: Array) -> None:
        np.copyto(into, source)

    return {
        "memcpy": Kernel(lambda _: target, copy),
        "memcpy fresh": Kernel(lambda _: None, lambda _: copy(np.empty_like(source))),
    }


def _row(workload: Workload, timings: dict[str, Timing]) -> dict[str, Any]:
    names = ("lpma", "memcpy", "memcpy fresh", *(peer.name for peer in peers.ALL))
    row: dict[str, Any] = {"graph": workload.name, "edges": workload.loaded}
    row |= {name: timings[name].median * 1e3 if name in timings else float("nan") for name in names}
    row["ratio"] = row["lpma"] / row["memcpy"]
    row["ratio fresh"] = row["lpma"] / row["memcpy fresh"]
    return row
