"""Rows of many segments, whose lengths are read from the counts of windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma.arrays import to_host
from tests.support.oracles import host

rows = st.dictionaries(
    st.sampled_from([0, 1, 2, 5, 1000, 2**32 - 2]),
    st.tuples(st.integers(1, 400), st.sampled_from([1, 3, 9_000_000])),
    max_size=6,
)


@pytest.mark.parametrize("segment_size", [2, 8, 64])
@given(drawn=rows, gone=st.integers(0, 3), seed=st.integers(0, 99))
def test_lengths(device: str, segment_size: int, drawn: Any, gone: int, seed: int) -> None:
    """One at a time, several and repeated, in full and in pieces."""
    rng = np.random.default_rng(seed)
    g = lpma.Graph(device=device, segment_size=segment_size)
    expected = {u: set((step * np.arange(n)).tolist()) for u, (n, step) in drawn.items()}
    pairs = np.array([(u, v) for u, vs in expected.items() for v in vs], np.int64).reshape(-1, 2)
    g.insert(*rng.permutation(pairs).T)
    for u, v in pairs[rng.random(len(pairs)) < 0.2 * gone].tolist():
        expected[u].discard(v)
        g.delete(u, v)
    asked = [0, 1, 2, 5, 5, 7, 1000, 2**32 - 2, 0]
    lengths = [len(expected.get(u, ())) for u in asked]
    assert host(g.degree(asked)).tolist() == lengths
    assert [g.degree(u) for u in asked] == lengths
    for u in {*asked}:
        ids = sorted(expected.get(u, ()))
        assert g.neighbors(u).tolist() == ids
        for limit in (1, 7, 1000):
            assert to_host(g.successors_after(u, limit=limit).ids).tolist() == ids[:limit]
        if ids:
            after = ids[len(ids) // 2]
            later = g.successors_after(u, after, limit=50)
            assert to_host(later.ids).tolist() == [v for v in ids if v > after][:50]
