"""Triangles on one undirected snapshot, on a CUDA device, beside published figures. On the CPU
live.py has them, beside other libraries."""

from __future__ import annotations

from typing import Any

import algorithms
from algorithms.triangles.ranked import ranked
from algorithms.views.simple import simple
from lpma import Snapshot
from lpma.arrays import to_host

from ..device import memory_held, memory_used
from ..report import Report, Setting
from ..stopwatch import NAN, Action, WrongAnswer, alone
from .graphs import add_large, bare, memory_columns, rmat_as_published, snapshots

REAL = ("ego-twitter", "road-NY", "uk-2007-05-100k")
GPU_ROUNDS, GPU_WARMUP = 9, 2
# RMAT 20 of 18 M draws: GroupTC's best kernels take 17.6 ms (HS) and 18.4 ms (BS), TriCore's 27.7,
# Polak's 72, each after 4.3 ms of orienting and sorting.
PUBLISHED_MS = {"RMAT 20": 17.6 + 4.3}


def gpu_triangles(setting: Setting) -> list[Report]:
    """The view and the listing apart, and both together; of large graphs also the memory."""
    report = Report("gpu-triangles", "milliseconds, median")
    scale = 12 if setting.quick else 20
    report.add(device_row(f"RMAT {scale}", rmat_as_published(scale, "cuda")))
    for name, s in snapshots("cuda", (), () if setting.quick else REAL):
        if not setting.out_of_time():
            report.add(device_row(name, s))
    report.notes.append("published: the best of them with its preparation; ratio: it to `whole`.")
    large = Report("gpu-triangles-large", "milliseconds, median; GiB that the device held at most")
    add_large(large, setting, _large_row)
    return [report, large]


def _large_row(name: str, s: Snapshot) -> dict[str, Any]:
    """From a directed snapshot: the view of both directions, the ranked view, and the count."""
    before = memory_used()
    found = algorithms.triangle_count(s)
    held = memory_held()
    if found != int(algorithms.edge_support(s).support.sum(dtype="int64")) // 3:
        raise WrongAnswer(f"{name}: supports of other than {found} triangles")
    made = bare(s)
    simple(made)

    def with_views(made: Snapshot) -> Snapshot:
        again = bare(made)
        again.views.update(made.views)
        return again

    edges = ranked(s).num_edges
    return {
        "graph": name, "arcs": s.num_edges, "edges": edges, "triangles": found,
        "simple": _ms(lambda: simple(bare(s))),
        "ranked": _ms(lambda: ranked(with_views(made))),
        "count": _ms(lambda: algorithms.triangle_count(s)),
        "whole": _ms(lambda: algorithms.triangle_count(bare(s))),
    } | memory_columns(before, held, edges)  # fmt: skip


def device_row(name: str, s: Snapshot) -> dict[str, Any]:
    found = algorithms.triangle_count(s)  # leaves the view on s
    if found != algorithms.triangle_count((to_host(s.indptr), to_host(s.indices))):
        raise WrongAnswer(f"{name}: the host does not count {found} triangles")
    whole = _ms(lambda: algorithms.triangle_count(bare(s)))
    published = PUBLISHED_MS.get(name, NAN)
    return {
        "graph": name, "edges": s.num_edges, "triangles": found,
        "view": _ms(lambda: ranked(bare(s))),
        "count": _ms(lambda: algorithms.triangle_count(s)),
        "whole": whole,
        "by vertex": _ms(lambda: algorithms.triangles(s)),
        "by edge": _ms(lambda: algorithms.edge_support(s)),
        "published": published, "ratio": published / float(whole),
    }  # fmt: skip


def _ms(action: Action) -> float:
    return alone(action, rounds=GPU_ROUNDS, warmup=GPU_WARMUP) * 1e3
