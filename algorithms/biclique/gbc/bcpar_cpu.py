"""BCPar: a graph divided into independent parts, each within a budget of memory.

Source: GBC, arXiv 2403.07858, section VI and Algorithm 3. Roots are divided so that each part is a
graph of its own, the *closure* of its roots: the roots and their candidates, and the neighbours of
the roots. A part begins with the root whose candidates weigh most on average, a vertex's weight
being the number of its neighbours and candidates. It then takes the root that shares the most
weight with the closure, or if none shares any the heaviest one left, while the budget holds.

The paper keeps lists of candidates, which are what does not fit in memory. Here a walk finds them
anew whenever they are needed, in tables with one number per vertex.

`gain` is a tree of maxima over all vertices, from which the root that shares most is read: node i
has children 2i and 2i + 1, and the second half of the array are the leaves. One thread, on the
host.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lpma.cpu.jit import compiled
from lpma.errors import BatchError

from ...arrays import Array
from ..bipartite import Bipartite
from .two_hop_cpu import Rows, clear, meet
from .types import Part, Prices

FREE, NO_ROOT = -1, -2  # values in `part`, beside the numbers of parts


def bcpar(
    graph: Bipartite,
    num_candidates: Array,
    common: int,
    prices: Prices,
    word: int,
    memory_limit: int,
) -> Iterator[Part]:
    """The parts of a graph on the host, each made on demand.

    num_candidates: int32[n], of each root, and 0 for other vertices. common: how many neighbours a
    candidate shares with its root, at least. word: bits of a bitmap's word. Raises BatchError if
    one root alone needs more than memory_limit bytes."""
    n = graph.num_left
    met = np.zeros(n, np.int32)
    found, entering = np.empty(n + 1, np.uint32), np.empty(n + 1, np.uint32)
    average = average_weights(graph.rows, common, num_candidates, met, found)
    order = np.argsort(-average, kind="stable").astype(np.uint32)
    part = np.where(num_candidates > 0, FREE, NO_ROOT).astype(np.int32)
    closed = np.full(n, FREE, np.int32)
    reached = np.full(graph.num_right, FREE, np.int32)
    reaching = np.empty(len(reached), np.uint32)
    gain = np.zeros(2 << max(0, n - 1).bit_length(), np.int64)
    number = 0
    while (part == FREE).any():
        cost = fill_part(
            number, order, graph.rows, common, num_candidates, word, np.array(prices, np.int64),
            memory_limit, part, closed, reached, gain, met, found, entering, reaching,
        )  # fmt: skip
        if cost > memory_limit:
            raise BatchError(
                f"memory_limit={memory_limit:,}: one root with its candidates needs {cost:,} bytes"
            )
        yield _cut(graph, np.where(part == number, num_candidates, 0), closed, reached, number)
        number += 1


def _cut(
    graph: Bipartite, num_candidates: Array, closed: Array, reached: Array, number: int
) -> Part:
    """The part with that number: the graph of the vertices that are marked with it."""
    anchors, others = (np.flatnonzero(last == number) for last in (closed, reached))
    rank, name = np.empty(len(closed), np.uint32), np.empty(len(reached), np.uint32)
    rank[anchors], name[others] = np.arange(len(anchors)), np.arange(len(others))
    forth = _cut_rows(anchors, number, graph.left_indptr, graph.left_indices, reached, name)
    back = _cut_rows(others, number, graph.right_indptr, graph.right_indices, closed, rank)
    no_ids = np.empty(0, np.uint32)  # which a search does not need
    return Part(Bipartite(*forth, *back, no_ids, no_ids), num_candidates[anchors])


def _cut_rows(rows: Array, *given: Any) -> tuple[Array, Array]:
    indptr = np.zeros(len(rows) + 1, np.int64)
    cut_rows(rows, *given, indptr, np.empty(0, np.uint32), False)
    indices = np.empty(indptr[-1], np.uint32)
    cut_rows(rows, *given, indptr, indices, True)
    return indptr, indices


@compiled
def _meet(u: int, least: int, rows: Rows, met: Array, found: Array, earlier: bool) -> int:
    """As `meet`, without the steps. `met` is zero before and after."""
    count, steps = meet(u, least, rows, met, found, earlier)
    clear(u, steps, rows, met)
    return count


@compiled
def average_weights(
    rows: Rows, least: int, num_candidates: Array, met: Array, found: Array
) -> Array:
    """float64[n]: the average weight of each root's candidates."""
    indptr = rows[0]
    average = np.zeros(len(num_candidates), np.float64)
    for u in range(len(num_candidates)):
        if num_candidates[u] == 0:
            continue
        count = _meet(u, least, rows, met, found, False)
        for w in found[:count]:
            average[u] += indptr[w + np.uint32(1)] - indptr[w] + num_candidates[w]
        average[u] /= count
    return average


@compiled
def _set_gain(gain: Array, v: int, value: int) -> None:
    """Set the leaf of v, and the maxima above it."""
    at = len(gain) // 2 + v
    while at and gain[at] != value:
        gain[at] = value
        at >>= 1
        value = max(gain[2 * at], gain[2 * at + 1])


@compiled
def _largest(gain: Array) -> int:
    """The first vertex with the largest gain; -1 if that is zero."""
    if gain[1] == 0:
        return -1
    at, half = 1, len(gain) // 2
    while at < half:
        at = 2 * at if gain[2 * at] == gain[at] else 2 * at + 1
    return at - half


@compiled
def _enter(
    u: int, number: int, rows: Rows, least: int, closed: Array, reached: Array, met: Array,
    found: Array, entering: Array, reaching: Array,
) -> tuple[int, int, int, int]:  # fmt: skip
    """How many candidates root u has, and how many vertices, neighbours and edges enter the part
    with it. Writes the vertices to `entering` and the neighbours to `reaching`, and marks the
    neighbours in `reached`."""
    indptr, indices, back_indptr, back = rows
    count = _meet(u, least, rows, met, found, False)
    found[count] = u
    vertices, others, edges = 0, 0, 0
    for w in found[: count + 1]:
        if closed[w] != number:
            entering[vertices] = w
            vertices += 1
    for b in indices[indptr[u] : indptr[u + 1]]:
        if reached[b] != number:
            reached[b] = number
            reaching[others] = b
            others += 1
    # Edges of entering vertices, then edges of entering neighbours to vertices of the part before.
    for w in entering[:vertices]:
        for b in indices[indptr[w] : indptr[w + np.uint32(1)]]:
            edges += reached[b] == number
    for b in reaching[:others]:
        for w in back[back_indptr[b] : back_indptr[b + np.uint32(1)]]:
            edges += closed[w] == number
    return count, vertices, others, edges


@compiled
def fill_part(
    number: int, order: Array, rows: Rows, least: int, num_candidates: Array, word: int,
    prices: Array, limit: int, part: Array, closed: Array, reached: Array, gain: Array, met: Array,
    found: Array, entering: Array, reaching: Array,
) -> int:  # fmt: skip
    """Take roots into the part with this number while it costs at most `limit`. Returns its cost in
    bytes; if the first root alone costs more, that is returned and no root taken.

    order: the vertices in the order in which parts begin with them. part: of each root, FREE or
    the number of its part. closed, reached: of each vertex of the anchor and of the other layer,
    the last part it was in."""
    gain[:] = 0
    indptr = rows[0]
    # What `prices` are for: 1, vertices, edges, neighbours, most candidates, most words.
    sizes = np.ones(6, np.int64)
    sizes[1:] = 0
    cost, begun, u = np.int64(0), 0, np.int64(-1)
    while True:
        if u < 0:
            while begun < len(order) and part[order[begun]] != FREE:
                begun += 1
            if begun == len(order):
                return cost
            u = np.int64(order[begun])
        count, vertices, others, edges = _enter(
            u, number, rows, least, closed, reached, met, found, entering, reaching
        )
        cells = count * ((indptr[u + 1] - indptr[u] + word - 1) // word)
        new = sizes + np.array([0, vertices, edges, others, 0, 0])
        new[4], new[5] = max(new[4], count), max(new[5], cells)
        total = (prices * new).sum()
        if total > limit:
            for b in reaching[:others]:
                reached[b] = FREE
            return cost if cost else total
        cost, sizes, part[u] = total, new, number
        _set_gain(gain, u, 0)
        for w in entering[:vertices]:
            closed[w] = number
            weight = indptr[w + np.uint32(1)] - indptr[w] + num_candidates[w]
            count = _meet(np.int64(w), least, rows, met, found, True)
            found[count] = w
            for v in found[: count + 1]:
                if part[v] == FREE:
                    _set_gain(gain, v, gain[len(gain) // 2 + v] + weight)
        u = _largest(gain)


@compiled
def cut_rows(
    rows: Array, number: int, indptr: Array, indices: Array, of_entry: Array, renumbered: Array,
    new_indptr: Array, new_indices: Array, fill: bool,
) -> None:  # fmt: skip
    """Reduce `rows` to the entries in the part, renumbered: writes the starts to `new_indptr`, and
    in a second call, with `fill`, the entries to `new_indices`."""
    place = 0
    for i in range(len(rows)):
        u = rows[i]
        for w in indices[indptr[u] : indptr[u + 1]]:
            if of_entry[w] == number:
                if fill:
                    new_indices[place] = renumbered[w]
                place += 1
        new_indptr[i + 1] = place
