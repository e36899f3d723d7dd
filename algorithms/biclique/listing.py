"""(p, q)-bicliques one by one, without holding more of them than one.

A left vertex at a time, in rising order: beside those chosen go their common neighbours and who, of
the later left vertices, shares q of these. What is next is therefore known to lead somewhere, and
the time between two bicliques is bounded by p looks at two-hop neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .bipartite import Bipartite, bipartite, trimmed
from .counting import _checked, on_host

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
    or a negative limit."""
    p, q = _checked(p, q)
    if limit is not None and limit < 0:
        raise ValueError(f"limit: {limit} bicliques; give 0 or more, or None for all")
    return islice(_all(on_host(trimmed(bipartite(s, left), p, q)), p, q), limit)


def _all(b: Bipartite, p: int, q: int) -> Iterator[Biclique]:
    everyone = np.arange(b.num_left)
    for chosen, common in _subsets(b, (), np.arange(b.num_right), everyone, p, q):
        of_left = tuple(b.left_ids[list(chosen)].tolist())
        for of_right in combinations(b.right_ids[common].tolist(), q):
            yield Biclique(of_left, of_right)


def _subsets(
    b: Bipartite, chosen: tuple[int, ...], common: Array, candidates: Array, p: int, q: int
) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Every p left vertices that begin with the chosen and go on in the candidates, and their
    common neighbours, q at least."""
    if len(chosen) == p:
        yield chosen, common
        return
    for u in candidates.tolist():
        row = b.left_indices[b.left_indptr[u] : b.left_indptr[u + 1]]
        shared = np.intersect1d(row, common, assume_unique=True)
        later = _sharing(b, shared, u, q)
        if len(chosen) + 1 + len(later) >= p:
            yield from _subsets(b, (*chosen, u), shared, later, p, q)


def _sharing(b: Bipartite, common: Array, u: int, q: int) -> Array:
    """The left vertices after u with q of these neighbours or more."""
    rows = [b.right_indices[b.right_indptr[v] : b.right_indptr[v + 1]] for v in common.tolist()]
    counts = np.bincount(np.concatenate(rows)) if rows else np.zeros(0, np.int64)
    sharing = np.flatnonzero(counts >= q)
    return sharing[sharing > u]
