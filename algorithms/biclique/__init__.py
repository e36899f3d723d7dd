"""Bicliques of bipartite graphs: the (p, q)-bicliques counted, and listed one by one.

A (p, q)-biclique is p vertices of the left side and q of the right, all p adjacent to all q.

method=     takes             by                                                       in
"closed"    p = 1 or q = 1    degrees                                                  counting.py
"wedges"    p = 2 or q = 2    butterflies, and histograms of common neighbours         wedges/
"gbc"       any p, q          subsets of one side over bitmaps, on CPU and GPU         gbc/
"pivot"     any p, q          trees whose leaves stand for all sizes, on the CPU       pivot/
"auto"      any p, q          one of these, by a rule                                  counting.py

    bipartite/   the two sides of a graph, its (q, p)-core, and the order by degree
    counting     the rule, for one size and for all
    listing      bicliques one by one
    progress     progress callbacks and Ctrl-C while kernels run

Counts are Python's integers, exact however large.

Oracle: brute force over sets, closed forms and known counts (tests/support/bicliques.py).
"""

from __future__ import annotations

from typing import Annotated, Any

from lpma.arrays import device_of
from lpma.errors import BatchError

from .. import arguments
from ..options import MOST_COUNT, Limits, algorithm
from . import bipartite
from .listing import Biclique, list_bicliques
from .progress import Progress, listening

MOST_SIZES = 1 << 20  # counted at once
_FOR = {"closed": 1, "wedges": 2}  # the methods that need this p or q

__all__ = ["Biclique", "count_all_bicliques", "count_bicliques", "list_bicliques"]


@algorithm
def count_bicliques(
    s: Any,
    p: Annotated[int, Limits(ge=1)],
    q: Annotated[int, Limits(ge=1)],
    left: Any = None,
    method: Annotated[str, Limits(choices=("auto", "closed", "wedges", "gbc", "pivot"))] = "auto",
    memory_limit: Annotated[int | None, Limits(ge=1, most=MOST_COUNT)] = None,
    progress: Progress | None = None,
) -> int:
    """The number of (p, q)-bicliques of a bipartite graph: p vertices on the left, q on the right.

    >>> graph = lpma.from_edges([0, 0, 0, 1, 1, 2], [3, 4, 5, 3, 4, 5], device="cpu")
    >>> algorithms.count_bicliques(graph.snapshot(), 2, 2, left=3)
    1

    s: a Snapshot, a scipy or cupyx CSR matrix, or (indptr, indices), read as an undirected graph.
    p: how many vertices of the left side.
    q: how many vertices of the right side.
    left: which rows are the left side, as bool[n], or as a number, which means the rows below it.
    None: in every component, the side of its smallest vertex.
    method: how they are counted; auto takes what fits. The rule is in `counting`. "closed" is for p
    or q = 1 and "wedges" for p or q = 2; "gbc" and "pivot" are for any. "pivot" runs on the CPU, on
    a copy if the graph is on a device.
    memory_limit: the bytes that a search by "gbc" may hold, in addition to the graph, a copy of it
    and some numbers for each vertex (see `gbc`). With a limit, "auto" does not try "pivot" before
    "gbc". The other methods ignore it. They hold numbers for each vertex, and "pivot" for every
    thread the bitmaps of one root's neighbours and candidates.
    progress: progress(done, all) is called now and then, mostly from another thread, and at the end
    with done = all from the caller's. `done` never falls. What it raises ends the count, and is
    raised here.

    Raises `lpma.BatchError` if s is not a graph, or not bipartite, on p or q below 1, on an
    unknown method or one that cannot count such bicliques, and on a memory_limit that is not a
    number of bytes, or too small for "gbc" (the message says how much it needs)."""
    from . import counting  # when needed: importing kernels takes time

    check_method(method, p, q)
    count = counting.method_of(method)
    report = arguments.function(progress, "progress", "(done, all)")
    b = bipartite.bipartite(s, left)
    with device_of(b.left_indptr), listening(report):
        core = bipartite.trimmed(b, p, q)
        return count(core, p, q, memory_limit) if core.num_edges else 0


@algorithm
def count_all_bicliques(
    s: Any,
    p_max: Annotated[int, Limits(ge=1, le=MOST_SIZES)],
    q_max: Annotated[int, Limits(ge=1)],
    left: Any = None,
    progress: Progress | None = None,
) -> dict[tuple[int, int], int]:
    """{(p, q): the number of (p, q)-bicliques} for p from 1 to p_max and q from 1 to q_max.

    >>> graph = lpma.from_edges([0, 0, 0, 1, 1, 2], [3, 4, 5, 3, 4, 5], device="cpu")
    >>> algorithms.count_all_bicliques(graph.snapshot(), 2, 2, left=3)
    {(1, 1): 6, (1, 2): 4, (2, 1): 3, (2, 2): 1}

    p_max: the largest p.
    q_max: the largest q.

    s, left, progress and errors: as in `count_bicliques`; there are at most 2^20 sizes."""
    from . import counting  # when needed: importing kernels takes time

    q_max = arguments.integer(q_max, "q_max", 1, MOST_SIZES // p_max)
    report = arguments.function(progress, "progress", "(done, all)")
    b = bipartite.bipartite(s, left)
    with device_of(b.left_indptr), listening(report):
        return counting.all_sizes(b, p_max, q_max)


def check_method(method: str, p: int, q: int) -> None:
    """Raise BatchError unless the method can count (p, q)-bicliques."""
    if _FOR.get(method, p) not in (p, q):
        raise BatchError(f"method: {method} is for p or q = {_FOR[method]}, not ({p}, {q})")
