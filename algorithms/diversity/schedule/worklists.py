"""Work lists: owners packed on workers by cost, taken in batches, stolen, and dismissed.

Source: Huang, Huang, Xu, Choi and Peng, "GPU-accelerated structural diversity search in graphs",
section 6: greedy packing (Algorithm 8) and dynamic global work stealing (Algorithm 9).

Tricks: every list keeps the order of falling bounds. A worker takes batches from the front of its
list and a thief from the back, so that stolen owners are the least promising, and a list is
dismissed from the point on where no owner can be among the t best. Batches shrink as the work runs
out, so that workers end at about the same time: by cost and by number, since costs may be far off.
In a search they begin small and grow with the number of owners already scored, so that little is
scored in vain. They are kept few, since at the end of each a device waits for its longest rows.

Departures from the paper's text: Algorithm 9 pops the victim from the heap and does not put it
back, though it has work left. Its status table counts what is done; a list here holds what no
worker has taken, since only that can be stolen.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np

from lpma.cpu.jit import compiled
from lpma.cpu.threads import run_all
from lpma.errors import BatchError

from ...arrays import Array

STEALING = ("global", "exhausted", "none")
SPLIT = 2  # with several workers, a worker takes at most 1/SPLIT of what its list holds at once,
LEAST = 16  # but no less than 1/LEAST of its share of all costs
FEWEST = 512  # owners that may always be taken at once: a call costs a device a millisecond
GROWTH = 3  # in a search a batch has at most this many owners for each one scored before


def pack(costs: Array, workers: int) -> Array:
    """int32[q]: the worker of each owner: in turn, the one with the least cost so far (Algorithm
    8)."""
    packed: Array = run_all(_pack, [(np.asarray(costs, np.float64), workers)])[0]
    return packed


@compiled
def _pack(costs: Array, workers: int) -> Array:
    worker_of = np.empty(len(costs), np.int32)
    total = np.zeros(workers)
    for i in range(len(costs)):
        worker = np.argmin(total)
        worker_of[i] = worker
        total[worker] += costs[i]
    return worker_of


@dataclass
class WorkList:
    """Owners that a worker is to score and has not taken, by their places among all, rising."""

    places: Array  # int64[q], of which places[first:last] are left
    upto: Array  # float64[q+1]: the sum of the costs before each
    first: int
    last: int

    @property
    def cost(self) -> float:
        return float(self.upto[self.last] - self.upto[self.first])

    @property
    def number(self) -> int:
        return self.last - self.first

    def front(self, cost: float, number: int) -> Array:
        """Take owners from the front: as many as this cost and number allow, but at least one."""
        start = self.first
        end = int(np.searchsorted(self.upto, self.upto[start] + cost, side="right")) - 1
        self.first = max(start + 1, min(end, start + number, self.last))
        return self.places[start : self.first]

    def split(self, end: int) -> WorkList:
        """Keep the owners before `end`; return those from there on."""
        rest = WorkList(self.places, self.upto, end, self.last)
        self.last = end
        return rest


class Table:
    """The status table of section 6.2: the list of each worker, and what each takes next.

    Invariants, whenever the lock is free: 1. Every place is in one list, or was taken once, or was
    dismissed. 2. Lists rise. 3. No list holds a place that was dismissed."""

    def __init__(self, costs: Array, workers: int, stealing: str, first: int | None = None):
        """costs: float64[q], of the owners. first: how many owners must be scored before a search
        can dismiss any; None: not a search."""
        if stealing not in STEALING:
            raise BatchError(f"stealing {stealing!r}: choose one of {', '.join(STEALING)}")
        self.lock = threading.Lock()
        self.stealing = stealing
        worker_of = pack(costs, workers)
        self.lists = [_list_of(np.flatnonzero(worker_of == w), costs) for w in range(workers)]
        self.least = float(costs.sum()) / (LEAST * workers)
        self.first = None if first is None else max(-(-first // workers), FEWEST)
        self.taken = [0] * workers

    def take(self, worker: int) -> Array:
        """The places that the worker is to score next; none when it is to stop."""
        with self.lock:
            mine = self.lists[worker]
            if mine.number == 0:
                mine = self.lists[worker] = self._stolen(mine)
            if mine.number == 0:
                return mine.places[:0]
            cost, number = self._limits(worker, mine)
            batch = mine.front(cost, number)
            self.taken[worker] += len(batch)
            return batch

    def dismiss_from(self, place: int) -> None:
        """Drop all owners from this place on. REQUIRES: the lock is held."""
        for work in self.lists:
            end = int(np.searchsorted(work.places, place))
            work.last = max(work.first, min(work.last, end))

    def close(self) -> None:
        """Let every worker stop."""
        with self.lock:
            self.dismiss_from(0)

    def _limits(self, worker: int, mine: WorkList) -> tuple[float, int]:
        """The most that the worker's next batch should cost, and the most owners in it."""
        cost, number = float("inf"), mine.number
        if len(self.lists) > 1:
            cost = max(mine.cost / SPLIT, self.least)
            number = max(number // SPLIT, FEWEST)
        if self.first is not None:
            number = min(number, max(self.first, GROWTH * self.taken[worker]))
        return cost, number

    def _stolen(self, nothing: WorkList) -> WorkList:
        """Owners from the back of the costliest list: half of its cost, or a little more."""
        victim = max(self.lists, key=lambda work: (work.cost, work.number))
        if self.stealing == "none" or victim.number == 0:
            return nothing
        if self.stealing == "exhausted":
            return victim.split(victim.first)
        middle = (victim.upto[victim.first] + victim.upto[victim.last]) / 2
        cut = int(np.searchsorted(victim.upto, middle, side="right")) - 1
        return victim.split(min(max(cut, victim.first), victim.last - 1))


def _list_of(places: Array, costs: Array) -> WorkList:
    upto = np.zeros(len(places) + 1)
    np.cumsum(costs[places], out=upto[1:])
    return WorkList(places, upto, 0, len(places))
