"""Insertions and deletions per second, by batch size, beside the other stores.

A graph is loaded; then, size by size, every store takes the same batches of the stream, and after
them deletes batches of edges drawn from what it then holds, so that every size finds the graph
about as large as it was after loading. A store that needs more than the budget for a size is
verified and sits out the larger sizes of that graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import workloads
from ..keys import Array, ends_of
from ..model import Fingerprint, Model
from ..report import Report, Setting
from ..stopwatch import Kernel, Timing, measure
from ..workloads import Workload
from . import peers
from .base import Lpma, Store

ROUNDS = {10**3: 20, 10**4: 12, 10**5: 6, 10**6: 3}  # after the warm-up
WARMUP = 1
BUDGET_S = 6.0  # per store, size and operation
# What a ratio is taken to: igraph is not a rival.
SETS = ("scipy", "numpy", "networkit", "graphblas")

Pair = tuple[Array, Array]


def updates(setting: Setting) -> Report:
    report = Report("updates", "million edges a second, median batch")
    for workload, sizes in _workloads(setting.quick):
        for cell in _race(workload, sizes, _stores(setting)):
            report.add(cell)
    report.notes.append(
        "ratio: lpma (global_merge auto) to the fastest of " + ", ".join(SETS) + "; "
        "ratio never: lpma with global_merge never."
    )
    return report


def _workloads(quick: bool) -> Iterator[tuple[Workload, list[int]]]:
    if quick:
        yield workloads.rmat(14, 100_000, 60_000), [10**3, 10**4]
        return
    sizes = list(ROUNDS)
    needed = sum((WARMUP + rounds) * size for size, rounds in ROUNDS.items())
    yield workloads.rmat(18, 2_100_000, needed), sizes
    yield workloads.rmat(20, 8_400_000, needed), sizes
    yield workloads.grid(1024), sizes[1:3]
    for name in ("sx-mathoverflow", "uk-2007-05-100k"):
        graph = workloads.real(name)
        if graph is not None:
            yield graph, sizes[:3]


def _stores(setting: Setting) -> list[Store]:
    ours: list[Store] = [Lpma(), Lpma("lpma-never", global_merge="never")]
    theirs: list[Store] = [peer() for peer in peers.available()]
    return [store for store in ours + theirs if setting.wants(store.name)]


@dataclass
class _Batches:
    """The batches of one cell, and what a store must hold after each."""

    batches: list[Pair]
    expected: list[Fingerprint]


def _race(workload: Workload, sizes: list[int], stores: list[Store]) -> Iterator[dict[str, Any]]:
    model, used = Model(*workload.base()), 0
    running = {store.name: store for store in stores}
    for store in stores:
        store.load(*workload.base(), workload.n)
    for size in sizes:
        rounds = min(WARMUP + ROUNDS[size], (workload.streamed - used) // size)
        if rounds <= WARMUP:
            continue
        inserts = [workload.stream(used + i * size, size) for i in range(rounds)]
        used += rounds * size
        cell = _Batches(inserts, [model.insert(*batch) for batch in inserts])
        yield _cell(workload.name, "insert", size, cell, running)
        deletes = _drawn(model, size, rounds)
        cell = _Batches(deletes, [model.delete(*batch) for batch in deletes])
        yield _cell(workload.name, "delete", size, cell, running)


def _drawn(model: Model, size: int, rounds: int) -> list[Pair]:
    """`rounds` batches of edges that are there, none twice."""
    rng = np.random.default_rng(size)
    size = min(size, len(model.keys) // (2 * rounds))
    keys = rng.choice(model.keys, size * rounds, replace=False, shuffle=True)
    return [ends_of(part) for part in np.split(keys, rounds)]


def _cell(
    graph: str, what: str, size: int, cell: _Batches, running: dict[str, Store]
) -> dict[str, Any]:
    def kernel(store: Store) -> Kernel:
        change = store.insert if what == "insert" else store.delete
        return Kernel(lambda i: store.prepare(*cell.batches[i]), change)

    def verify(name: str, rounds: int, _: Any) -> None:
        running[name].verify(cell.expected[rounds - 1])

    kernels = {name: kernel(store) for name, store in running.items()}
    all_rounds = len(cell.batches)
    timings = measure(kernels, verify, rounds=all_rounds - WARMUP, warmup=WARMUP, budget_s=BUDGET_S)
    for name, timing in timings.items():
        if timing.rounds < all_rounds:
            del running[name]  # it no longer holds what the others hold
    return _row(graph, what, len(cell.batches[0][0]), timings)


def _row(graph: str, what: str, size: int, timings: dict[str, Timing]) -> dict[str, Any]:
    rate = {name: size / timing.median / 1e6 for name, timing in timings.items()}
    best = max((rate[name] for name in SETS if name in rate), default=float("nan"))
    names = ("lpma", "lpma-never", *(peer.name for peer in peers.ALL))
    row: dict[str, Any] = {"graph": graph, "what": what, "batch": size}
    row |= {name: rate.get(name, float("nan")) for name in names}
    row["ratio"] = row["lpma"] / best
    row["ratio never"] = row["lpma-never"] / best
    return row
