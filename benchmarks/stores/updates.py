"""Insertions and deletions per second, by batch size, beside the other stores.

A graph is loaded; then, size by size, every store takes the same batches of the stream, and after
them deletes batches of edges drawn from what it then holds, so that every size finds the graph
about as large as it was after loading. A store that needs more than the budget for a size is
verified and sits out the larger sizes of that graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from .. import workloads
from ..keys import Array, ends_of
from ..model import Fingerprint, Model
from ..report import Report, Setting, rates
from ..stopwatch import Kernel, Timing, measure
from ..workloads import Workload
from . import peers
from .base import Lpma, Store

ROUNDS = {10: 40, 10**3: 20, 10**4: 12, 10**5: 6, 10**6: 3}  # after the warm-up
WARMUP = 1
BUDGET_S = 6.0  # per store, size and operation
# What a ratio is taken to: igraph is not a rival.
SETS = ("scipy", "numpy", "networkit", "graphblas")

Pair = tuple[Array, Array]


def updates(setting: Setting) -> Report:
    report = Report("updates", "million edges a second, median batch")
    names = ("lpma", "lpma-never", *(peer.name for peer in peers.ALL))
    for workload, sizes in _workloads(setting.quick):
        cells = [(what, size) for size in sizes for what in ("insert", "delete")]
        for what, size, timings in race(workload, cells, _stores(setting)):
            row = rates(timings, size, names, SETS)
            row["ratio never"] = row["lpma-never"] / row["lpma"] * row["ratio"]
            report.add({"graph": workload.name, "what": what, "batch": size} | row)
    report.notes.append(
        "ratio: lpma (global_merge auto) to the fastest of " + ", ".join(SETS) + "; "
        "ratio never: lpma with global_merge never."
    )
    return report


def _workloads(quick: bool) -> Iterator[tuple[Workload, list[int]]]:
    if quick:
        yield workloads.rmat(14, 100_000, 60_000), [10**3, 10**4]
        return
    sizes = list(ROUNDS)[1:]
    needed = streamed(sizes)
    yield workloads.rmat(18, 2_100_000, needed), sizes
    yield workloads.rmat(20, 8_400_000, needed), sizes
    yield workloads.grid(1024), sizes[1:3]
    for name in ("sx-mathoverflow", "uk-2007-05-100k"):
        graph = workloads.real(name)
        if graph is not None:
            yield graph, sizes[:3]


def streamed(sizes: Iterable[int]) -> int:
    """Edges that batches of these sizes take."""
    return sum((WARMUP + ROUNDS[size]) * size for size in sizes)


def _stores(setting: Setting) -> list[Store]:
    ours: list[Store] = [Lpma(), Lpma("lpma-never", global_merge="never")]
    theirs: list[Store] = [peer() for peer in peers.available()]
    return [store for store in ours + theirs if setting.wants(store.name)]


def race(
    workload: Workload, cells: Iterable[tuple[str, int]], stores: list[Store]
) -> Iterator[tuple[str, int, dict[str, Timing]]]:
    """(what, how many edges a batch, what each store took) of each cell: "insert" takes the next
    batches of the stream, "delete" edges that are there. A cell that the stream is too short for is
    left out."""
    model, used = Model(*workload.base()), 0
    running = {store.name: store for store in stores}
    for store in stores:
        store.load(*workload.base(), workload.n)
    for what, size in cells:
        rounds = min(WARMUP + ROUNDS[size], (workload.streamed - used) // size)
        if what == "delete":
            batches = _drawn(model, size, WARMUP + ROUNDS[size])
        elif rounds > WARMUP:
            batches = [workload.stream(used + i * size, size) for i in range(rounds)]
            used += rounds * size
        else:
            continue
        change = model.insert if what == "insert" else model.delete
        expected = [change(*batch) for batch in batches]
        yield what, len(batches[0][0]), _cell(what, batches, expected, running)


def _drawn(model: Model, size: int, rounds: int) -> list[Pair]:
    """`rounds` batches of edges that are there, none twice."""
    rng = np.random.default_rng(size)
    size = min(size, len(model.keys) // (2 * rounds))
    keys = rng.choice(model.keys, size * rounds, replace=False, shuffle=True)
    return [ends_of(part) for part in np.split(keys, rounds)]


def _cell(
    what: str, batches: list[Pair], expected: list[Fingerprint], running: dict[str, Store]
) -> dict[str, Timing]:
    """expected: what a store must hold after each batch."""

    def kernel(store: Store) -> Kernel:
        change = store.insert if what == "insert" else store.delete
        return Kernel(lambda i: store.prepare(*batches[i]), change)

    def verify(name: str, rounds: int, _: Any) -> None:
        running[name].verify(expected[rounds - 1])

    kernels = {name: kernel(store) for name, store in running.items()}
    rounds = len(batches)
    timings = measure(kernels, verify, rounds=rounds - WARMUP, warmup=WARMUP, budget_s=BUDGET_S)
    for name, timing in timings.items():
        if timing.rounds < rounds:
            del running[name]  # it no longer holds what the others hold
    return timings
