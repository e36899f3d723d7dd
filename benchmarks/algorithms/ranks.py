"""PageRank on a CUDA device: with views there, from the store, and kept from batch to batch.

RMAT drawn on the device, DRAWS draws of scale 24 and in proportion below, as directed edges or,
half as many, as undirected ones. A row of `gpu-pagerank` has milliseconds, medians: *snapshot*
alone; *views*, a snapshot with the layout that PageRank reads; *from the store*, ranks and all
that; and *views there*, ranks alone. In `gpu-tracker-pagerank` batches of edges arrive, or half as
many arrive and as many go: *update* is `Tracker.update`, of which *rows* and *ranks* are parts, and
*anew* ranks from the store.

Ranks are right if another round, added up in another way, changes them by no more than the last one
may have. A tracker's must be as near to those made anew as both say that they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import algorithms
import lpma
from algorithms.views.directed import present, transposed
from lpma import Snapshot

from .. import workloads_gpu
from ..keys import Array, ends_of
from ..report import Report, Setting
from ..stopwatch import WrongAnswer, measure, median, on_device, plain
from .graphs import INSERTED, bare
from .libraries import DAMPING, TOLERANCE
from .traversal import GPU_ROUNDS, GPU_WARMUP

SCALES = (20, 22, 24)
DRAWS, DRAWN_SCALE = 300_000_000, 24
BATCH, BATCHES = 100_000, 7
WRONG = 2 * TOLERANCE * DAMPING / (1 - DAMPING)  # how far two that have converged are apart at most


def gpu_pagerank(setting: Setting) -> Report:
    report = Report("gpu-pagerank", "milliseconds, median")
    for scale in _scales(setting):
        for kind in _chosen(setting, ("undirected", "directed")):
            if not setting.out_of_time():
                graph = _loaded(_stream(scale, kind, 0), kind)
                report.add({"graph": f"RMAT {scale}", "kind": kind} | _row(graph))
    return report


def _scales(setting: Setting) -> list[int]:
    if setting.quick:
        return [12]
    return [int(name[5:]) for name in _chosen(setting, [f"rmat-{scale}" for scale in SCALES])]


def _chosen(setting: Setting, names: Sequence[str]) -> list[str]:
    """Those that `--only` names, or all if it names none of them."""
    return [name for name in names if setting.wants(name)] or list(names)


def _stream(scale: int, kind: str, more: int) -> Any:
    """The keys of the graph, and of `more` draws, without loops, which a tracker leaves out."""
    import cupy

    draws = _draws(scale, kind) + more
    keys = workloads_gpu.rmat(scale, draws, 0, draws).keys
    source, target = ends_of(keys)
    keys = keys[source != target]
    del source, target
    cupy.get_default_memory_pool().free_all_blocks()
    return keys


def _draws(scale: int, kind: str) -> int:
    return (DRAWS >> DRAWN_SCALE - scale) // (2 if kind == "undirected" else 1)


def _loaded(keys: Any, kind: str) -> lpma.Graph:
    graph = lpma.Graph(directed=kind == "directed", weight_dtype=None, times=False, device="cuda")
    for first in range(0, len(keys), INSERTED):
        graph.insert(*ends_of(keys[first : first + INSERTED]))
    return graph


def _row(graph: lpma.Graph) -> dict[str, Any]:
    kept = graph.snapshot()

    def ranks(s: Snapshot, rounds: int = 100) -> Array:
        return algorithms.pagerank(s, DAMPING, TOLERANCE if rounds else 0, rounds)

    ways = {
        "snapshot": plain(lambda: graph.snapshot().indptr),
        "views": plain(lambda: ranks(bare(graph.snapshot()), 0)),
        "from the store": plain(lambda: ranks(bare(graph.snapshot()))),
        "views there": plain(lambda: ranks(kept)),
    }

    def right(way: str, _: int, answer: Any) -> None:
        if way in ("from the store", "views there") and _change(kept, answer) > TOLERANCE:
            raise WrongAnswer(f"{way}: another round changes the ranks by {_change(kept, answer)}")

    timings = measure(ways, right, rounds=GPU_ROUNDS, warmup=GPU_WARMUP, clock=on_device)
    arcs = len(kept.indices)
    return {"arcs": arcs} | {way: timing.median * 1e3 for way, timing in timings.items()}


def _change(s: Snapshot, ranks: Any) -> float:
    """How much one round changes the ranks, in all; sums of shares are those up to a row's end less
    those up to its start."""
    import cupy

    degree, reverse = cupy.diff(s.indptr), transposed(s)
    found = present(s)
    there = cupy.ones(s.num_rows, np.bool_) if found is None else found
    shares = cupy.where(degree > 0, ranks / cupy.maximum(degree, 1), 0.0)
    upto = cupy.zeros(len(reverse.indices) + 1)
    cupy.cumsum(shares[reverse.indices], out=upto[1:])
    given = upto[reverse.indptr[1:]] - upto[reverse.indptr[:-1]]
    dangling = float(ranks[degree == 0].sum())
    jumps = (1 - DAMPING + DAMPING * dangling) / int(there.sum())
    return float(abs(cupy.where(there, jumps + DAMPING * given, 0.0) - ranks).sum())


def gpu_tracker_pagerank(setting: Setting) -> Report:
    report = Report("gpu-tracker-pagerank", "milliseconds, median")
    for scale in _scales(setting):
        if not setting.out_of_time():
            for row in _tracked(scale, BATCH if not setting.quick else 100):
                report.add({"graph": f"RMAT {scale}"} | row)
    return report


def _tracked(scale: int, batch: int) -> Iterator[dict[str, Any]]:
    import cupy

    arriving = 2 * (GPU_WARMUP + BATCHES) * batch
    keys = _stream(scale, "undirected", arriving)
    loaded = len(keys) - arriving  # some draws are repeats
    graph = _loaded(keys[:loaded], "undirected")
    tracker = algorithms.Tracker(graph, ["pagerank"])
    rng = np.random.default_rng(1)
    at = loaded
    for kind in ("insert", "mixed"):
        new = batch if kind == "insert" else batch // 2
        taken: dict[str, list[float]] = {"update": [], "rows": [], "ranks": [], "anew": []}
        updated = 0
        for i in range(GPU_WARMUP + BATCHES):
            graph.insert(*ends_of(keys[at : at + new]))
            if new < batch:
                graph.delete(*ends_of(keys[cupy.asarray(rng.integers(0, at, batch - new))]))
            at += new
            seconds, record = on_device(tracker.update)
            anew, ranks = on_device(
                lambda: algorithms.pagerank(graph.snapshot(), DAMPING, TOLERANCE)
            )
            if float(abs(ranks - tracker.ranks).sum()) > WRONG:
                raise WrongAnswer(f"the tracker is wrong after {at} edges")
            if i >= GPU_WARMUP:
                found = (seconds, record.rows_seconds, record["pagerank"].seconds, anew)
                updated += record["pagerank"].how == "updated"
                for name, value in zip(taken, found, strict=True):
                    taken[name].append(value)
        medians = {name: median(found) * 1e3 for name, found in taken.items()}
        yield {
            "edges": graph.num_edges, "batch": batch, "kind": kind, **medians,
            "ratio": medians["anew"] / medians["update"], "updated": f"{updated}/{BATCHES}",
        }  # fmt: skip
