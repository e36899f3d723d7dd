"""Where the rounds of a truss decomposition on a CUDA device go: levels, rounds, edges, triangles.

The kernels of truss_rounds.cu peel as those of algorithms/truss/truss.cu do, and note the time
at every window and round. Rows sum them up over levels from one power of two to the next; "ms" goes
from a round's beginning to the next one's, barriers included, and "windows, ms" is what listing
the living edges, shrinking rows and making filters takes. A triangle that two edges of a round are
in counts twice. Counting costs a pass over the queue for each round, so sums are somewhat above
what `gpu-truss` measures.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import algorithms
from algorithms.triangles.ranked import ranked
from algorithms.truss import NO_LIMIT
from lpma import Snapshot

from ..algorithms.graphs import LARGE, bare, rmat_as_published, streamed
from ..keys import Array
from ..report import Report, Setting
from ..stopwatch import WrongAnswer, on_device

FILE = "benchmarks/papers/truss_rounds.cu"
ROOM = 1 << 20  # records
TIME, LEVEL, EDGES, TRIANGLES, ITEMS, FIELDS = range(6)  # of a record
NS_PER_MS = 1e6
LISTED_MOST = 2_000_000_000  # triangles whose incidence a device has room for


def gpu_truss_rounds(setting: Setting) -> list[Report]:
    if setting.quick:
        return _profiles("RMAT 12", rmat_as_published(12, "cuda"))
    reports = _profiles("RMAT 20", rmat_as_published(20, "cuda"))
    for scale, draws in LARGE:
        if not setting.out_of_time():
            reports += _profiles(f"RMAT {scale}", streamed(scale, draws)[1])
    return reports


def _profiles(name: str, s: Snapshot) -> list[Report]:
    """By each way of finding triangles that there is room for."""
    expected = int(algorithms.truss_numbers(s).truss.astype(np.int64).sum())
    listed = algorithms.triangle_count(s) <= LISTED_MOST
    reports = []
    for way in ("intersected", "listed")[: 1 + listed]:
        _peel(bare(s), way)  # compiles
        took, (log, found) = on_device(lambda way=way: _peel(bare(s), way))  # type: ignore[misc]
        if int(found.astype(np.int64).sum()) != expected:
            raise WrongAnswer(f"{name}: other numbers than the default's by {way} triangles")
        reports.append(_report(name, way, took, log))
    return reports


def _peel(s: Snapshot, way: str) -> tuple[Array, Any]:
    """(records int64[count, FIELDS], the edges' truss numbers)"""
    import cupy

    from algorithms.triangles import cuda as triangles
    from algorithms.truss import cuda

    ranks = ranked(s)
    support = triangles.support(ranks)
    if way == "listed":
        items, given = cuda.listing(ranks, support)
    else:
        items, given = cuda.intersecting(cuda.ranked_rows(ranks), support)
    log = cupy.zeros((ROOM, FIELDS), np.int64)
    found = cuda.peel(f"watch_{way}", support, NO_LIMIT, items, (*given, log, ROOM), FILE)
    records: Array = log[: int((log[:, TIME] > 0).sum())].get()
    return records, found


def _report(name: str, way: str, took: float, log: Array) -> Report:
    report = Report("gpu-truss-rounds", f"{name}, triangles {way}: by level")
    ms = np.diff(log[:, TIME], append=log[-1, TIME]) / NS_PER_MS
    band = np.floor(np.log2(np.maximum(log[:, LEVEL], 1))).astype(np.int64)  # 0 with 1
    is_round = log[:, ITEMS] > 0
    for b in np.unique(band[:-1]):
        rounds, windows = (band == b) & is_round, (band == b) & ~is_round
        report.add({
            "levels": f"{2**b if b else 0} to {2 ** (b + 1) - 1}",
            "windows": int(windows.sum()), "living": int(log[windows, EDGES].max(initial=0)),
            "rounds": int(rounds.sum()), "edges": int(log[rounds, EDGES].sum()),
            "triangles": int(log[rounds, TRIANGLES].sum()), "items": int(log[rounds, ITEMS].sum()),
            "ms": float(ms[rounds].sum()), "windows, ms": float(ms[windows].sum()),
        })  # fmt: skip
    report.notes.append(
        f"In all {is_round.sum()} rounds in {ms.sum():.1f} ms; with ranking, supports and what "
        f"the way prepares {1e3 * took:.1f} ms."
    )
    for low, high in ((0, 100), (100, 10**4), (10**4, 10**6), (10**6, 2**62)):
        here = is_round & (log[:, ITEMS] >= low) & (log[:, ITEMS] < high)
        report.notes.append(f"{here.sum()} rounds of {low} items or more: {ms[here].sum():.1f} ms")
    return report
