"""The map rank ⇄ (level, offset) ⇄ heap number, exhaustively for small trees, against its
formulas and against a walk through the tree."""

from __future__ import annotations

import pytest
from numba import njit

from lpma.backend.numba import addressing
from lpma.pma.layout import heap_number, level_and_offset
from tests.support.layout_oracles import breadth_first, in_order

TREES = range(8)


def rank_of(level: int, offset: int, m: int) -> int:
    """Inverse of `level_and_offset`."""
    return 0 if level == 0 else (2 * offset + 1) << (m - level)


def test_the_papers_order() -> None:
    """Section III-B: s0 s4 s2 s5 s1 s6 s3 s7 after the expansion, s0 s2 s1 s3 before."""
    assert [heap_number(rank, 2) for rank in range(4)] == [0, 2, 1, 3]
    assert [heap_number(rank, 3) for rank in range(8)] == [0, 4, 2, 5, 1, 6, 3, 7]


@pytest.mark.parametrize("m", TREES)
def test_against_a_walk_through_the_tree(m: int) -> None:
    numbers = breadth_first(m)
    segments = in_order(m)
    assert len(segments) == 2**m
    for rank, segment in enumerate(segments):
        assert level_and_offset(rank, m) == segment
        assert rank_of(*segment, m) == rank
        assert heap_number(rank, m) == numbers[segment]


@pytest.mark.parametrize("m", TREES)
def test_against_the_formulas(m: int) -> None:
    """Equation (2), and Equation (1) with its exponent put right."""
    assert level_and_offset(0, m) == (0, 0)
    for rank in range(1, 2**m):
        divisor = rank & -rank  # the greatest common divisor of the rank and 2^m
        level, offset = m - (divisor.bit_length() - 1), (rank // divisor - 1) // 2
        assert level_and_offset(rank, m) == (level, offset)
        assert 1 <= level <= m
        assert 0 <= offset < 2 ** (level - 1)
        assert rank_of(level, offset, m) == rank == (2 * offset + 1) * 2 ** (m - level)
        assert heap_number(rank, m) == 2 ** (level - 1) + offset


@pytest.mark.parametrize("m", TREES)
def test_expansion_keeps_numbers_and_places(m: int) -> None:
    """Rank i becomes 2 i; level, offset and heap number stay; the odd ranks are the new level."""
    for rank in range(2**m):
        assert level_and_offset(2 * rank, m + 1) == level_and_offset(rank, m)
        assert heap_number(2 * rank, m + 1) == heap_number(rank, m)
        assert level_and_offset(2 * rank + 1, m + 1) == (m + 1, rank)
        assert heap_number(2 * rank + 1, m + 1) == 2**m + rank


@pytest.mark.parametrize("m", TREES)
def test_expansion_keeps_windows(m: int) -> None:
    """Window w of 2^layer segments is window w of 2^(layer+1), over the same old segments."""

    def segments_under(w: int, levels: int) -> set[tuple[int, int]]:
        layer = levels - (w.bit_length() - 1)
        first = (w << layer) - 2**levels
        return set(in_order(levels)[first : first + 2**layer])

    for w in range(1, 2 ** (m + 1)):
        old, new = segments_under(w, m), segments_under(w, m + 1)
        assert len(new) == 2 * len(old)
        assert {segment for segment in new if segment[0] <= m} == old


@pytest.mark.parametrize("m", TREES)
def test_a_walk_down_the_fences_ends_at_the_rank(m: int) -> None:
    """Fence p splits window p: with fences that equal ranks, locating r ends in leaf 2^m + r,
    whose trailing zeros name the segment."""
    fences = {heap_number(rank, m): rank for rank in range(1, 2**m)}
    for rank in range(2**m):
        p = 1
        for _ in range(m):
            p = 2 * p + (rank >= fences[p])
        assert p == 2**m + rank
        zeros = (p & -p).bit_length() - 1
        assert p >> (zeros + 1) == heap_number(rank, m)


def test_large_ranks() -> None:
    """The deepest tree that 2^48 segments make; ranks near its ends and its middle."""
    m = 48
    for rank in (0, 1, 2, 3, 2**47 - 1, 2**47, 2**47 + 1, 2**48 - 2, 2**48 - 1):
        level, offset = level_and_offset(rank, m)
        assert rank_of(level, offset, m) == rank
    assert heap_number(2**47, m) == 1
    assert level_and_offset(2**48 - 1, m) == (48, 2**47 - 1)


def test_compiled_kernels_have_the_same_map() -> None:
    @njit
    def of_kernels(rank: int, m: int) -> tuple[tuple[int, int], int]:
        return addressing.level_and_offset(rank, m), addressing.heap_number(rank, m)

    for m in TREES:
        for rank in range(2**m):
            assert of_kernels(rank, m) == (level_and_offset(rank, m), heap_number(rank, m))
    assert of_kernels(2**48 - 1, 48) == ((48, 2**47 - 1), 2**48 - 1)
