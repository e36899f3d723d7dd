"""Which method counts the (p, q)-bicliques of a graph, for one size and for all.

Every method counts small things (degrees, pairs, subsets, leaves) in 64 bits. Their products with
binomials are summed in Python's integers, so counts are exact however large.

One size, in a graph trimmed to the core that contains all such bicliques:

    p = 1 or q = 1           "closed": the sum of C(degree, q) over the left side, or of
                             C(degree, p) over the right
    p = 2 or q = 2           "wedges": butterflies by priority; else a histogram of common
                             neighbours over the pairs of the side with two vertices
    min(p, q) > FEW and      "pivot": the work of "gbc" grows with p and q, that of "pivot" does not
    work > MOST_WORK
    work > AT_ONCE           CPU, no memory_limit: "pivot" for TRIED of the time expected of "gbc",
                             since it is quick where subgraphs are nearly complete; then "gbc"
    else                     "gbc"

The work is that of "gbc" by `estimate`. On a device, where "gbc" often beats the estimate, it is
not estimated if min(p, q) ≤ FEW.

All sizes at once: the first two lines hold. For the rest "pivot" is tried on the CPU, as above. If
it does not finish, "gbc" counts the sizes with p or q ≤ FEW, whose histograms serve all sizes of
the other side. For larger p and q, "pivot" is tried for PATIENCE_S; then "gbc" counts one p after
the other while its work is at most MOST_WORK, and "pivot" what is left, however long it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import numpy as np

from lpma.arrays import to_host

from ..arrays import Array
from . import gbc, pivot, wedges
from .bipartite import Bipartite, trimmed
from .gbc import Search, estimate
from .gbc.anchor import choose_anchor
from .progress import part

FEW = 4  # vertices of the smaller side
# Work is in candidates examined, as by `estimate.work`.
AT_ONCE = 6e7  # a second or two on the CPU
MOST_WORK = {"cpu": 3e9, "cuda": 3e11}  # a minute or two
CANDIDATES_PER_S = 5e7  # on the CPU
PATIENCE_S = 1.0
TRIED = 0.1  # the share of the expected time of "gbc" for which "pivot" is tried
THIN = 0.2  # the share of sizes with p ≤ 2 or q ≤ 2 in the progress that is reported for all sizes

Counter = Callable[[Bipartite, int, int, int | None], int]


# One size ---------------------------------------------------------------------------------------


def method_of(name: str) -> Counter:
    """The method of that name, "auto" for the rule. REQUIRES of its caller: a graph trimmed for p
    and q that has edges."""
    return _by_rule if name == "auto" else METHODS[name]


def _by_rule(b: Bipartite, p: int, q: int, memory_limit: int | None) -> int:
    least = min(p, q)
    if least <= 2:
        return (_closed if least == 1 else _by_wedges)(b, p, q, memory_limit)
    if b.on_device:
        method = gbc.count if least <= FEW or _is_little(b, p, q) else _by_pivot
        return method(b, p, q, memory_limit)
    search = choose_anchor(b, p, q)
    work = estimate.work(search)
    if least > FEW and work > MOST_WORK["cpu"]:
        return _by_pivot(b, p, q, memory_limit)
    found = _tried(b, (p, q), (p, q), work) if memory_limit is None else None
    if found is not None:
        return found[p, q]
    with part(TRIED, 1):
        return gbc.count_by(search, memory_limit)


def _tried(b: Bipartite, least: pivot.Sizes, most: pivot.Sizes, work: float) -> pivot.Counts | None:
    """The counts by "pivot"; None if "gbc" has so little work that it is not tried, or if it takes
    too long."""
    if work <= AT_ONCE:
        return None
    with part(0, TRIED):
        return pivot.count_in_time(b, least, most, TRIED * work / CANDIDATES_PER_S)


def _is_little(b: Bipartite, p: int, q: int, choose: bool = True) -> bool:
    """Whether enumerating subsets is expected to end soon. choose: subsets of the cheaper side;
    else of the left one."""
    most = MOST_WORK["cuda" if b.on_device else "cpu"]
    return estimate.work(choose_anchor(b, p, q, choose), most) <= most


def _closed(b: Bipartite, p: int, q: int, memory_limit: int | None) -> int:
    return _chosen(b.left_degrees, q) if p == 1 else _chosen(b.right_degrees, p)


def _chosen(degrees: Array, size: int) -> int:
    """The number of ways to choose one vertex and `size` of its neighbours."""
    values, vertices = np.unique(to_host(degrees), return_counts=True)
    pairs = zip(values.tolist(), vertices.tolist(), strict=True)
    return sum(count * comb(degree, size) for degree, count in pairs)


def _by_wedges(b: Bipartite, p: int, q: int, memory_limit: int | None) -> int:
    if p == q == 2:
        return wedges.butterflies(b)
    if p == 2:
        return gbc.total(wedges.pairs(b, q), q)
    return gbc.total(wedges.pairs(b.swapped(), p), p)


def _by_pivot(b: Bipartite, p: int, q: int, memory_limit: int | None) -> int:
    return pivot.count(b.on_host(), (p, q), (p, q))[p, q]


METHODS: dict[str, Counter] = {
    "closed": _closed,
    "wedges": _by_wedges,
    "gbc": gbc.count,
    "pivot": _by_pivot,
}


# All sizes ----------------------------------------------------------------------------------------


def all_sizes(b: Bipartite, p_max: int, q_max: int) -> pivot.Counts:
    """{(p, q): the number of (p, q)-bicliques} for p from 1 to p_max and q from 1 to q_max."""
    with part(0, THIN):
        counts = _thin(b, p_max, q_max)
    if p_max > 2 and q_max > 2:
        with part(THIN, 1):
            counts |= _thick(trimmed(b, 3, 3), p_max, q_max)
    return {(p, q): counts[p, q] for p in range(1, p_max + 1) for q in range(1, q_max + 1)}


def _thin(b: Bipartite, p_max: int, q_max: int) -> pivot.Counts:
    """The counts for p ≤ 2 or q ≤ 2."""
    counts = {(1, q): _chosen(b.left_degrees, q) for q in range(1, q_max + 1)}
    counts |= {(p, 1): _chosen(b.right_degrees, p) for p in range(2, p_max + 1)}
    if p_max > 1 and q_max > 1:
        with part(0, 1, of=3):
            counts[2, 2] = wedges.butterflies(b)
    if p_max > 1 and q_max > 2:
        with part(1, 2, of=3):
            found = wedges.pairs(b, 3)
        counts |= {(2, q): gbc.total(found, q) for q in range(3, q_max + 1)}
    if q_max > 1 and p_max > 2:
        with part(2, 3, of=3):
            found = wedges.pairs(b.swapped(), 3)
        counts |= {(p, 2): gbc.total(found, p) for p in range(3, p_max + 1)}
    return counts


def _thick(b: Bipartite, p_max: int, q_max: int) -> pivot.Counts:
    """The counts for p, q ≥ 3. REQUIRES: b is trimmed for these."""
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
    """The counts for p, q > FEW."""
    with part(0, TRIED):
        least = (FEW + 1, FEW + 1)
        counts = pivot.count_in_time(b.on_host(), least, (p_max, q_max), PATIENCE_S)
    if counts is not None:
        return counts
    with part(TRIED, 1):
        return _row_by_row(b, p_max, q_max)


def _row_by_row(b: Bipartite, p_max: int, q_max: int) -> pivot.Counts:
    """As `_large`, one p after the other. "pivot" has no time limit here: no method is left."""
    counts: pivot.Counts = {}
    rows = p_max - FEW
    for row, p in enumerate(range(FEW + 1, p_max + 1)):
        core = trimmed(b, p, FEW + 1)
        if not _is_little(core, p, FEW + 1, choose=False):
            with part(row, rows, of=rows):
                return counts | pivot.count(core.on_host(), (p, FEW + 1), (p_max, q_max))
        with part(row, row + 1, of=rows):
            counts |= _by_histograms(_searches(core, range(p, p + 1), FEW + 1), q_max)
    return counts


def _searches(b: Bipartite, of_left: range, least: int) -> list[Search]:
    """For each of these p, the search for p-subsets of the left side with at least `least` common
    neighbours."""
    return [choose_anchor(trimmed(b, p, least), p, least, choose=False) for p in of_left]


def _by_histograms(searches: list[Search], q_max: int) -> pivot.Counts:
    counts: pivot.Counts = {}
    for number, search in enumerate(searches):
        with part(number, number + 1, of=len(searches)):
            found = gbc.histogram(search)
        sizes = range(search.least, q_max + 1)
        counts |= {(search.depth, q): gbc.total(found, q) for q in sizes}
    return counts
