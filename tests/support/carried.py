"""Batches of which every field says something, and whether another batch carries all of it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from lpma import Columns, Kind
from lpma.batch.columns import query_rows

N = 8
MARKS = {"ids_resolved": True, "expiry_expanded": True, "unvalidated": True, "checked": True}
SOMES = {"everything": (), "no weights": ("weight",), "no times": ("time",),
         "neither": ("weight", "time")}  # fmt: skip


def columns_of(lacking: tuple[str, ...] = (), **marks: Any) -> Columns:
    """Columns of N rows whose values say which row they are, and no mark as it is by default."""
    n = np.arange(N)
    columns = Columns(
        kind=np.array([Kind.INSERT, Kind.DELETE] * (N // 2), np.uint8),
        src=(100 + n).astype(np.uint32), dst=(200 + n).astype(np.uint32),
        weight=300.0 + n, time=400 + n, **{**MARKS, **marks},
    )  # fmt: skip
    for name in lacking:
        setattr(columns, name, None)
    return columns


def values(column: Any) -> Any:
    """A column of a batch as plain values."""
    if column is None:
        return None
    if hasattr(column, "spread"):
        column = column.spread()
        return [bytes(column.blob[column.bounds[k] : column.bounds[k + 1]]) for k in
                column.keys.tolist()]  # fmt: skip
    return column.tolist()


def assert_carried(made: Columns, given: Columns, rows: Any, but: tuple[str, ...] = ()) -> None:
    """Every column of `made` has these rows of those that were given, every mark is the same."""
    assert type(made) is type(given)
    picked = np.arange(len(given))[rows].tolist()
    for field in dataclasses.fields(given):
        name, new, old = field.name, getattr(made, field.name), getattr(given, field.name)
        if name in but:
            continue
        if name in given.ROWS:
            old = values(old)
            assert values(new) == (None if old is None else [old[row] for row in picked]), name
        else:
            assert new is old, name
    assert len(made) == len(picked)
    assert made.num_queries == int(query_rows(made.kind).sum())
