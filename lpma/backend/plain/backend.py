"""The plain backend: the operations of protocol.py, each a few calls of NumPy.

A batch becomes an edit of the sorted array (located.py), its plan new bounds of segments (plan.py).
`reserve` makes both, and `commit` puts them in place of the old ones. What is done without a copy
elsewhere takes time linear in the store here.

W6 holds for columns, but not for the few numbers a segment that counting and shrinking take.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...batch.columns import Columns
from ...pma.counters import Stats
from ..defaults import Defaults
from ..protocol import AnyBackend
from ..values import ON_CPU, Array, Changed, Committed, Implied
from . import located as locating
from .beside import Beside
from .located import KeyRows, Located, StagedBatch
from .plan import Plan, carried_out, count_windows, planned
from .reads import Reads
from .segments import Segments
from .shapes import Shapes
from .slots import edited

ONE = np.ones(1, np.float32)


class PlainBackend(Shapes, Reads, Defaults):
    """See lpma.backend.protocol. One instance per store; not thread-safe."""

    name = "plain"
    validates = False
    is_provisional = True
    # Those of the Numba backend, so that stores look alike whichever of the two keeps them.
    costs = ON_CPU

    def __init__(self, successor: Callable[[], AnyBackend | None] = lambda: None) -> None:
        self._successor = successor
        self.written = False

    def successor(self) -> AnyBackend | None:
        return self._successor()

    @property
    def buffer_bytes(self) -> int:
        """0: nothing is kept from batch to batch."""
        return 0

    def stages_unvalidated(self, rows: int) -> bool:
        return False

    def stage(
        self, columns: Columns, time: Array, weight_dtype: np.dtype[Any] | None
    ) -> StagedBatch:  # fmt: skip
        given = ONE if columns.weight is None else columns.weight
        weight = given if weight_dtype is None else given.astype(weight_dtype, copy=False)
        return StagedBatch(columns.kind, given, weight, time)

    def key_rows(
        self, staged: StagedBatch, columns: Columns, lo: int, hi: int, direction: int,
        implied: Implied | None = None,
    ) -> KeyRows:  # fmt: skip
        return locating.key_rows(columns, lo, hi, direction, implied)

    def sort_beside(self, segments: Segments, staged: StagedBatch, rows: KeyRows) -> None:
        self.beside = Beside(locating.folded(segments, staged, rows))

    def asked(
        self, segments: Segments, staged: StagedBatch, columns: Columns, places: Array
    ) -> tuple[Array, Array, Array]:
        return columns.src[places], columns.dst[places], places

    def locate(
        self, segments: Segments, staged: StagedBatch, rows: KeyRows, strategy: str
    ) -> Located:
        self.beside = None
        return locating.locate(segments, locating.folded(segments, staged, rows))

    def place_on(self, segments: Segments, located: Located) -> None:
        """Segments of 2^m ranks more, of which every 2^m-th was there before."""
        wider = len(segments.fence) // located.ranks
        located.leaves = located.leaves._replace(rank=located.leaves.rank * wider)
        located.ranks = len(segments.fence)

    def plan(self, strategy: str, segments: Segments, located: Located) -> Plan:
        return planned(strategy, segments, located.leaves)

    def rollback(self, located: Located) -> None:
        """Planning writes nothing."""

    def reserve(self, segments: Segments, located: Located, plan: Plan, shrinking: int) -> None:
        slots = edited(segments.slots, located.edit)
        plan.after = (slots, *carried_out(segments, plan, slots.keys))

    def commit(
        self, segments: Segments, located: Located, plan: Plan | None, stats: Stats,
        most_changes: int,
    ) -> Committed:  # fmt: skip
        done = Committed(located.tally, located.unchanged.tolist(), _changes(located, most_changes))
        if plan is None:
            return done
        self.written = True
        assert plan.after is not None, "REQUIRES: reserve"
        segments.publish(*plan.after)
        held = count_windows(plan, segments.starts, stats)
        return done._replace(redundant=plan.redundant, num_rounds=plan.num_rounds, held=held)

    def wait(self) -> None:
        """Every method returns when its work is done."""

    def trim(self, segments: Segments, staged: StagedBatch) -> None:
        self.beside = None


def _changes(located: Located, most: int) -> Changed:
    return (located.keys, located.inserted) if len(located.keys) <= most else None
