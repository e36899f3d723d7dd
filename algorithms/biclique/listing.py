"""(p, q)-bicliques one by one, never holding more than one.

Left vertices are chosen one at a time, in rising order. Each step keeps the common neighbours of
the chosen vertices, and the later left vertices that may still be chosen, both reduced to a core: a
left vertex needs q of the common neighbours, and a common neighbour as many of the left vertices as
are still to be chosen. Where too few are left, the search backtracks.

A vertex of the core may still be in no biclique: deciding whether there is any (p, q)-biclique is
NP-complete, even for p = q. So the time to the next one is bounded only by the size of the search,
which is exponential in p. The candidates and common neighbours of p steps are held.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Annotated, Any, NamedTuple

import numpy as np

from lpma.snapshot.vertices import OfRows

from ..arrays import Array
from ..options import MOST_COUNT, Limits, algorithm
from .bipartite import Bipartite, bipartite, trimmed


class _Biclique(NamedTuple):
    left: tuple[int | str, ...]
    right: tuple[int | str, ...]


class Biclique(OfRows, _Biclique):
    """The vertices of one biclique, rows that rise on each side; of a Snapshot with names, names in
    the order of the rows.

    >>> algorithms.Biclique(left=(0, 1), right=(3, 4)).right
    (3, 4)
    """

    row_fields = ("left", "right")


@algorithm
def list_bicliques(
    s: Any,
    p: Annotated[int, Limits(ge=1)],
    q: Annotated[int, Limits(ge=1)],
    left: Any = None,
    limit: Annotated[int | None, Limits(most=MOST_COUNT)] = None,
) -> Iterator[Biclique]:
    """An iterator over the (p, q)-bicliques, in the order of (left, right).

    >>> graph = lpma.from_edges([0, 0, 0, 1, 1, 2], [3, 4, 5, 3, 4, 5], device="cpu")
    >>> list(algorithms.list_bicliques(graph.snapshot(), 2, 1, left=3, limit=2))
    [Biclique(left=(0, 1), right=(3,)), Biclique(left=(0, 1), right=(4,))]

    s, p, q, left: as in `count_bicliques`; a graph on a device is copied to the host.
    limit: how many at most; None: all.

    Raises, when called, `lpma.BatchError` if s is no graph or not bipartite, on p or q below 1, and
    on a limit that is no whole number from 0 on."""
    found = islice(_all(trimmed(bipartite(s, left), p, q).on_host(), p, q), limit)
    if getattr(s, "names", None) is None:
        return (one.of(s) for one in found)
    return (one.of(s).vertices for one in found)


def _all(b: Bipartite, p: int, q: int) -> Iterator[Biclique]:
    for chosen, common in _subsets(b, p, q):
        of_left = tuple(b.left_ids[chosen].tolist())
        for of_right in combinations(b.right_ids[common].tolist(), q):
            yield Biclique(of_left, of_right)


@dataclass
class _Step:
    """The choice of one left vertex."""

    candidates: Array  # left vertices, rising
    common: Array  # the common neighbours of the vertices chosen in the steps before
    at: int = 0  # the first candidate that has not been chosen yet


def _subsets(b: Bipartite, p: int, q: int) -> Iterator[tuple[list[int], Array]]:
    """Every set of p left vertices with at least q common neighbours, and these neighbours."""
    steps = [_Step(np.arange(b.num_left), np.arange(b.num_right))]
    while steps:
        step = steps[-1]
        more = p - len(steps)  # vertices to be chosen after this step
        if step.at + more >= len(step.candidates):
            steps.pop()
            continue
        u = int(step.candidates[step.at])
        step.at += 1
        row = b.left_indices[b.left_indptr[u] : b.left_indptr[u + 1]]
        shared = np.intersect1d(row, step.common, assume_unique=True)
        if more:
            steps.append(_Step(*narrowed(b, step.candidates[step.at :], shared, more, q)))
        else:
            yield [int(before.candidates[before.at - 1]) for before in steps], shared


def narrowed(b: Bipartite, candidates: Array, common: Array, p: int, q: int) -> tuple[Array, Array]:
    """The core of both sets: candidates with q of the common neighbours, and common neighbours with
    p of the candidates."""
    rows = [b.right_indices[b.right_indptr[v] : b.right_indptr[v + 1]] for v in common.tolist()]
    right = np.repeat(np.arange(len(common)), [len(row) for row in rows])
    left = np.concatenate(rows) if rows else np.zeros(0, np.uint32)
    is_candidate = np.zeros(b.num_left, bool)
    is_candidate[candidates] = True
    kept = is_candidate[left]
    while True:
        left, right = left[kept], right[kept]
        of_left, of_right = np.bincount(left), np.bincount(right)
        kept = (of_left[left] >= q) & (of_right[right] >= p)
        if kept.all():
            return np.flatnonzero(of_left), common[np.flatnonzero(of_right)]
