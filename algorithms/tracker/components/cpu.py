"""Components joined and separated on the CPU: see the package."""

from __future__ import annotations

import numpy as np

from lpma.cpu.jit import compiled
from lpma.cpu.threads import cuts, run_all
from lpma.pma.keys import HALF, LOW

from ...arrays import Array
from ...components.cpu import compress, link
from ..listed_cpu import gallop, has
from ..types import Change

# components.cu has these two, too.
LOOKED_AT = 1024  # entries of a row, at most
STEPS = 8  # of a climb, at most
PIECE = 1 << 8  # entries of a list that a thread takes at a time


def separate(change: Change, labels: Array) -> bool:
    """Whether every deleted edge cuts nothing or only takes a leaf or a pair away, which then get
    labels of their own. If False, the labels are useless."""
    before, after = change.before, change.after
    rows = before.indptr, before.indices, after.indptr, after.indices
    pieces = cuts(len(change.deleted), PIECE, per_thread=4)
    return all(run_all(_separate, [(*cut, change.deleted, *rows, labels) for cut in pieces]))


def join(inserted: Array, labels: Array) -> None:
    """Join the components at both ends of each inserted edge, and flatten the labels."""
    _join(inserted, labels)
    run_all(compress, [(*cut, labels) for cut in cuts(len(labels), 1 << 16)])


@compiled
def _join(inserted: Array, labels: Array) -> None:
    for edge in inserted:
        u, v = np.int64(edge >> HALF), np.int64(edge & LOW)
        if u < v:
            link(u, v, labels)


@compiled
def _separate(
    first: int, last: int, deleted: Array, old_indptr: Array, old: Array, indptr: Array,
    indices: Array, labels: Array,
) -> bool:  # fmt: skip
    """`separate` for the entries first … last - 1 of the list. Each label is changed by one entry:
    a leaf's own, or that of a pair's deleted edge."""
    for i in range(first, last):
        u, v = np.int64(deleted[i] >> HALF), np.int64(deleted[i] & LOW)
        is_at_leaf = old_indptr[v + 1] - old_indptr[v] == 1
        if old_indptr[u + 1] - old_indptr[u] == 1:
            if u < len(labels):
                if labels[u] == u and not is_at_leaf:
                    return False
                labels[u] = u
        elif not is_at_leaf:
            leaf = _pair_of(u, v, old_indptr, old)
            if leaf >= 0:
                if u < len(labels) and not _label_pair(u, leaf, indptr, indices, labels):
                    return False
            elif u < v and _pair_of(v, u, old_indptr, old) < 0:
                joined = _are_joined(u, v, indptr, indices)
                if not joined:
                    return False
    return True


@compiled
def _pair_of(u: int, v: int, indptr: Array, indices: Array) -> np.int64:
    """The only neighbour of u besides its neighbour v, if it is a leaf; else -1."""
    row = indices[indptr[u] : indptr[u + 1]]
    if len(row) != 2:
        return np.int64(-1)
    other = np.int64(row[0]) + np.int64(row[1]) - np.int64(v)
    return other if indptr[other + 1] - indptr[other] == 1 else np.int64(-1)


@compiled
def _label_pair(u: int, leaf: int, indptr: Array, indices: Array, labels: Array) -> bool:
    """Give u, and its leaf if it still has it, a label of their own. False if one of them is also
    the label of other vertices."""
    kept = leaf < len(labels) and has(indices[indptr[u] : indptr[u + 1]], leaf)
    if labels[u] == u or (kept and labels[u] == leaf):
        return False
    labels[u] = min(u, leaf) if kept else u
    if kept:
        labels[leaf] = labels[u]
    return True


@compiled
def _are_joined(u: int, v: int, indptr: Array, indices: Array) -> bool:
    """Whether u and v have a common neighbour among the first of the shorter row, or climb to one
    peak or to two adjacent ones."""
    if max(u, v) >= len(indptr) - 1:
        return False
    a, b = indices[indptr[u] : indptr[u + 1]], indices[indptr[v] : indptr[v + 1]]
    if len(a) == 0 or len(b) == 0:
        return False
    if len(a) > len(b):
        a, b = b, a
    at = 0
    for w in a[:LOOKED_AT]:
        at = gallop(b, at, w)
        if at == len(b):
            break
        if b[at] == w:
            return True
    x, y = _peak(u, indptr, indices), _peak(v, indptr, indices)
    return x == y or has(indices[indptr[x] : indptr[x + 1]], y)


@compiled
def _peak(v: int, indptr: Array, indices: Array) -> np.int64:
    """Where v climbs to, moving repeatedly to the neighbour of highest degree."""
    at = np.int64(v)
    for _ in range(STEPS):
        best = at
        row = indices[indptr[at] : indptr[at + 1]]
        for entry in row[:LOOKED_AT]:
            w = np.int64(entry)
            if indptr[w + 1] - indptr[w] > indptr[best + 1] - indptr[best]:
                best = w
        if best == at:
            break
        at = best
    return at
