"""From a batch's rows to key operations, the 64-bit keys that a store sorts and locates; and from
what these do to the changes that are told.

A row gives one key, `src << 32 | dst`; reversed for an in-neighbour store; both, for an
undirected graph (a loop once). A vertex operation gives its marker key, in the out-store only.
Queries give none. Keys come by rising place, which the stable sort relies on.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Array
from ...batch.columns import DELETE as DELETE_EDGE
from ...batch.columns import EXPIRE, FIRST_QUERY, LAST_QUERY, SET
from ...cpu.instructions import load_u8, load_u32
from ...cpu.jit import ZERO, compiled, inlined
from ...pma.keys import HALF
from ..values import BOTH, DELETE, INSERT, REVERSE
from .addressing import MARKER
from .batch_view import Rows, row_action, row_key


@inlined
def names_an_edge(kind: int) -> bool:
    """Whether an operation that is no query is on the edge (src, dst)."""
    return kind <= DELETE_EDGE or kind == SET or kind == EXPIRE


@compiled
def write_keys(
    kinds: int, kind_step: int, src: int, dst: int, lo: int, hi: int, direction: int, keys: Array,
    places: Array,
) -> int:  # fmt: skip
    """The key operations of rows lo … hi - 1, to entries from `lo` on; for BOTH the arrays have
    room for two a row. Columns are given by address: kinds is uint8, with a step of 0 if all are
    alike; src and dst are uint32. Returns where the entries end."""
    n = lo
    for row in range(lo, hi):
        kind = load_u8(kinds + row * kind_step)
        if FIRST_QUERY <= kind <= LAST_QUERY:
            continue
        u = np.uint64(load_u32(src + row * 4))
        v = np.uint64(load_u32(dst + row * 4))
        if not names_an_edge(kind):
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


@inlined
def write_changes(rows: Rows, keys: Array, inserted: Array) -> int:
    """Write the keys of the rows that insert or delete an edge or a marker, and which of them are
    inserted. Returns how many there are; the arrays have room for one more, if for fewer than rows.
    Every row is written, without a branch on its action, and the next one may overwrite it."""
    found = ZERO
    for row in range(rows.n):
        action = row_action(rows, row)
        keys[found] = row_key(rows, row)
        inserted[found] = action == INSERT
        found += np.int64((action == INSERT) | (action == DELETE))
    return found


@compiled
def changes(rows: Rows, most: int) -> tuple[Array, Array]:
    """(keys, inserted) of `write_changes`, at most `most` of them."""
    keys = np.empty(most + 1, np.uint64)
    inserted = np.empty(most + 1, np.bool_)
    found = write_changes(rows, keys, inserted)
    return keys[:found], inserted[:found]
