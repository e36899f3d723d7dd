"""PageRank of the simple undirected graph, brought up to date by conjugate gradients.

Sources: Hestenes and Stiefel, "Methods of conjugate gradients for solving linear systems", 1952;
of pushing, Andersen, Chung and Lang, "Local graph partitioning using PageRank vectors", FOCS 2006.

Ranks are those of `algorithms.pagerank` with DAMPING, of the graph without directions, loops and
repeats. Let D be the degrees and A the adjacency of the n vertices that have edges. Their *shares*
s, rank over degree, are up to a factor the solution of
    (D − d A) s = 1,
since every vertex jumps, or is jumped to, alike. The matrix is symmetric and positive definite, so
conjugate gradients solve it, in about half as many passes over the rows as power iteration: the
error falls by the root of the condition number, which with D as the preconditioner is at most
(1 + d) / (1 − d). An isolated vertex has the solution 1 by itself. The ranks are degree · s, or 1,
divided by the sum over all.

The shares and the residual, the *rest* r = 1 − (D − d A) s, are kept from batch to batch. An
inserted edge u, v takes s(u) from r(u) and gives it d s(v), and likewise at v; a deleted one does
the opposite. So the rest after a batch costs a step per changed edge. It is small, because shares
hardly differ where a walk mixes well: a few passes suffice, where starting over takes dozens.

On a device passes first *push*: every vertex adds r/degree to its share, and d times its rest goes
to its neighbours in equal parts. That only multiplies the sum of the rest by d. So all shares first
rise alike such that the rest sums to 0; then parts of both signs cancel where the walk mixes, and a
push gains as much as a step of conjugate gradients, which costs more and takes over when a push
leaves too much.

Stated error: the exact solution sums to n / (1 − d) over the vertices with edges, and a solution
with the rest r is wrong by at most |r| / (1 − d) in all, |r| the sum of absolute values. So the
ranks are wrong by at most 2 |r| / n in all. Passes end when that is TOL · d / (1 − d) at most, the
known bound of `algorithms.pagerank` with this tolerance.

Rule: an update never costs more passes than starting over. It recomputes if a device would have to
lay out rows anew (`cuda`).

Oracle: `algorithms.pagerank` (tests/algorithms/test_tracker_pagerank.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays import Array, by_device
from ..types import Change, Figure, TrackedRows

DAMPING, TOL = 0.85, 1e-6
REST = TOL * DAMPING / (1 - DAMPING) / 2  # of a vertex with edges, at the end


class PageRank(Figure):
    """The figure "pagerank": see the module, and `types.Figure`. `value` is float64[n], of sum 1,
    and 0 for rows that are no vertices."""

    def __init__(self) -> None:
        self.value: Array = np.empty(0)
        self._state: Any = None

    def recompute(self, rows: TrackedRows) -> None:
        device = by_device(rows.indptr, __name__)
        self._state = device.begin(rows, DAMPING)
        self.value = device.solve(self._state, rows, DAMPING, REST)

    def update(self, change: Change) -> bool:
        device = by_device(change.after.indptr, __name__)
        if not device.follow(self._state, change, DAMPING):
            return False
        self.value = device.solve(self._state, change.after, DAMPING, REST)
        return True
