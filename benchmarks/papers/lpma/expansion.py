"""What a batch that expands the store rebalances: the paper's Figure 8 and its Lemma 1.

Uniform edges, `global_merge="never"`. With s segments before the expansion and x edges in the
batch, a global rebalance moves all 2s segments; Lemma 1 expects 2s(1 − (1 − 1/s)^x): every segment
an edge falls into, and its new empty neighbour.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import plots
from ...keys import Array
from ...report import Report, Setting
from ...stopwatch import WrongAnswer
from ...stores.base import Lpma

STRATEGIES = ("bottom-up", "top-down", "hybrid")
BATCH = 10_000
VERTICES = 1 << 24


def expansion(setting: Setting) -> Report:
    report = Report("expansion", "segments rebalanced by the batch that expands")
    sizes = [2**10, 2**11] if setting.quick else [2**17, 2**18]
    batch = BATCH // 100 if setting.quick else BATCH
    for strategy in STRATEGIES:
        # The bottom-up store is the paper's; it goes one size further.
        last = sizes[-1] * (2 if strategy == "bottom-up" else 1)
        _grow(report, strategy, sizes[0], last, batch)
    report.notes.append(
        f"x = {batch:,} uniform edges; merge never. to lemma: moved / predicted (the goal is at "
        "most 2); to global: moved / 2s."
    )
    report.plots.append(_plot(setting, report))
    return report


def _grow(report: Report, strategy: str, first: int, last: int, batch: int) -> None:
    """Grow one store to `last` segments, and add a row for its expansion of each size from
    `first` on."""
    rng = np.random.default_rng(first)
    store = Lpma(strategy, strategy=strategy, global_merge="never")
    store.load(*_edges(rng, batch), VERTICES)
    graph = store.graph
    while graph.segments <= last:
        room = int(0.9 * graph.segments * graph.segment_size) - graph.num_edges
        size = batch if room < 4 * batch else min(room - 3 * batch, max(batch, room // 8))
        segments, stats = graph.segments, graph.stats()
        moved = int(stats.segments_by_layer.sum())
        store.insert(_edges(rng, size))
        stats = graph.stats()
        if graph.segments > segments >= first:
            if size != batch or stats.global_merges:
                raise WrongAnswer(f"{strategy}: expanded in a batch of {size} edges, or merged all")
            moved = int(stats.segments_by_layer.sum()) - moved
            report.add(_row(strategy, segments, batch, moved))
    graph.check()


def _edges(rng: np.random.Generator, count: int) -> tuple[Array, Array]:
    src, dst = rng.integers(0, VERTICES, (2, count), dtype=np.uint32)
    return src, dst


def _row(strategy: str, s: int, x: int, moved: int) -> dict[str, Any]:
    predicted = 2 * s * -np.expm1(x * np.log1p(-1 / s))
    row = {"strategy": strategy, "segments": s, "moved": moved, "predicted": float(predicted)}
    row |= {"global": 2 * s, "to lemma": float(moved / predicted)}
    return row | {"to global": float(moved / (2 * s))}


def _plot(setting: Setting, report: Report) -> str:
    def line(rows: list[dict[str, Any]], value: str) -> plots.Line:
        return [row["segments"] for row in rows], [row[value] for row in rows]

    rows = {name: [r for r in report.rows if r["strategy"] == name] for name in STRATEGIES}
    lines = {name: line(found, "moved") for name, found in rows.items()}
    lines["Lemma 1"] = line(rows["bottom-up"], "predicted")
    lines["global rebalance"] = line(rows["bottom-up"], "global")
    panel = plots.Panel(report.title, "segments before", "segments moved", lines, log="xy")
    return plots.save(setting.folder / "expansion.png", [panel])
