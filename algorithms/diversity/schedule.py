"""Scoring owners on several workers: one thread for each, which takes batches from its work list.

Source: Huang, Huang, Xu, Choi and Peng, "GPU-accelerated structural diversity search in graphs",
section 6: greedy packing (Algorithm 8) and dynamic global work stealing (Algorithm 9). A worker is
a scorer and its device, or on the CPU a thread.

How to use it: make a `model.Scorer` for each worker, over its own device's copy of the view
(`spread`), and estimate what each owner costs (`Scorer.costs`; any positive numbers will do). Then

    scores(scorers, owners, costs)              the scores of all owners, in their order
    top(scorers, owners, bounds, costs, t)      the t best as (owner, score), ties by smaller id

Each scorer is called by one thread, that of worker 0 by the caller's, with NumPy's arrays, and
makes its device the current one. The threads are not those of `lpma.cpu.threads`, since each device
needs one, however few cores there are.

Tricks: every list keeps the order of falling bounds. A worker takes batches from the front of its
list and a thief from the back, so that stolen owners are the least promising, and a list is
dismissed from the point on where no owner can be among the t best. Batches shrink as the work runs
out, so that workers end at about the same time: by cost and by number, since costs may be far off.
In a search they begin small and grow with the number of owners already scored, so that little is
scored in vain. They are kept few, since at the end of each a device waits for its longest rows.

Departures from the paper's text: Algorithm 1 stops when the next bound *equals* the t-th best
score. With ties broken by id that may lose an owner of smaller id, so owners and bounds are
compared as pairs. Algorithm 9 pops the victim from the heap and does not put it back, though it has
work left. Its status table counts what is done; a list here holds what no worker has taken, since
only that can be stolen.

Oracle: sorting all scores (tests/algorithms/test_schedule.py).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from lpma.arrays import device_of, to_host
from lpma.cpu.jit import compiled
from lpma.cpu.threads import run_all
from lpma.errors import BatchError

from ..arrays import Array
from ..views.simple import View
from .model import Scorer

HALF = 32  # bits of a place in a key
LOW = (1 << HALF) - 1
STEALING = ("global", "exhausted", "none")
SPLIT = 2  # with several workers, a worker takes at most 1/SPLIT of what its list holds at once,
LEAST = 16  # but no less than 1/LEAST of its share of all costs
FEWEST = 512  # owners that may always be taken at once: a call costs a device a millisecond
GROWTH = 3  # in a search a batch has at most this many owners for each one scored before


def scores(
    scorers: Sequence[Scorer], owners: Array, costs: Array, stealing: str = "global"
) -> Array:
    """int32[q]: the score of each of `owners`, uint32[q]. costs: of each, float64[q], in any unit.
    stealing: "global" (Algorithm 9: about half of the largest list), "exhausted" (all of it) or
    "none"; raises ValueError on any other. An exception in a scorer is raised here once every
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
    """The t owners with the highest scores, or all if there are fewer, as (owner, score) from the
    best down, the smaller id first among equals. bounds: int32[q], of the scores; an owner with
    bound 0 is not scored. at_once: the least number of owners of a worker's first call, when none
    can be dismissed yet. REQUIRES: owners rise. Otherwise as `scores`.

    Each batch is refined first (`Scorer.refined`); owners for which that gives only a bound are
    scored from the best bound down, until the rest are not good enough."""
    t = min(t, len(owners))
    unknown = np.flatnonzero(bounds)
    keys = np.sort(_keys(bounds[unknown], unknown))
    place_of = keys & LOW
    search = _Search(keys, np.flatnonzero(bounds == 0)[:t], t)  # the scores of these are 0
    first = max(t, at_once * len(scorers))
    table = Table(costs[place_of], len(scorers), stealing, first)
    with table.lock:
        table.dismiss_from(search.horizon())

    def found(keys: Array) -> None:
        with table.lock:
            search.add(keys)
            table.dismiss_from(search.horizon())

    def run(worker: int, candidates: Array) -> None:
        scorer, places = scorers[worker], place_of[candidates]
        values, exact = map(to_host, scorer.refined(owners[places]))
        keys = _keys(values, places)
        found(keys[exact])
        waiting, number = np.sort(keys[~exact]), at_once
        while len(waiting := search.hopeful(waiting)):
            places = waiting[:number] & LOW
            found(_keys(to_host(scorer.scores(owners[places])), places))
            waiting, number = waiting[number:], GROWTH * number

    _work_off(table, run)
    return [(int(owners[key & LOW]), -(key >> HALF)) for key in search.best.tolist()]


def spread(view: View, devices: Sequence[int]) -> list[View]:
    """The view on each of these CUDA devices, copied from device to device where it does not lie
    there already. REQUIRES: CuPy's arrays."""
    import cupy

    with device_of(view.indptr):
        cupy.cuda.get_current_stream().synchronize()  # other threads' streams do not wait for it
    views = []
    for number in devices:
        with cupy.cuda.Device(number) as device:
            views.append(View(cupy.asarray(view.indptr), cupy.asarray(view.indices)))
            device.synchronize()
    return views


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
        """The first candidate from which on no owner can be among the t best."""
        return len(self.hopeful(self.candidates))

    def hopeful(self, keys: Array) -> Array:
        """Of rising keys of bounds, those whose owners may be among the t best."""
        best = self.best
        if len(best) < self.t:
            return keys
        return keys[: np.searchsorted(keys, best[-1])] if self.t else keys[:0]


def _keys(values: Array, places: Array) -> Array:
    """int64: smaller for a higher value, and among equal values for a smaller place. So the key of
    a score is no smaller than that of its bound."""
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


# Work lists --------------------------------------------------------------------------------------


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
