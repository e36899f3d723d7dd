"""Who owns a vertex: a number from its id or its name, the same on every machine for ever.

Idea: a graph that is spread over several stores keeps each vertex in one of them, and whoever meets
an id or a name must know which without asking. So the owner is a hash of the vertex alone, modulo
the number of owners. What is written down rests on it: a log whose partitions are chosen by it, and
the checkpoints of whatever reads these. It must never change. `docs/reference/format.md` states it,
and its tests hold literal values.

    mix(z)       z ^= z >> 30; z *= 0xbf58476d1ce4e5b9; z ^= z >> 27; z *= 0x94d049bb133111eb;
                 z ^= z >> 31, on 64 bits without sign
    integer i    mix(i as 64 bits, two's complement)
    text t       mix(CRC-32 of its UTF-8 | its length in bytes << 32)
    owner        hash mod the number of owners

Source: mix is the finalizer of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
number generators", OOPSLA 2014, doi:10.1145/2660193.2660195, with Stafford's constants "Mix13").
It is a bijection in which each bit of the input moves about half of the output's, so ids that are
dense, or multiples of something, spread as evenly as random ones. CRC-32 is zlib's.

Requires nothing of the ids; arrays on a device are hashed there. A million ids take 3 ms on one
core, as long as a radix sort of their owners.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np

from .arguments.scalars import is_integer
from .arrays import Array, array_module, on_device
from .errors import BatchError

_BITS = 2**64 - 1
_BLOCK_ROWS = 1 << 15  # of which the hashes stay in the cache


def hash_ids(ids: Any) -> Array:
    """uint64[n], where the ids lie: the hash of each.

    ids: integers of any type, as an array (of CuPy's too) or a list, or one integer. Raises
    BatchError for anything else.

    >>> lpma.sharding.hash_ids([0, 1, 2]).tolist()
    [0, 6238072747940578789, 15839785061582574730]
    """
    if not on_device(ids):
        ids = np.atleast_1d(np.asarray(ids))
        if ids.dtype.kind not in "iu":
            if ids.size:
                raise BatchError(f"ids: integers are hashed here, not {ids.dtype}")
            ids = ids.astype(np.uint64)
    if ids.dtype.kind == "i":
        ids = ids.astype(np.int64).view(np.uint64)
    return _mixed(array_module(ids).array(ids, np.uint64))


def hash_names(names: Any) -> Array:
    """uint64[n]: the hash of each name, an integer's as `hash_ids` gives it.

    names: an array or a list of integers of 64 bits, text or both, or one name. Raises BatchError
    for anything else.

    >>> lpma.sharding.hash_names(["ann", 1]).tolist()
    [10911982401161452516, 6238072747940578789]
    """
    if on_device(names) or (isinstance(names, np.ndarray) and names.dtype.kind in "iu"):
        return hash_ids(names)
    items = names.tolist() if hasattr(names, "tolist") else names
    items = [items] if isinstance(items, str | int) else list(items)
    return _mixed(np.fromiter(map(_seed, items), np.uint64, len(items)))


def owners_of(vertices: Any, shards: int, dtype: Any = np.int64) -> Array:
    """Which of `shards` owns each vertex: integers 0 … shards − 1 of type `dtype`, where the
    vertices lie.

    vertices: as of `hash_names`. Raises BatchError if there is no shard.

    >>> lpma.sharding.owners_of([0, 1, 2, 3], 4).tolist()
    [0, 1, 2, 0]
    """
    if shards < 1:
        raise BatchError(f"shards is {shards}: there is at least one")
    if not isinstance(vertices, np.ndarray) or vertices.ndim != 1:
        return _remainders(hash_names(vertices), shards).astype(dtype)
    owners = np.empty(len(vertices), dtype)
    for start in range(0, len(vertices), _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        owners[block] = _remainders(hash_names(vertices[block]), shards)
    return owners


def _remainders(hashes: Array, shards: int) -> Array:
    """hashes mod shards, in place: NumPy divides much faster than it takes the remainder."""
    hashes -= hashes // np.uint64(shards) * np.uint64(shards)
    return hashes


def _mixed(z: Array) -> Array:
    """The same array, mixed in place."""
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def _seed(name: Any) -> int:
    """What a name is mixed from."""
    if isinstance(name, str):
        try:
            data = name.encode()
        except UnicodeEncodeError:
            raise BatchError(f"{name!r:.40} is no text: it has half of a surrogate pair") from None
        return crc32(data) | len(data) << 32
    if is_integer(name):
        return int(name) & _BITS
    raise BatchError(f"{name!r:.40}: a vertex goes by text or by an integer of 64 bits")
