"""Density bounds: their ends, that they narrow towards the root, and that a store that has just
grown or shrunk is far from doing either again."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import lpma
from lpma.pma.density import LOWER_LEAF, LOWER_ROOT, UPPER_LEAF, UPPER_ROOT, bounds
from lpma.pma.layout import level_and_offset, level_slots
from tests.support.layout_oracles import sizes_by_rank

SIZES = (2, 4, 8, 32, 1024)


def exactly(share: float) -> Fraction:
    return Fraction(str(share))


@pytest.mark.parametrize("segment_size", SIZES)
@pytest.mark.parametrize("m", [0, 1, 2, 3, 7, 20, 30])
def test_bounds_are_linear_in_the_layer(m: int, segment_size: int) -> None:
    """Capacity is the floor of upper times slots, the least the ceiling of lower times slots."""
    most, least = bounds(m, segment_size)
    assert most.dtype == least.dtype == np.int64
    assert len(most) == len(least) == m + 1
    for layer in range(m + 1):
        share = Fraction(layer, max(m, 1))
        slots = segment_size * 2**layer
        upper = exactly(UPPER_LEAF) + (exactly(UPPER_ROOT) - exactly(UPPER_LEAF)) * share
        lower = exactly(LOWER_LEAF) + (exactly(LOWER_ROOT) - exactly(LOWER_LEAF)) * share
        assert most[layer] == upper * slots // 1
        assert least[layer] == -(-lower * slots // 1)
        assert 0 <= least[layer] <= most[layer] <= slots


def test_the_ends() -> None:
    most, least = bounds(4, 32)
    assert (most[0], least[0]) == (32, 0)  # a leaf may be packed full, and be empty
    assert (most[4], least[4]) == (460, 154)  # 0.9 and 0.3 of 512
    most, least = bounds(0, 32)
    assert (most.tolist(), least.tolist()) == ([32], [0])


@pytest.mark.parametrize("segment_size", SIZES)
def test_bounds_narrow_towards_the_root(segment_size: int) -> None:
    most, least = bounds(12, segment_size)
    slots = segment_size << np.arange(13)
    assert (np.diff(most) > 0).all()
    assert (np.diff(least) >= 0).all()
    assert (most <= slots).all()
    assert (np.abs(most / slots - np.linspace(1.0, 0.9, 13)) <= 1 / slots).all()
    assert (np.abs(least / slots - np.linspace(0.0, 0.3, 13)) <= 1 / slots).all()


@pytest.mark.parametrize("segment_size", SIZES)
def test_growing_and_shrinking_do_not_alternate(segment_size: int) -> None:
    for m in range(20):
        most, least = bounds(m, segment_size)[0][m], bounds(m, segment_size)[1][m]
        wider_most, wider_least = (bound[m + 1] for bound in bounds(m + 1, segment_size))
        grown = most + 1  # the fewest edges that make a store of m levels expand
        assert grown <= wider_most
        assert grown >= wider_least, "an expansion may not ask for a shrink"
        assert wider_least - 1 <= most, "a shrink may not ask for an expansion"
        assert m == 0 or wider_least - 1 >= least, "one level is enough for one edge too few"


@pytest.mark.parametrize("edges", [0, 1, 40, 5000])
def test_the_density_of_each_level(device: str, edges: int) -> None:
    """Against the segments one by one; and all levels together are as dense as the store."""
    g = lpma.Graph(device=device, segment_size=4)
    rng = np.random.default_rng(edges)
    for src, dst in rng.integers(1000, size=(4, 2, edges // 4 + bool(edges))):
        g.insert(src, dst)
    densities = g.level_densities()
    held = [0] * (g.levels + 1)
    for rank, size in enumerate(sizes_by_rank(g._stores.out.segments)):
        held[level_and_offset(rank, g.levels)[0]] += size
    slots = [level_slots(level, 4) for level in range(g.levels + 1)]
    assert densities.tolist() == [h / s for h, s in zip(held, slots, strict=True)]
    assert np.average(densities, weights=slots) == pytest.approx(g.density)
