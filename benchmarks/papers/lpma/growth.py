"""The paper's Figures 8 to 11 and 13: stores that grow batch by batch on a CUDA device.

Ours with the paper's three strategies (and `global_merge="never"`, as the paper has it), beside
ours with its defaults (`lpma`), a packed-memory array in one piece (`contiguous`) and a flat sorted
merge (`flat`). The paper's other stores are not run again.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ... import plots, workloads_gpu
from ...report import Report, Setting
from ...stopwatch import NAN, mean, median, on_device
from ...stores.gpu.base import DeviceStore, Ours, make
from ...workloads_gpu import Stream, to_host

STRATEGIES = ("bottom-up", "top-down", "hybrid")
SMALLEST = 1 << 10  # segments: expansions of smaller stores say nothing
CYCLE = 7_600_000  # 0.9 of 2^18 segments of 32 slots, and a little more
BATCHES_OF_FIGURE_11 = {10**3: 300, 10**4: 200, 10**5: 60, 10**6: 8}
WARMUP = 3  # batches


def _from_nothing(setting: Setting, edges: int) -> Iterator[tuple[Stream, int, int]]:
    """(graph, batch size, batches), for graphs of this many edges, all of them streamed."""
    for stream in graphs(setting, edges):
        for size in (1_000,) if setting.quick else (10**4, 10**5):
            batches = stream.streamed // size - WARMUP
            if not setting.out_of_time() and batches >= 10:
                yield stream, size, batches


def figure8(setting: Setting) -> Report:
    """Batches that expand, beside a packed-memory array in one piece.

    Both stores have the same segments and bounds, so that they expand at the same batches: ours
    appends a level, the other doubles its array and spreads everything anew. *moved %* is the share
    of all segments, the new ones included, that ours rebalanced in those batches (the paper: under
    20 at 10^4)."""
    report = Report("figure8", "milliseconds of a batch that expands the store, mean")
    panels = []
    for stream, size, batches in _from_nothing(setting, 16_500_000):
        names = ("lpma-bottom-up", "contiguous")
        growths = [grow(make(name), stream, size, batches, WARMUP) for name in names]
        at = [[i for i in g.expansions if g.segments[i] >= SMALLEST] for g in growths]
        if not all(at):
            continue
        report.add({"graph": stream.name, "batch": size} | _expansions(growths, at))
        lines = {
            name: ([growth.segments[i] for i in places], [growth.ms[i] for i in places])
            for name, growth, places in zip(names, growths, at, strict=True)
        }
        title = f"{stream.name}, batches of {size:,}: those that expand"
        panels.append(plots.Panel(title, "segments before", "ms", lines, log="xy"))
    if panels:
        report.plots.append(plots.save(setting.folder / "figure8.png", panels))
    return report


def _expansions(growths: list[Growth], at: list[list[int]]) -> dict[str, Any]:
    (ours, theirs), (here, there) = growths, at
    mine, other = mean(ours.ms[i] for i in here), mean(theirs.ms[i] for i in there)
    return {
        "expansions": len(here),
        "lpma": mine, "contiguous": other, "times": other / mine,
        "largest lpma": ours.ms[here[-1]], "largest contiguous": theirs.ms[there[-1]],
        "moved %": statistics.mean(50 * ours.moved[i] / ours.segments[i] for i in here),
        "median lpma": median(ours.ms), "median contiguous": median(theirs.ms),
    }  # fmt: skip


def figure9(setting: Setting) -> Report:
    """The latency of every batch through a cycle, by strategy: RMAT 20 from half full to past an
    expansion. The paper has Pokec here."""
    report = Report("figure9", "milliseconds of each batch, by strategy")
    # With 32 slots a segment and a bound of 0.9, the expansion comes at 15.1 M (59 k) edges.
    scale, loaded, size, batches = (20, 9_000_000, 10**4, 650)
    if setting.quick:
        scale, loaded, size, batches = (14, 40_000, 500, 60)
    stream = workloads_gpu.rmat(scale, loaded, (batches + WARMUP) * size)
    latency, marks = {}, {}
    names = (*(f"lpma-{strategy}" for strategy in STRATEGIES), "lpma", "flat")
    for name in filter(setting.wants, names):
        if setting.out_of_time():
            continue
        growth = grow(make(name), stream, size, batches, WARMUP)
        ms, slowest = np.array(growth.ms), max(growth.ms)
        spikes = [growth.ms[i] for i in growth.expansions]
        report.add({
            "store": name, "batch": size, "median": median(growth.ms),
            "99 %": float(np.quantile(ms, 0.99)), "slowest": slowest,
            "slowest/median": slowest / float(np.median(ms)),
            "mean": float(ms.mean()), "expansions": len(spikes),
            "slowest expansion": max(spikes, default=NAN),
        })  # fmt: skip
        latency[name] = (growth.edges, growth.ms)
        marks[name] = [growth.edges[i] for i in growth.expansions]
    title = f"{stream.name}, batches of {size:,}; lines mark expansions"
    panel = plots.Panel(title, "edges", "ms", latency, log="y", points=False, marks=marks)
    report.plots.append(plots.save(setting.folder / "figure9.png", [panel]))
    return report


def figure10(setting: Setting) -> Report:
    """Mean latency by strategy, and the rebalances that each avoids.

    One cycle, from an expansion to past the next. A rebalance of a segment is redundant when a
    later round of the same batch rebalances it again; *saved %* is the share of bottom-up's
    rebalanced segments that a strategy avoids."""
    report = Report("figure10", "mean milliseconds a batch, and segments rebalanced again")
    start = CYCLE >> 7 if setting.quick else CYCLE
    for stream in graphs(setting, 2 * start):
        stream = stream.cut(min(start, len(stream.keys) // 2))
        for size in (1_000,) if setting.quick else (10**4, 10**5):
            batches = min(stream.streamed, start) // size - WARMUP
            if batches >= 3:
                _cycle(report, setting, stream, size, batches)
    return report


def _cycle(report: Report, setting: Setting, stream: Stream, size: int, batches: int) -> None:
    of_bottom_up = 0
    for strategy in STRATEGIES:
        if setting.out_of_time():
            return
        growth = grow(make(f"lpma-{strategy}"), stream, size, batches, WARMUP)
        moved = sum(growth.moved)
        of_bottom_up = of_bottom_up or moved
        report.add({
            "graph": stream.name, "batch": size, "strategy": strategy,
            "mean ms": mean(growth.ms), "slowest": max(growth.ms), "rebalanced": moved,
            "redundant": growth.redundant, "share %": 100 * growth.redundant / max(moved, 1),
            "saved %": 100 * (1 - moved / max(of_bottom_up, 1)),
        })  # fmt: skip


def figure11(setting: Setting) -> Report:
    """Edges per second by batch size, hybrid, with both settings of `global_merge`."""
    report = Report("figure11", "million edges a second, mean over all batches; half loaded first")
    lines: dict[str, tuple[list[float], list[float]]] = {}
    for stream, size, batches, name in _halves(setting):
        growth = grow(make(name), stream, size, batches, WARMUP)
        latency = mean(growth.ms)
        rate = size / float(latency) / 1e3
        report.add({
            "graph": stream.name, "batch": size, "store": name, "M edges/s": rate,
            "mean ms": latency, "median ms": statistics.median(growth.ms),
        })  # fmt: skip
        if name == "lpma-hybrid":
            x, y = lines.setdefault(stream.name, ([], []))
            x.append(size)
            y.append(rate)
    panel = plots.Panel("hybrid, merge never", "edges a batch", "M edges/s", lines, log="xy")
    report.plots.append(plots.save(setting.folder / "figure11.png", [panel]))
    return report


def _halves(setting: Setting) -> Iterator[tuple[Stream, int, int, str]]:
    """(graph, batch size, batches, store), half of each graph loaded first."""
    names = [name for name in ("lpma-hybrid", "lpma", "flat") if setting.wants(name)]
    for stream in graphs(setting, 20_000_000):
        stream = stream.cut(len(stream.keys) // 2)
        for size, most in BATCHES_OF_FIGURE_11.items():
            batches = min(most, stream.streamed // size - WARMUP)
            for name in names if batches >= 3 else ():
                if not setting.out_of_time():
                    yield stream, size, batches, name


def figure13(setting: Setting) -> Report:
    """Mean latency of all batches while a graph is built from nothing, expansions included."""
    report = Report("figure13", "milliseconds a batch, mean over all batches from nothing")
    for stream, size, batches in _from_nothing(setting, 10_000_000):
        row: dict[str, Any] = {"graph": stream.name, "edges": stream.streamed, "batch": size}
        for name in ("lpma-hybrid", "lpma", "contiguous", "flat"):
            wanted = setting.wants(name)
            row[name] = mean(grow(make(name), stream, size, batches, WARMUP).ms if wanted else ())
        row["times contiguous"] = row["contiguous"] / row["lpma-hybrid"]
        row["times flat"] = row["flat"] / row["lpma-hybrid"]
        report.add(row)
    return report


REAL = ("sx-mathoverflow", "uk-2007-05-100k", "road-NY")


@dataclass
class Growth:
    """One figure per batch."""

    ms: list[float] = field(default_factory=list)
    segments: list[int] = field(default_factory=list)  # before the batch
    edges: list[int] = field(default_factory=list)  # streamed, the batch's included
    moved: list[int] = field(default_factory=list)  # segments rebalanced; ours only
    expansions: list[int] = field(default_factory=list)  # batches that expanded
    redundant: int = 0  # segments rebalanced again within a batch


def grow(store: DeviceStore, stream: Stream, size: int, batches: int, warmup: int) -> Growth:
    """Load the stream's base and insert `batches` batches, each timed; the result is verified."""
    store.load(stream.base(), stream.vertices, stream.loaded + (warmup + batches) * size)
    found = Growth()
    for i in range(warmup + batches):
        batch = store.prepare(to_host(stream.batch(i * size, size)))
        levels, moved = store.levels, _moved(store)
        taken, _ = on_device(lambda: store.insert(batch))  # noqa: B023  # called at once
        if i < warmup:
            continue
        if store.levels > levels:
            found.expansions.append(len(found.ms))
        found.ms.append(taken * 1e3)
        found.segments.append(1 << levels)
        found.edges.append(stream.loaded + (i + 1) * size)
        found.moved.append(_moved(store) - moved)
    store.verify(stream.upto((warmup + batches) * size))
    if isinstance(store, Ours):
        found.redundant = store.graph.stats().redundant_rebalances
    return found


def _moved(store: DeviceStore) -> int:
    return store.segments_moved() if isinstance(store, Ours) else 0


def graphs(setting: Setting, edges: int) -> Iterator[Stream]:
    """The graphs of the paper's kinds, `edges` of each, nothing loaded: power law, uniform,
    road-like, and real ones where they are at hand."""
    if setting.quick:
        edges, scale = min(edges, 200_000), 14
    else:
        scale = 20
    yield workloads_gpu.rmat(scale, 0, edges)
    yield workloads_gpu.uniform(scale, 0, edges)
    yield workloads_gpu.grid(int((edges / 4) ** 0.5) + 2, 0)
    for name in () if setting.quick else REAL:
        graph = workloads_gpu.real(name)
        if graph is not None:
            yield graph.cut(0)
