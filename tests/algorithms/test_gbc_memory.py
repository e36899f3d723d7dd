"""Bicliques counted in parts: BCPar and memory limits."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.biclique import gbc
from algorithms.biclique.bipartite import Bipartite
from algorithms.biclique.gbc import two_hop_cpu
from algorithms.biclique.gbc.anchor import cheaper_layer
from algorithms.biclique.gbc.bcpar_cpu import bcpar
from algorithms.biclique.gbc.job_cuda import LEAST_CELLS, WARPS, Job, Launches
from algorithms.biclique.gbc.search_cpu import WORD, prices
from lpma.cpu.threads import THREADS
from tests.support.bicliques import (
    bipartite_of,
    lists_of,
    random_graph,
)

Array = npt.NDArray[Any]


LIMITS = (120_000, 90_000, 60_000, 40_000)
GROUPS = 40


def grouped(device: str, size: int, m: int, seed: int) -> Bipartite:
    """Communities of `size` by `size`, their vertices' numbers mixed, and a few edges across."""
    rng = np.random.default_rng(seed)
    group, across = rng.integers(0, GROUPS, m), rng.random(m) < 0.01
    left, right = rng.integers(0, size, (2, m))
    of_right = np.where(across, rng.integers(0, GROUPS, m), group)
    ends = (group + GROUPS * left, of_right + GROUPS * right)
    return bipartite_of(device, GROUPS * size, GROUPS * size, *(end.tolist() for end in ends))


@pytest.mark.parametrize("p, q", [(3, 2), (3, 3), (5, 2)])
def test_every_number_of_parts_agrees(device: str, p: int, q: int) -> None:
    b = grouped(device, 20, 8000, seed=5)
    expected = gbc.count(b, p, q)
    refused = 0
    for limit in (*LIMITS, 1 << 30):
        try:
            assert gbc.count(b, p, q, memory_limit=limit) == expected
        except ValueError:
            refused += 1
    assert refused < len(LIMITS)


def parts_of(b: Bipartite, least: int, limit: int) -> tuple[Array, list[Any]]:
    num_candidates = two_hop_cpu.num_candidates(b, least)
    return num_candidates, list(bcpar(b, num_candidates, least, prices(3, 600), WORD, limit))


@pytest.mark.parametrize("limit", LIMITS)
def test_parts_are_independent(limit: int) -> None:
    """Each root is in one part, with all its candidates and their neighbours among its own; a part
    costs no more than the limit."""
    b = grouped("cpu", 20, 8000, seed=6)
    num_candidates, parts = parts_of(b, 3, limit)
    assert len(parts) > 1
    roots = 0
    for part in parts:
        graph = part.graph
        own = np.flatnonzero(part.num_candidates)
        roots += len(own)
        rows = [set(row) for row in lists_of(graph.swapped())]
        for u in own.tolist():
            sharing = sum(len(rows[u] & row) >= 3 for row in rows[u + 1 :])
            assert sharing == part.num_candidates[u]
        cells = (part.num_candidates.astype(int) * -(-np.diff(graph.left_indptr) // WORD)).max()
        cost = prices(3, 600).least(
            graph.num_left, len(graph.left_indices), graph.num_right,
            int(part.num_candidates.max()), int(cells),
        )  # fmt: skip
        assert cost <= limit
    assert roots == np.count_nonzero(num_candidates)


def test_parts_share_what_they_hold() -> None:
    """Two communities become two parts, whatever numbers their vertices have."""
    rng = np.random.default_rng(8)
    names = rng.permutation(80)
    left, right = zip(
        *((names[u + 40 * c], v + 30 * c) for c in range(2) for u in range(40) for v in range(30)
          if rng.random() < 0.5), strict=True,
    )  # fmt: skip
    b = bipartite_of("cpu", 80, 60, map(int, left), right)
    _, whole = parts_of(b, 3, 1 << 30)
    assert len(whole) == 1
    _, parts = parts_of(b, 3, 33_000)
    assert len(parts) == 2
    assert [part.graph.num_right for part in parts] == [30, 30]


@pytest.fixture
def peak(device: str) -> Iterator[Any]:
    """A function that calls another, and returns the most bytes that this one held in addition to
    what was held before."""
    if device == "cpu":

        def measure(action: Any) -> int:
            action()  # compiles
            tracemalloc.start()
            try:
                action()
                return tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

        yield measure
        return
    cupy = pytest.importorskip("cupy")

    def measure_on_device(action: Any) -> int:
        """Allocations go to a pool of their own. What counts is the most that it took from the
        device."""
        action()
        pool = cupy.cuda.MemoryPool()
        used = 0

        def allocate(size: int) -> Any:
            nonlocal used
            memory = pool.malloc(size)
            used = max(used, pool.used_bytes())
            return memory

        with cupy.cuda.using_allocator(allocate):
            action()
            cupy.cuda.get_current_stream().synchronize()
        return used

    yield measure_on_device


@pytest.mark.parametrize("limit", [1 << 20, 3 << 19])
def test_the_limit_is_kept(device: str, peak: Any, limit: int) -> None:
    """Searches hold no more than the limit. (On the CPU the copy of the graph and the numbers for
    each vertex are host memory, too, and are added.)"""
    b = grouped(device, 100, 60_000, seed=9)
    search, _ = cheaper_layer(b, 3, 3, choose=False)
    expected = gbc.count_by(search)
    unlimited = peak(lambda: gbc.count_by(search, 1 << 30))
    held = peak(lambda: gbc.count_by(search, limit))
    assert gbc.count_by(search, limit) == expected
    of_host = 120 * (4000 + 4000) if device == "cpu" else 0
    assert held <= limit + of_host
    if device != "cpu":  # which has less than either limit to hold
        assert held < unlimited


@pytest.mark.parametrize("groups, a, b", [(4000, 5, 5), (2000, 16, 3), (2000, 3, 16)])
def test_what_the_limit_does_not_bound(peak: Any, device: str, groups: int, a: int, b: int) -> None:
    """A large graph of small groups is searched in many parts. In addition to a part, only the copy
    in the order of ranks and so many bytes for each vertex are held."""
    if device != "cpu":
        pytest.skip("numbers a vertex lie on the host")
    group, u, v = np.indices((groups, a, b)).reshape(3, -1)
    ends = ((a * group + u).tolist(), (b * group + v).tolist())
    sides = bipartite_of(device, groups * a, groups * b, *ends)
    expected = groups * comb(a, 3) * comb(b, 3)
    largest = max(sides.left_indptr.nbytes, sides.right_indptr.nbytes)
    copy = largest + sides.left_indices.nbytes + sides.right_indices.nbytes
    numbers = (100 + 4 * THREADS) * (sides.num_left + sides.num_right)
    for limit in (1 << 18, 1 << 20):
        assert gbc.count(sides, 3, 3, memory_limit=limit) == expected
        held = peak(lambda limit=limit: gbc.count(sides, 3, 3, memory_limit=limit))
        assert held <= limit + copy + numbers


def test_too_small_a_limit_says_what_is_needed() -> None:
    b = random_graph("cpu", 100, 100, 2000, seed=10)
    with pytest.raises(ValueError, match=r"memory_limit=1,000: one root .* needs [\d,]+ bytes"):
        gbc.count(b, 3, 3, memory_limit=1000)


@given(
    of_root=st.lists(st.tuples(st.integers(2, 5000), st.integers(1, 300)), min_size=1, max_size=9),
    depth=st.integers(3, 9), spare=st.integers(0, 10**8), most=st.integers(1, 1000),
)  # fmt: skip
def test_spaces_fit(of_root: list[tuple[int, int]], depth: int, spare: int, most: int) -> None:
    """On a device, the workspaces of all warps fit, and one of the launches has space for the
    levels of every root."""
    columns, lines = np.array(of_root).T
    starts, cells = (np.concatenate(([0], np.cumsum(x))) for x in (columns, columns * lines))
    roots = np.arange(len(columns))
    job = Job(roots, starts, cells, lines, 10, 400, depth)
    launches = Launches.of(job, most, spare)
    assert 1 <= launches.blocks <= most
    budget = spare + WARPS * job.warp_bytes(job.level_cells)
    assert WARPS * launches.blocks * job.warp_bytes(launches.cells) <= budget
    if launches.second == 0:
        assert launches.cells == job.level_cells
    else:
        assert launches.second <= launches.blocks
        assert WARPS * launches.second * job.warp_bytes(job.level_cells) <= budget
        assert launches.cells >= min(LEAST_CELLS, job.level_cells)


@pytest.mark.gpu
def test_pairs_beyond_a_warps_space(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such pairs are searched in a second launch, which a small budget makes necessary."""
    from algorithms.biclique.gbc import job_cuda
    from lpma.cuda import launch

    left, right = np.nonzero(np.random.default_rng(12).random((80, 200)) < 0.5)
    b = bipartite_of("cuda", 80, 200, left.tolist(), right.tolist())
    expected = gbc.count(b, 4, 5)
    marked = []

    def record(name: str, kernel: Any, blocks: int, block: int, args: Any, *more: Any) -> None:
        if name.startswith("search"):
            marked.append(args[-3])
        start(name, kernel, blocks, block, args, *more)

    start = launch.start
    monkeypatch.setattr(launch, "start", record)
    monkeypatch.setattr(job_cuda, "LEAST_CELLS", 8)
    assert gbc.count(b, 4, 5, memory_limit=1 << 18) == expected
    assert set(marked) == {0, 1}
