"""Reading a store on the CPU: the queries of lpma/backend/reading.py. query.py has the kernels, and
export.py what copies whole stores. `beside` is the batch whose queries they are, if it is mixed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...arrays import Array
from ...cpu.threads import cuts, run_all
from ...pma.keys import HALF, LOW, keys_of
from . import hops, query
from .beside import NOTHING_BESIDE, Beside, put_seen
from .export import SEGMENTS_PER_TASK, starts_of, values_at
from .segments import Segments

QUERIES_PER_TASK = 256
UNREAD = np.empty(0, np.int64)  # limits where there is no mixed batch


def find_edges(
    segments: Segments, beside: Beside | None, src: Array, dst: Array | None, limits: Array | None
) -> tuple[Array, Array | None, Array | None]:
    n = len(src)
    wanted = keys_of(src, LOW if dst is None else dst)
    weights = np.zeros(n, segments.weights[0].dtype if segments.weights else np.float32)
    found, times = np.zeros(n, np.bool_), np.zeros(n, np.int64)
    pieces = cuts(n, 4 * QUERIES_PER_TASK, 4)
    view, to = segments.view, values_at(segments, weights, times)
    run_all(query.find_edges, [(view, wanted, lo, hi, found, *to) for lo, hi in pieces])
    if beside is not None:
        seen = view, beside.view, wanted, limits
        run_all(put_seen, [(*seen, lo, hi, found, *to) for lo, hi in pieces])
    return found, weights if segments.weights else None, times if segments.times else None


def count_neighbors(
    segments: Segments, beside: Beside | None, vertices: Array, limits: Array | None
) -> Array:
    return _find_neighbors(segments, beside, vertices.astype(np.uint64) << HALF, limits)[0]


def _find_neighbors(
    segments: Segments, beside: Beside | None, firsts: Array, limits: Array | None
) -> list[Array]:
    """(counts, ranks, positions), int64[q] each: see query.count_neighbors."""
    n = len(firsts)
    found = [np.empty(n, np.int64) for _ in range(3)]
    run_all(
        query.count_neighbors,
        [(segments.view, firsts, lo, hi, *found) for lo, hi in cuts(n, QUERIES_PER_TASK, 4)],
    )
    if beside is not None and limits is not None:
        found[0] += beside.degrees.since(firsts >> HALF, limits)
    return found


def neighbors(
    segments: Segments, beside: Beside | None, vertices: Array, limits: Array | None, values: bool
) -> tuple[Array, Array, Array | None, Array | None]:
    firsts = vertices.astype(np.uint64) << HALF
    found = _find_neighbors(segments, beside, firsts, limits)
    if beside is None or limits is None:
        return _read(segments, found, values)
    return _read(segments, found, values, query.read_seen, beside.view, firsts, limits)


def neighbors_from(
    segments: Segments, vertex: int, first: int, most: int
) -> tuple[Array, Array | None, Array | None]:
    found = _find_neighbors(segments, None, np.array([vertex << 32 | first], np.uint64), None)
    found[0][0] = min(int(found[0][0]), most)
    return _read(segments, found, True)[1:]


def _read(
    segments: Segments, found: list[Array], values: bool,
    kernel: Callable[..., None] = query.read_neighbors, *beside: Any,
) -> tuple[Array, Array, Array | None, Array | None]:  # fmt: skip
    """What `neighbors` gives. found: as `_find_neighbors` gives it; beside: what that kernel
    takes besides."""
    counts, ranks, positions = found
    indptr = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=indptr[1:])
    n = int(indptr[-1])
    with_weights = values and segments.weights is not None
    with_times = values and segments.times is not None
    weights = np.empty(
        n if with_weights else 0, segments.weights[0].dtype if segments.weights else np.float32
    )
    ids, times = np.empty(n, np.uint32), np.empty(n if with_times else 0, np.int64)
    to = values_at(segments, weights, times) if values else (0, 0)
    run_all(
        kernel,
        [
            (segments.view, *beside, lo, hi, ranks, positions, indptr, ids, *to)
            for lo, hi in cuts(len(counts), QUERIES_PER_TASK, 4)
        ],
    )
    return indptr, ids, weights if with_weights else None, times if with_times else None


def reach(
    segments: Segments, beside: Beside | None, vertices: Array, steps: Array,
    limits: Array | None,
) -> tuple[Array, Array]:  # fmt: skip
    rows = NOTHING_BESIDE if beside is None else beside.view
    return hops.reach(segments.view, rows, vertices, steps, UNREAD if limits is None else limits)


def has_in_edges(segments: Segments, targets: Array) -> Array:
    targets = targets.astype(np.uint64)
    found = np.zeros(len(targets), np.bool_)
    which, source = np.empty(0, np.int64), np.empty(0, np.uint32)
    run_all(
        query.scan_targets,
        [
            (segments.view, targets, lo, hi, found, which, source)
            for lo, hi in cuts(1 << segments.m, SEGMENTS_PER_TASK, 4)
        ],
    )
    return found


def scan_targets(segments: Segments, targets: Array) -> tuple[Array, Array]:
    targets = targets.astype(np.uint64)
    pieces = cuts(1 << segments.m, SEGMENTS_PER_TASK, 4)
    found = np.zeros(len(targets), np.bool_)

    def scan(first: int, last: int, room: int) -> tuple[int, Array, Array]:
        which, source = np.empty(room, np.int64), np.empty(room, np.uint32)
        hits = query.scan_targets(segments.view, targets, first, last, found, which, source)
        return hits, which[:hits], source[:hits]

    results = []
    for (first, last), (hits, *some) in zip(
        pieces, run_all(scan, [(lo, hi, 4096) for lo, hi in pieces]), strict=True
    ):
        results.append(some if hits <= 4096 else list(scan(first, last, hits)[1:]))
    return (
        np.concatenate([which for which, _ in results]),
        np.concatenate([source for _, source in results]),
    )


def largest_vertex(segments: Segments) -> int:
    pieces = cuts(1 << segments.m, SEGMENTS_PER_TASK, 4)
    return max(run_all(query.largest_vertex, [(segments.view, *piece) for piece in pieces]))


def older(segments: Segments, before: int) -> tuple[Array, Array]:
    """(keys, times) of the edges older than a time. Room is made for every slot, of which untouched
    pages take no memory: counting first took longer."""
    starts = starts_of(segments)

    def piece(first: int, last: int) -> tuple[Array, Array]:
        room = int(starts[last] - starts[first]) + 1
        keys, times = np.empty(room, np.uint64), np.empty(room, np.int64)
        n = query.write_older(segments.view, first, last, before, keys, times)
        return keys[:n], times[:n]

    pieces = run_all(piece, cuts(1 << segments.m, SEGMENTS_PER_TASK, 4))
    keys, times = zip(*pieces, strict=True)
    return np.concatenate(keys), np.concatenate(times)
