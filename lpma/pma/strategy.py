"""The hybrid strategy, LPMA-H (paper, Section V and its Algorithm 3).

Idea: bottom-up wastes little while the store is sparse, top-down little while it is dense. A
*cycle* runs from one expansion or shrink to the next. Up to density π bottom-up runs; above it
the two take turns, and once the median time per operation of top-down's last three batches is
below that of bottom-up's last three, π becomes the density of that moment and top-down runs to
the cycle's end. π starts every cycle at 0.6. (Section V's "start to run the top-down" should
read bottom-up: its own reasons say so.)

The clock is the caller's, which keeps tests deterministic.
"""

from __future__ import annotations

from collections import deque
from statistics import median

BOTTOM_UP, TOP_DOWN = "bottom-up", "top-down"
STRATEGIES = ("hybrid", BOTTOM_UP, TOP_DOWN)
FIRST_PI = 0.6
BATCHES_COMPARED = 3


class Hybrid:
    """Which strategy the next batch takes.

    Invariants: (1) `settled` implies that every choice is `steady` until the next cycle.
    (2) While probing, the two strategies alternate."""

    def __init__(self, always: str | None = None) -> None:
        """always: the strategy of every batch, where the store is not made with the hybrid."""
        self._always = always
        self.start_cycle()

    def start_cycle(self) -> None:
        """Call this after each expansion and each shrink."""
        self.pi = FIRST_PI
        self.settled = self._always is not None
        self.steady = self._always or BOTTOM_UP  # the strategy where nothing is compared
        self._last = TOP_DOWN  # so that probing begins with bottom-up
        self._times: dict[str, deque[float]] = {
            BOTTOM_UP: deque(maxlen=BATCHES_COMPARED),
            TOP_DOWN: deque(maxlen=BATCHES_COMPARED),
        }

    def choose(self, density: float) -> str:
        """The strategy for a batch that finds the store at `density`."""
        if self.settled or density <= self.pi:
            return self.steady
        return BOTTOM_UP if self._last == TOP_DOWN else TOP_DOWN

    def compares(self, density: float) -> bool:
        """Whether the time of a batch at this density decides what later ones take."""
        return not self.settled and density > self.pi

    def record(self, strategy: str, density: float, seconds_per_operation: float) -> None:
        """What a batch cost. `density` is what `choose` was given for it."""
        if self.settled or density <= self.pi:
            return
        self._last = strategy
        self._times[strategy].append(seconds_per_operation)
        below, above = self._times[BOTTOM_UP], self._times[TOP_DOWN]
        if len(below) == len(above) == BATCHES_COMPARED and median(above) < median(below):
            self.settled, self.steady = True, TOP_DOWN
            self.pi = density
