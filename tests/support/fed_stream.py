"""Streams whose edge feed is followed, and what a graph is, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import ingest
import lpma
from lpma.arrays import to_host

State = dict[str, Any]
NAMES: list[int | str] = ["alice", "bö", 7, "7", -3, 2**63, "x" * 40, 0, "q", "z"]


def state_of(graph: lpma.Graph) -> State:
    """All that a snapshot says, the names of its rows, and the vertices added by themselves."""
    s = graph.snapshot()
    columns = s.indptr, s.indices, s.weights, s.times
    keys, _, _ = graph.image().slots.read(0, graph.image().slots.total)
    markers = keys[(keys & np.uint64(2**32 - 1)) == 2**32 - 1]
    names = None if s.names is None else s.names.of(np.arange(s.num_rows)).tolist()
    return {
        "columns": [None if c is None else (c.dtype.str, to_host(c).tobytes()) for c in columns],
        "version": s.version, "time": s.time, "edges": s.num_edges, "rows": s.num_rows,
        "directed": s.directed, "names": names, "added": markers.tobytes(),
    }  # fmt: skip


def records(
    rng: np.random.Generator,
    count: int,
    *,
    names: bool = False,
    times: bool = True,
    vertices: int = 8,
    rows: int = 7,
    queries: bool = True,
) -> Iterator[bytes]:
    """Updates of every kind, sums of exactly 0 among them, and queries."""
    for number in range(count):
        if queries and rng.random() < 0.15:
            who: Any = (
                NAMES[int(rng.integers(len(NAMES)))] if names else int(rng.integers(vertices))
            )
            yield ingest.encode_query(f"q{number}", lpma.Kind.DEGREE, who, names=names)
            continue
        if times and rng.random() < 0.1:
            yield ingest.encode_expire(int(10 * number - rng.integers(0, 60)))
            continue
        n = int(rng.integers(1, rows + 1))
        src, dst = rng.integers(0, min(vertices, len(NAMES)) if names else vertices, (2, n))
        weight = rng.choice([1.0, 2.0, -1.0, -2.0, 0.0, 0.5], n, p=[0.4, 0.1, 0.2, 0.1, 0.1, 0.1])
        kind = rng.choice([0, 1, 2, 3, 11], n, p=[0.6, 0.1, 0.06, 0.04, 0.2]).astype(np.uint8)
        time = 10 * number + rng.integers(-30, 10, n) if rng.random() < 0.9 else None
        ends: Any = (src, dst)
        if names:
            ends = [[NAMES[i] for i in end] for end in (src, dst)]
        yield ingest.encode_updates(ends[0], ends[1], weight, time, kind, names=names)
