"""Truss numbers without an incidence on the CPU, `method="intersect"`: the triangles of an edge are
found by intersecting the rows of its ends when the edge is peeled.

Edges are peeled as in `peel_cpu`; but where that reads an edge's list of triangles, this intersects
two rows (`edge_rows_cpu`). Edges that are gone are dropped from the rows whenever the number of
living edges has halved.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.jit import compiled

from . import peel_cpu
from .edge_rows_cpu import next_common, shorter_first
from .peel_cpu import GONE, HELD, LIVING, Peeling
from .types import EdgeRows

Array = npt.NDArray[Any]


def by_intersection(rows: EdgeRows, support: Array, until: int) -> Array:
    """int32[m]: truss numbers below `until`, and `until` for the edges that are left then. Takes
    over `rows` and `support`."""
    state = peel_cpu.start(support, until)
    held = len(support)  # living edges when the rows were last compacted
    while peel_cpu.next_level(until, state):
        if 2 * state.counters[LIVING] <= held:
            _squeeze(state.fate, rows.first, rows.last, rows.indices, rows.edge)
            held = int(state.counters[LIVING])
        while state.counters[peel_cpu.DONE] < state.counters[peel_cpu.QUEUED]:
            peel_cpu.one_round(_peel_round, state, *rows)
    return state.truss


@compiled
def _squeeze(fate: Array, first: Array, last: Array, indices: Array, edge: Array) -> None:
    """Drop the entries whose edges are gone."""
    for u in range(len(first)):
        place = first[u]
        for i in range(first[u], last[u]):
            if fate[edge[i]] != GONE:
                indices[place], edge[place] = indices[i], edge[i]
                place += 1
        last[u] = place


@compiled
def _peel_round(
    begin: int, end: int, state: Peeling, src: Array, dst: Array, first: Array, last: Array,
    indices: Array, edge: Array,
) -> None:  # fmt: skip
    """As in `peel_cpu`, of which these are the edges queue[begin:end]."""
    support, fate, truss, queue, _, counters = state
    held = np.empty(HELD, np.int32)
    for place in range(begin, end):
        e = queue[place]
        count = 0
        i, end_i, j, end_j = shorter_first(src[e], dst[e], first, last)
        i, j = next_common(i, end_i, j, end_j, indices)
        while i < end_i:
            if peel_cpu.takes(e, edge[i], edge[j], fate):
                if count > HELD - 2:
                    peel_cpu.lose(held[:count], support, truss, queue, counters)
                    count = 0
                count = peel_cpu.hold(edge[i], fate, held, count)
                count = peel_cpu.hold(edge[j], fate, held, count)
            i, j = next_common(i + 1, end_i, j + 1, end_j, indices)
        peel_cpu.lose(held[:count], support, truss, queue, counters)
