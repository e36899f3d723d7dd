"""Epochs: moments of the stream at which every shard has looked up.

Idea: a marker of the same number in every partition cuts the stream in two. Each shard closes the
epoch when it has applied all that lies before its markers, and nothing after. What the shards then
hold is one state of the graph, although no clock and no lock was shared. Source: Chandy and
Lamport, doi:10.1145/214451.214456, through the log; see `formats/markers.py`.

    1. ask every shard how it is; all must run           else try again, until the time is over
    2. the epoch's number: the clock, or 1 above the highest number that any shard has seen
    3. every shard expects it, if a snapshot is to be held
    4. write the markers                                 or not, where the topic's writer does: then
                                                         the first epoch from that number on is it
    5. every shard has closed it                         a shard that started again since 3 did not:
                                                         then from 1 on, with a new number
Invariants:
1. An epoch counts only if every shard closed it. One that started again since it was begun may
   never close it, so another is begun then.
2. Numbers rise for ever. The log and the shards know them; the coordinator keeps nothing, so
   nothing is lost with it.
3. No wait outlasts the caller's time-out, nor goes on when no later attempt can do better: when a
   shard refuses to hold a snapshot, no number is left, the cluster was closed, or its engine is
   gone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..arguments import seconds_of
from ..errors import ClusterError, EpochsUsedUp, SnapshotRefused, SourceError
from ..formats.markers import MAX_EPOCH
from ..timers import now_ms
from .engine import CALL_TIMEOUT_S, PAUSE_S, Handle, call_all, try_all

if TYPE_CHECKING:
    from .spec import EpochClosed
    from .supervisor import SupervisorStatus

GRACE_S = 0.2  # for an answer to come back, beyond what the supervisor was told to wait
SLICE_S = 1.0  # of a wait for shards, after which it is seen whether they are still the same


@dataclass(frozen=True)
class Epoch:
    """A moment of the whole graph.

    number: of its markers: ms since 1970 at which it was begun. time: of the newest update before
    it, or of a later moment at which nothing was new, ms since 1970. versions, edges: of each
    shard's graph; the edges that it holds are those of the vertices that it owns.

    >>> from ingest.cluster.coordinator import Epoch
    >>> Epoch(1_700_000_000_000, 1_700_000_000_003, (4, 7), (10, 12)).num_entries
    22
    """

    number: int
    time: int
    versions: tuple[int, ...]
    edges: tuple[int, ...]

    @property
    def num_entries(self) -> int:
        """Edges of all shards; of an undirected graph each counts at both its ends."""
        return sum(self.edges)


class Coordinator:
    """Takes epochs of the shards behind `handles`, one at a time. May be called from any thread.

    mark: writes the markers of an epoch of this number or a higher one, and returns the number;
    None: the topic's writer marks it. check: raises what ends a wait early."""

    def __init__(
        self,
        handles: Sequence[Handle],
        mark: Callable[[int], int] | None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.newest: Epoch | None = None
        self._handles = list(handles)
        self._mark = mark
        self._check = check
        self._turn = threading.Lock()
        self._highest = 0

    def epoch(self, timeout_s: float, *, hold: bool = False) -> Epoch:
        """An epoch that is begun after this call, and that every shard has closed. hold: every
        shard holds a snapshot of it. Raises ClusterError, which says which shard did not close it
        in time, and why; at once SnapshotRefused if one cannot hold it, or not for its memory, and
        EpochsUsedUp. timeout_s: see `arguments.py`."""
        timeout_s = seconds_of(timeout_s, "timeout_s", ClusterError)
        deadline = time.monotonic() + timeout_s
        if not self._turn.acquire(timeout=timeout_s):
            raise ClusterError(f"other epochs took all of {timeout_s:.3g} s")
        try:
            problem = ClusterError(f"shards started again and again for {timeout_s:.3g} s")
            while True:
                self._check()
                left_s = deadline - time.monotonic()
                try:
                    found = self._attempt(deadline, hold)
                except ClusterError as error:
                    if error.final:
                        raise
                    found = None
                    # The last attempt may fail of its short time alone.
                    problem = error if left_s > SLICE_S or problem.shard is None else problem
                if found is not None:
                    self.newest = found
                    return found
                if time.monotonic() + PAUSE_S >= deadline:
                    raise problem
                time.sleep(PAUSE_S)
        finally:
            self._turn.release()

    def _attempt(self, deadline: float, hold: bool) -> Epoch | None:
        """Steps 1 to 5, once; None if a shard started again meanwhile, or passed the epoch."""
        left_s = min(CALL_TIMEOUT_S, deadline - time.monotonic())
        statuses = call_all(self._handles, "status", timeout_s=left_s)
        number = self._next_number(statuses)
        incarnations = [status.shard.incarnation for status in statuses]
        or_later = self._mark is None  # whoever writes the topic marks the epochs, too
        if hold or or_later:
            incarnations = call_all(self._handles, "expect", number, or_later, timeout_s=left_s)
        if self._mark is not None:
            try:
                number = self._highest = self._mark(number)
            except SourceError as error:
                raise ClusterError(f"the markers cannot be written: {error}") from error
        return self._closed_by_all(number, or_later, incarnations, deadline, hold)

    def _next_number(self, statuses: Sequence[SupervisorStatus]) -> int:
        for status in statuses:
            shard = status.shard
            if shard is None or shard.state != "running":
                state = "being made" if shard is None else shard.state
                why = f": {status.problem}" if status.problem else ""
                raise ClusterError(f"it is {state}{why}", status.number)
            self._highest = max(self._highest, shard.highest_epoch)
        if self._highest >= MAX_EPOCH:
            raise EpochsUsedUp(
                f"a marker of this topic has used up the epochs' numbers: it is {self._highest}, "
                "and none is higher: write another topic with `lpma repartition`"
            )
        self._highest = max(now_ms(), self._highest + 1)
        return self._highest

    def _closed_by_all(
        self, number: int, or_later: bool, incarnations: Sequence[str], deadline: float, hold: bool
    ) -> Epoch | None:
        """Step 5."""
        closed: dict[int, EpochClosed] = {}
        left = list(self._handles)
        while left:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise ClusterError(f"has not closed epoch {number} in time", left[0].number)
            slice_s = min(SLICE_S, left_s)
            grace_s = min(CALL_TIMEOUT_S, left_s) + GRACE_S
            found = try_all(left, "closed", number, slice_s, or_later, timeout_s=grace_s)
            for handle, one in zip(list(left), found, strict=True):
                if isinstance(one, Exception):
                    raise one
                epoch, has_passed = one
                if has_passed:
                    return None
                if hold and epoch is not None and epoch.refused is not None:
                    self._forget({number, epoch.epoch})
                    raise SnapshotRefused(f"no snapshot: {epoch.refused}", handle.number)
                if epoch is not None:
                    closed[handle.number] = epoch
                    left.remove(handle)
            if not self._same(left, incarnations):
                return None
        parts = [closed[handle.number] for handle in self._handles]
        if len({part.epoch for part in parts}) > 1:
            return None
        return Epoch(
            parts[0].epoch,
            max(part.time for part in parts),
            tuple(part.version for part in parts),
            tuple(part.num_edges for part in parts),
        )

    def _forget(self, epochs: set[int]) -> None:
        """Let no shard hold what nobody will use; nobody waits for that."""
        for handle in self._handles:
            for epoch in epochs:
                handle.ask("forget", epoch)

    def _same(self, handles: Sequence[Handle], incarnations: Sequence[str]) -> bool:
        """Whether these shards are still what expected the epoch (invariant 1)."""
        for status in call_all(handles, "status"):
            if status.shard is None or status.shard.incarnation != incarnations[status.number]:
                return False
        return True
