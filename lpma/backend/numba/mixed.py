"""Mixed batches on the CPU: the column that marks versions, and their end (compact.py)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from ...cpu.threads import cuts, run_all
from ...stats import Stats
from ..values import Array, Committed
from . import compact, counts
from .allocate import zeros
from .chunks import joined, run_edges
from .located import Located, Touched
from .moves import Moves
from .rebalance import DELETED, SPARE
from .segments import Segments

ROWS_PER_TASK = 1024


class Mixed(Moves):
    """See lpma.backend.protocol."""

    def with_versions(self, segments: Segments) -> Segments:
        """A column of sequence numbers, all 0: stored."""
        return replace(segments, seqs=[zeros(len(level), np.uint32) for level in segments.keys])

    def without_versions(self, segments: Segments) -> Segments:
        return replace(segments, seqs=None)

    def _survivors(
        self, segments: Segments, located: Located
    ) -> tuple[Located, tuple[Array, Array, Array, Array]]:
        """What remains of the versions that `located` put in, as operations: their final actions,
        and (first row, last rank, weight, time) of each, as compact.py names them."""
        n = len(located.key)
        self.workspace.runs.reserve(n)
        runs = self.workspace.runs.columns
        edges = run_edges(located.key, cuts(n, ROWS_PER_TASK))
        view, batch, rows = segments.view, located.staged.view, located.rows
        tallies = run_all(
            compact.survivors,
            [(view, batch, rows, lo, hi, *runs) for lo, hi in pairwise(edges)],
        )
        ranks, first_row, none, delta, flags = self.workspace.leaf_space(2 * n)
        count = compact.versioned_ranks(view, rows, runs[0], runs[1], ranks, first_row)
        none[:count], delta[:count], flags[:count] = 0, 0, DELETED
        final = Located.of(
            located.staged, located.key, Touched(self.workspace.leaves.grid, count),
            joined(tallies).tolist(), False, self.workspace, segments.m, located.in_spare,
        )  # fmt: skip
        return final, (first_row[:count], runs[1], runs[2], runs[3])

    def compact(
        self, segments: Segments, located: Located, strategy: str, stats: Stats, most_changes: int
    ) -> Committed:
        """Fold the versions in place, then rebalance what has become too empty."""
        final, (first_row, last, weights, times) = self._survivors(segments, located)
        ranks = final.touched.rank
        view, rows = segments.view, final.rows
        run_all(
            compact.compact_segments,
            [
                (view, rows, ranks, first_row, last, weights, times, lo, hi)
                for lo, hi in cuts(len(ranks), ROWS_PER_TASK)
            ],
        )
        space = self.workspace.plan_space(len(ranks))
        counts.sum_upward(view, ranks, len(ranks), space[SPARE])
        final.touched.lo[:] = final.touched.hi  # no rows are left to move
        plan = self.plan(strategy, segments, final) if len(ranks) else None
        return self.commit(segments, final, plan, stats, most_changes)
