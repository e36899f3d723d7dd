"""(p, q)-bicliques one by one, without holding more of them than one.

A left vertex at a time, in rising order: beside those chosen go their common neighbours, and who
of the later left vertices may still be chosen. These two are narrowed to a core: a left vertex
needs q of the common neighbours, and a common neighbour as many of the left vertices as are still
to be chosen. Where too few are left, nothing is begun.

Who is left may yet be in no biclique. Whether there is a (p, q)-biclique at all is NP-complete,
even for p = q, so that the time to the first, or between two, has no bound but the size of the
search, exponential in p. What is held are the candidates and common neighbours of p steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import checks
from .bipartite import Bipartite, bipartite, trimmed
from .counting import on_host

Array = npt.NDArray[Any]


class Biclique(NamedTuple):
    """Vertices, rising on either side."""

    left: tuple[int, ...]
    right: tuple[int, ...]


def list_bicliques(
    s: Any, p: int, q: int, left: Any = None, limit: int | None = None
) -> Iterator[Biclique]:
    """The (p, q)-bicliques, in the order of (left, right), and `limit` of them at most.

    s and left: see `count_bicliques`; a graph on a device is copied to the host. Raises, when
    called, `lpma.BatchError` where s is no graph or not bipartite, and ValueError on p or q below 1
    or a limit that is no whole number from 0 on."""
    p, q = checks.sizes(p, q)
    limit = checks.number(limit)
    return islice(_all(on_host(trimmed(bipartite(s, left), p, q)), p, q), limit)


def _all(b: Bipartite, p: int, q: int) -> Iterator[Biclique]:
    for chosen, common in _subsets(b, p, q):
        of_left = tuple(b.left_ids[chosen].tolist())
        for of_right in combinations(b.right_ids[common].tolist(), q):
            yield Biclique(of_left, of_right)


@dataclass
class _Step:
    """Where a left vertex is chosen: of the candidates, those before `at` have been."""

    candidates: Array  # left vertices, rising
    common: Array  # the common neighbours of who was chosen before
    at: int = 0


def _subsets(b: Bipartite, p: int, q: int) -> Iterator[tuple[list[int], Array]]:
    """Every p left vertices with q common neighbours or more, and these."""
    steps = [_Step(np.arange(b.num_left), np.arange(b.num_right))]
    while steps:
        step = steps[-1]
        more = p - len(steps)  # to be chosen after this one
        if step.at + more >= len(step.candidates):
            steps.pop()
            continue
        u = int(step.candidates[step.at])
        step.at += 1
        row = b.left_indices[b.left_indptr[u] : b.left_indptr[u + 1]]
        shared = np.intersect1d(row, step.common, assume_unique=True)
        if more:
            steps.append(_Step(*_narrowed(b, step.candidates[step.at :], shared, more, q)))
        else:
            yield [int(before.candidates[before.at - 1]) for before in steps], shared


def _narrowed(
    b: Bipartite, candidates: Array, common: Array, p: int, q: int
) -> tuple[Array, Array]:
    """Of both, those that have q and p of the other: nothing else is in a (p, q)-biclique."""
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
