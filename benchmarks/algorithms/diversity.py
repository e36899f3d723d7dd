"""Structural diversity of large graphs on a CUDA device: how long the best take, and in how much
memory.

Each run starts from a snapshot without views and ends with the winners' contexts. Memory is the
device's own count once a run is over, graph included, less what was there before the graph: CuPy's
pool was empty before the run, and has what it took from the driver.
"""

from __future__ import annotations

from typing import Any

import algorithms
from algorithms.diversity.model import MODELS
from lpma import Snapshot

from .. import device, workloads_gpu
from ..keys import ends_of
from ..report import Report, Setting
from ..stopwatch import WrongAnswer, alone
from .graphs import bare, undirected

DRAWS = {20: 18_000_000, 22: 30_000_000, 24: 150_000_000}  # RMAT: 34, 58 and 294 M arcs
K, T = 4, 100  # the paper's
ROUNDS = 3
EXTRACTED = 20  # up to this scale the paper's method is run too, to compare with


def gpu_diversity(setting: Setting) -> Report:
    """The T best in every model."""
    report = Report("gpu-diversity", "milliseconds, median; GiB")
    for scale, draws in ({10: 10_000} if setting.quick else DRAWS).items():
        before = device.memory_used()
        s = graph(scale, draws)
        for model in MODELS:
            if not setting.out_of_time():
                report.add({"graph": f"RMAT {scale}"} | _row(s, model, scale, before))
        del s
    report.notes.append(
        f"ms: the {T} best and their contexts, k = {K}, from a snapshot without views; best, least"
        ": the first score and the last; GiB: the device's own count, graph included."
    )
    return report


def graph(scale: int, draws: int) -> Snapshot:
    """Drawn on the device."""
    keys = workloads_gpu.rmat(scale, draws, 0, draws).keys
    return undirected(*ends_of(keys), "cuda")


def _row(s: Snapshot, model: str, scale: int, before: int) -> dict[str, Any]:
    def best(method: str = "listing") -> list[tuple[int, int]]:
        found = algorithms.top_diversity(bare(s), model, K, T, method=method)
        return [(one.vertex, one.score) for one in found]

    winners = best()
    if scale <= EXTRACTED and winners != best("extract"):
        raise WrongAnswer(f"RMAT {scale}, {model}: extraction finds others")
    device.memory_used()  # empties the pool
    milliseconds = alone(best, rounds=ROUNDS, warmup=0) * 1e3
    used = device.memory_held() - before
    return {
        "edges": s.num_edges, "model": model, "ms": milliseconds,
        "best": winners[0][1], "least": winners[-1][1], "GiB": used / 2**30,
    }  # fmt: skip
