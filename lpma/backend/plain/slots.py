"""Columns of slots, and how a batch is merged into them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..values import Array


class Slots(NamedTuple):
    """Slots by rising key. Absent columns are None."""

    keys: Array  # uint64
    weights: Array | None  # float32 or float64
    times: Array | None  # int64

    def where(self, rows: Any) -> Slots:
        """Those of `rows`: indices, a mask or a slice."""
        weights, times = (None if column is None else column[rows] for column in self[1:])
        return Slots(self.keys[rows], weights, times)

    @staticmethod
    def joined(parts: Sequence[Slots]) -> Slots:
        """Those of all parts, which have the same columns."""
        columns = zip(*parts, strict=True)
        return Slots._make(None if c[0] is None else np.concatenate(c) for c in columns)


class Edit(NamedTuple):
    """What becomes of a sorted array of slots. Positions rise, and are those before the edit."""

    put: Slots  # slots to insert
    before: Array  # int64: the slot that each comes before
    gone: Array  # int64: slots that go
    kept: Array  # int64: slots whose weight and time change
    weights: Array | None  # what these become
    times: Array | None


def edited(slots: Slots, edit: Edit) -> Slots:
    """The slots after an edit, in fresh columns where something changes."""
    weights, times = slots.weights, slots.times
    if len(edit.kept):
        weights = _replaced(weights, edit.kept, edit.weights)
        times = _replaced(times, edit.kept, edit.times)
    changed = Slots(slots.keys, weights, times)
    if len(edit.gone):
        stays = np.ones(len(slots.keys), np.bool_)
        stays[edit.gone] = False
        changed = changed.where(stays)
    if not len(edit.before):
        return changed
    # Each goes behind those put in before it, and closes up over those gone.
    at = edit.before - np.searchsorted(edit.gone, edit.before) + np.arange(len(edit.before))
    is_old = np.ones(len(changed.keys) + len(at), np.bool_)
    is_old[at] = False
    pairs = zip(changed, edit.put, strict=True)
    return Slots._make(None if old is None else _woven(old, new, is_old, at) for old, new in pairs)


def _replaced(column: Array | None, rows: Array, values: Array | None) -> Array | None:
    if column is None or values is None:
        return column
    column = column.copy()
    column[rows] = values
    return column


def _woven(old: Array, new: Array | None, is_old: Array, at: Array) -> Array:
    column = np.empty(len(is_old), old.dtype)
    column[is_old] = old
    column[at] = 0 if new is None else new
    return column
