"""What a known context absorbs of its owner's row, on the CPU: see `absorb` for the method.

The head is one word long, so that its matrix is a vector of words, and a vertex's neighbours in the
context are a word. The head is marked in a table over all ranks, in which a vertex looks up the
first entries of its lower row. Owners are dealt out to pieces in turn, as in `listing.cpu`.
"""

from __future__ import annotations

import numpy as np

from lpma.cpu.instructions import ones, trailing_zeros
from lpma.cpu.jit import compiled
from lpma.cpu.threads import THREADS, run_all

from ...arrays import Array
from ..model import MODELS, NONE, fewest_vertices
from .bits_cpu import components, fill, shrink_to_core, shrink_to_truss
from .types import RankedEgos

HEAD = 64  # entries of a row that `absorb` begins with
CORE = MODELS.index("core")
PIECES_PER_THREAD = 16
STEP = 8  # neighbours in the context from one search for a core among them to the next


def absorb(egos: RankedEgos, owners: Array, starts: Array, rest: Array) -> Array:
    """int32[q]: how many vertices of each owner's row the largest context of its head leaves, or
    NONE if there is no context. Writes these, as rising ranks, to `rest` from starts[i] on. owners:
    int64[q], ranks, of rows of more than HEAD entries; starts: int64[q+1], of consecutive rows."""
    left = np.empty(len(owners), np.int32)
    number = min(PIECES_PER_THREAD * THREADS, len(owners))
    graph = (egos.slots.indptr, egos.slots.indices, egos.lower.indptr, egos.lower.indices)
    which = MODELS.index(egos.model), egos.k, fewest_vertices(egos.model, egos.k)
    places = np.arange(len(owners))
    pieces = (places[i::number] for i in range(number))
    run_all(_absorb, [(*graph, *which, owners, piece, starts, rest, left) for piece in pieces])
    return left


@compiled
def _absorb(
    slots_indptr: Array, slots: Array, lower_indptr: Array, lower: Array, model: int, k: int,
    fewest: int, owners: Array, piece: Array, starts: Array, rest: Array, left: Array,
) -> None:  # fmt: skip
    """piece: the places of the owners to look at."""
    place = np.zeros(len(lower_indptr) - 1, np.uint8)  # 1 + that of a vertex in the owner's head
    matrix = np.empty((HEAD, 1), np.int64)
    degree, root = np.empty(HEAD, np.int32), np.empty(HEAD, np.int32)
    stack = np.empty(HEAD, np.int32)
    is_queued = np.zeros(HEAD, np.uint8)
    for i in piece:
        u = owners[i]
        row = slots[slots_indptr[u] : slots_indptr[u + 1]]
        for x in range(HEAD):
            place[row[x]] = x + 1
        fill(row[:HEAD], lower_indptr, lower, place, matrix, degree)
        if model == CORE:
            shrink_to_core(matrix, k, degree, stack)
        elif k > 2:
            shrink_to_truss(matrix, k - 2, stack, is_queued)
        components(matrix, root, stack)
        members = _largest(root, fewest, degree)
        written = NONE
        if members:
            written = 0
            for x in range(len(row)):
                v = np.int64(row[x])
                if x < HEAD:
                    inside = members >> x & 1 == 1
                else:
                    of_v = lower[lower_indptr[v] : lower_indptr[v + 1]]
                    inside = _absorbs(of_v, row[HEAD - 1], place, members, model, k, matrix)
                if not inside:
                    rest[starts[i] + written] = row[x]
                    written += 1
        left[i] = written
        for x in range(HEAD):
            place[row[x]] = 0


@compiled
def _largest(root: Array, fewest: int, size: Array) -> np.int64:
    """The bits of the largest component, of `fewest` vertices or more; 0 if there is none. root: as
    by `components`; size: room for all vertices."""
    size[:] = 0
    best = -1
    for x in range(HEAD):
        at = root[x]
        if at != NONE:
            size[at] += 1
            if size[at] >= fewest and (best == -1 or size[at] > size[best]):
                best = at
    members = np.int64(0)
    for x in range(HEAD):
        if best != -1 and root[x] == best:
            members |= np.int64(1) << x
    return members


@compiled
def _absorbs(
    lower: Array, last: int, place: Array, members: int, model: int, k: int, matrix: Array
) -> bool:
    """Whether the context absorbs the vertex of this lower row. last: the rank of the head's last
    vertex, which is lower."""
    enough = k if model == CORE else max(k - 1, 1)
    hits, number = np.int64(0), 0
    for w in lower:
        if w > last:
            break
        y = np.int64(place[w]) - 1
        if y < 0 or members >> y & 1 == 0:
            continue
        hits |= np.int64(1) << y
        number += 1
        if number < enough:
            continue
        if model == CORE:
            return True
        if (number - enough) % STEP == 0 and _have_core(hits, matrix, k - 2):
            return True
    return model != CORE and number > enough and _have_core(hits, matrix, k - 2)


@compiled
def _have_core(vertices: int, matrix: Array, least: int) -> bool:
    """Whether these vertices have a subgraph in the matrix with all degrees at least `least`."""
    left = np.int64(vertices)
    gone = True
    while gone and left:
        gone = False
        rest = left
        while rest:
            y = trailing_zeros(rest)
            rest &= rest - 1
            if ones(matrix[y, 0] & left) < least:
                left ^= np.int64(1) << y
                gone = True
    return left != 0
