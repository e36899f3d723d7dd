"""BCPar: a graph divided into independent parts, each within a budget of memory.

Source: Qiu et al., GBC, arXiv 2403.07858, section VI and Algorithm 3. Roots are divided so that
each part, with everything its subsets can contain, is a graph of its own: the *closure* of its
roots. That is the roots and their candidates, with those of their neighbours that are neighbours of
a root. No part needs another. A part begins with the root whose candidates weigh most on average.
It then takes the root that shares the most weight with the closure, while the budget holds. The
weight of a vertex is the number of its neighbours and candidates. Where no root shares anything,
the part goes on with the heaviest root left.

The paper keeps lists of candidates, which are what does not fit. Here they are found again by a
walk whenever they are needed, in tables with one number for each vertex.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.errors import BatchError

from ..gbc.types import Anchored, Part, Prices
from .bcpar_cpu import FREE, NO_ROOT, average_weights, cut_rows, fill_part

Array = npt.NDArray[Any]


def bcpar(
    graph: Anchored,
    num_candidates: Array,
    common: int,
    prices: Prices,
    word: int,
    memory_limit: int,
) -> Iterator[Part]:
    """The parts of a graph on the host, each made when it is asked for.

    num_candidates: int32[n], of each root, and 0 for a vertex that is no root. common: how many
    neighbours a candidate shares with its root, at least. word: the bits of a bitmap's word.
    memory_limit: bytes. Raises BatchError if one root alone needs more."""
    n = graph.num_anchors
    met = np.zeros(n, np.int32)
    found, entering = np.empty(n + 1, np.uint32), np.empty(n + 1, np.uint32)
    average = average_weights(*graph.rows, common, num_candidates, met, found)
    order = np.argsort(-average, kind="stable").astype(np.uint32)
    part = np.where(num_candidates > 0, FREE, NO_ROOT).astype(np.int32)
    closed = np.full(n, FREE, np.int32)
    reached = np.full(len(graph.back_indptr) - 1, FREE, np.int32)
    reaching = np.empty(len(reached), np.uint32)
    gain = np.zeros(2 << max(0, n - 1).bit_length(), np.int64)
    number = 0
    while (part == FREE).any():
        cost = fill_part(
            number, order, *graph.rows, common, num_candidates, word, np.array(prices, np.int64),
            memory_limit, part, closed, reached, gain, met, found, entering, reaching,
        )  # fmt: skip
        if cost > memory_limit:
            raise BatchError(
                f"memory_limit={memory_limit:,}: one root with its candidates needs {cost:,} bytes"
            )
        yield _cut(graph, np.where(part == number, num_candidates, 0), closed, reached, number)
        number += 1


def _cut(
    graph: Anchored, num_candidates: Array, closed: Array, reached: Array, number: int
) -> Part:
    """The part with that number: the graph of the vertices that are marked with it."""
    anchors, others = (np.flatnonzero(last == number) for last in (closed, reached))
    rank, name = np.empty(len(closed), np.uint32), np.empty(len(reached), np.uint32)
    rank[anchors], name[others] = np.arange(len(anchors)), np.arange(len(others))
    forth = _cut_rows(anchors, number, graph.indptr, graph.indices, reached, name)
    back = _cut_rows(others, number, graph.back_indptr, graph.back, closed, rank)
    return Part(Anchored(*forth, *back), num_candidates[anchors])


def _cut_rows(rows: Array, *given: Any) -> tuple[Array, Array]:
    indptr = np.zeros(len(rows) + 1, np.int64)
    cut_rows(rows, *given, indptr, np.empty(0, np.uint32), False)
    indices = np.empty(indptr[-1], np.uint32)
    cut_rows(rows, *given, indptr, indices, True)
    return indptr, indices
