"""Scoring owners on several workers: one thread a worker, packed by cost, balanced by stealing.

Source: Huang, Huang, Xu, Choi and Peng, "GPU-accelerated structural diversity search in graphs",
section 6: greedy packing (Algorithm 8) and dynamic global work stealing (Algorithm 9). A worker is
a scorer and the device it lies on; on the CPU, a thread. One worker is the same code with nobody to
steal from.

How to use it: make a scorer for each worker, over its own device's copy of the view (`spread`), and
estimate what each owner costs (`cost.estimate`; any positive numbers will do). Then

    scores(scorers, owners, costs)              the scores of all owners, in their order
    top(scorers, owners, bounds, costs, t)      the t best as (owner, score), ties by smaller id

Scorers are `model.Scorer`s. Each is asked for `scores` by one thread, worker 0's by the caller's,
with NumPy's arrays; it makes its device the current one by itself.

Tricks: Owners come in the order of falling bounds, and every list keeps that order: a worker takes
batches from the front of its list, a thief from the back, so that what is stolen promises least and
a list is dismissed as a whole from where no owner can be among the t best. Batches shrink as the
work runs out, by cost and by number, for costs may be far off: so the end is even. In a search they
begin small, and grow with what was scored before, so that little is scored in vain. Batches are few
all the same: at the end of each a device waits for its longest rows.

Three points in which the paper's text would err. Algorithm 1 stops when the next bound *equals* the
t-th best score; with ties broken by id that may lose an owner of smaller id, so owners and bounds
are compared as pairs. Algorithm 9 pops the victim from the heap and does not put it back, though it
has work left. Its status table counts what is done; here a list is what nobody has taken, since
that alone can be stolen.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arrays import device_of, to_host
from lpma.cpu.jit import compiled
from lpma.cpu.threads import run_all

from ..views.simple import View
from .model import Scorer

Array = npt.NDArray[Any]

STEALING = ("global", "exhausted", "none")
SPLIT = 2  # of several workers each takes 1/SPLIT of what its list holds
LEAST = 16  # and no less than 1/LEAST of its share of all costs
FEWEST = 512  # owners that may always be taken at once: a call costs a device a millisecond
GROWTH = 3  # in a search a batch has at most so many owners for one that was scored before
HALF = 32  # bits of a place in a key
LOW = (1 << HALF) - 1


def scores(
    scorers: Sequence[Scorer], owners: Array, costs: Array, stealing: str = "global"
) -> Array:
    """int32[q]: the score of each of `owners`, uint32[q], which cost about `costs`, float64[q],
    of any unit. stealing: "global" (Algorithm 9: about half of the largest list), "exhausted" (all
    of it) or "none". Raises ValueError on another; what a scorer raises is raised here, once every
    worker has stopped."""
    found = np.zeros(len(owners), np.int32)

    def run(worker: int, places: Array) -> None:
        found[places] = to_host(scorers[worker].scores(owners[places]))

    _work_off(Table(costs, len(scorers), stealing), run)
    return found


def top(
    scorers: Sequence[Scorer],
    owners: Array,
    bounds: Array,
    costs: Array,
    t: int,
    stealing: str = "global",
    at_once: int = 1,
) -> list[tuple[int, int]]:
    """The t owners of the highest scores, or all where they are fewer, as (owner, score) from the
    best down; of equal ones the smaller ids. bounds: int32[q], no less than the scores; where one
    is 0, nothing is computed. at_once: how many a worker takes in its first call at least, when
    nothing can be dismissed yet. REQUIRES: owners rise. Else as `scores`."""
    t = min(t, len(owners))
    keys = np.sort(_keys(bounds, np.arange(len(owners))))
    unknown = int(np.count_nonzero(bounds))  # the first ones; the scores of the others are 0
    place_of = keys[:unknown] & LOW
    search = _Search(keys[:unknown], keys[unknown:][:t], t)
    first = max(t, at_once * len(scorers))
    table = Table(costs[place_of], len(scorers), stealing, first)
    with table.lock:
        table.dismiss_from(search.horizon())

    def run(worker: int, candidates: Array) -> None:
        places = place_of[candidates]
        values = to_host(scorers[worker].scores(owners[places]))
        with table.lock:
            search.add(_keys(values, places))
            table.dismiss_from(search.horizon())

    _work_off(table, run)
    return [(int(owners[key & LOW]), -(key >> HALF)) for key in search.best.tolist()]


def spread(view: View, devices: Sequence[int]) -> list[View]:
    """The view on each of these CUDA devices: itself where it lies, a copy made from device to
    device elsewhere. REQUIRES: CuPy's arrays."""
    import cupy

    with device_of(view.indptr):
        cupy.cuda.get_current_stream().synchronize()  # other threads' streams do not wait for it
    views = []
    for number in devices:
        with cupy.cuda.Device(number) as device:
            views.append(View(cupy.asarray(view.indptr), cupy.asarray(view.indices)))
            device.synchronize()
    return views


def pack(costs: Array, workers: int) -> Array:
    """int32[q]: the worker of each owner, in their order the one with the least to do so far
    (Algorithm 8)."""
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
    """Owners that a worker is to score and has not begun, by their places among all, rising."""

    places: Array  # int64
    upto: Array  # float64, one more: the costs of all before each
    first: int  # of `places`, those from first to last - 1 are left
    last: int

    @property
    def cost(self) -> float:
        return float(self.upto[self.last] - self.upto[self.first])

    @property
    def number(self) -> int:
        return self.last - self.first

    def front(self, cost: float, number: int) -> Array:
        """Take what is in front, no more than this cost and number allow, but one at least."""
        start = self.first
        end = int(np.searchsorted(self.upto, self.upto[start] + cost, side="right")) - 1
        self.first = max(start + 1, min(end, start + number, self.last))
        return self.places[start : self.first]

    def split(self, end: int) -> WorkList:
        """Keep what is before `end`; what was from there on."""
        rest = WorkList(self.places, self.upto, end, self.last)
        self.last = end
        return rest


class Table:
    """The status table of section 6.2: each worker's list, and who takes what next.

    Invariants, whenever the lock is free: 1. Every place is in one list, or was taken once, or was
    dismissed. 2. Lists rise. 3. No list holds a place from which on all were dismissed."""

    def __init__(self, costs: Array, workers: int, stealing: str, first: int | None = None):
        """first: of a search, how many owners must be scored before any can be dismissed."""
        if stealing not in STEALING:
            raise ValueError(f"stealing {stealing!r}: choose one of {', '.join(STEALING)}")
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
        """Forget all owners from this place on. REQUIRES: the lock."""
        for work in self.lists:
            end = int(np.searchsorted(work.places, place))
            work.last = max(work.first, min(work.last, end))

    def close(self) -> None:
        """Let every worker stop."""
        with self.lock:
            self.dismiss_from(0)

    def _limits(self, worker: int, mine: WorkList) -> tuple[float, int]:
        """The cost and the number of owners that the worker's next batch should not exceed."""
        cost, number = float("inf"), mine.number
        if len(self.lists) > 1:
            cost = max(mine.cost / SPLIT, self.least)
            number = max(number // SPLIT, FEWEST)
        if self.first is not None:
            number = min(number, max(self.first, GROWTH * self.taken[worker]))
        return cost, number

    def _stolen(self, nothing: WorkList) -> WorkList:
        """From the back of the list that costs most, as much as stays there or a little more."""
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


class _Search:
    """The t best so far, as keys; see `_keys`."""

    def __init__(self, candidates: Array, known: Array, t: int):
        self.candidates = candidates  # int64, rising: bounds and places
        self.best = known  # int64, rising: scores and places, t at most
        self.t = t

    def add(self, keys: Array) -> None:
        keys = np.concatenate((self.best, keys))
        if len(keys) > self.t > 0:
            keys = np.partition(keys, self.t - 1)
        self.best = np.sort(keys[: self.t])

    def horizon(self) -> int:
        """The first candidate from which on none can be among the t best."""
        if len(self.best) < self.t:
            return len(self.candidates)
        return int(np.searchsorted(self.candidates, self.best[-1])) if self.t else 0


def _keys(values: Array, places: Array) -> Array:
    """int64: smaller for what is better, the higher value or the smaller place. A score is at most
    its owner's bound, so its key is no smaller than that of the bound."""
    return (-values.astype(np.int64) << HALF) + places


def _work_off(table: Table, run: Callable[[int, Array], None]) -> None:
    """Call run(worker, places) until every list is empty, each worker in its thread."""

    def drain(worker: int) -> None:
        try:
            while len(places := table.take(worker)):
                run(worker, places)
        except BaseException:
            table.close()
            raise

    workers = len(table.lists)
    with ThreadPoolExecutor(max(1, workers - 1), thread_name_prefix="lpma-ego") as pool:
        others = [pool.submit(drain, worker) for worker in range(1, workers)]
        drain(0)
        for other in others:
            other.result()
