"""Setting edges beside inserting the same: how much more a set costs than an insertion.

Two graphs are loaded alike. Then, batch by batch and in turns, one inserts edges and the other sets
them: edges that are new to both, and edges that both have. On the CPU the time is the processor's,
of all threads; on a device it lasts until that is idle. At the end both must hold the same edges,
with the weights that either has to give them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import lpma

from .. import workloads
from ..keys import Array
from ..report import Report, Setting
from ..stopwatch import Kernel, WrongAnswer, measure, of_processor, on_device
from ..workloads import Workload

ROUNDS = {10**4: 30, 10**6: 6}  # after the warm-up
WARMUP = 1
WEIGHT = 3.0  # of all edges in batches; loaded ones have 1

Pair = tuple[Array, Array]


def sets(setting: Setting) -> Report:
    return _report("sets", "processor time", setting, [np.asarray], "cpu")


def gpu_sets(setting: Setting) -> Report:
    import cupy

    return _report("gpu-sets", "until the device is idle", setting, [np.asarray, cupy.asarray],
                   "cuda")  # fmt: skip


def _report(
    name: str, timed: str, setting: Setting, forms: list[Callable[[Array], Any]], device: str
) -> Report:
    report = Report(name, f"milliseconds a batch, median; {timed}")
    rounds = {10**3: 5} if setting.quick else ROUNDS
    streamed = sum((WARMUP + n) * size for size, n in rounds.items())
    if setting.quick:
        workload = workloads.rmat(14, 100_000, streamed)
    else:
        workload = workloads.rmat(*((20, 10**7) if device == "cuda" else (18, 2_100_000)), streamed)
    for near in forms:
        if not setting.out_of_time() and setting.wants("lpma"):
            _race(report, workload, rounds, near, device)
    report.notes.append("ratio: of a set to an insertion.")
    return report


def _race(
    report: Report, workload: Workload, rounds: dict[int, int], near: Callable[[Array], Any],
    device: str,
) -> None:  # fmt: skip
    graphs = {what: lpma.Graph(device=device) for what in ("insert", "set")}
    for graph in graphs.values():
        graph.insert(*workload.base())
    used, rng = 0, np.random.default_rng(1)
    for size, timed in rounds.items():
        new, known = [], []
        for _ in range(WARMUP + timed):
            new.append(workload.stream(used, size))
            used += size
            rows = rng.integers(0, len(workload.base()[0]), size)
            known.append((workload.base()[0][rows], workload.base()[1][rows]))
        for edges, batches in (("new", new), ("known", known)):
            clock = on_device if device == "cuda" else of_processor
            timings = measure(
                {what: _kernel(graph, what, batches, near) for what, graph in graphs.items()},
                lambda *_: None, rounds=timed, warmup=WARMUP, clock=clock,
            )  # fmt: skip
            row = {what: 1e3 * timing.median for what, timing in timings.items()}
            report.add(
                {"graph": workload.name, "from": near.__module__.partition(".")[0], "edges": edges,
                 "batch": size} | row | {"ratio": row["set"] / row["insert"]}
            )  # fmt: skip
            _verify(graphs, batches)


def _kernel(graph: Any, what: str, batches: list[Pair], near: Callable[[Array], Any]) -> Kernel:
    def prepared(i: int) -> Any:
        src, dst = batches[i]
        weights, times = np.full(len(src), WEIGHT, np.float32), np.arange(len(src))
        return [near(column) for column in (src.astype(np.uint32), dst.astype(np.uint32),
                                            weights, times)]  # fmt: skip

    return Kernel(prepared, lambda columns: getattr(graph, what)(*columns))


def _verify(graphs: dict[str, Any], batches: list[Pair]) -> None:
    """Raise WrongAnswer unless both hold the same edges, set as they were told."""
    inserted, put = (graphs[what].snapshot() for what in ("insert", "set"))
    if not bool((inserted.indptr == put.indptr).all() and (inserted.indices == put.indices).all()):
        raise WrongAnswer("sets: the two graphs hold different edges")
    for src, dst in batches:
        weights = graphs["set"].edges(src, dst).weights
        if not bool((weights == WEIGHT).all()):
            raise WrongAnswer("sets: an edge has another weight than was set")
        if not bool((graphs["insert"].edges(src, dst).weights >= WEIGHT).all()):
            raise WrongAnswer("sets: an edge has less than was inserted")
