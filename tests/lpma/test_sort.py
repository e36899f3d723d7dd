"""The radix sort against NumPy's stable argsort: sizes around every threshold, keys whose bits
lie high, low, at both ends, and in orders that a bucket sort may trip over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpma.cpu import sort
from lpma.cpu.sort import CACHED_KEYS, sort_pairs

Array = npt.NDArray[Any]

SIZES = (
    0, 1, 2, 3, 23, 24, 25, 127, 1000,
    CACHED_KEYS - 1, CACHED_KEYS, CACHED_KEYS + 1, 2 * CACHED_KEYS + 3, 9 * CACHED_KEYS,
)  # fmt: skip
MARKER = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)


def random_keys(n: int, sources: int, targets: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    src = rng.integers(0, sources, n, np.uint64, endpoint=True)
    dst = rng.integers(0, targets, n, np.uint64, endpoint=True)
    return (src << HALF) | dst


def with_markers(n: int) -> Array:
    keys = random_keys(n, 50, 2**20)
    return np.where(keys & np.uint64(3) == 0, keys | MARKER, keys)


def skewed(n: int) -> Array:
    """Nearly all keys in one bucket, a few far above and far below."""
    keys = random_keys(n, 0, 40) | (np.uint64(7) << HALF)
    keys[::97] = random_keys(len(keys[::97]), 2**32 - 2, 2**32 - 2)
    return keys


PATTERNS: dict[str, Callable[[int], Array]] = {
    "all bits": lambda n: random_keys(n, 2**32 - 1, 2**32 - 1),
    "high bits only": lambda n: random_keys(n, 2**32 - 1, 0),
    "low bits only": lambda n: random_keys(n, 0, 2**32 - 1),
    "few bits at both ends": lambda n: random_keys(n, 3, 5),
    "one bit high": lambda n: random_keys(n, 1, 0) << np.uint64(31),
    "one bit low": lambda n: random_keys(n, 0, 1),
    "ids of a graph": lambda n: random_keys(n, 70_000, 70_000),
    "markers": with_markers,
    "markers only": lambda n: random_keys(n, 900, 0) | MARKER,
    "zeros": lambda n: np.zeros(n, np.uint64),
    "all equal": lambda n: np.full(n, 2**64 - 1, np.uint64),
    "sorted": lambda n: np.sort(random_keys(n, 2**20, 2**20)),
    "reversed": lambda n: np.sort(random_keys(n, 2**20, 2**20))[::-1].copy(),
    "sorted but for the last": lambda n: np.roll(np.arange(n, dtype=np.uint64), -1),
    "skewed": skewed,
    "organ pipe": lambda n: np.abs(np.arange(n) - n // 2).astype(np.uint64),
}


def check_sorted(keys: Array) -> None:
    """Stable, and places go with their keys."""
    n = len(keys)
    places = np.random.default_rng(1).permutation(n).astype(np.uint32)
    order = np.argsort(keys, kind="stable")
    expected_keys, expected_places = keys[order], places[order]
    spares = np.full(n, 0xDEAD, np.uint64), np.full(n, 0xDEAD, np.uint32)
    sorted_keys, sorted_places = sort_pairs(keys, places, *spares)
    assert sorted_keys.dtype == np.uint64
    assert sorted_places.dtype == np.uint32
    np.testing.assert_array_equal(sorted_keys, expected_keys)
    np.testing.assert_array_equal(sorted_places, expected_places)


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("n", SIZES)
def test_against_a_stable_argsort(n: int, name: str) -> None:
    check_sorted(PATTERNS[name](n))


@pytest.mark.parametrize("name", ["ids of a graph", "skewed", "all bits", "reversed"])
def test_many_buckets(name: str) -> None:
    check_sorted(PATTERNS[name](1 << 20))


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_any_number_of_threads(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    """Ranges scatter behind one another, whoever runs them."""
    monkeypatch.setattr(sort, "THREADS", threads)
    for name in ("ids of a graph", "few bits at both ends", "skewed"):
        check_sorted(PATTERNS[name](3 * CACHED_KEYS + 1))


@pytest.mark.parametrize("bits", range(1, 65))
def test_every_number_of_bits(bits: int) -> None:
    """One bit set in half of the keys, and all bits up to it in random ones."""
    rng = np.random.default_rng(bits)
    keys = rng.integers(0, 2**bits - 1, 300, np.uint64, endpoint=True)
    keys[::2] |= np.uint64(1) << np.uint64(bits - 1)
    check_sorted(keys)


def test_the_result_shares_memory_with_the_arguments() -> None:
    """Sorting allocates no columns of its own: the caller's buffers hold the result."""
    for n in (10, 1000, 3 * CACHED_KEYS):
        columns = (random_keys(n, 99, 99), np.arange(n, dtype=np.uint32),
                   np.empty(n, np.uint64), np.empty(n, np.uint32))  # fmt: skip
        keys, places = sort_pairs(*columns)
        assert keys is columns[0] or keys is columns[2]
        assert places is (columns[1] if keys is columns[0] else columns[3])


@given(
    ids=st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)), max_size=80),
    shift=st.integers(0, 32),
)
def test_drawn_keys(ids: list[tuple[int, int]], shift: int) -> None:
    keys = [(src >> shift) << 32 | (dst >> shift) for src, dst in ids]
    check_sorted(np.array(keys, np.uint64))
