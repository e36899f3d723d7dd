"""Ego networks extracted one after the other and scored, on the CPU: see `extract`.

Steps, one function each, in arrays that serve all owners of a thread:

edges      Algorithm 2, lines 3 to 11: the owner's neighbours are numbered in a map, and each one's
           row is scanned for later ones, so that edges come once, sorted. A hub's row is searched
           for the owner's neighbours instead.
rows       lines 12 to 19: the CSR of the ego network, with the number of each entry's edge; sorted
           edges give sorted rows
core       vertices of degree under k are peeled, as CPU-Div does (Algorithm 4 is CUDA's)
truss      supports by lookups, and edges of support under k - 2 are peeled (Algorithms 5 to 7)
components of the remaining edges, by a forest of parents; the paper searches from vertex to vertex
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lpma.cpu.jit import compiled
from lpma.cpu.search import first_not_below
from lpma.cpu.threads import run_all

from ...arrays import Array, starts_of
from ...components.cpu import root_of
from ...triangles import at_vertices, listed
from ...views.simple import View
from ..model import MODELS

COMPONENT, CORE, TRUSS = range(3)  # places in model.MODELS
HUB = 16  # a row this many times as long as the owner's is searched, not scanned


class SizedEgos(NamedTuple):
    """A graph prepared for extraction: how large its ego networks are."""

    view: View  # the simple view
    vertices: Array  # int64[n], on the host
    edges: Array  # int64[n], on the host
    # int32[m], only on a device: how many triangles the edge of each entry of the view is in: the
    # degree of every vertex of every ego network
    support: Any = None


def prepared(s: Any) -> SizedEgos:
    """The ego networks of a graph, or of a Listed, that lies on the module's device."""
    found = listed(s)
    view = found.ranks.view
    return SizedEgos(view, np.diff(view.indptr), at_vertices(found))


def score(egos: SizedEgos, owners: Array, model: str, k: int, fewest: int) -> tuple[Array, Array]:
    """int32[q]: how many contexts of at least `fewest` vertices each owner's ego network has.
    int32[sum of degrees]: the component of every neighbour of every owner, as numbers that rise
    with the component's smallest vertex. owners: uint32[q], on the host. On the CPU this runs in
    the calling thread; several may call it at once."""
    starts = starts_of(egos.vertices[owners])
    label, found = np.empty(int(starts[-1]), np.int32), np.empty(len(owners), np.int32)
    most = (int(sizes[owners].max(initial=0)) for sizes in (egos.vertices, egos.edges))
    graph = egos.view.indptr, egos.view.indices
    which = MODELS.index(model), k, fewest
    run_all(_score, [(owners, *graph, *which, *most, starts, label, found)])
    return found, label


@compiled
def _score(
    owners: Array, indptr: Array, indices: Array, model: int, k: int, fewest: int, vertices: int,
    most_edges: int, places: Array, labels: Array, found: Array,
) -> None:  # fmt: skip
    """vertices, most_edges: of the largest ego networks."""
    place_of = np.zeros(len(indptr) - 1, np.int32)  # 1 + the number of each neighbour of the owner
    ends = np.empty((most_edges, 2), np.int32)  # edges by their vertices' numbers; sorted
    starts, mark = np.empty(vertices + 1, np.int64), np.zeros(vertices, np.int64)
    adjacent, edge = np.empty(2 * most_edges, np.int32), np.empty(2 * most_edges, np.int32)
    most = max(vertices, most_edges)
    strength, queue = np.empty(most, np.int32), np.empty(most, np.int32)
    gone = np.empty(most, np.bool_)  # the vertices, or edges, that were peeled
    for i in range(len(owners)):
        label = labels[places[i] : places[i + 1]]
        d = len(label)
        m = edges(np.int64(owners[i]), indptr, indices, place_of, ends)
        gone[: max(d, m)] = False
        if model != COMPONENT:
            rows(d, ends[:m], starts, adjacent, edge, mark)
        if model == CORE:
            _peel_core(d, k, starts, adjacent, strength, gone, queue)
        elif model == TRUSS:
            _count_triangles(d, m, starts, adjacent, edge, strength, mark)
            _peel_truss(k, ends[:m], starts, adjacent, edge, strength, gone, queue)
        _join(ends[:m], model, gone, label)
        found[i] = _large(label, fewest, mark)


@compiled
def edges(owner: int, indptr: Array, indices: Array, place_of: Array, ends: Array) -> int:
    """Write the edges of an ego network to `ends`, sorted. Returns how many there are."""
    row = indices[indptr[owner] : indptr[owner + 1]]
    for i in range(len(row)):
        place_of[row[i]] = i + 1
    m = 0
    for i in range(len(row)):
        u = np.int64(row[i])
        first, last = indptr[u], indptr[u + 1]
        if last - first > HUB * (len(row) - i):
            for j in range(i + 1, len(row)):
                first = first_not_below(indices, first, last, row[j])
                if first < last and indices[first] == row[j]:
                    ends[m, 0], ends[m, 1] = i, j
                    m += 1
        else:
            for w in indices[first_not_below(indices, first, last, row[i]) : last]:
                if place_of[w]:
                    ends[m, 0], ends[m, 1] = i, place_of[w] - 1
                    m += 1
    for u in row:
        place_of[u] = 0
    return m


@compiled
def rows(d: int, ends: Array, starts: Array, adjacent: Array, edge: Array, cursor: Array) -> None:
    """Write the CSR of sorted edges to starts, adjacent and edge. cursor: int64[d], left at 0."""
    starts[: d + 1] = 0
    for e in range(len(ends)):
        starts[ends[e, 0] + 1] += 1
        starts[ends[e, 1] + 1] += 1
    for v in range(d):
        starts[v + 1] += starts[v]
        cursor[v] = starts[v]
    for e in range(len(ends)):
        for a, b in ((ends[e, 0], ends[e, 1]), (ends[e, 1], ends[e, 0])):
            adjacent[cursor[a]], edge[cursor[a]] = b, e
            cursor[a] += 1
    cursor[:d] = 0


@compiled
def _peel_core(
    d: int, k: int, starts: Array, adjacent: Array, degree: Array, gone: Array, queue: Array
) -> None:
    queued = 0
    for v in range(d):
        degree[v] = starts[v + 1] - starts[v]
        if degree[v] < k:
            gone[v] = True
            queue[queued] = v
            queued += 1
    done = 0
    while done < queued:
        v = queue[done]
        done += 1
        for w in adjacent[starts[v] : starts[v + 1]]:
            degree[w] -= 1
            if degree[w] == k - 1:
                gone[w] = True
                queue[queued] = w
                queued += 1


@compiled
def _peel_truss(
    k: int, ends: Array, starts: Array, adjacent: Array, edge: Array, support: Array, gone: Array,
    queue: Array,
) -> None:  # fmt: skip
    """An edge is queued once: at first if its support is under k - 2, else when it falls to k - 3.
    Until its turn it counts in the triangles of others."""
    queued = 0
    for e in range(len(ends)):
        if support[e] < k - 2:
            queue[queued] = e
            queued += 1
    done = 0
    while done < queued:
        e = queue[done]
        done += 1
        short, long = ends[e, 0], ends[e, 1]
        if starts[short + 1] - starts[short] > starts[long + 1] - starts[long]:
            short, long = long, short
        place, last = starts[long], starts[long + 1]
        for i in range(starts[short], starts[short + 1]):
            if gone[edge[i]]:
                continue
            place = first_not_below(adjacent, place, last, adjacent[i])
            if place == last:
                break
            if adjacent[place] == adjacent[i] and not gone[edge[place]]:
                for loser in (edge[i], edge[place]):
                    support[loser] -= 1
                    if support[loser] == k - 3:
                        queue[queued] = loser
                        queued += 1
        gone[e] = True


@compiled
def _count_triangles(
    d: int, m: int, starts: Array, adjacent: Array, edge: Array, support: Array, mark: Array
) -> None:
    """Write the supports. Each triangle u < v < w is found at u, in v's row. Leaves marks at 0."""
    support[:m] = 0
    for u in range(d):
        for i in range(starts[u], starts[u + 1]):
            mark[adjacent[i]] = edge[i] + 1
        for i in range(starts[u + 1] - 1, starts[u] - 1, -1):
            v = adjacent[i]
            if v < u:
                break
            for j in range(starts[v + 1] - 1, starts[v] - 1, -1):
                w = adjacent[j]
                if w < v:
                    break
                if mark[w]:
                    support[edge[i]] += 1
                    support[edge[j]] += 1
                    support[mark[w] - 1] += 1
        for i in range(starts[u], starts[u + 1]):
            mark[adjacent[i]] = 0


@compiled
def _join(ends: Array, model: int, gone: Array, label: Array) -> None:
    """Label every vertex with the smallest vertex of its component by the remaining edges."""
    for v in range(len(label)):
        label[v] = v
    for e in range(len(ends)):
        a, b = ends[e, 0], ends[e, 1]
        if model == CORE and (gone[a] or gone[b]):
            continue
        if model == TRUSS and gone[e]:
            continue
        a, b = root_of(a, label), root_of(b, label)
        label[max(a, b)] = min(a, b)
    for v in range(len(label)):
        label[v] = label[label[v]]  # what is smaller has its root already


@compiled
def _large(label: Array, fewest: int, size: Array) -> int:
    """How many labels have at least `fewest` vertices. Leaves `size` at 0."""
    for v in range(len(label)):
        size[label[v]] += 1
    found = 0
    for v in range(len(label)):
        found += size[v] >= fewest
    size[: len(label)] = 0
    return found
