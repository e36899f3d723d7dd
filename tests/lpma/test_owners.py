"""`lpma/sharding.py`: the hash is what was written down, whatever form the vertices come in, and
spreads them evenly."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpma import BatchError
from lpma.arrays import to_host
from lpma.sharding import hash_ids, hash_names, owners_of

BITS = 2**64 - 1

# Logs and checkpoints rest on these: they stay as they are.
PINNED = {
    0: 0,
    1: 6238072747940578789,
    2: 15839785061582574730,
    5: 13168350753275463132,
    4294967294: 11327417105322913293,
    2**63: 2720858781877447050,
    -1: 13029008266876403067,
    2**64 - 1: 13029008266876403067,
    "5": 4852822905612794404,
    "ann": 10911982401161452516,
    "żółć": 18129441146581221163,
}


def mixed(z: int) -> int:
    """The finalizer of SplitMix64, on Python's own integers."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & BITS
    z = (z ^ z >> 27) * 0x94D049BB133111EB & BITS
    return z ^ z >> 31


def hash_of(name: Any) -> int:
    if isinstance(name, str):
        data = name.encode()
        return mixed(crc32(data) + (len(data) << 32))
    return mixed(name % 2**64)


NAMES = st.one_of(
    st.integers(-(2**63), 2**64 - 1),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
)


def test_the_hash_never_changes() -> None:
    assert dict(zip(PINNED, hash_names(list(PINNED)).tolist(), strict=True)) == PINNED
    assert owners_of(list(PINNED), 7).tolist() == [hash % 7 for hash in PINNED.values()]


@given(st.lists(NAMES, max_size=30), st.integers(1, 3000))
def test_names_are_hashed_as_stated(names: list[Any], shards: int) -> None:
    hashes = [hash_of(name) for name in names]
    assert hash_names(names).tolist() == hashes
    column = np.empty(len(names), object)
    column[:] = names
    assert hash_names(column).tolist() == hashes
    owners = owners_of(column, shards)
    assert owners.dtype == np.int64
    assert owners.tolist() == [hash % shards for hash in hashes]


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint32, np.int32, np.int64, np.uint64])
def test_an_id_is_hashed_alike_whatever_its_type(dtype: type) -> None:
    limits = np.iinfo(dtype)
    ids: Any = np.array([0, 1, 77, limits.max, limits.min], dtype)
    kept = ids.copy()
    expected = [hash_of(i) for i in ids.tolist()]
    assert hash_ids(ids).tolist() == hash_names(ids).tolist() == expected
    assert hash_ids(ids[::-1]).tolist() == expected[::-1]
    assert (ids == kept).all(), "what was given is not written to"


def test_one_vertex_is_a_column_of_one() -> None:
    assert hash_ids(7).tolist() == hash_names(7).tolist() == [hash_of(7)]
    assert owners_of("ann", 5).tolist() == [hash_of("ann") % 5]
    assert hash_ids([]).tolist() == hash_names([]).tolist() == owners_of([], 2).tolist() == []


@pytest.mark.parametrize("rows", [1, 32767, 32768, 32769, 100_000])
def test_many_ids_are_hashed_in_blocks(rows: int) -> None:
    ids = np.random.default_rng(rows).integers(0, 2**32 - 1, rows).astype(np.uint32)
    whole = (hash_ids(ids) % np.uint64(24)).astype(np.int64)
    assert np.array_equal(owners_of(ids, 24), whole)
    assert owners_of(ids, 24, np.uint8).dtype == np.uint8


@pytest.mark.parametrize("bad", [["a", 1.5], [True], [None], ["\ud800"], np.array([0.5])])
def test_what_names_no_vertex_is_refused(bad: Any) -> None:
    with pytest.raises(BatchError):
        owners_of(bad, 2)


def test_there_is_a_shard() -> None:
    with pytest.raises(BatchError, match="at least one"):
        owners_of([1], 0)
    with pytest.raises(BatchError, match="integers"):
        hash_ids(["ann"])


def chi_square(owners: Any, shards: int) -> float:
    """How far the sizes are from equal, in standard deviations of that of random owners."""
    sizes = np.bincount(owners, minlength=shards)
    expected = len(owners) / shards
    value = float(((sizes - expected) ** 2 / expected).sum())
    return (value - (shards - 1)) / float(np.sqrt(2 * (shards - 1)))


@pytest.mark.parametrize("shards", [2, 3, 8, 12, 64, 1000])
@pytest.mark.parametrize("step", [1, 2, 8, 24, 1000, 1 << 12, (1 << 16) + 1])
def test_ids_at_equal_steps_spread_as_random_ones(shards: int, step: int) -> None:
    ids = (np.arange(100_000, dtype=np.uint64) * np.uint64(step)) & np.uint64(2**32 - 1)
    assert abs(chi_square(owners_of(np.unique(ids), shards), shards)) < 6


@pytest.mark.parametrize("form", ["user-{}", "{:08d}", "192.168.{0}.{0}", "{0}{0}{0}"])
@pytest.mark.parametrize("shards", [2, 8, 24])
def test_text_spreads_as_random(shards: int, form: str) -> None:
    names = [form.format(i) for i in range(20_000)]
    assert abs(chi_square(owners_of(names, shards), shards)) < 6


@pytest.mark.gpu
def test_a_device_agrees(cupy: Any) -> None:
    ids = np.random.default_rng(3).integers(0, 2**32 - 1, 10_000).astype(np.uint32)
    found = owners_of(cupy.asarray(ids), 24)
    assert isinstance(found, cupy.ndarray)
    assert np.array_equal(found.get(), owners_of(ids, 24))
    signed = ids.astype(np.int64) - 2**31
    assert np.array_equal(to_host(hash_ids(cupy.asarray(signed))), hash_ids(signed))
