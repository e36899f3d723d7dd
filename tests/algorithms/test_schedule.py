"""Scoring on several workers: packing, stealing, the exact end of a search, errors.

Scorers here are fakes that write down who scored what, and take turns or sleep as told."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.diversity import schedule
from algorithms.diversity.schedule import STEALING, Table, WorkList, pack
from tests.support.oracles import assert_same

Array = npt.NDArray[Any]
Problem = tuple[Array, Array, Array, Array]

WORKERS = st.sampled_from([1, 2, 3, 20])  # 20: now and then more than there are owners


class Fake:
    """Knows the scores; writes down what it was asked."""

    def __init__(self, known: Array, seconds: float = 0.0):
        self.known = known
        self.seconds = seconds
        self.asked: list[list[int]] = []
        self.called_in: set[int] = set()

    def scores(self, owners: Array) -> Array:
        assert owners.dtype == np.uint32
        self.asked.append(owners.tolist())
        self.called_in.add(threading.get_ident())
        time.sleep(self.seconds)
        return self.known[owners].astype(np.int32)

    threads = at_once = 1

    def refined(self, owners: Array) -> tuple[Array, Array]:
        return self.scores(owners), np.ones(len(owners), bool)

    def contexts(self, owners: Array) -> list[list[Array]]:
        raise NotImplementedError

    def bounds(self) -> Array:
        raise NotImplementedError

    def costs(self, owners: Array) -> Array:
        raise NotImplementedError

    @property
    def all_asked(self) -> list[int]:
        return [owner for batch in self.asked for owner in batch]


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """owners, costs, scores by vertex, bounds by owner: scores often equal, bounds often tight."""
    gaps = draw(st.lists(st.integers(1, 3), max_size=60))
    q = len(gaps)
    owners = np.cumsum(np.array(gaps, np.int64)).astype(np.uint32)
    most = draw(st.sampled_from([0, 1, 3, 40]))
    scores = np.array(draw(st.lists(st.integers(0, most), min_size=q, max_size=q)), np.int32)
    slack = np.array(draw(st.lists(st.integers(0, 2), min_size=q, max_size=q)), np.int32)
    exponent = draw(st.lists(st.integers(-3, 6), min_size=q, max_size=q))
    known = np.full(3 * q + 1, -1, np.int32)
    known[owners] = scores
    return owners, 10.0 ** np.array(exponent, np.float64), known, scores + slack


@given(problem=problems(), stealing=st.sampled_from(STEALING), workers=WORKERS)
def test_every_owner_is_scored_once(problem: Problem, stealing: str, workers: int) -> None:
    owners, costs, known, _ = problem
    fakes = [Fake(known) for _ in range(workers)]
    found = schedule.scores(fakes, owners, costs, stealing)
    assert_same(found, known[owners])
    asked = [owner for fake in fakes for owner in fake.all_asked]
    assert sorted(asked) == sorted(owners.tolist())
    assert all(batch for fake in fakes for batch in fake.asked)
    assert all(len(fake.called_in) <= 1 for fake in fakes)


@given(
    problem=problems(),
    t=st.sampled_from([0, 1, 2, 5, 30, 100]),
    stealing=st.sampled_from(STEALING),
    workers=WORKERS,
)
def test_the_best_are_exact(problem: Problem, t: int, stealing: str, workers: int) -> None:
    owners, costs, known, bounds = problem
    fakes = [Fake(known) for _ in range(workers)]
    found = schedule.top(fakes, owners, bounds, costs, t, stealing)
    ranking = sorted(((int(o), int(known[o])) for o in owners), key=lambda x: (-x[1], x[0]))
    assert found == ranking[:t]
    asked = [owner for fake in fakes for owner in fake.all_asked]
    assert len(asked) == len(set(asked))
    bound_of = dict(zip(owners.tolist(), bounds.tolist(), strict=True))
    assert all(bound_of[owner] > 0 for owner in asked)


class Refining(Fake):
    """Gives bounds at first, of which some are the scores."""

    def __init__(self, known: Array, slack: Array):
        super().__init__(known)
        self.slack = slack

    def refined(self, owners: Array) -> tuple[Array, Array]:
        slack = self.slack[owners]
        return self.known[owners] + slack, slack == 0


@given(
    problem=problems(),
    t=st.sampled_from([0, 1, 2, 5, 30, 100]),
    workers=WORKERS,
    at_once=st.sampled_from([1, 2, 7]),
    data=st.data(),
)
def test_refined_bounds_leave_it_exact(
    problem: Problem, t: int, workers: int, at_once: int, data: st.DataObject
) -> None:
    owners, costs, known, bounds = problem
    slack = np.zeros(len(known), np.int32)
    places = data.draw(st.lists(st.integers(0, len(known) - 1), max_size=40))
    slack[places] = data.draw(st.sampled_from([1, 2, 50]))
    fakes = [Refining(known, slack) for _ in range(workers)]
    found = schedule.top(fakes, owners, bounds, costs, t, at_once=at_once)
    ranking = sorted(((int(o), int(known[o])) for o in owners), key=lambda x: (-x[1], x[0]))
    assert found == ranking[:t]
    asked = [owner for fake in fakes for owner in fake.all_asked]
    assert len(asked) == len(set(asked))
    assert (slack[asked] > 0).all()


def test_the_best_refined_bounds_are_scored_first() -> None:
    """Bounds of one owner in four stay too high; of the others, hardly any more than the best are
    scored."""
    n = 400
    known = np.where(np.arange(n) < 10, 50, 3).astype(np.int32)
    slack = np.full(n, 1, np.int32)
    slack[::4] = 60
    fake = Refining(known, slack)
    owners, bounds = np.arange(n, dtype=np.uint32), np.full(n, 90, np.int32)
    assert schedule.top([fake], owners, bounds, np.ones(n), 10, at_once=1) == [
        (i, 50) for i in range(10)
    ]
    assert set(fake.all_asked) >= set(range(10)) | set(range(0, n, 4))
    assert len(fake.all_asked) < n // 3


def test_a_search_ends_early() -> None:
    n = 100_000
    bounds = np.arange(n, 0, -1, dtype=np.int32)
    known = np.where(np.arange(n) < 50, bounds, bounds // 2)
    for workers in (1, 2):
        fakes = [Fake(known) for _ in range(workers)]
        owners = np.arange(n, dtype=np.uint32)
        found = schedule.top(fakes, owners, bounds, np.ones(n), 10)
        assert found == [(i, n - i) for i in range(10)]
        assert sum(len(fake.all_asked) for fake in fakes) <= n // 8


def test_ties_at_the_bound_do_not_end_it_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Algorithm 1 would stop after vertices 7 and 3, whose scores the next bounds do not exceed; 5
    is as good as 7, and smaller."""
    monkeypatch.setattr(schedule, "FEWEST", 1)
    owners = np.array([3, 5, 7, 9], np.uint32)
    known, bounds = np.full(10, 2, np.int32), np.array([2, 2, 3, 2], np.int32)
    fake = Fake(known)
    assert schedule.top([fake], owners, bounds, np.full(4, 1.0), 2) == [(3, 2), (5, 2)]
    assert fake.all_asked == [7, 3, 5]


def test_packing_is_greedy() -> None:
    assert pack(np.array([5.0, 4, 3, 3, 3]), 2).tolist() == [0, 1, 1, 0, 1]
    assert pack(np.ones(5), 3).tolist() == [0, 1, 2, 0, 1]
    assert pack(np.ones(0), 3).tolist() == []
    costs = np.random.default_rng(1).pareto(1.5, 10_000) + 1
    loads = np.bincount(pack(costs, 4), costs, minlength=4)
    assert loads.max() - loads.min() <= costs.max()


def taken_by_one(table: Table, worker: int) -> list[list[int]]:
    batches = []
    while len(places := table.take(worker)):
        batches.append(places.tolist())
    return batches


def left(work: WorkList) -> list[int]:
    places: list[int] = work.places[work.first : work.last].tolist()
    return places


def test_a_thief_takes_half_from_the_back() -> None:
    """Algorithm 9: from the back until what is taken is no less than what is left."""
    costs = np.array([4.0, 4, 3, 3, 2, 2, 1, 1])
    table = Table(costs, 2, "global")
    assert [work.places.tolist() for work in table.lists] == [[0, 2, 4, 6], [1, 3, 5, 7]]
    robbed = table.lists[1]
    table.lists[0].first = table.lists[0].last  # worker 0 has begun all that it had
    assert table.take(0).tolist() == [3]
    assert left(table.lists[0]) == [5, 7]
    assert left(robbed) == [1]
    assert taken_by_one(table, 1) == [[1], [5], [7]]  # robbing in turn
    assert taken_by_one(table, 0) == []


def test_the_exhausted_thief_takes_all_and_the_honest_none() -> None:
    costs = np.ones(6)
    table = Table(costs, 2, "exhausted")
    table.lists[0].first = table.lists[0].last
    assert table.take(0).tolist() == [1]
    assert table.lists[1].first == table.lists[1].last
    table = Table(costs, 2, "none")
    assert [len(batch) for batch in taken_by_one(table, 0)] == [1, 1, 1]
    assert taken_by_one(table, 1) == [[1], [3], [5]]


def test_batches_shrink_as_the_work_runs_out() -> None:
    table = Table(np.ones(10_000), 2, "none")
    sizes = [len(batch) for batch in taken_by_one(table, 0)]
    assert sum(sizes) == 5000
    assert sizes[:3] == [2500, 1250, 625]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) < 10
    alone = Table(np.ones(10_000), 1, "global")
    assert [len(batch) for batch in taken_by_one(alone, 0)] == [10_000]


class Stuck(Fake):
    """Stays in its first batch until a batch of its fellow's leaves nothing else to do."""

    def __init__(self, known: Array):
        super().__init__(known)
        self.begun, self.freed = threading.Event(), threading.Event()

    def scores(self, owners: Array) -> Array:
        found = super().scores(owners)
        self.begun.set()
        assert self.freed.wait(30)
        return found


class Fellow(Fake):
    def __init__(self, known: Array, stuck: Stuck):
        super().__init__(known)
        self.stuck = stuck

    def scores(self, owners: Array) -> Array:
        assert self.stuck.begun.wait(30)
        found = super().scores(owners)
        if len(self.all_asked) + len(self.stuck.all_asked) == len(self.known):
            self.stuck.freed.set()
        return found


@pytest.mark.parametrize("stealing", ["global", "exhausted"])
def test_who_is_stuck_is_robbed(stealing: str) -> None:
    owners, known = np.arange(1000, dtype=np.uint32), np.zeros(1000, np.int32)
    stuck = Stuck(known)
    fellow = Fellow(known, stuck)
    schedule.scores([stuck, fellow], owners, np.ones(1000), stealing)
    assert len(stuck.asked) == 1
    assert len(fellow.all_asked) == 1000 - len(stuck.all_asked) > 500


def test_nobody_steals() -> None:
    owners, known = np.arange(1000, dtype=np.uint32), np.zeros(1000, np.int32)
    slow, fast = Fake(known, 0.001), Fake(known)
    schedule.scores([slow, fast], owners, np.ones(1000), "none")
    assert len(slow.all_asked) == len(fast.all_asked) == 500


class Broken(Fake):
    def scores(self, owners: Array) -> Array:
        super().scores(owners)
        raise MemoryError("no room")


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_failing_worker_stops_all(place: int) -> None:
    owners, known = np.arange(3000, dtype=np.uint32), np.zeros(3000, np.int32)
    fakes: list[Fake] = [Fake(known, 0.002) for _ in range(3)]
    fakes[place] = Broken(known, 0.005)
    before = threading.active_count()
    with pytest.raises(MemoryError, match="no room"):
        schedule.scores(fakes, owners, np.ones(3000))
    assert threading.active_count() == before
    assert len(fakes[place].asked) == 1
    with pytest.raises(MemoryError, match="no room"):
        schedule.top(fakes, owners, np.ones(3000, np.int32), np.ones(3000), 5)


def test_costs_that_are_far_off_do_not_leave_all_to_one() -> None:
    """One owner seems to cost nearly everything; the rest is still taken in many batches."""
    costs = np.ones(100_000)
    costs[0] = 1e12
    table = Table(costs, 2, "global")
    assert table.take(0).tolist() == [0]
    sizes = [len(batch) for batch in taken_by_one(table, 1)]
    assert sum(sizes) == 99_999
    assert max(sizes) <= 50_000
    assert sizes[-1] <= schedule.FEWEST


def test_a_search_begins_small_and_grows() -> None:
    for first, sizes in ((200, [512, 1536, 6144, 1808]), (3000, [3000, 7000])):
        table = Table(np.ones(10_000), 1, "global", first=first)
        assert [len(batch) for batch in taken_by_one(table, 0)] == sizes


def test_stealing_is_one_of_three() -> None:
    with pytest.raises(ValueError, match="choose one of global, exhausted, none"):
        schedule.scores([Fake(np.zeros(1))], np.zeros(1, np.uint32), np.ones(1), "random")
