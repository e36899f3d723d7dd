"""What the demo computes on its last snapshot, each figure with the milliseconds it took."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import algorithms
from lpma import Snapshot
from lpma.arrays import to_host

DIVERSITY_K = 4  # a social context is a connected 4-truss among a vertex's neighbours


def figures(s: Snapshot) -> dict[str, Any]:
    """Entries of the summary. A figure's time includes reading its arrays on the host, so that no
    device work is left to the next figure."""
    summary: dict[str, Any] = {}
    for name, compute in _FIGURES.items():
        started = time.perf_counter()
        summary |= compute(s)
        summary[f"{name}_ms"] = round(1000 * (time.perf_counter() - started), 2)
    return summary


def _core(s: Snapshot) -> dict[str, Any]:
    numbers = to_host(algorithms.core_numbers(s))
    largest = int(numbers.max(initial=0))
    members = (numbers == largest) & to_host(s.present)
    return {"max_core": largest, "max_core_vertices": int(np.count_nonzero(members))}


def _truss(s: Snapshot) -> dict[str, Any]:
    numbers = to_host(algorithms.truss_numbers(s).truss)
    largest = int(numbers.max(initial=0))
    return {"max_truss": largest, "max_truss_edges": int(np.count_nonzero(numbers == largest))}


def _triangles(s: Snapshot) -> dict[str, Any]:
    return {"triangles": algorithms.triangle_count(s)}


def _diversity(s: Snapshot) -> dict[str, Any]:
    vertex, score, _ = algorithms.top_diversity(s, "truss", DIVERSITY_K, 1)[0]
    return {"most_diverse": vertex, "most_contexts": score}


_FIGURES: dict[str, Callable[[Snapshot], dict[str, Any]]] = {
    "core": _core,
    "truss": _truss,
    "triangles": _triangles,
    "diversity": _diversity,
}
