"""Rebalances done twice in a batch, by strategy: the paper's Figure 10.

A rebalance of a segment is redundant when a later round of the same batch rebalances the segment
again. Every store runs one cycle, from one expansion to the end of the next, with
`global_merge="never"`. *saved* is the share of bottom-up's rebalanced segments that a strategy
avoids.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ... import workloads
from ...model import Model
from ...report import Report, Setting
from ...stopwatch import Kernel, mean, measure
from ...stores.base import Lpma
from ...workloads import Workload

STRATEGIES = ("bottom-up", "top-down", "hybrid")


def redundancy(setting: Setting) -> Report:
    report = Report("redundancy", "segments rebalanced in one cycle, and how many of them again")
    for workload, size in _workloads(setting.quick):
        _cycle(report, workload, size)
    return report


def _workloads(quick: bool) -> Iterator[tuple[Workload, int]]:
    # With 32 slots a segment and a bound of 0.9, a cycle goes from E to 2E edges.
    edges, sizes = (59_000, [1_000]) if quick else (1_887_000, [10_000, 100_000])
    scale = 14 if quick else 18
    for graph in (workloads.rmat(scale, edges, edges), workloads.uniform(scale + 2, edges, edges)):
        for size in sizes:
            yield graph, size


def _cycle(report: Report, workload: Workload, size: int) -> None:
    stores = {name: Lpma(name, strategy=name, global_merge="never") for name in STRATEGIES}
    for store in stores.values():
        store.load(*workload.base(), workload.n)
    rounds = workload.streamed // size
    model = Model(*workload.base())
    batches = [workload.stream(i * size, size) for i in range(rounds)]
    for batch in batches:
        model.insert(*batch)
    before = {name: _counted(store) for name, store in stores.items()}

    def kernel(store: Lpma) -> Kernel:
        return Kernel(lambda i: store.prepare(*batches[i]), store.insert)

    timings = measure(
        {name: kernel(store) for name, store in stores.items()},
        lambda name, _rounds, _result: stores[name].verify(model.fingerprint),
        rounds=rounds,
        warmup=0,
    )
    of_bottom_up = 0
    for name, store in stores.items():
        moved, redundant, expansions = (
            now - then for now, then in zip(_counted(store), before[name], strict=True)
        )
        of_bottom_up = of_bottom_up or moved
        row: dict[str, Any] = {"graph": workload.name, "batch": size, "strategy": name}
        report.add(
            row
            | {
                "rebalanced": moved,
                "redundant": redundant,
                "share %": 100 * redundant / max(moved, 1),
                "saved %": 100 * (1 - moved / max(of_bottom_up, 1)),
                "expansions": expansions,
                "M edges/s": size / mean(timings[name].seconds) / 1e6,
            }
        )


def _counted(store: Lpma) -> tuple[int, int, int]:
    stats = store.graph.stats()
    return int(stats.segments_by_layer.sum()), stats.redundant_rebalances, stats.expansions
