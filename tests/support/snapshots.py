"""Snapshots made by sorting a plain list of edges."""

from __future__ import annotations

import numpy as np

from lpma.snapshot.snapshot import Snapshot

Edge = tuple[int, int, float, int]

DIRECTED: list[Edge] = [(0, 1, 0.5, 10), (0, 3, 2.0, 11), (1, 1, 0.0, -5), (3, 0, 4.25, 2**40)]
UNDIRECTED: list[Edge] = [(0, 1, 0.5, 10), (1, 1, 1.0, 12), (0, 3, 2.0, 2**40)]


def build(
    edges: list[Edge],
    n: int = 6,
    directed: bool = True,
    weighted: bool = True,
    timed: bool = True,
    ids: list[int] | None = None,
) -> Snapshot:
    """A snapshot built by sorting, with vertices 4 and 5 isolated."""
    both = [*edges, *((v, u, w, t) for u, v, w, t in edges if u != v and not directed)]
    both.sort()
    rows = np.array([e[0] for e in both], np.int64)
    return Snapshot(
        indptr=np.searchsorted(rows, np.arange(n + 1)).astype(np.int64),
        indices=np.array([e[1] for e in both], np.uint32),
        weights=np.array([e[2] for e in both], np.float32) if weighted else None,
        times=np.array([e[3] for e in both], np.int64) if timed else None,
        num_edges=len(edges),
        version=7,
        time=2**40,
        directed=directed,
        ids=None if ids is None else np.array(ids, np.uint32),
    )


def random_snapshot(directed: bool, seed: int = 3) -> Snapshot:
    rng = np.random.default_rng(seed)
    keys = np.unique(rng.integers(0, 50, (400, 2)), axis=0)
    if not directed:
        keys = np.unique(np.sort(keys, axis=1), axis=0)
    edges = [(int(u), int(v), float(i) / 4, i - 9) for i, (u, v) in enumerate(keys)]
    return build(edges, n=60, directed=directed)
