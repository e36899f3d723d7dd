"""Reading a store on the CPU: the queries of protocol.Reading. query.py has the kernels, and
export.py what copies whole stores. `beside` is the batch whose queries they are, if it is mixed.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Array
from ...cpu.threads import cuts, run_all
from ...pma.keys import HALF, LOW, keys_of
from . import hops, query
from .beside import NOTHING_BESIDE, Beside, BesideView, put_seen
from .export import SEGMENTS_PER_TASK, into, starts_of, value_columns
from .segments import Segments

QUERIES_PER_TASK = 256
UNREAD = np.empty(0, np.int64)  # limits where there is no mixed batch


def find_edges(
    segments: Segments, beside: Beside | None, src: Array, dst: Array | None, limits: Array | None
) -> tuple[Array, Array | None, Array | None]:
    n, wanted = len(src), keys_of(src, LOW if dst is None else dst)
    found, columns = np.empty(n, np.bool_), value_columns(segments, n, make=np.zeros)
    view, to = into(segments, None, *columns)
    pieces = cuts(n, 4 * QUERIES_PER_TASK, 4)
    run_all(query.find_edges, [(view, wanted, *piece, found, to) for piece in pieces])
    if beside is not None:
        seen = view, beside.view, wanted, limits
        run_all(put_seen, [(*seen, *piece, found, to) for piece in pieces])
    return found, *columns


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
    return _read(segments, beside, firsts, limits, found, values)


def neighbors_from(
    segments: Segments, vertex: int, first: int, most: int
) -> tuple[Array, Array | None, Array | None]:
    firsts = np.array([vertex << 32 | first], np.uint64)
    found = _find_neighbors(segments, None, firsts, None)
    found[0][0] = min(int(found[0][0]), most)
    return _read(segments, None, firsts, None, found, True)[1:]


def _read(
    segments: Segments, beside: Beside | None, firsts: Array, limits: Array | None,
    found: list[Array], values: bool,
) -> tuple[Array, Array, Array | None, Array | None]:  # fmt: skip
    """What `neighbors` gives. found: as `_find_neighbors` gives it."""
    counts, *places = found
    indptr = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=indptr[1:])
    n = int(indptr[-1])
    ids, columns = np.empty(n, np.uint32), value_columns(segments, n, values)
    view, to = into(segments, None, *columns)
    of, pieces = (view, *_seen(beside, limits), firsts), cuts(len(counts), QUERIES_PER_TASK, 4)
    run_all(query.read_neighbors, [(*of, *piece, *places, indptr, ids, to) for piece in pieces])
    return indptr, ids, *columns


def reach(
    segments: Segments, beside: Beside | None, vertices: Array, steps: Array,
    limits: Array | None,
) -> tuple[Array, Array]:  # fmt: skip
    return hops.reach(segments.view, *_seen(beside, limits), vertices, steps)


def _seen(beside: Beside | None, limits: Array | None) -> tuple[BesideView, Array]:
    """What kernels get of a mixed batch, and the queries' places in it; nothing outside of one."""
    return NOTHING_BESIDE if beside is None else beside.view, UNREAD if limits is None else limits


def has_in_edges(segments: Segments, targets: Array) -> Array:
    targets, found = targets.astype(np.uint64), np.zeros(len(targets), np.bool_)
    nothing = found, np.empty(0, np.int64), np.empty(0, np.uint32)
    pieces = cuts(1 << segments.m, SEGMENTS_PER_TASK, 4)
    run_all(query.scan_targets, [(segments.view, targets, *piece, *nothing) for piece in pieces])
    return found


def scan_targets(segments: Segments, targets: Array) -> tuple[Array, Array]:
    """Room is made for every slot, of which untouched pages take no memory."""
    targets, starts = targets.astype(np.uint64), starts_of(segments)
    found = np.zeros(len(targets), np.bool_)

    def piece(first: int, last: int) -> tuple[Array, Array]:
        room = int(starts[last] - starts[first])
        which, source = np.empty(room, np.int64), np.empty(room, np.uint32)
        n = query.scan_targets(segments.view, targets, first, last, found, which, source)
        return which[:n], source[:n]

    which, source = zip(*run_all(piece, cuts(1 << segments.m, SEGMENTS_PER_TASK, 4)), strict=True)
    return np.concatenate(which), np.concatenate(source)


def largest_vertex(segments: Segments) -> int:
    pieces = cuts(1 << segments.m, SEGMENTS_PER_TASK, 4)
    return max(run_all(query.largest_vertex, [(segments.view, *piece) for piece in pieces]))


def older(segments: Segments, before: int) -> tuple[Array, Array]:
    """(keys, times) of the edges older than a time. Room is made as in `scan_targets`: counting
    first took longer."""
    starts = starts_of(segments)

    def piece(first: int, last: int) -> tuple[Array, Array]:
        room = int(starts[last] - starts[first]) + 1
        keys, times = np.empty(room, np.uint64), np.empty(room, np.int64)
        n = query.write_older(segments.view, first, last, before, keys, times)
        return keys[:n], times[:n]

    pieces = run_all(piece, cuts(1 << segments.m, SEGMENTS_PER_TASK, 4))
    keys, times = zip(*pieces, strict=True)
    return np.concatenate(keys), np.concatenate(times)
