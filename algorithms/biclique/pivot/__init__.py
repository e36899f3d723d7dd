"""Bicliques of all sizes at once: a tree of pivots, whose leaves are counted by their shapes.

Idea: a vertex that is adjacent to all candidates of the other side may or may not be in a biclique;
it is *free*. A leaf that holds h vertices of a side and has f free ones stands for C(f, p - h)
choices of p vertices, times as much for the other side. So one leaf serves all p and q. At a node,
the *pivot* is the vertex with the fewest non-neighbours among the candidates of the other side.
Each of these is held in turn, in a child of the node, and is no candidate afterwards; the pivot is
then adjacent to all candidates left, and becomes free. Bicliques in different leaves differ in the
vertices they hold, so none is counted twice. Each root holds one vertex; its candidates are the
vertices of its side that come later by rising degree and share enough neighbours with it.

Sources: Ye et al., "Efficient biclique counting in large bipartite graphs", SIGMOD 2023 (EPivoter),
whose pivot is an edge, both ends of which free their common neighbours. Ye, Li, Lin, Qiao and Wang,
"Fast biclique counting on bipartite graphs: a node pivot-based approach", arXiv 2412.16485
(NPivoter), whose pivot is the vertex with the fewest non-neighbours. Both follow Jain and
Seshadhri, "The power of pivoting for exact clique counting", WSDM 2020, arXiv 2001.06784. Ours
frees *all* vertices that are adjacent to every candidate at once, so that a complete subgraph is
one node.

Tricks: sets of candidates are bits. Vertices with too few neighbours left are dropped. A node that
may hold only one more vertex of a side needs no children, only degrees. Leaves are only counted by
their shape, the numbers of held and free vertices on both sides; products with binomials are taken
in Python's integers, exact however large.

The work depends far more on the graph than on p and q. It is small where subgraphs are nearly
complete, and has no useful bound where edges are random or every vertex has a non-neighbour: a
complete bipartite graph without a perfect matching has 2^n maximal bicliques. CPU only.

tree_cpu       walks the tree of each root, and counts leaves by shape
subgraph_cpu   makes a root's subgraph, of sets as bits

Oracle: brute force and closed forms (tests/algorithms/test_bicliques.py).
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import comb

import numpy as np

from lpma.cpu.threads import THREADS, run_all

from ...arrays import Array
from ..bipartite import Bipartite, by_degree, trimmed
from ..progress import stoppable, watched
from .tree_cpu import count_shapes

Sizes = tuple[int, int]  # of the left side and of the right
Counts = dict[Sizes, int]

HALF = 32  # bits


def count(b: Bipartite, least: Sizes, most: Sizes) -> Counts:
    """{(p, q): the number of (p, q)-bicliques} for all p and q from `least` to `most`, both
    included.

    REQUIRES: b is on the host."""
    counts = count_in_time(b, least, most, None)
    assert counts is not None
    return counts


def count_in_time(
    b: Bipartite, least: Sizes, most: Sizes, patience_s: float | None
) -> Counts | None:
    """As `count`; None if it is not done after patience_s, if that is a limit."""
    if _wedges(b.swapped()) <= _wedges(b):
        return count_from_left(b, least, most, patience_s)
    swapped = count_from_left(b.swapped(), least[::-1], most[::-1], patience_s)
    return swapped and {(p, q): number for (q, p), number in swapped.items()}


def count_from_left(
    b: Bipartite, least: Sizes, most: Sizes, patience_s: float | None = None
) -> Counts | None:
    """As `count_in_time`, with roots on the left side."""
    core = by_degree(trimmed(b, *least))
    counter = np.zeros(2, np.int64)
    if not count_shapes.signatures:  # the time to compile does not count against patience_s
        run_all(count_shapes, [(np.full(2, core.num_left), *core.rows, least, most)])
    calls = [(counter, *core.rows, least, most)] * THREADS
    give_up = partial(counter.__setitem__, 1, 1)
    with watched(counter, core.num_left, give_up), _giving_up(give_up, patience_s):
        shapes = stoppable(count_shapes, calls, give_up)
    return None if counter[1] else _summed(np.concatenate(shapes), least, most)


@contextmanager
def _giving_up(give_up: Callable[[], None], after_s: float | None) -> Iterator[None]:
    """Within this context, call give_up() when `after_s` seconds are over."""
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
    """Twice the number of wedges whose ends are right vertices, plus the number of edges."""
    return int((b.left_degrees**2).sum())


def _summed(shapes: Array, least: Sizes, most: Sizes) -> Counts:
    """The numbers of bicliques of leaves. shapes: int64[shapes, 3], as by `count_shapes`."""
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
    """{size: in how many ways a side of that size can be chosen}.

    sides: {held << HALF | free: how many leaves have such a side}."""
    ways: dict[int, int] = defaultdict(int)
    for side, leaves in sides.items():
        held, free = side >> HALF, side & ((1 << HALF) - 1)
        for size in range(max(least, held), min(most, held + free) + 1):
            ways[size] += leaves * comb(free, size - held)
    return ways
