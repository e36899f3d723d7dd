"""Scoring owners on several workers: one thread for each, which takes batches from its work list.

Source: Huang, Huang, Xu, Choi and Peng, "GPU-accelerated structural diversity search in graphs",
section 6. A worker is a scorer and its device, or on the CPU a thread. `worklists` packs work,
hands it out and lets workers steal it.

How to use it: make a `model.Scorer` for each worker, over its own device's copy of the view
(`spread`), and estimate what each owner costs (`Scorer.costs`; any positive numbers will do). Then

    scores(scorers, owners, costs)              the scores of all owners, in their order
    top(scorers, owners, bounds, costs, t)      the t best as (owner, score), ties by smaller id

Each scorer is called by one thread, that of worker 0 by the caller's, with NumPy's arrays, and
makes its device the current one. The threads are not those of `lpma.cpu.threads`, since each device
needs one, however few cores there are.

The paper's Algorithm 1 stops when the next bound *equals* the t-th best score. With ties broken by
id that may lose an owner of smaller id, so owners and bounds are compared as pairs.

Oracle: sorting all scores (tests/algorithms/test_schedule.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from lpma.arrays import device_of, to_host

from ...arrays import Array
from ...views.simple import View
from ..model import Scorer
from .worklists import GROWTH, Table

HALF = 32  # bits of a place in a key
LOW = (1 << HALF) - 1


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
