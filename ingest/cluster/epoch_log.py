"""How epochs ended at one shard, for its pipelines to tell and for other threads to ask.

A shard with two pipelines has closed an epoch when both have. Of an expected epoch each pipeline
takes a snapshot; they are held until they are forgotten, and the `KEPT` newest epochs at most, so
that whoever forgets to forget costs a bounded amount of memory.

Invariants:
1. An epoch that is said to be closed was closed by every pipeline; one that is said not to be
   closed, although its wait ended early, never will be.
2. At most KEPT epochs are held, and as many are on their way, closed by one pipeline of two.
3. An epoch that was expected and is closed is held, or says why it is not (`refused`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from lpma import Snapshot
from lpma.arrays import finish
from lpma.errors import OutOfMemory, SnapshotTooLarge

from ..events import log_event
from ..pipeline.graph_requests import GraphView
from .spec import EpochClosed

T = TypeVar("T")

KEPT = 2  # epochs held at once
REMEMBERED = 256  # epochs that closed, without what was held of them
MOST_EXPECTED = 64


@dataclass(frozen=True)
class Taken:
    """What one pipeline took of its graph at the end of an epoch."""

    version: int
    time: int
    num_edges: int
    snapshot: Snapshot | None
    refused: str | None = None  # why there is none, although one was expected


@dataclass
class _Held:
    """What the pipelines took of an epoch, by direction, and what was made of it."""

    snapshots: dict[str, Snapshot]
    made: Any = None


class EpochLog:
    """The epochs of a shard whose pipelines are named `directions`, the one of out-edges first.
    Methods may be called from any thread, `close` and `ended` by the pipelines alone."""

    def __init__(self, directions: tuple[str, ...]) -> None:
        self.newest = 0  # closed by all; 0 before the first
        self.count = 0  # of those
        self._directions = directions
        self._floors = dict.fromkeys(directions, 0)
        self._changed = threading.Condition()
        self._expected: dict[int, bool] = {}  # whether a later one will do
        self._taken: dict[int, dict[str, Taken]] = {}  # of epochs that not all have closed yet
        self._closed: dict[int, EpochClosed] = {}  # in the order of closing
        self._held: dict[int, _Held] = {}  # of these, in the same order
        self._over = False

    # Whoever asks ----------------------------------------------------------------------------

    def expect(self, epoch: int, or_later: bool = False) -> None:
        """Hold a snapshot of this epoch when it closes; or_later: or of the first above it that
        does."""
        with self._changed:
            self._expected[epoch] = or_later
            while len(self._expected) > MOST_EXPECTED:
                del self._expected[min(self._expected)]

    def forget(self, epoch: int) -> None:
        """Expect it no more, and hold nothing of it."""
        with self._changed:
            self._expected.pop(epoch, None)
            self._release(epoch)

    def wait(self, epoch: int, timeout_s: float, or_later: bool = False) -> EpochClosed | None:
        """How the epoch ended; or_later: the first held or refused, of this one and those above.
        None if it has not within `timeout_s`, or will never be closed."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while (found := self._ended(epoch, or_later)) is None and not self._over:
                left_s = deadline - time.monotonic()
                if left_s <= 0 or (not or_later and self._is_passed(epoch)):
                    break
                self._changed.wait(left_s)
            return found

    def _ended(self, epoch: int, or_later: bool) -> EpochClosed | None:
        if not or_later:
            return self._closed.get(epoch)
        later = (closed for number, closed in self._closed.items() if number >= epoch)
        return next((closed for closed in later if closed.held or closed.refused), None)

    def held(self) -> tuple[int, ...]:
        """The epochs that are held, in the order of closing."""
        with self._changed:
            return tuple(self._held)

    def made(self, epoch: int, make: Callable[[dict[str, Snapshot]], T]) -> T:
        """What `make` made of the snapshots of an epoch, by direction, when it was first called.
        Raises LookupError if the epoch is not held."""
        with self._changed:
            held = self._held.get(epoch)
            if held is None:
                others = ", ".join(map(str, self._held)) or "none"
                raise LookupError(
                    f"epoch {epoch} is not held here (held: {others}): expect it before its "
                    f"markers are written, and use it before {KEPT} later ones are held"
                )
            if held.made is None:
                held.made = make(held.snapshots)
            made: T = held.made
            return made

    def finish(self) -> None:
        """Nothing closes any more: let nobody wait."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    # The pipelines ---------------------------------------------------------------------------

    def close(self, epoch: int, moment: GraphView) -> Taken:
        """What a pipeline takes of its graph at the end of an epoch: a snapshot too if it is
        expected. It counts once `ended` is told."""
        graph = moment.graph
        with self._changed:
            expected = epoch in self._expected or any(
                or_later and epoch > first for first, or_later in self._expected.items()
            )
            if expected:  # before the new one is there: so there is memory for no more than KEPT
                self._release_all_but(KEPT - 1)
        taken = Taken(graph.version, graph.time, graph.num_edges, None)
        if not expected:
            return taken
        try:
            return replace(taken, snapshot=self._snapshot(graph))
        except (OutOfMemory, SnapshotTooLarge) as error:
            refused = _refused(error)
            log_event("epoch not held", logging.WARNING, epoch=epoch, reason=refused)
            return replace(taken, refused=refused)

    def _snapshot(self, graph: Any) -> Snapshot:
        try:
            return _finished(graph.snapshot())
        except OutOfMemory:
            with self._changed:
                self._release_all_but(0)
            return _finished(graph.snapshot())

    def ended(self, direction: str, floor: int, closed: Future[Taken] | None) -> None:
        """No epoch up to `floor` will be closed any more by this pipeline; that one has been if
        `closed` is given and holds what `close` returned."""
        if closed is not None and (error := closed.exception()) is not None:
            log_event("epoch not closed", logging.WARNING, epoch=floor, direction=direction,
                      reason=str(error))  # fmt: skip
        with self._changed:
            if closed is not None and closed.exception() is None:
                self._note(direction, floor, closed.result())
            self._floors[direction] = max(self._floors[direction], floor)
            for epoch in [epoch for epoch in self._taken if self._is_passed(epoch)]:
                del self._taken[epoch]
            settled = min(self._floors.values())
            self._expected = {
                e: later for e, later in self._expected.items() if later or e > settled
            }
            self._changed.notify_all()

    def _note(self, direction: str, epoch: int, taken: Taken) -> None:
        of_all = self._taken.setdefault(epoch, {})
        of_all[direction] = taken
        if len(of_all) < len(self._directions):
            while len(self._taken) > REMEMBERED:  # the other pipeline is far behind
                del self._taken[next(iter(self._taken))]
            return
        del self._taken[epoch]
        first = of_all[self._directions[0]]
        snapshots = {d: t.snapshot for d, t in of_all.items() if t.snapshot is not None}
        held = len(snapshots) == len(self._directions)
        refused = next((t.refused for t in of_all.values() if t.refused is not None), None)
        self._closed[epoch] = EpochClosed(
            epoch, first.version, first.time, first.num_edges, held, refused
        )
        if held:
            self._held[epoch] = _Held(snapshots)
        if held or refused is not None:
            self._expected = {e: later for e, later in self._expected.items() if e > epoch}
        while len(self._closed) > REMEMBERED:
            del self._closed[next(iter(self._closed))]
        self.newest, self.count = epoch, self.count + 1

    # REQUIRES, of what follows: the lock is held ---------------------------------------------

    def _is_passed(self, epoch: int) -> bool:
        """Whether a pipeline that has not closed this epoch will never."""
        taken = self._taken.get(epoch, {})
        return any(floor >= epoch for d, floor in self._floors.items() if d not in taken)

    def _release_all_but(self, count: int) -> None:
        """Hold no more than the `count` newest epochs, and as many that are not whole."""
        for epoch in list(self._held)[: max(0, len(self._held) - count)]:
            self._release(epoch)
        for taken in list(self._taken.values())[: max(0, len(self._taken) - KEPT)]:
            taken.update((d, replace(t, snapshot=None)) for d, t in list(taken.items()))

    def _release(self, epoch: int) -> None:
        if self._held.pop(epoch, None) is not None and epoch in self._closed:
            self._closed[epoch] = replace(self._closed[epoch], held=False)


def _finished(snapshot: Snapshot) -> Snapshot:
    """One that others may read, on streams of their own."""
    finish(snapshot._indptr)
    return snapshot


def _refused(error: MemoryError) -> str:
    if isinstance(error, SnapshotTooLarge):
        why, _, _ = str(error).partition(": ")  # what follows is for callers of Graph.snapshot
        return (
            f"{why}: write smaller ids, or a topic whose vertices go by names (names=True, "
            "--names), which get ids without gaps"
        )
    return f"{error}: take more shards, or devices with more memory"
