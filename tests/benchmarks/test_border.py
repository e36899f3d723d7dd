"""Border: the same graph in an order in which truncated bitmaps have fewer words."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given

from algorithms.biclique.bipartite import Bipartite
from benchmarks.papers.border import reordered
from benchmarks.papers.gbc.truncated import truncated
from lpma.arrays import to_host
from tests.support.bicliques import bipartite_of, edges, left_lists


@given(graph=edges(most=70))
def test_border_reorders(device: str, graph: Any) -> None:
    """The same edges under the vertices' ids."""
    b = bipartite_of(device, *graph)
    new = reordered(b, iterations=20)
    for one, other in ((b, new), (b.swapped(), new.swapped())):
        assert _edges(other) == _edges(one)
        lists = left_lists(other)
        assert lists == [sorted(row) for row in lists]


def _edges(b: Bipartite) -> set[tuple[int, int]]:
    left, right = to_host(b.left_ids).tolist(), to_host(b.right_ids).tolist()
    return {(left[u], right[v]) for u, row in enumerate(left_lists(b)) for v in row}


def test_border_saves_words() -> None:
    """Groups whose columns were mixed are brought together again."""
    rng = np.random.default_rng(7)
    group = rng.permutation(np.repeat(np.arange(8), 32))  # of each column
    left, right = np.nonzero(rng.integers(0, 8, 300)[:, None] == group[None, :])
    kept = rng.random(len(left)) < 0.3
    b = bipartite_of("cpu", 300, 256, left[kept].tolist(), right[kept].tolist())
    before, after = (len(truncated(x.left_indptr, x.left_indices).words) for x in (b, reordered(b)))
    assert after < 0.8 * before
