"""Bicliques of all sizes at once: a tree of pivots, whose leaves are counted by their shapes.

Idea: a vertex that is joined with all candidates of the other side may be in a biclique or not,
freely. A leaf that holds h vertices of a side and has f free ones so stands for C(f, p - h) choices
of p, times the like of the other side: one leaf for all p and q, and for however many bicliques.
At a node, the *pivot* is the vertex with the fewest non-neighbours among the other side's
candidates. Each of these is held in turn, in a node of its own, and then is no candidate any more;
after them the pivot is joined with all, and free. Bicliques differ in whom they hold, so that none
is counted twice. Roots hold one vertex each, in the order by rising degree, with the later ones
that have enough neighbours in common with it. Sources: Ye et al., "Efficient biclique counting in
large bipartite graphs", SIGMOD 2023 (EPivoter), whose pivot is an edge, both ends of which free
their common neighbours; Ye, Li, Lin, Qiao and Wang, "Fast biclique counting on bipartite graphs: a
node pivot-based approach", arXiv 2412.16485 (NPivoter), whose pivot is a vertex, the one with the
fewest non-neighbours; both after Jain and Seshadhri, "The power of pivoting for exact clique
counting", WSDM 2020. Ours frees *all* that are joined with everything at once, so that a complete
part is one node.

Tricks: candidates are bits. Who has too few neighbours left is dropped; a node that may hold one
more vertex of a side needs no children, only degrees. Leaves of one shape (held and free vertices
of both sides) are only counted: numbers of leaves are small integers, and the product with the
binomials is taken in Python's, exact however large.

The work depends on the graph's shape far more than on p and q: it is little where parts are nearly
complete and lack edges in few places, and beyond all bounds where edges are strewn at random, or
where every vertex lacks another one: a complete graph without a perfect matching has 2^n maximal
bicliques. It runs on the CPU.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.pieces import THREADS, together

from . import pivot_cpu
from .bipartite import Bipartite, trimmed
from .interrupt import stoppable
from .order import by_degree
from .progress import watched

Array = npt.NDArray[Any]
Sizes = tuple[int, int]  # of the left side and of the right
Counts = dict[Sizes, int]

HALF = 32  # bits


def count(b: Bipartite, least: Sizes, most: Sizes) -> Counts:
    """{(p, q): the number of (p, q)-bicliques}, for all p and q from `least` to `most`. b: on the
    host."""
    counts = count_in_time(b, least, most, None)
    assert counts is not None
    return counts


def count_in_time(
    b: Bipartite, least: Sizes, most: Sizes, patience_s: float | None
) -> Counts | None:
    """As `count`; None where it is not done after so many seconds."""
    if _wedges(b.swapped()) <= _wedges(b):
        return count_from_left(b, least, most, patience_s)
    swapped = count_from_left(b.swapped(), least[::-1], most[::-1], patience_s)
    return swapped and {(p, q): number for (q, p), number in swapped.items()}


def count_from_left(
    b: Bipartite, least: Sizes, most: Sizes, patience_s: float | None = None
) -> Counts | None:
    """As `count`, from roots of the left side."""
    core = by_degree(trimmed(b, *least))
    rows = (core.left_indptr, core.left_indices, core.right_indptr, core.right_indices)
    counter = np.zeros(2, np.int64)
    if not pivot_cpu.count_shapes.signatures:  # to compile is not what patience is for
        together(pivot_cpu.count_shapes, [(np.full(2, core.num_left), *rows, least, most)])
    calls = [(counter, *rows, least, most)] * THREADS
    give_up = partial(counter.__setitem__, 1, 1)
    with watched(counter, core.num_left, give_up), _giving_up(give_up, patience_s):
        shapes = stoppable(pivot_cpu.count_shapes, calls, give_up)
    return None if counter[1] else _summed(np.concatenate(shapes), least, most)


@contextmanager
def _giving_up(give_up: Callable[[], None], after_s: float | None) -> Iterator[None]:
    """Within, call give_up() when the time is over."""
    if after_s is None:
        yield
        return
    timer = threading.Timer(after_s, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def _wedges(b: Bipartite) -> int:
    """Twice how many wedges have right vertices as ends, and the edges."""
    return int((b.left_degrees**2).sum())


def _summed(shapes: Array, least: Sizes, most: Sizes) -> Counts:
    """The bicliques of leaves, as in `count_shapes`."""
    by_left: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for left, right, leaves in shapes.tolist():
        by_left[left][right] += leaves
    counts = {(p, q): 0 for p in range(least[0], most[0] + 1) for q in range(least[1], most[1] + 1)}
    for left, rights in by_left.items():
        of_right = _choices(rights, least[1], most[1])
        for p, of_left in _choices({left: 1}, least[0], most[0]).items():
            for q, number in of_right.items():
                counts[p, q] += of_left * number
    return counts


def _choices(sides: dict[int, int], least: int, most: int) -> dict[int, int]:
    """{size: in how many ways a side of that size is chosen} of so many of each shape."""
    ways: dict[int, int] = defaultdict(int)
    for side, leaves in sides.items():
        held, free = side >> HALF, side & ((1 << HALF) - 1)
        for size in range(max(least, held), min(most, held + free) + 1):
            ways[size] += leaves * comb(free, size - held)
    return ways
