"""Bicliques of bipartite graphs: the (p, q)-bicliques counted, and listed one by one.

A (p, q)-biclique is p vertices of the left side and q of the right, all p adjacent to all q.

method=     takes             by                                                       in
"closed"    p = 1 or q = 1    degrees                                                  counting.py
"wedges"    p = 2 or q = 2    butterflies, and histograms of common neighbours         wedges/
"gbc"       any p, q          subsets of one side over bitmaps, on CPU and GPU         gbc/
"pivot"     any p, q          trees whose leaves stand for all sizes, on the CPU       pivot/
"auto"      any p, q          one of these, by a rule                                  counting.py

    bipartite/   the two sides of a graph, its (q, p)-core, and the order by degree
    paper/       the GBC paper's own search, for its tables
    counting     the rule, for one size and for all
    listing      bicliques one by one
    progress     progress callbacks and Ctrl-C while kernels run

Counts are Python's integers, exact however large.

Oracle: brute force over sets, closed forms and known counts (tests/support/bicliques.py).
"""

from __future__ import annotations

from typing import Any

from lpma.arrays import device_of

from .. import arguments
from ..views.given import takes_graphs
from . import bipartite
from .listing import Biclique, list_bicliques
from .progress import Progress, listening

MOST_SIZES = 1 << 20  # counted at once

__all__ = ["Biclique", "count_all_bicliques", "count_bicliques", "list_bicliques"]


@takes_graphs
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

    >>> import lpma, algorithms
    >>> graph = lpma.Graph(device="cpu")
    >>> graph.insert([0, 0, 0, 1, 1, 2], [3, 4, 5, 3, 4, 5])
    >>> algorithms.count_bicliques(graph.snapshot(), 2, 2, left=3)
    1

    s: a Snapshot, a scipy or cupyx CSR matrix, or (indptr, indices), read as an undirected graph.
    left: which rows are the left side, as bool[n], or as a number, which means the rows below it.
    None: in every component, the side of its smallest vertex.
    method: "closed", "wedges", "gbc" or "pivot"; "auto" chooses one by the rule in `counting`.
    "pivot" runs on the CPU, on a copy if the graph is on a device.
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

    p, q = arguments.integer(p, "p", 1), arguments.integer(q, "q", 1)
    memory_limit = arguments.optional_limit(memory_limit, "memory_limit", 1, arguments.MOST_COUNT)
    count = counting.method_of(method, p, q)
    report = arguments.function(progress, "progress", "(done, all)")
    b = bipartite.bipartite(s, left)
    with device_of(b.left_indptr), listening(report):
        core = bipartite.trimmed(b, p, q)
        return count(core, p, q, memory_limit) if core.num_edges else 0


@takes_graphs
def count_all_bicliques(
    s: Any, p_max: int, q_max: int, left: Any = None, progress: Progress | None = None
) -> dict[tuple[int, int], int]:
    """{(p, q): the number of (p, q)-bicliques} for p from 1 to p_max and q from 1 to q_max.

    >>> import lpma, algorithms
    >>> graph = lpma.Graph(device="cpu")
    >>> graph.insert([0, 0, 0, 1, 1, 2], [3, 4, 5, 3, 4, 5])
    >>> algorithms.count_all_bicliques(graph.snapshot(), 2, 2, left=3)
    {(1, 1): 6, (1, 2): 4, (2, 1): 3, (2, 2): 1}

    s, left, progress and errors: as in `count_bicliques`; there are at most 2^20 sizes."""
    from . import counting  # when needed: importing kernels takes time

    p_max = arguments.integer(p_max, "p_max", 1, MOST_SIZES)
    q_max = arguments.integer(q_max, "q_max", 1, MOST_SIZES // p_max)
    report = arguments.function(progress, "progress", "(done, all)")
    b = bipartite.bipartite(s, left)
    with device_of(b.left_indptr), listening(report):
        return counting.all_sizes(b, p_max, q_max)
