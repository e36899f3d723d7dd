"""Hops: breadth-first search from many vertices at once, outside a batch, in each way that a device
has for it."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma.arrays import to_host
from tests.conftest import missing
from tests.support.compiled import compile_kernels
from tests.support.strategies import edge_lists


def within(edges: list[tuple[int, int]], start: int, steps: int) -> list[int]:
    """By the definition, a level at a time."""
    targets = defaultdict(set)
    for u, v in edges:
        targets[u].add(v)
    reached: set[int] = set()
    frontier = {start}
    for _ in range(steps):
        frontier = {v for u in frontier for v in targets[u]}
        reached |= frontier
    return sorted(reached)


def answered(g: lpma.Graph, starts: list[int], steps: int) -> list[list[int]]:
    found = g.hops(np.array(starts, np.uint32), steps)
    indptr, ids = to_host(found.indptr), to_host(found.ids)
    return [ids[lo:hi].tolist() for lo, hi in pairwise(indptr)]


@given(
    drawn=edge_lists(20), steps=st.integers(1, 6), directed=st.booleans(),
    starts=st.lists(st.integers(0, 25), max_size=6),
)  # fmt: skip
def test_small_graphs(
    device: str, drawn: tuple[int, Any, Any], steps: int, directed: bool, starts: list[int]
) -> None:
    _, src, dst = drawn
    g = lpma.Graph(device=device, directed=directed, segment_size=4)
    g.insert(src, dst)
    edges = list(zip(src.tolist(), dst.tolist(), strict=True))
    edges += [] if directed else [(v, u) for u, v in edges]
    assert answered(g, starts, steps) == [within(edges, u, steps) for u in starts]


@pytest.mark.parametrize("bits", ["enough", "few", "none"])
def test_ways(device: str, bits: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a device, bits for all queries, for some at a time, and for none, when pairs are sorted.
    On the CPU, bits for all ids, for few at first, and for few, so that most ids are far."""
    if device == "cuda":
        from lpma.backend.cuda.read import hops as on_device

        most = {"enough": 1 << 28, "few": 400, "none": 0}
        monkeypatch.setattr(on_device, "MOST_BYTES", most[bits])
    else:
        from lpma.backend.numba import hops

        compile_kernels()
        monkeypatch.setattr(hops, "FIRST_BITS", 1 << 18 if bits == "enough" else 64)
        monkeypatch.setattr(hops, "FIRST_FAR", 2)
        monkeypatch.setattr(hops, "MOST_BITS", 64 if bits == "none" else 1 << 26)
    rng = np.random.default_rng(4)
    n, m = 700, 2500
    src, dst = rng.integers(0, n, m), np.minimum(rng.integers(0, n, m), rng.integers(0, n, m))
    g = lpma.Graph(device=device, segment_size=8)
    g.insert(src, dst)
    edges = list(zip(src.tolist(), dst.tolist(), strict=True))
    starts = rng.integers(0, n + 9, 40).tolist()
    for steps in (1, 2, 4):
        assert answered(g, starts, steps) == [within(edges, u, steps) for u in starts]


@pytest.mark.parametrize("most_bits", [1 << 26, 64])
@given(
    drawn=edge_lists(20), rows=st.lists(st.tuples(*[st.integers(0, 22)] * 3), max_size=30),
    directed=st.booleans(), scale=st.sampled_from([1, 90]),
)  # fmt: skip
def test_within_a_batch(
    device: str, most_bits: int, drawn: tuple[int, Any, Any], rows: list[tuple[int, int, int]],
    directed: bool, scale: int,
) -> None:  # fmt: skip
    """Each query sees the updates before it. scale: ids beyond the bits that there are at first."""
    _, src, dst = drawn
    g = lpma.Graph(device=device, directed=directed, segment_size=4)
    g.insert(scale * src, scale * dst)
    edges = set(zip((scale * src).tolist(), (scale * dst).tolist(), strict=True))
    batch, expected = lpma.Batch(), []
    for what, u, v in rows:
        pair = scale * u, scale * v
        if what < 7:
            batch.insert(*pair)
            edges.add(pair)
        elif what < 13:
            batch.delete(*pair)
            edges -= {pair} if directed else {pair, pair[::-1]}
        else:
            batch.hops(pair[0], 1 + what % 4)
            both = [*edges] + ([] if directed else [(b, a) for a, b in edges])
            expected.append(within(both, pair[0], 1 + what % 4))
    batch.insert(1, 2)
    with pytest.MonkeyPatch.context() as patched:
        if device == "cpu":
            from lpma.backend.numba import hops

            compile_kernels()
            patched.setattr(hops, "FIRST_BITS", 64)
            patched.setattr(hops, "FIRST_FAR", 2)
            patched.setattr(hops, "MOST_BITS", most_bits)
        answers: Any = g.apply(batch)
    assert [to_host(answers[i].ids).tolist() for i in range(len(expected))] == expected


@pytest.mark.gpu
def test_of_each_of_many_steps() -> None:
    """Queries with steps of their own, in one batch without updates; a path, whose frontier is one
    vertex for 255 rounds; ids near the largest, for which there are no bits."""
    for shift in (0, 2**32 - 400):
        try:
            g = lpma.Graph(device="cuda")
        except lpma.DeviceError as error:
            missing("gpu", str(error))
        g.insert(np.arange(300) + shift, np.arange(1, 301) + shift)
        batch = lpma.Batch()
        for k in (1, 255, 17, 2):
            batch.hops(shift, k)
        answers: Any = g.apply(batch)
        for number, k in enumerate((1, 255, 17, 2)):
            assert to_host(answers[number].ids).tolist() == [shift + i for i in range(1, k + 1)]
