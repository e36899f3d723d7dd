"""How workers run programs: in lockstep, keeping what they exchanged, after failures too; and what
goes between them."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import algorithms
import lpma
from algorithms import ShardedSnapshot
from algorithms.sharded import Control, LocalWorkers, Messages, ProgramPreempted, Worker, split
from algorithms.sharded.programs.views import Halo, changes
from algorithms.sharded.runtime.local import size_bytes
from algorithms.sharded.runtime.state import ShardState
from ingest.datasets import generators
from tests.support.sharding import Case

NONE = np.empty(0, np.int64)


def rmat(directed: bool, shards: int) -> tuple[lpma.Snapshot, ShardedSnapshot]:
    src, dst = generators.rmat(9, 4000, seed=2)
    graph = lpma.Graph(device="cpu", directed=directed)
    graph.insert(src, dst)
    return graph.snapshot(), ShardedSnapshot.of(split(graph.snapshot(), shards))


def local(s: ShardedSnapshot) -> LocalWorkers:
    assert isinstance(s.workers, LocalWorkers)
    return s.workers


def test_views_are_exchanged_once() -> None:
    _, s = rmat(True, 3)
    algorithms.core_numbers(s)
    first = local(s).steps, local(s).bytes_sent
    algorithms.core_numbers(s)
    assert local(s).steps < first[0]
    assert local(s).bytes_sent < first[1] / 2


@pytest.mark.parametrize("name", ["pagerank", "core_numbers", "bfs", "diversity"])
@pytest.mark.parametrize("directed", [False, True])
def test_what_was_exchanged_is_kept(name: str, directed: bool) -> None:
    _, s = rmat(directed, 3)
    arguments = {"bfs": (0,), "diversity": ("component", 2)}.get(name, ())
    workers = local(s).workers
    kept: list[dict[str, Any]] = []
    for _ in range(2):
        getattr(algorithms, name)(s, *arguments)
        kept.append({f"{i} {k}": v for i, w in enumerate(workers) for k, v in all_of(w)})
    assert kept[0].keys() == kept[1].keys() != set()
    assert all(kept[0][key] is kept[1][key] for key in kept[0])


def all_of(worker: Worker) -> Any:
    return worker._state.cache.items()


@pytest.mark.parametrize("count, arrays", [(0, 0), (4, 2), (5, 1), (10, 1)])
def test_changes_go_by_whichever_is_less(count: int, arrays: int) -> None:
    """Places and values of those that changed, or the values of all."""
    held = ShardState(Case(10, NONE, NONE, np.arange(10), 2, True, False).parts()[0])
    rows = np.arange(10, dtype=np.uint32)
    across = Halo([rows[:0], rows[:0]], [rows[:0], rows])
    changed = np.arange(10) < count
    outbox, value = next(changes(held, across, np.arange(10) * 3, changed, "said"))
    assert (outbox[0], value) == (None, "said")
    if not arrays:
        assert outbox[1] is None
    else:
        assert outbox[1] is not None
        assert len(outbox[1]) == arrays
        sent = np.flatnonzero(changed) if arrays == 2 else rows
        assert outbox[1][-1].tolist() == (3 * sent).tolist()


class Stops(Exception):
    pass


@pytest.mark.parametrize("at", range(1, 13))
def test_a_program_that_stopped_anywhere_is_begun_anew(at: int) -> None:
    """Some workers then keep what others do not."""
    one, s = rmat(True, 3)
    workers = local(s)
    worker, steps = workers.workers[1], 0
    step = worker.step

    def failing(*args: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps == at:
            raise Stops
        return step(*args)

    worker.step = failing  # type: ignore[method-assign, assignment]
    with pytest.raises(Stops):
        algorithms.core_numbers(s)
    for name in ("core_numbers", "connected_components"):
        expected = getattr(algorithms, name)(one)
        np.testing.assert_array_equal(getattr(algorithms, name)(s), expected)


def test_a_worker_made_anew_joins_the_others() -> None:
    one, s = rmat(True, 3)
    algorithms.pagerank(s)
    workers = local(s)
    workers.workers[2] = Worker(workers.workers[2].part)
    ranks, one_s_ranks = (algorithms.pagerank(of, tol=1e-13, max_iter=500) for of in (s, one))
    np.testing.assert_allclose(ranks, one_s_ranks, rtol=1e-7)
    assert algorithms.triangle_count(s) == algorithms.triangle_count(one)


def test_ranks_cost_eight_bytes_a_row_and_round() -> None:
    _, s = rmat(False, 2)
    algorithms.pagerank(s, tol=0, max_iter=1)
    sent = []
    for rounds in (5, 6):
        algorithms.pagerank(s, tol=0, max_iter=rounds)
        sent.append(local(s).bytes_sent)
    boundary = sum(len(rows) for worker in local(s).workers for rows in wanted(worker))
    assert sent[1] - sent[0] == 8 * boundary


def wanted(worker: Worker) -> Any:
    return worker._state.cache["halo of transposed"].receive


def test_a_search_sends_a_row_once() -> None:
    one, s = rmat(False, 4)
    algorithms.bfs(s, int(np.argmax(np.diff(one.indptr))))
    assert 0 < local(s).bytes_sent <= 4 * 3 * s.num_rows


def test_core_numbers_send_only_changes() -> None:
    """A long path settles from its ends, one vertex after the other, on every other shard."""
    n = 300
    case = Case(n, np.arange(n - 1), np.arange(1, n), np.empty(0, np.int64), 2, False, False)
    s = case.sharded()
    assert algorithms.core_numbers(s).tolist() == [1] * n
    algorithms.core_numbers(s)  # with the views that were kept
    assert local(s).steps > 20
    assert local(s).bytes_sent <= 8 * 2 * n + 16 * local(s).steps


def test_nothing_goes_between_shards_that_share_nothing() -> None:
    owned = [0, 3]  # by two shards, apart
    case = Case(4, np.array(owned), np.array(owned), np.empty(0, np.int64), 2, False, False)
    s = case.sharded()
    for of in (algorithms.core_numbers, algorithms.connected_components, algorithms.pagerank):
        of(s)
        assert local(s).bytes_sent == 0


class Carried(Worker):
    """A worker whose messages come as from another host: read-only."""

    def step(self, control: Control, inbox: Messages) -> tuple[Messages, Any]:
        for message in inbox:
            for array in message or ():
                array.flags.writeable = False
        return super().step(control, inbox)


@pytest.mark.parametrize("directed", [False, True])
def test_messages_may_be_read_only(directed: bool) -> None:
    one, s = rmat(directed, 3)
    workers = local(s)
    workers.workers = [Carried(worker.part) for worker in workers.workers]
    for name in ("core_numbers", "connected_components"):
        np.testing.assert_array_equal(getattr(algorithms, name)(s), getattr(algorithms, name)(one))
    assert algorithms.triangle_count(s) == algorithms.triangle_count(one)
    ranks, one_s_ranks = (algorithms.pagerank(of, tol=1e-13, max_iter=500) for of in (s, one))
    np.testing.assert_allclose(ranks, one_s_ranks, rtol=1e-7)
    found, expected = (algorithms.diversity(of, "core", 2) for of in (s, one))
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(algorithms.bfs(s, 0), algorithms.bfs(one, 0))
    assert s.hops([0], [2])[0].tolist() == np.flatnonzero(reached_within_two(one)).tolist()


def reached_within_two(s: lpma.Snapshot) -> Any:
    first = s.indices[: s.indptr[1]]
    both = [first, *(s.indices[s.indptr[v] : s.indptr[v + 1]] for v in first)]
    return np.isin(np.arange(s.num_rows), np.concatenate(both))


def test_a_graph_that_is_taken_for_a_longer_one_is_read_anew() -> None:
    one, s = rmat(True, 3)
    for more in (0, 5):
        s.num_rows = one.num_rows + more
        s.__dict__.pop("_rows", None)
        found = algorithms.core_numbers(s)
        assert found.tolist() == algorithms.core_numbers(one).tolist() + more * [0]


def test_messages_are_counted_in_bytes() -> None:
    assert size_bytes((np.arange(3, dtype=np.uint32), np.zeros(3))) == 12 + 24
    assert size_bytes(None) == 0


def test_an_error_of_one_worker_is_raised_when_all_are_at_rest() -> None:
    _, s = rmat(True, 3)
    at_rest = False

    def fail() -> None:
        raise Stops

    def wait() -> None:
        nonlocal at_rest
        time.sleep(0.2)
        at_rest = True

    for worker, does in zip(local(s).workers, (fail, wait, wait), strict=True):
        worker.result = does  # type: ignore[method-assign]
    with pytest.raises(Stops):
        local(s).results()
    assert at_rest
    _, s = rmat(True, 3)
    with pytest.raises(TypeError):
        s.run("pagerank", damping=0.85)
    with pytest.raises(lpma.BatchError, match="rows"):
        local(s).begin("degrees", {"num_rows": 1})


def test_a_run_that_another_overtook_ends() -> None:
    one, s = rmat(True, 3)
    workers = local(s)
    workers.begin("core_numbers", {"run": "first", "num_rows": s.num_rows})
    said = workers.step(Control("first", []))
    np.testing.assert_array_equal(algorithms.core_numbers(s), algorithms.core_numbers(one))
    for control in (Control("first", said), Control(None, [])):
        with pytest.raises(ProgramPreempted, match="again"):
            workers.step(control)
    workers.begin("core_numbers", {"run": "second", "num_rows": s.num_rows})
    with pytest.raises(ProgramPreempted):
        workers.step(Control("first", said))
