"""Ego networks extracted and scored on a CUDA device, a batch of owners at a time.

The ego networks of a batch are the separate parts of one graph in CSR (extract.cu). So every step
is a graph algorithm over all of them at once, which fills the device however small they are:

component   components (Algorithm 3, all at once instead of one search after another)
core        h-indices (Algorithm 4; core/h_index.cu), and components of the k-core
truss       supports by binary search (Algorithm 5, lines 3 and 4), levels and rounds (`begin` and
            `one_round` of peel.cuh: Algorithms 6 and 7), and components of the remaining edges

A batch takes as many ego networks as fit in BATCH_BYTES, or one. Copies from the host and
allocations from the driver make devices wait for each other. So the pool gets memory for a batch
beforehand, and the owners of all batches are copied at once.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import driver, launch
from lpma.cuda.driver import free_bytes

from ...arrays import inverse_of, ranges_within, starts_of
from ...components.cuda import components
from ...core.cuda import h_index
from ...triangles import cuda as triangles
from ...triangles.ranked import ranked
from ...truss import cuda as truss
from ...truss.intersect_cpu import EdgeRows
from ...views import simple_cuda
from ...views.simple import View, induced, simple
from ..model import MODELS
from .cpu import SizedEgos

Array = Any  # cupy.ndarray, unless said to be on the host

COMPONENT, CORE, TRUSS = MODELS
TILE = 8  # extract.cu
LONG_BLOCKS = 1056  # eight for each of 132 multiprocessors
BATCH_BYTES = 1 << 30
PLACE_BYTES, EDGE_BYTES = 96, 120  # what a vertex and an edge of an ego network take at most


def prepared(s: Any) -> SizedEgos:
    """As `cpu.prepared`. Waits for the device."""
    view = simple(s)
    n, entries = view.num_rows, len(view.indices)
    support = cupy.empty(entries, np.int32)
    if entries:
        ranks = ranked(s)
        _run(
            "support_of_entries", entries, view.indptr, view.indices, n, entries,
            inverse_of(ranks.order), ranks.indptr, ranks.indices, triangles.support(ranks), support,
        )  # fmt: skip
    # A vertex is in half as many triangles as its edges are in together.
    upto = starts_of(support)[view.indptr]
    vertices, twice = cupy.diff(view.indptr).get(), cupy.diff(upto).get()
    return SizedEgos(view, vertices, twice // 2, support)


def score(egos: SizedEgos, owners: Array, model: str, k: int, fewest: int) -> tuple[Array, Array]:
    """As `cpu.score`."""
    cupy.empty(min(_room_bytes(), int(_sizes(egos, owners).sum())), np.uint8)  # the pool keeps it
    there = cupy.asarray(owners)
    found = [
        _score_batch(egos, owners[first:last], there[first:last], model, k, fewest)
        for first, last in batches(egos, owners)
    ]
    scores, labels = zip(*found, strict=True) if found else ((), ())
    none = cupy.empty(0, np.int32)
    return cupy.concatenate((none, *scores)), cupy.concatenate((none, *labels))


def batches(egos: SizedEgos, owners: Array) -> list[tuple[int, int]]:
    """Ranges of the owners, uint32[q] on the host, whose ego networks fit in a batch, or of one."""
    return ranges_within(_sizes(egos, owners), _room_bytes())


def _room_bytes() -> int:
    return min(BATCH_BYTES, free_bytes() // 2)


def _sizes(egos: SizedEgos, owners: Array) -> Array:
    """int64[q], bytes: what the ego networks of owners take on the device."""
    return PLACE_BYTES * egos.vertices[owners] + EDGE_BYTES * egos.edges[owners]


def _score_batch(
    egos: SizedEgos, owners: Array, there: Array, model: str, k: int, fewest: int
) -> tuple[Array, Array]:
    q, places = len(owners), int(egos.vertices[owners].sum())
    scores = driver.zeros(q, np.int32)
    if places == 0:
        return scores, cupy.empty(0, np.int32)
    rows, view = extracted(egos, owners, there)
    if model == CORE:
        inside = h_index(view.indptr, view.indices, most=k) >= k
        view = induced(view, inside)
    elif model == TRUSS:
        view = _truss(view, k)
    label = components(view.indptr, view.indices, is_symmetric=True)
    size = driver.zeros(places, np.int32)
    _run("count_members", places, label, places, size)
    _run("count_contexts", places, rows, q, places, size, np.int32(fewest), scores)
    return scores, label


def extracted(egos: SizedEgos, owners: Array, there: Array) -> tuple[Array, View]:
    """The ego networks of the owners as one graph (Algorithm 2): int64[q+1], where the vertices of
    each start, in the order of the owner's row; and the rows. owners, there: uint32[q], on the host
    and on the device."""
    view, q = egos.view, len(owners)
    places, entries = int(egos.vertices[owners].sum()), 2 * int(egos.edges[owners].sum())
    first = view.indptr[there]
    rows = starts_of(view.indptr[there + 1] - first)
    degree, targets = cupy.empty(places, np.int32), cupy.empty(entries, np.uint32)
    _run("degrees", places, rows, q, places, first, egos.support, degree)
    starts = starts_of(degree)
    _run("extract", 32 * places, view.indptr, view.indices, rows, q, places, first, starts, targets)
    return rows, View(starts, targets)


def _truss(view: View, k: int) -> View:
    """The rows with the edges of truss number k and above."""
    places, entries = view.num_rows, len(view.indices)
    if entries == 0:
        return view
    larger = cupy.empty(places, np.int64)
    _run("count_larger", places, view.indptr, view.indices, places, larger)
    m = entries // 2
    src, dst = cupy.empty(m, np.uint32), cupy.empty(m, np.uint32)
    _run("list_edges", entries, view.indptr, view.indices, places, entries,
         starts_of(larger), src, dst)  # fmt: skip
    rows = truss.edge_rows(view, src, dst)
    number = rows.edge.copy()
    support = _edge_supports(rows, places)
    stands = truss.by_intersection(rows, support, k) >= k
    return View(*simple_cuda.kept_rows(stands[number].view(np.uint8), view.indices, view.indptr))


def _edge_supports(rows: EdgeRows, places: int) -> Array:
    """int32[m]: how many triangles each edge is in."""
    m = len(rows.src)
    support, listed = driver.zeros(m, np.int32), driver.zeros(1, np.uint64)
    long_edges = cupy.empty(m, np.int32)
    _run("edge_supports", TILE * m, *rows, places, m, support, listed, long_edges)
    threads = launch.BLOCK * min(m, LONG_BLOCKS)
    _run("long_edge_supports", threads, *rows, places, support, listed, long_edges)
    return support


def _run(kernel: str, items: int, *args: Any) -> None:
    launch.run("algorithms/diversity/extract/extract.cu", kernel, items, *args)
