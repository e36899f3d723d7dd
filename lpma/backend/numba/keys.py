"""From a batch's rows to key operations: the 64-bit keys that a store sorts and locates.

A row gives one key, `src << 32 | dst`; reversed for an in-neighbour store; both, for an
undirected graph (a loop once). A vertex operation gives its marker key, in the out-store only.
Queries give none. Keys come by rising place, which the stable sort relies on.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Array
from ...batch.columns import FIRST_QUERY, Kind
from ...cpu.instructions import load_u8, load_u32
from ...cpu.jit import ZERO, compiled, inlined
from ...pma.keys import HALF
from ..values import BOTH, REVERSE
from .addressing import MARKER

_DELETE, _EXPIRE = int(Kind.DELETE), int(Kind.EXPIRE)


@compiled
def edge_keys(
    src: int, dst: int, lo: int, hi: int, reverse: bool, keys: Array, places: Array
) -> None:
    """Rows lo … hi - 1, all appends and deletes, to keys[lo:hi]. src and dst are addresses of
    uint32."""
    for row in range(lo, hi):
        u = np.uint64(load_u32(src + row * 4))
        v = np.uint64(load_u32(dst + row * 4))
        keys[row] = (v << HALF) | u if reverse else (u << HALF) | v
        places[row] = row


@inlined
def both_keys(src: int, dst: int, n: int, keys: Array, places: Array) -> int:
    """Rows 0 … n - 1, all appends and deletes, in both directions (a loop once); the arrays have
    room for 2 n. Returns the keys written."""
    found = ZERO
    for row in range(n):
        u = np.uint64(load_u32(src + row * 4))
        v = np.uint64(load_u32(dst + row * 4))
        keys[found], places[found] = (u << HALF) | v, row
        keys[found + 1], places[found + 1] = (v << HALF) | u, row
        found += 1 + np.int64(u != v)
    return found


@compiled
def all_keys(
    kinds: int, src: int, dst: int, rows: int, direction: int, keys: Array, places: Array
) -> int:
    """Rows of any kind; the arrays have room for two keys a row. kinds is the address of uint8.
    Returns the keys written."""
    n = 0
    for row in range(rows):
        kind = load_u8(kinds + row)
        if kind >= FIRST_QUERY:
            continue
        u = np.uint64(load_u32(src + row * 4))
        v = np.uint64(load_u32(dst + row * 4))
        if kind > _DELETE and kind != _EXPIRE:
            if direction != REVERSE:
                keys[n], places[n] = (u << HALF) | MARKER, row
                n += 1
            continue
        keys[n] = (v << HALF) | u if direction == REVERSE else (u << HALF) | v
        places[n] = row
        n += 1
        if direction == BOTH and u != v:
            keys[n], places[n] = (v << HALF) | u, row
            n += 1
    return n


@compiled
def put_in_by_place(
    keys: Array, places: Array, n: int, more_keys: Array, more_places: Array
) -> None:
    """Put more key operations in among keys[:n], which has the room; both by rising place, the
    batch's own first. From the back, so that nothing is overwritten before it is moved."""
    left, more = n - 1, len(more_keys) - 1
    for to in range(n + len(more_keys) - 1, -1, -1):
        if more < 0:
            return
        if left >= 0 and places[left] > more_places[more]:
            keys[to], places[to] = keys[left], places[left]
            left -= 1
        else:
            keys[to], places[to] = more_keys[more], more_places[more]
            more -= 1
