"""What a backend may offer beside protocol.py: batches begun before the last has ended."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ..batch.columns import Columns
from ..pma.counters import Stats
from .values import Array, Committed, Located

ONE_LAUNCH_ROWS = 1 << 17  # of a batch that is one launch; beyond it several are no slower


class Overlapping(Protocol):
    """What a backend that `overlaps` offers: small batches that follow each other, each begun
    before it is known what the one before it came to. `launch` begins one, `outcome` ends it;
    between the two at most one more is launched, and nothing else is asked of the backend."""

    written: bool

    def stage(self, columns: Columns, time: Array, weight_dtype: np.dtype[Any] | None) -> Any:
        """As of lpma.backend.protocol.Backend."""

    def may_overlap(self, segments: Any, columns: Columns, rows: int, is_first: bool) -> bool:
        """Whether a batch of `rows` key operations can be launched; is_first: none is under way."""

    def launch(
        self, segments: Any, staged: Any, rows: int, direction: int, strategy: str,
        most_cost: float,
    ) -> Any:  # fmt: skip
        """Begin what `apply_at_once` does. REQUIRES: `may_overlap`."""

    def await_good(self, launched: Any) -> None:
        """[B3] ENSURES: raises BatchError, as `locate` does, if the rows are bad; then the batch
        has no outcome, and nothing is changed. REQUIRES: the batch before it was applied."""

    def outcome(self, launched: Any) -> Committed | Located:
        """[B4] ENSURES: what `apply_at_once` would have returned, but that changes are still to be
        read. Where it is not Committed, a batch launched since has done nothing and has no
        outcome."""

    def count(self, stats: Stats) -> None:
        """Add to `stats`, by layer, the windows of all batches so far, which `apply_at_once` leaves
        to this."""
