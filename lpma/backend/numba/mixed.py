"""The end of a mixed batch on the CPU: its versions folded onto the stored edges (compact.py)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ...cpu.threads import cuts, run_all
from . import compact, counts
from .chunks import joined, run_edges
from .located import Located, Touched
from .rebalance import DELETED, SPARE
from .segments import Segments
from .settle import SLOTS
from .workspace import Workspace

ROWS_PER_TASK = 1024


class Mixed:
    """See lpma.backend.Backend."""

    workspace: Workspace

    def _survivors(self, segments: Segments, located: Located) -> tuple[Located, Any]:
        """What remains of the versions `located` put in: their keys' final actions."""
        n = len(located.key)
        self.workspace.runs.reserve(n)
        runs = self.workspace.runs.columns
        edges = run_edges(located.key, cuts(n, ROWS_PER_TASK))
        view, batch, rows = segments.view, located.batch.view, located.rows
        tallies = run_all(
            compact.survivors,
            [(view, batch, rows, lo, hi, *runs) for lo, hi in pairwise(edges)],
        )
        ranks, first_row, none, delta, flags = self.workspace.leaf_space(2 * n)
        count = compact.versioned_ranks(view, rows, runs[0], runs[1], ranks, first_row)
        none[:count], delta[:count], flags[:count] = 0, 0, DELETED
        tally, found = joined(tallies), Touched(self.workspace.leaves.grid, count)
        final = Located(located.batch, located.key, found, tally, int(tally[SLOTS]), False,
                        self.workspace, located.in_spare)  # fmt: skip
        return final, (first_row[:count], *runs[1:])

    def compact(self, segments: Segments, located: Located, strategy: str) -> Located:
        """Fold the versions that `located` put in onto the stored edges, in place. Returns what
        remained of them."""
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
        return final
