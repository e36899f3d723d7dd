"""Vector clocks: which of two uses of memory comes first, if anything says so.

Source: Lamport's happened-before; clocks by Fidge and Mattern. An *actor* is the host or a stream.
A stream's work comes after what the host did before it was asked for. The host comes after a
stream's work only once it has waited for it, and one stream after another's by an event.

Beside the order it matters whose data lies there: a batch must not find those of another."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

Clock = dict[int, int]  # by actor: how much of what that one does is known to be over

HOST = 0


class GraphView(NamedTuple):
    """Something that an actor does: the `number`th thing, after all that `clock` says."""

    actor: int
    number: int
    clock: Clock

    def is_before(self, other: GraphView) -> bool:
        return other.clock.get(self.actor, 0) >= self.number


class Use(NamedTuple):
    """Bytes lo … hi - 1, read or written, for a batch."""

    lo: int
    hi: int
    writes: bool
    at: GraphView
    what: str
    batch: int


class Clocks:
    """The clocks of all actors, and the uses of memory that still matter."""

    def __init__(self) -> None:
        self._of: dict[int, Clock] = defaultdict(dict)
        self._uses: list[Use] = []
        self.conflicts: set[tuple[str, str]] = set()  # what was first, what was not after it
        self.batch = 0  # which one the host is at work on

    def now(self, actor: int) -> Clock:
        """What is over once all that the actor was asked for until now is."""
        self.learn(actor, self._of[HOST])
        return dict(self._of[actor])

    def learn(self, actor: int, clock: Clock) -> None:
        """Whatever the actor does from now on comes after all that `clock` says."""
        own = self._of[actor]
        for other, number in clock.items():
            own[other] = max(own.get(other, 0), number)

    def moment(self, actor: int) -> GraphView:
        """Something that the actor does now."""
        own = self._of[actor]
        self.learn(actor, self._of[HOST])
        own[actor] = own.get(actor, 0) + 1
        return GraphView(actor, own[actor], dict(own))

    def use(self, lo: int, size: int, writes: bool, at: GraphView, what: str) -> None:
        """Note a use of memory, and which earlier ones it conflicts with."""
        hi, kept = lo + size, []
        for use in self._uses:
            overlaps = use.lo < hi and lo < use.hi
            if overlaps and (writes or use.writes) and not use.at.is_before(at):
                self.conflicts.add((use.what, what))
            if not (overlaps and writes and lo <= use.lo and use.hi <= hi):
                kept.append(use)
        self._uses = [*kept, Use(lo, hi, writes, at, what, self.batch)]

    def written_for(self, lo: int, size: int) -> int | None:
        """The batch for which memory was written last; None if it never was."""
        for use in reversed(self._uses):
            if use.writes and use.lo < lo + size and lo < use.hi:
                return use.batch
        return None
