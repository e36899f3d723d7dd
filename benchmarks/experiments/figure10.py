"""The paper's Figure 10: mean latency by strategy, and the rebalances each does without.

One cycle, from an expansion to past the next, `global_merge="never"`. A rebalance of a segment is
redundant when a later round of the same batch rebalances it again; *saved %* is the share of
bottom-up's rebalanced segments that a strategy does without.
"""

from __future__ import annotations

from typing import Any

from ..gpu.growth import graphs, grow
from ..gpu.stores import make
from ..report import Report, Setting

STRATEGIES = ("bottom-up", "top-down", "hybrid")
CYCLE = 7_600_000  # 0.9 of 2^18 segments of 32 slots, and a little more


def run(setting: Setting) -> Report:
    report = Report("figure10", "mean milliseconds a batch, and segments rebalanced again")
    start = CYCLE >> 7 if setting.quick else CYCLE
    for stream in graphs(setting, 2 * start):
        stream = stream.cut(min(start, len(stream.keys) // 2))
        for size in (1_000,) if setting.quick else (10**4, 10**5):
            batches = min(stream.streamed, start) // size - 3
            if batches < 3:
                continue
            of_bottom_up = 0
            for strategy in STRATEGIES:
                if setting.out_of_time():
                    continue
                growth = grow(make(f"lpma-{strategy}"), stream, size, batches)
                moved = sum(growth.moved)
                of_bottom_up = of_bottom_up or moved
                row: dict[str, Any] = {"graph": stream.name, "batch": size, "strategy": strategy}
                report.add(row | {
                    "mean ms": growth.mean_ms, "slowest": max(growth.ms), "rebalanced": moved,
                    "redundant": growth.redundant,
                    "share %": 100 * growth.redundant / max(moved, 1),
                    "saved %": 100 * (1 - moved / max(of_bottom_up, 1)),
                })  # fmt: skip
    return report
