"""What a backend may offer beside protocol.py: batches begun before the last has ended."""

from __future__ import annotations

from typing import Any, Protocol

from ..batch.columns import Columns
from ..pma.counters import Stats
from .values import Array, Committed, Located, StagedBatch

ONE_LAUNCH_ROWS = 1 << 17  # of a batch that is one launch; beyond it several are no slower


class Launched(Protocol):
    """A batch that has begun."""

    staged: StagedBatch


class Overlapping(Protocol):
    """What a backend that `overlaps` offers: small batches that follow each other, each begun
    before it is known what the one before it came to. `launch` begins one, `outcome` ends it;
    between the two at most one more is launched, and nothing else is asked of the backend."""

    def launch(
        self, segments: Any, columns: Columns, time: Array, rows: int, direction: int,
        strategy: str, most_cost: float, is_behind: bool = False, again: Launched | None = None,
    ) -> Launched | None:  # fmt: skip
        """Begin what `apply_at_once` does with `rows` key operations at most; of a batch that the
        device has skipped, `again`. None: there is no room for it now, `is_behind` another one."""

    def await_good(self, launched: Launched) -> None:
        """[B3] ENSURES: raises BatchError, as `locate` does, if the rows are bad; then the batch
        has no outcome, and nothing is changed. Else `written` is False, and it is for the host to
        know that a batch is under way. REQUIRES: the batch before it was applied."""

    def outcome(self, launched: Launched) -> Committed | Located:
        """[B4] ENSURES: what `apply_at_once` would have returned, but that changes are still to be
        read. Where it is not Committed, a batch launched since has done nothing and has no
        outcome."""

    def count(self, stats: Stats) -> None:
        """Add to `stats`, by layer, the windows of all batches so far, which `apply_at_once` leaves
        to this."""
