"""Large updates as a caller has them, for a store that looks at rows while it sorts them.

A host would read each column two or three times before the batch is on its way: once to find its
largest and smallest value, once to make it uint32, once to copy it where the device can fetch it.
Here a column stays as it came, and `narrow` does all in the one pass that copies it: a value that
is no vertex becomes NO_VERTEX, which the store refuses. Each value is read once, so what is
validated is what is used, even if another thread writes to the array meanwhile.

Requires arrays of NumPy's on the host, of integers in the machine's order of bytes. Everything else
goes through coerce.py, as does a batch that the store has refused: for the error that names the
column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .batch import MAX_OPERATIONS, Columns, Kind
from .coerce import NO_VERTEX, Array, time_column, weight_column
from .errors import BatchError
from .stores import Stores

LARGE = 1 << 16  # rows from which on looking at them shows

_IDS = np.dtype(np.uint32)
_TIMES = np.dtype(np.int64)
_WEIGHTS = (np.dtype(np.float32), np.dtype(np.float64))


def update(
    apply: Callable[[Columns], object], stores: Stores, kind: Kind, src: Any, dst: Any,
    weight: Any, time: Any,
) -> None:  # fmt: skip
    """Apply updates of one kind, APPEND or DELETE, from what a caller gave. Raises BatchError, and
    what `apply` raises."""
    if stores.out.backend.validates:
        try:
            unseen = unseen_edges(kind, src, dst, weight, time)
            if unseen is not None:
                apply(unseen)
                return
        except BatchError:
            Columns.edges(kind, src, dst, weight, time)  # raises what names the column
            raise
    apply(Columns.edges(kind, src, dst, weight, time))


def unseen_edges(kind: Kind, src: Any, dst: Any, weight: Any, time: Any) -> Columns | None:
    """Updates of one kind, APPEND or DELETE, as columns that nobody has looked at; None where
    `Columns.edges` has to. Raises BatchError."""
    if not (type(src) is type(dst) is np.ndarray and src.ndim == 1 and src.shape == dst.shape):
        return None
    if not LARGE <= len(src) <= MAX_OPERATIONS or not (_is_whole(src) and _is_whole(dst)):
        return None
    if type(weight) in (float, int) and weight == 1:
        weight = None
    elif weight is not None and not (_is_beside(weight, src) and weight.dtype in _WEIGHTS):
        weight = weight_column(weight, src)
    if time is not None and not (_is_beside(time, src) and _is_time(time)):
        time = time_column(time, src)
    if any(column is not None and not _is_beside(column, src) for column in (weight, time)):
        return None  # on a device, or of another length
    return Columns(np.full(len(src), kind, np.uint8), src, dst, weight, time, checked=False)


def _is_whole(array: Array) -> bool:
    return array.dtype.kind in "iu" and array.dtype.isnative


def _is_time(array: Array) -> bool:
    return _is_whole(array) and np.can_cast(array.dtype, _TIMES)


def _is_beside(values: Any, column: Array) -> bool:
    return type(values) is np.ndarray and values.shape == column.shape


def width(name: str, column: Array) -> int:
    """Bytes of an entry of the column `name` of a batch where kernels read it."""
    if name in ("src", "dst"):
        return _IDS.itemsize
    return _TIMES.itemsize if name == "time" else column.dtype.itemsize


def narrow(name: str, column: Array, into: Array) -> None:
    """Copy rows of a column to memory that kernels read, as uint32, int64 or, for weights and
    kinds, as they are. into: uint8, of `width` bytes a row."""
    if name == "time":
        np.copyto(into.view(_TIMES), column, casting="safe")
    elif name not in ("src", "dst"):
        np.copyto(into.view(column.dtype), column)
    elif np.can_cast(column.dtype, _IDS):
        np.copyto(into.view(_IDS), column)
    elif column.dtype.itemsize < 8:  # signed: -1 is NO_VERTEX as uint32
        np.maximum(column, column.dtype.type(-1), out=into.view(np.int32))
    else:  # what is negative is large as uint64
        np.minimum(
            column.view(np.uint64), np.uint64(NO_VERTEX), out=into.view(_IDS), casting="unsafe"
        )


def as_columns(columns: Columns) -> Columns:
    """The same in the types that `Columns` names, for whoever reads the rows on the host; itself
    if it has them already."""
    given = {"src": columns.src, "dst": columns.dst, "time": columns.time}
    types: dict[str, np.dtype[Any]] = {"src": _IDS, "dst": _IDS, "time": _TIMES}
    others = [
        name
        for name, column in given.items()
        if type(column) is np.ndarray and column.dtype != types[name]
    ]
    if not others:
        return columns
    for name in others:
        column = given[name]
        assert column is not None
        made = np.empty(len(column), types[name])
        narrow(name, column, made.view(np.uint8))
        given[name] = made
    src, dst, time = given.values()
    assert src is not None
    assert dst is not None
    return Columns(columns.kind, src, dst, columns.weight, time, columns.checked)
