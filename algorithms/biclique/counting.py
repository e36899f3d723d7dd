"""(p, q)-bicliques counted: the faces, and which method is taken when.

A (p, q)-biclique is p vertices of the left side and q of the right, each joined with each. Counts
are Python's integers, exact however large: every method counts small things (degrees, pairs,
subsets, leaves) in 64 bits, and their products with binomials are summed in Python's integers.

The rule for one size, after trimming to the core that holds all such bicliques:

    p = 1 or q = 1      "closed": the sum of C(degree, q) over the left side, or its like
    p = 2 or q = 2      "wedges": butterflies by priority; else a histogram of common neighbours
                        over the pairs of the side that gives two
    else                "gbc", which enumerates subsets of one side

On the CPU `estimate` is asked first how much "gbc" would have to do. If more than AT_ONCE is
expected, "pivot" is tried for TRIED of the time that this would take: mostly it is over at once
where parts are nearly complete, whatever p and q are. Where a memory_limit is given it is not
tried, for its bitmaps know none. If more than MOST_WORK is expected and min(p, q) > FEW, "pivot" is
all that is done: the work of "gbc" grows with p and q, that of "pivot" does not.

On a device nothing is tried, and nothing estimated where min(p, q) ≤ FEW: "gbc" is often done
there in less time than the estimate takes. Where it is not, method="pivot" may be worth a try.

For all sizes at once the first two lines; then, on the CPU, "pivot" for all the rest, tried as
above; else "gbc", whose histograms answer for all sizes of the other side, where p or q is FEW or
less, and for larger ones "pivot", tried for PATIENCE_S. If that is not over, "gbc" for one p after
the other while it has MOST_WORK or less to do, and from there on "pivot", for as long as it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arrays import device_of, to_host

from . import checks, estimate, gbc, pivot, wedges
from .anchored import Anchoring, anchored
from .bipartite import Bipartite, bipartite, trimmed
from .progress import Progress, listening, part

Array = npt.NDArray[Any]  # or cupy.ndarray

FEW = 4  # vertices of the smaller side
AT_ONCE = 6e7  # candidates looked at on the CPU: a second or two
MOST_WORK = {"cpu": 3e9, "cuda": 3e11}  # a minute or two
PATIENCE_S = 1.0
TRIED = 0.1  # of the time that "gbc" is expected to take
CANDIDATES_PER_S = 5e7
THIN = 0.2  # what p ≤ 2 or q ≤ 2 are told to be of the work for all sizes

Counter = Callable[[Bipartite, int, int, int | None], int]


def count_bicliques(
    s: Any,
    p: int,
    q: int,
    left: Any = None,
    method: str = "auto",
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> int:
    """The number of (p, q)-bicliques of a bipartite graph: p vertices on the left, q on the right.

    s: a Snapshot, a scipy or cupyx CSR matrix, or (indptr, indices), read as an undirected graph.
    left: which rows are the left side, bool[n], or a number, the rows below it; None: in every
    component the side of its smallest vertex. method: "closed", "wedges", "gbc" or "pivot", or
    "auto", which takes them by the rule above. "pivot" runs on the CPU: it copies a graph from a
    device. memory_limit: bytes that a search of "gbc" may hold, beside the graph, a copy of it and
    some numbers a vertex (how many: see `gbc`); with it "pivot" is not tried before. The other
    methods leave it aside: they hold numbers a vertex, and "pivot" bitmaps of one root's
    neighbours and candidates for every thread. progress(done, all): called
    now and then, mostly from another thread, and at the end with done = all from the caller's;
    done never falls. What it raises ends the count, and is raised here.

    Raises `lpma.BatchError` where s is no graph or not bipartite, and ValueError on p or q below 1,
    on another method, or one that does not count such bicliques, and on a memory_limit that is no
    number of bytes or, saying what is needed, too small for "gbc"."""
    p, q = checks.sizes(p, q)
    memory_limit = checks.memory(memory_limit)
    if method not in ("auto", *METHODS):
        raise ValueError(f"method {method!r}: choose one of auto, {', '.join(METHODS)}")
    if FOR.get(method, p) not in (p, q):
        raise ValueError(f"method {method!r} is for p or q = {FOR[method]}, not ({p}, {q})")
    b = bipartite(s, left)
    with device_of(b.left_indptr), listening(progress):
        core = trimmed(b, p, q)
        count = _by_rule if method == "auto" else METHODS[method]
        return count(core, p, q, memory_limit) if core.num_edges else 0


def count_all_bicliques(
    s: Any, p_max: int, q_max: int, left: Any = None, progress: Progress | None = None
) -> dict[tuple[int, int], int]:
    """{(p, q): the number of (p, q)-bicliques} for p from 1 to p_max and q from 1 to q_max.

    s, left, progress and errors: see `count_bicliques`."""
    p_max, q_max = checks.sizes(p_max, q_max)
    b = bipartite(s, left)
    with device_of(b.left_indptr), listening(progress):
        with part(0, THIN):
            counts = _thin(b, p_max, q_max)
        if p_max > 2 and q_max > 2:
            with part(THIN, 1):
                counts |= _thick(trimmed(b, 3, 3), p_max, q_max)
    return {(p, q): counts[p, q] for p in range(1, p_max + 1) for q in range(1, q_max + 1)}


# One size ---------------------------------------------------------------------------------------


def _by_rule(b: Bipartite, p: int, q: int, memory_limit: int | None) -> int:
    least = min(p, q)
    if least <= 2:
        return (_closed if least == 1 else _by_wedges)(b, p, q, memory_limit)
    if b.on_device:
        method = _by_gbc if least <= FEW or _is_little(b, p, q) else _by_pivot
        return method(b, p, q, memory_limit)
    search = anchored(b, p, q, choose=True, priority=True, common=True)
    work = estimate.work(search)
    if least > FEW and work > MOST_WORK["cpu"]:
        return _by_pivot(b, p, q, memory_limit)
    found = _tried(b, (p, q), (p, q), work) if memory_limit is None else None
    if found is not None:
        return found[p, q]
    with part(TRIED, 1):
        return gbc.of_search(search, memory_limit=memory_limit)


def _tried(b: Bipartite, least: pivot.Sizes, most: pivot.Sizes, work: float) -> pivot.Counts | None:
    """The counts by "pivot", if it is worth a try where "gbc" has so much to do, and soon over."""
    if work <= AT_ONCE:
        return None
    with part(0, TRIED):
        return pivot.count_in_time(b, least, most, TRIED * work / CANDIDATES_PER_S)


def _is_little(b: Bipartite, p: int, q: int, choose: bool = True) -> bool:
    """Whether enumerating subsets is expected to come to an end soon. choose: of either side, not
    of the left alone."""
    search = anchored(b, p, q, choose=choose, priority=True, common=True)
    most = MOST_WORK["cuda" if b.on_device else "cpu"]
    return estimate.work(search, most) <= most


def _closed(b: Bipartite, p: int, q: int, memory_limit: int | None) -> int:
    return _chosen(b.left_degrees, q) if p == 1 else _chosen(b.right_degrees, p)


def _chosen(degrees: Array, size: int) -> int:
    """In how many ways so many neighbours of one vertex are chosen."""
    numbers, vertices = np.unique(to_host(degrees), return_counts=True)
    pairs = zip(numbers.tolist(), vertices.tolist(), strict=True)
    return sum(count * comb(degree, size) for degree, count in pairs)


def _by_wedges(b: Bipartite, p: int, q: int, memory_limit: int | None) -> int:
    if p == q == 2:
        return wedges.butterflies(b)
    if p == 2:
        return wedges.from_pairs(wedges.pairs(b, q), q)
    return wedges.from_pairs(wedges.pairs(b.swapped(), p), p)


def _by_gbc(b: Bipartite, p: int, q: int, memory_limit: int | None) -> int:
    return gbc.count(b, p, q, memory_limit=memory_limit)


def _by_pivot(b: Bipartite, p: int, q: int, memory_limit: int | None) -> int:
    return pivot.count(on_host(b), (p, q), (p, q))[p, q]


METHODS: dict[str, Counter] = {
    "closed": _closed,
    "wedges": _by_wedges,
    "gbc": _by_gbc,
    "pivot": _by_pivot,
}
FOR = {"closed": 1, "wedges": 2}  # what p or q must be


def on_host(b: Bipartite) -> Bipartite:
    """The same graph in NumPy's arrays."""
    return Bipartite(*(to_host(array) for array in vars(b).values()))


# All sizes ----------------------------------------------------------------------------------------


def _thin(b: Bipartite, p_max: int, q_max: int) -> pivot.Counts:
    """The counts of p ≤ 2 or q ≤ 2."""
    counts = {(1, q): _chosen(b.left_degrees, q) for q in range(1, q_max + 1)}
    counts |= {(p, 1): _chosen(b.right_degrees, p) for p in range(2, p_max + 1)}
    if p_max > 1 and q_max > 1:
        with part(0, 1, of=3):
            counts[2, 2] = wedges.butterflies(b)
    if p_max > 1 and q_max > 2:
        with part(1, 2, of=3):
            found = wedges.pairs(b, 3)
        counts |= {(2, q): wedges.from_pairs(found, q) for q in range(3, q_max + 1)}
    if q_max > 1 and p_max > 2:
        with part(2, 3, of=3):
            found = wedges.pairs(b.swapped(), 3)
        counts |= {(p, 2): wedges.from_pairs(found, p) for p in range(3, p_max + 1)}
    return counts


def _thick(b: Bipartite, p_max: int, q_max: int) -> pivot.Counts:
    """The counts of p, q ≥ 3, of a graph trimmed to these."""
    rows = _searches(b, range(3, min(p_max, FEW) + 1), 3)
    columns = _searches(b.swapped(), range(3, min(q_max, FEW) + 1), FEW + 1) if p_max > FEW else []
    if not b.on_device:
        work = sum(estimate.work(search) for search in (*rows, *columns))
        found = _tried(b, (3, 3), (p_max, q_max), work)
        if found is not None:
            return found
    with part(1, 2, of=4):
        counts = _by_histograms(rows, q_max)
    with part(2, 3, of=4):
        counts |= {(p, q): number for (q, p), number in _by_histograms(columns, p_max).items()}
    if min(p_max, q_max) > FEW:
        with part(3, 4, of=4):
            counts |= _large(b, p_max, q_max)
    return counts


def _large(b: Bipartite, p_max: int, q_max: int) -> pivot.Counts:
    """The counts of p, q > FEW."""
    with part(0, TRIED):
        least = (FEW + 1, FEW + 1)
        counts = pivot.count_in_time(on_host(b), least, (p_max, q_max), PATIENCE_S)
    if counts is not None:
        return counts
    with part(TRIED, 1):
        return _row_by_row(b, p_max, q_max)


def _row_by_row(b: Bipartite, p_max: int, q_max: int) -> pivot.Counts:
    """As `_large`, p by p. Pivots are given no limit: nothing is left to turn to."""
    counts: pivot.Counts = {}
    rows = p_max - FEW
    for row, p in enumerate(range(FEW + 1, p_max + 1)):
        core = trimmed(b, p, FEW + 1)
        if not _is_little(core, p, FEW + 1, choose=False):
            with part(row, rows, of=rows):
                return counts | pivot.count(on_host(core), (p, FEW + 1), (p_max, q_max))
        with part(row, row + 1, of=rows):
            counts |= _by_histograms(_searches(core, range(p, p + 1), FEW + 1), q_max)
    return counts


def _searches(b: Bipartite, of_left: range, least: int) -> list[Anchoring]:
    """For each of these p, how its subsets of the left side with `least` common neighbours are
    enumerated."""
    return [
        anchored(trimmed(b, p, least), p, least, choose=False, priority=True, common=True)
        for p in of_left
    ]


def _by_histograms(searches: list[Anchoring], q_max: int) -> pivot.Counts:
    counts: pivot.Counts = {}
    for number, search in enumerate(searches):
        with part(number, number + 1, of=len(searches)):
            found = gbc.subsets_of(search)
        sizes = range(search.least, q_max + 1)
        counts |= {(search.depth, q): gbc.total(found, q) for q in sizes}
    return counts
