"""Bicliques counted by enumeration: every program of GBC's parts against brute force, closed forms
and known counts; Border's order; BCPar's parts, and the memory that they keep to."""

from __future__ import annotations

import itertools
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
from algorithms.biclique.bipartite import Bipartite, trimmed
from algorithms.biclique.gbc import GBC, GBL, ROWS, Switches, two_hop_cpu
from algorithms.biclique.gbc.anchor import choose_anchor
from algorithms.biclique.gbc.compact_cpu import WORD
from algorithms.biclique.gbc.job_cuda import LEAST_CELLS, WARPS, Job, Launches
from algorithms.biclique.gbc.search_cpu import prices
from algorithms.biclique.gbc.types import Anchored, Search
from algorithms.biclique.paper.bcpar import bcpar
from algorithms.biclique.paper.border import reordered
from algorithms.biclique.paper.truncated import truncated
from lpma.arrays import to_host
from lpma.cpu.threads import THREADS
from tests.conftest import real_graph

Array = npt.NDArray[Any]

# Each part alone turned off, and all of them.
PARTS = ("anchor", "priority", "common", "hybrid", "edges", "stealing")
LESS = [{}, *({part: False} for part in PARTS), dict.fromkeys(PARTS, False), {"border": True}]
PROGRAMS = [Switches(rows=rows, **switched) for rows in ROWS for switched in LESS]


def bipartite_of(device: str, a: int, b: int, left: Any, right: Any) -> Bipartite:
    """The simple graph of these edges, isolated vertices kept."""
    edges = sorted(set(zip(left, right, strict=True)))
    forth = _rows(a, edges)
    back = _rows(b, sorted((v, u) for u, v in edges))
    ids = (np.arange(a, dtype=np.uint32), np.arange(b, dtype=np.uint32))
    return on(device, Bipartite(*forth, *back, *ids))


def _rows(n: int, edges: list[tuple[int, int]]) -> tuple[Array, Array]:
    ends = np.array(edges, np.int64).reshape(-1, 2)
    return np.searchsorted(ends[:, 0], np.arange(n + 1)), ends[:, 1].astype(np.uint32)


def on(device: str, b: Bipartite) -> Bipartite:
    if device == "cpu":
        return b
    cupy = pytest.importorskip("cupy")
    arrays = (b.left_indptr, b.left_indices, b.right_indptr, b.right_indices)
    return Bipartite(*map(cupy.asarray, (*arrays, b.left_ids, b.right_ids)))


def brute(b: Bipartite, p: int, q: int) -> int:
    """Every p-subset of the left, and the neighbours that all of it has."""
    indptr, indices = to_host(b.left_indptr), to_host(b.left_indices)
    rows = [set(indices[x:y].tolist()) for x, y in itertools.pairwise(indptr.tolist())]
    return sum(
        comb(len(set.intersection(*chosen)), q) for chosen in itertools.combinations(rows, p)
    )


@st.composite
def edges(draw: st.DrawFn, most: int = 11) -> tuple[int, int, list[int], list[int]]:
    """Sizes of the sides, and edges with repeats: none, few, or nearly all."""
    a, b = draw(st.integers(1, most)), draw(st.integers(1, most))
    edge = st.tuples(st.integers(0, a - 1), st.integers(0, b - 1))
    chosen = draw(st.lists(edge, max_size=2 * a * b))
    if draw(st.booleans()):
        chosen = sorted(set(itertools.product(range(a), range(b))) - set(chosen[: a * b // 4]))
    return a, b, [u for u, _ in chosen], [v for _, v in chosen]


def random_graph(device: str, a: int, b: int, m: int, seed: int) -> Bipartite:
    """Some vertices have many edges, most few."""
    rng = np.random.default_rng(seed)
    left, right = (n * rng.random(m) ** 2 for n in (a, b))
    return bipartite_of(device, a, b, left.astype(int).tolist(), right.astype(int).tolist())


# Counts -----------------------------------------------------------------------------------------


@given(graph=edges(), p=st.integers(1, 6), q=st.integers(1, 6))
def test_every_program_counts(device: str, graph: Any, p: int, q: int) -> None:
    b = bipartite_of(device, *graph)
    expected = brute(b, p, q)
    for program in PROGRAMS:
        count = gbc.count(b, p, q, program)
        assert type(count) is int
        assert count == expected, program
    assert gbc.count(b.swapped(), q, p) == expected


@pytest.mark.parametrize("p, q", [(2, 2), (3, 3), (3, 5), (5, 3), (4, 4), (6, 4), (5, 2)])
def test_programs_agree_on_larger_graphs(device: str, p: int, q: int) -> None:
    """Bitmaps of several words, levels that are packed and that are not, several threads."""
    b = random_graph(device, 150, 200, 4500, seed=p * 10 + q)
    expected = gbc.count(b, p, q, Switches(rows="csr", hybrid=False))
    assert expected > 0
    for program in (Switches(), Switches(hybrid=False), Switches(anchor=False), GBC, GBL):
        assert gbc.count(b, p, q, program) == expected, program
    assert gbc.count(b.swapped(), q, p) == expected
    if p == 3:
        assert expected == brute(b, p, q)


@pytest.mark.parametrize("a, b, p, q", [
    (40, 90, 3, 40), (60, 1100, 2, 64), (4, 1100, 3, 400), (20, 30, 9, 12), (12, 1, 5, 1),
])  # fmt: skip
def test_complete_graphs(device: str, a: int, b: int, p: int, q: int) -> None:
    """Closed forms beyond 2^64, 2^127 and 2^300; more common neighbours than a block has bins."""
    left, right = np.divmod(np.arange(a * b), b)
    graph = bipartite_of(device, a, b, left.tolist(), right.tolist())
    expected = comb(a, p) * comb(b, q)
    if (a, b) == (4, 1100):
        assert expected > 2**300
    for rows in ROWS:
        assert gbc.count(graph, p, q, Switches(rows=rows, anchor=False)) == expected
    assert gbc.count(graph.swapped(), q, p) == expected


def test_one_histogram_answers_for_every_q(device: str) -> None:
    b = random_graph(device, 60, 80, 1200, seed=3)
    g = Anchored(b.left_indptr, b.left_indices, b.right_indptr, b.right_indices)
    found = gbc.histogram(Search(g, 3, 2))
    assert isinstance(found, np.ndarray)
    for q in range(2, 9):
        assert gbc.total(found, q) == brute(b, 3, q)


@pytest.mark.parametrize("p, q, count", [
    (2, 2, 36_023_154), (2, 3, 915_935_511), (3, 2, 239_110_596), (3, 3, 1_719_957_371),
    (3, 4, 24_905_035_425), (4, 3, 4_106_066_412), (2, 6, 103_289_484_437_904),
    pytest.param(4, 8, 408_601_385_858_157, marks=pytest.mark.slow),
])  # fmt: skip
def test_wiki_vote(device: str, p: int, q: int, count: int) -> None:
    """Voter × candidate: an edge goes from the left to the right copy of a vertex."""
    columns = real_graph("wiki-Vote")
    voters, left = np.unique(columns["src"], return_inverse=True)
    candidates, right = np.unique(columns["dst"], return_inverse=True)
    sides = (len(voters), len(candidates))
    b = bipartite_of(device, *sides, left.tolist(), right.tolist())
    assert gbc.count(trimmed(b, p, q), p, q) == count


@pytest.mark.parametrize("name, butterflies", [
    ("bip-southern-women", 341), ("bip-jodie-wikipedia", 122_399),
])  # fmt: skip
def test_butterflies_of_real_graphs(device: str, name: str, butterflies: int) -> None:
    columns = real_graph(name)
    left, right = columns["src"], columns["dst"]
    b = bipartite_of(device, left.max() + 1, right.max() + 1, left.tolist(), right.tolist())
    for program in (Switches(), GBC, GBL):
        assert gbc.count(b, 2, 2, program) == butterflies


@pytest.mark.parametrize("p, q", [(0, 1), (1, 0), (-2, 3)])
def test_sizes_below_one_are_refused(p: int, q: int) -> None:
    with pytest.raises(ValueError, match="from 1 on"):
        gbc.count(bipartite_of("cpu", 1, 1, [0], [0]), p, q)


def test_unknown_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="compact, htb, csr"):
        Switches(rows="bitmap")


# Anchors, truncated bitmaps, Border ---------------------------------------------------------------


@given(graph=edges(), least=st.integers(1, 3), common=st.booleans())
def test_ranks_rise_with_two_hop_neighbors(
    device: str, graph: Any, least: int, common: bool
) -> None:
    b = bipartite_of(device, *graph)
    chosen = choose_anchor(b, 2, least, choose=False, priority=True, common=common).graph
    indptr, indices = to_host(chosen.indptr), to_host(chosen.indices)
    rows = [set(indices[x:y].tolist()) for x, y in itertools.pairwise(indptr.tolist())]
    needed = least if common else 1
    counts = [
        sum(len(x & y) >= needed for j, y in enumerate(rows) if i != j) for i, x in enumerate(rows)
    ]
    assert counts == sorted(counts)
    back = {(int(u), v) for v, row in enumerate(_lists(chosen)) for u in row}
    assert back == {(u, v) for u, row in enumerate(rows) for v in row}
    assert sorted(map(sorted, rows)) == sorted(_left_lists(b))


def _lists(g: Anchored) -> list[list[int]]:
    indptr, back = to_host(g.back_indptr).tolist(), to_host(g.back).tolist()
    return [back[x:y] for x, y in itertools.pairwise(indptr)]


def _left_lists(b: Bipartite) -> list[list[int]]:
    indptr, indices = to_host(b.left_indptr).tolist(), to_host(b.left_indices).tolist()
    return [indices[x:y] for x, y in itertools.pairwise(indptr)]


def test_the_cheaper_layer_is_chosen(device: str) -> None:
    """A star's leaves make many subsets, its hubs few."""
    hubs, leaves = np.divmod(np.arange(3 * 50), 50)
    b = bipartite_of(device, 3, 50, hubs.tolist(), leaves.tolist())
    for graph, p, q in ((b, 3, 3), (b.swapped(), 3, 3)):
        assert (
            choose_anchor(graph, p, q, choose=True, priority=True, common=True).graph.num_anchors
            == 3
        )


@given(graph=edges(most=80), width=st.sampled_from([1, 32]))
def test_truncated_bitmaps(device: str, graph: Any, width: int) -> None:
    b = bipartite_of(device, *graph)
    rows = truncated(b.left_indptr, b.left_indices, width)
    indptr, words, bits = (to_host(a) for a in (rows.indptr, rows.words, rows.bits))
    assert (words.dtype, bits.dtype, indptr.dtype) == (np.uint32, np.uint32, np.int64)
    got = []
    for x, y in itertools.pairwise(indptr.tolist()):
        assert (np.diff(words[x:y].astype(int)) > 0).all()
        pairs = zip(words[x:y].tolist(), bits[x:y].tolist(), strict=True)
        got.append([word * width + i for word, set_ in pairs for i in range(32) if set_ >> i & 1])
    assert got == _left_lists(b)


@given(graph=edges(most=70))
def test_border_reorders(device: str, graph: Any) -> None:
    """The same edges under the vertices' ids."""
    b = bipartite_of(device, *graph)
    new = reordered(b, iterations=20)
    for one, other in ((b, new), (b.swapped(), new.swapped())):
        assert _edges(other) == _edges(one)
        lists = _left_lists(other)
        assert lists == [sorted(row) for row in lists]


def _edges(b: Bipartite) -> set[tuple[int, int]]:
    left, right = to_host(b.left_ids).tolist(), to_host(b.right_ids).tolist()
    return {(left[u], right[v]) for u, row in enumerate(_left_lists(b)) for v in row}


def test_border_saves_words() -> None:
    """Groups that were mixed are found again."""
    rng = np.random.default_rng(7)
    group = rng.permutation(np.repeat(np.arange(8), 32))  # of each column
    left, right = np.nonzero(rng.integers(0, 8, 300)[:, None] == group[None, :])
    kept = rng.random(len(left)) < 0.3
    b = bipartite_of("cpu", 300, 256, left[kept].tolist(), right[kept].tolist())
    before, after = (len(truncated(x.left_indptr, x.left_indices).words) for x in (b, reordered(b)))
    assert after < 0.8 * before


# Parts and memory -------------------------------------------------------------------------------

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
@pytest.mark.parametrize("rows", ROWS)
def test_every_number_of_parts_agrees(device: str, p: int, q: int, rows: str) -> None:
    b = grouped(device, 20, 8000, seed=5)
    expected = gbc.count(b, p, q)
    refused = 0
    for limit in (*LIMITS, 1 << 30):
        try:
            assert gbc.count(b, p, q, Switches(rows=rows), memory_limit=limit) == expected
        except ValueError:
            refused += 1
    assert refused < len(LIMITS)


def parts_of(b: Bipartite, least: int, limit: int) -> tuple[Anchored, Array, list[Any]]:
    g = Anchored(b.left_indptr, b.left_indices, b.right_indptr, b.right_indices)
    num_candidates = two_hop_cpu.num_candidates(g, least)
    return (
        g,
        num_candidates,
        list(bcpar(g, num_candidates, least, prices(3, 600, Switches()), WORD, limit)),
    )


@pytest.mark.parametrize("limit", LIMITS)
def test_parts_are_independent(limit: int) -> None:
    """Each root is in one part, with all its candidates and their neighbours among its own; a part
    costs no more than the limit."""
    b = grouped("cpu", 20, 8000, seed=6)
    _, num_candidates, parts = parts_of(b, 3, limit)
    assert len(parts) > 1
    roots = 0
    for part in parts:
        graph = part.graph
        own = np.flatnonzero(part.num_candidates)
        roots += len(own)
        swapped = Anchored(graph.back_indptr, graph.back, graph.indptr, graph.indices)
        rows = [set(row) for row in _lists(swapped)]
        for u in own.tolist():
            sharing = sum(len(rows[u] & row) >= 3 for row in rows[u + 1 :])
            assert sharing == part.num_candidates[u]
        cells = (part.num_candidates.astype(int) * -(-np.diff(graph.indptr) // WORD)).max()
        cost = prices(3, 600, Switches()).least(
            graph.num_anchors, len(graph.indices), len(graph.back_indptr) - 1,
            int(part.num_candidates.max()), int(cells),
        )  # fmt: skip
        assert cost <= limit
    assert roots == np.count_nonzero(num_candidates)


def test_parts_share_what_they_hold() -> None:
    """Two communities come out as two parts, whichever numbers their vertices have."""
    rng = np.random.default_rng(8)
    names = rng.permutation(80)
    left, right = zip(
        *((names[u + 40 * c], v + 30 * c) for c in range(2) for u in range(40) for v in range(30)
          if rng.random() < 0.5), strict=True,
    )  # fmt: skip
    b = bipartite_of("cpu", 80, 60, map(int, left), right)
    _, _, whole = parts_of(b, 3, 1 << 30)
    assert len(whole) == 1
    _, _, parts = parts_of(b, 3, 33_000)
    assert len(parts) == 2
    assert [len(part.graph.back_indptr) - 1 for part in parts] == [30, 30]


@pytest.fixture
def peak(device: str) -> Iterator[Any]:
    """Calls a function; the most bytes that it held beside what was there."""
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
        """Allocations go to a pool of their own, the most that it took from the device."""
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


@pytest.mark.parametrize("rows", ["compact", "htb"])
@pytest.mark.parametrize("limit", [1 << 20, 3 << 19])
def test_the_limit_is_kept(device: str, peak: Any, rows: str, limit: int) -> None:
    """Searches hold no more than they may. (On the CPU the copy of the graph and numbers a vertex
    are host memory, too, and come on top.)"""
    b = grouped(device, 100, 60_000, seed=9)
    program = Switches(rows=rows, priority=False, anchor=False)
    expected = gbc.count(b, 3, 3, program)
    unlimited = peak(lambda: gbc.count(b, 3, 3, program, memory_limit=1 << 30))
    held = peak(lambda: gbc.count(b, 3, 3, program, memory_limit=limit))
    assert gbc.count(b, 3, 3, program, memory_limit=limit) == expected
    of_host = 120 * (4000 + 4000) if device == "cpu" else 0
    assert held <= limit + of_host
    assert held < unlimited


@pytest.mark.parametrize("groups, a, b", [(4000, 5, 5), (2000, 16, 3), (2000, 3, 16)])
def test_what_the_limit_does_not_bound(peak: Any, device: str, groups: int, a: int, b: int) -> None:
    """Of a large graph of small groups, searched in many parts, all that is held beside a part is
    the copy in the order of ranks and so many bytes a vertex."""
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
    depth=st.integers(3, 9), spare=st.integers(0, 10**8), compact=st.booleans(),
    most=st.integers(1, 1000),
)  # fmt: skip
def test_spaces_fit(
    of_root: list[tuple[int, int]], depth: int, spare: int, compact: bool, most: int
) -> None:
    """On a device: all warps' spaces fit, and some launch has space for every root's levels."""
    columns, lines = np.array(of_root).T
    starts, cells = (np.concatenate(([0], np.cumsum(x))) for x in (columns, columns * lines))
    roots = np.arange(len(columns))
    job = Job(roots, starts, cells, lines, 10, 300, 400, depth, compact)
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
    """They are searched in a second launch, which a small budget makes necessary."""
    from algorithms.biclique.gbc import job_cuda
    from lpma.cuda import launch

    left, right = np.nonzero(np.random.default_rng(12).random((80, 200)) < 0.5)
    b = bipartite_of("cuda", 80, 200, left.tolist(), right.tolist())
    expected = gbc.count(b, 4, 5, Switches(rows="csr"))
    marked = []

    def record(name: str, kernel: Any, blocks: int, block: int, args: Any, *more: Any) -> None:
        if name.startswith("search"):
            marked.append(args[-3])
        start(name, kernel, blocks, block, args, *more)

    start = launch.start
    monkeypatch.setattr(launch, "start", record)
    monkeypatch.setattr(job_cuda, "LEAST_CELLS", 8)
    for program in (Switches(), Switches(edges=False), Switches(hybrid=False, stealing=False)):
        marked.clear()
        assert gbc.count(b, 4, 5, program, memory_limit=1 << 18) == expected
        assert set(marked) == {0, 1}


def test_devices_are_for_graphs_on_a_device() -> None:
    with pytest.raises(ValueError, match="bring it to a CUDA device"):
        gbc.count(bipartite_of("cpu", 1, 1, [0], [0]), 1, 1, devices=[0])


@pytest.mark.gpu
def test_devices_share_parts(cupy: Any) -> None:
    numbers = list(range(cupy.cuda.runtime.getDeviceCount())) * 2
    b = random_graph("cuda", 400, 500, 6000, seed=11)
    expected = gbc.count(b, 3, 3)
    assert gbc.count(b, 3, 3, devices=numbers) == expected
    assert gbc.count(b, 3, 3, devices=numbers, memory_limit=1 << 20) == expected
