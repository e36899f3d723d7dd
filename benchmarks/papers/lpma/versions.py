"""The paper's form of a mixed batch, in a small store of its own: Section VI, Figure 16.

The insertions of a batch are put into the store as *versions*, each a slot (key, 1 + place) behind
the stored edge of its key. Then all queries run, each folding the versions before its own place.
Then a compaction folds the versions for good. `lpma` itself lets a batch lie beside its store; here
is what that replaced, to be compared.

The store is as simple as serves: sorted buckets of as many slots each, and a fence for each. A
bucket that is too small for a batch has the whole store spread anew, which is not part of the
figure. Only edges are inserted, with weights above 0.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from lpma import Columns, Edges, Kind, Neighbors
from lpma.cpu.threads import cuts, run_all

from ...keys import Array, keys_of

SLOTS = 256  # of a bucket, at the least
FILLED = 64  # when the store is spread
PER_TASK = 256


@numba.njit(cache=True, nogil=True)
def _put(
    keys: Array, seqs: Array, weights: Array, counts: Array, row_keys: Array, row_seqs: Array,
    row_weights: Array, starts: Array, lo: int, hi: int,
) -> None:  # fmt: skip
    """Put rows into buckets lo … hi - 1, from the back; starts: of each bucket's rows."""
    for b in range(lo, hi):
        first, row = starts[b], starts[b + 1] - 1
        slot, to = counts[b] - 1, counts[b] + row - first
        counts[b] = to + 1
        while row >= first:
            if slot >= 0 and keys[b, slot] > row_keys[row]:
                keys[b, to], seqs[b, to], weights[b, to] = (
                    keys[b, slot], seqs[b, slot], weights[b, slot]
                )  # fmt: skip
                slot -= 1
            else:
                keys[b, to], seqs[b, to], weights[b, to] = (
                    row_keys[row], row_seqs[row], row_weights[row]
                )  # fmt: skip
                row -= 1
            to -= 1


@numba.njit(cache=True, nogil=True)
def _compact(
    keys: Array, seqs: Array, weights: Array, counts: Array, buckets: Array, lo: int, hi: int
) -> None:
    """Fold the versions in buckets[lo:hi]."""
    for b in buckets[lo:hi]:
        kept = 0
        for slot in range(counts[b]):
            if kept and keys[b, kept - 1] == keys[b, slot]:
                weights[b, kept - 1] += weights[b, slot]
            else:
                keys[b, kept], seqs[b, kept], weights[b, kept] = keys[b, slot], 0, weights[b, slot]
                kept += 1
        counts[b] = kept


@numba.njit(cache=True, nogil=True)
def _find(
    keys: Array, seqs: Array, weights: Array, counts: Array, buckets: Array, wanted: Array,
    limits: Array, found: Array, sums: Array, lo: int, hi: int,
) -> None:  # fmt: skip
    """Edge queries lo … hi - 1."""
    for i in range(lo, hi):
        b = buckets[i]
        slot = np.searchsorted(keys[b, : counts[b]], wanted[i])
        while slot < counts[b] and keys[b, slot] == wanted[i] and seqs[b, slot] <= limits[i]:
            found[i] = True
            sums[i] += weights[b, slot]
            slot += 1


@numba.njit(cache=True, nogil=True)
def _list(
    keys: Array, seqs: Array, weights: Array, counts: Array, buckets: Array, wanted: Array,
    limits: Array, indptr: Array, ids: Array, sums: Array, writes: bool, lo: int, hi: int,
) -> None:  # fmt: skip
    """Successor queries lo … hi - 1: counted to indptr[1:], or written to where indptr says."""
    for i in range(lo, hi):
        b, n, before = buckets[i], 0, np.uint64(0)
        slot, end = np.searchsorted(keys[b, : counts[b]], wanted[i]), wanted[i] + np.uint64(1 << 32)
        while b < len(counts):
            if slot == counts[b]:
                b, slot = b + 1, 0
                continue
            key = keys[b, slot]
            if key >= end:
                break
            if seqs[b, slot] <= limits[i]:
                n += n == 0 or key != before
                before = key
                if writes:
                    at = indptr[i] + n - 1
                    ids[at] = np.uint32(key & np.uint64(0xFFFFFFFF))
                    sums[at] += weights[b, slot]
            slot += 1
        if not writes:
            indptr[i + 1] = n


class Versions:
    """A directed set of edges with float32 weights."""

    def __init__(self, keys: Array) -> None:
        """keys: uint64, rising; at least one."""
        self._spread(keys, np.ones(len(keys), np.float32), SLOTS)

    def _spread(self, keys: Array, weights: Array, slots: int) -> None:
        buckets = 1 + len(keys) // FILLED
        starts = len(keys) * np.arange(buckets + 1) // buckets
        self._counts = np.diff(starts)
        self._fences = keys[starts[:-1]].copy()
        self._fences[0] = 0
        shape = buckets, max(slots, int(self._counts.max()))
        at = np.repeat(np.arange(buckets), self._counts), self._places()
        self._keys, self._seqs = np.zeros(shape, np.uint64), np.zeros(shape, np.uint32)
        self._weights = np.zeros(shape, np.float32)
        self._keys[at], self._weights[at] = keys, weights

    def _places(self) -> Array:
        ends = np.cumsum(self._counts)
        return np.arange(ends[-1]) - np.repeat(ends - self._counts, self._counts)

    @property
    def _columns(self) -> tuple[Array, Array, Array, Array]:
        return self._keys, self._seqs, self._weights, self._counts

    def edges(self) -> tuple[Array, Array]:
        """(keys, weights), the keys rising."""
        at = np.repeat(np.arange(len(self._counts)), self._counts), self._places()
        return self._keys[at], self._weights[at]

    def _buckets(self, keys: Array) -> Array:
        return np.searchsorted(self._fences, keys, "right") - 1

    def make_room(self, batch: Columns) -> None:
        """Have room for a batch's insertions, wherever they belong."""
        appended = self._inserted(batch)
        coming = np.bincount(self._buckets(appended), minlength=len(self._counts))
        if (self._counts + coming).max() > self._keys.shape[1]:
            self._spread(*self.edges(), SLOTS)
            coming = np.bincount(self._buckets(appended), minlength=len(self._counts))
            room = int((self._counts + coming).max())
            if room > self._keys.shape[1]:
                self._spread(*self.edges(), room)

    def _inserted(self, batch: Columns) -> Array:
        rows = batch.kind == Kind.INSERT
        return keys_of(batch.src[rows], batch.dst[rows])

    def apply(self, batch: Columns) -> dict[Kind, Any]:
        """Put, ask, compact. REQUIRES: `make_room`. Returns the answers by kind."""
        places = np.flatnonzero(batch.kind == Kind.INSERT)
        keys, weight = self._inserted(batch), batch.weight
        weights = np.ones(len(keys), np.float32) if weight is None else weight[places]
        order = np.argsort(keys, kind="stable")
        keys, seqs = keys[order], (places[order] + 1).astype(np.uint32)
        of = self._buckets(keys)
        starts = np.searchsorted(of, np.arange(len(self._counts) + 1))
        rows = keys, seqs, weights[order].astype(np.float32), starts
        pieces = cuts(len(self._counts), PER_TASK, 4)
        run_all(_put, [(*self._columns, *rows, lo, hi) for lo, hi in pieces])
        answers = {
            Kind.EDGE: self._find(batch, np.flatnonzero(batch.kind == Kind.EDGE)),
            Kind.SUCCESSORS: self._list(batch, np.flatnonzero(batch.kind == Kind.SUCCESSORS)),
        }
        touched = np.flatnonzero(np.diff(starts))
        pieces = cuts(len(touched), PER_TASK, 4)
        run_all(_compact, [(*self._columns, touched, lo, hi) for lo, hi in pieces])
        return answers

    def _find(self, batch: Columns, places: Array) -> Edges:
        wanted = keys_of(batch.src[places], batch.dst[places])
        found, sums = np.zeros(len(places), np.bool_), np.zeros(len(places), np.float32)
        asked = self._buckets(wanted), wanted, places, found, sums
        pieces = cuts(len(places), PER_TASK, 4)
        run_all(_find, [(*self._columns, *asked, lo, hi) for lo, hi in pieces])
        return Edges(found, sums, None)

    def _list(self, batch: Columns, places: Array) -> Neighbors:
        wanted = batch.src[places].astype(np.uint64) << np.uint64(32)
        buckets, pieces = self._buckets(wanted), cuts(len(places), PER_TASK, 4)
        asked = *self._columns, buckets, wanted, places
        indptr, none = np.zeros(len(places) + 1, np.int64), np.zeros(0, np.float32)
        ids = np.zeros(0, np.uint32)
        run_all(_list, [(*asked, indptr, ids, none, False, lo, hi) for lo, hi in pieces])
        np.cumsum(indptr, out=indptr)
        ids, sums = np.zeros(indptr[-1], np.uint32), np.zeros(indptr[-1], np.float32)
        run_all(_list, [(*asked, indptr, ids, sums, True, lo, hi) for lo, hi in pieces])
        return Neighbors(indptr, ids, sums, None)

    def each(self, batch: Columns, answers: dict[Kind, Any]) -> list[Any]:
        """The answers that `apply` gave, in the order of the queries."""
        edges, rows = answers[Kind.EDGE], answers[Kind.SUCCESSORS]
        in_order: list[Any] = []
        asked = {Kind.EDGE: 0, Kind.SUCCESSORS: 0}
        for kind in map(Kind, batch.kind[batch.queries].tolist()):
            i = asked[kind]
            asked[kind] += 1
            if kind == Kind.EDGE:
                in_order.append(edges.rows(i, i + 1))
            else:
                lo, hi = rows.indptr[i : i + 2].tolist()
                in_order.append(rows.rows(lo, hi, np.array([0, hi - lo])))
        return in_order
