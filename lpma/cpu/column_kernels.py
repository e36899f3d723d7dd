"""The kernels of columns.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array, distinct
from ..pma.keys import HALF, LOW, RISE, SOUND
from .id_table import IdTable
from .instructions import data, data_if_any, load_f32, load_f64, load_u32, load_u64
from .jit import compiled
from .kernel_hash import mixed
from .search import first_not_below
from .threads import cuts, run_all

PIECE = 1 << 18  # entries that a thread marks per turn


def mark_rows(ids: Array, present: Array) -> None:
    """Threads only write True, and so need no order."""
    ids = np.ascontiguousarray(ids, np.uint32)
    run_all(_mark_rows, [(*cut, id(ids), present) for cut in cuts(len(ids), PIECE, 4)])


def mark_ends(keys: Array, present: Array) -> None:
    run_all(_mark_ends, [(*cut, keys, present) for cut in cuts(len(keys), PIECE, 4)])


def distinct_ends(keys: Array) -> Array:
    """By a table of the targets; sources need none, since they rise."""
    table, sources = IdTable(), np.empty(len(keys), np.uint32)
    table.count(keys)
    return distinct(np.concatenate([sources[: _list_sources(keys, sources)], table.ids()]))


def rows_by(keys: Array, ids: Array) -> tuple[Array, Array]:
    """By a table, a look an edge; a search for each row begins where the last one ended."""
    table, indptr = IdTable(len(ids)), np.empty(len(ids) + 1, np.int64)
    table.number(ids)
    _cut_rows(keys, ids, indptr)
    indices = table.numbers(keys)
    indices -= np.uint32(1)
    return indptr, indices


def survey_piece(
    keys: Array, weights: Array | None, times: Array | None, directed: bool, *seeds: np.uint64
) -> tuple[int, ...]:
    """One pass. Contiguous columns."""
    column = (0, 0) if weights is None else (id(weights), weights.itemsize)
    found: tuple[int, ...] = _survey(
        keys, *column, 0 if times is None else id(times), directed, *seeds
    )
    return found


@compiled
def list_rows(keys: Array, targets: Array, sources: Array, starts: Array, first: int) -> int:
    """Write the target of each rising key, and, of each row that begins among them, its source and
    its start: that of the first key is `first`. Returns the number of rows."""
    found = 0
    for i in range(len(keys)):
        targets[i] = np.uint32(keys[i] & LOW)
        if i == 0 or keys[i] >> HALF != keys[i - 1] >> HALF:
            sources[found], starts[found] = np.uint32(keys[i] >> HALF), first + i
            found += 1
    return found


@compiled
def _survey(
    keys: Array, weights: int, width: int, times: int, directed: bool, seed: np.uint64,
    other_seed: np.uint64,
) -> Any:  # fmt: skip
    """See columns.survey_piece. weights, times: by id(), 0 for None."""
    weights, times, good = data_if_any(weights), data_if_any(times), RISE | SOUND
    markers, loops, largest = 0, 0, np.int64(-1)
    total, other_total = np.uint64(0), np.uint64(0)
    for i in range(len(keys)):
        key = keys[i]
        source, target = key >> HALF, key & LOW
        if i > 0 and key <= keys[i - 1]:
            good &= ~RISE
        weight, bits = 0.0, np.uint64(0)
        if width == 4:
            weight = np.float64(load_f32(weights + 4 * i))
            bits = np.uint64(load_u32(weights + 4 * i))
        elif width == 8:
            weight, bits = load_f64(weights + 8 * i), load_u64(weights + 8 * i)
        if source == LOW or not 0.0 <= weight < np.inf:
            good &= ~SOUND
        largest = max(largest, np.int64(source))
        if target == LOW:
            markers += 1
            if weight != 0.0:
                good &= ~SOUND
            continue
        largest = max(largest, np.int64(target))
        if source == target:
            loops += 1
        elif not directed:
            time = load_u64(times + 8 * i) if times else np.uint64(0)
            edge = min(source, target) << HALF | max(source, target)
            one = mixed(time, mixed(bits, mixed(edge, seed)))
            other = mixed(time, mixed(bits, mixed(edge, other_seed)))
            total += one if source < target else np.uint64(0) - one
            other_total += other if source < target else np.uint64(0) - other
    return good, markers, loops, largest, total, other_total


@compiled
def _list_sources(keys: Array, sources: Array) -> int:
    """Write the different sources of rising keys. Returns how many there are."""
    found = 0
    for i in range(len(keys)):
        if i == 0 or keys[i] >> HALF != keys[i - 1] >> HALF:
            sources[found] = np.uint32(keys[i] >> HALF)
            found += 1
    return found


@compiled
def _cut_rows(keys: Array, ids: Array, indptr: Array) -> None:
    """Where the rows of rising ids begin in rising keys, and where the last one ends."""
    n, at = len(keys), 0
    for i in range(len(ids)):
        first, step = np.uint64(ids[i]) << HALF, 1
        low, high = at, at
        while high < n and keys[high] < first:  # the bound doubles, so that short rows cost little
            low, high, step = high + 1, high + step, 2 * step
        at = first_not_below(keys, low, min(high, n), first)
        indptr[i] = at
    indptr[len(ids)] = n


@compiled
def _mark_rows(first: int, last: int, ids: int, present: Array) -> None:
    """ids: uint32, by id(). It looks before it writes: threads that write the same line, as that of
    a hub, take it from each other."""
    ids = data(ids)
    for i in range(first, last):
        row = load_u32(ids + i * 4)
        if not present[row]:
            present[row] = True


@compiled
def _mark_ends(first: int, last: int, keys: Array, present: Array) -> None:
    for i in range(first, last):
        source, target = keys[i] >> HALF, keys[i] & LOW
        if not present[source]:
            present[source] = True
        if target != LOW and not present[target]:
            present[target] = True
