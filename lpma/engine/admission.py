"""Admission: the arguments of `Graph.apply` and `Graph.insert` become columns that the stores can
read, and every row is validated before it is stored.

Most columns arrive validated (batch/columns.py), and here those are checked that a caller may have
changed since. A store on a device copies a large batch in any case, and its copy converts and
checks the rows on the way (lpma/backend/cuda/upload/staging.py): columns may go there
`unvalidated`. What the backend `validates` while it locates a batch is not checked here either. It
locates before it writes, so bad input changes nothing; if a mixed batch is refused after its
queries were answered, the answers are lost.

`unvalidated` columns are plain NumPy arrays: integers of 32 or 64 bits for vertices, float32 or
float64 for weights, int64 for times, in native byte order, with or without gaps. Anything else is
validated here. So is a batch that the store has refused, for an error that names column and row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..arguments.convert import are_ids, are_weights, time_column, weight_column
from ..arguments.scalars import raises_out_of_memory
from ..arrays import Array, on_device
from ..backend.overlapping import ONE_LAUNCH_ROWS
from ..batch.columns import LAST_KIND, MAX_OPERATIONS, Columns, Kind, kinds_of, of_one_kind
from ..errors import BatchError
from .stores import Stores

Batched = TypeVar("Batched", bound=Columns)  # by ids, or with names

NO_PREDECESSORS = "predecessors need an in-neighbour store: make the graph with predecessors=True"

_IDS = frozenset(map(np.dtype, (np.uint32, np.int32, np.uint64, np.int64)))
_WEIGHTS = frozenset(map(np.dtype, (np.float32, np.float64)))
_TIMES = frozenset([np.dtype(np.int64)])


@raises_out_of_memory
def unvalidated(
    stages: Callable[[int], bool], kind: int, src: Any, dst: Any, weight: Any, time: Any
) -> Columns | None:
    """Updates of edges, of one kind, as unvalidated columns; None if `Columns.edges` has to
    validate them. stages: a backend's `stages_unvalidated`. Raises BatchError."""
    if type(src) is not np.ndarray or src.ndim != 1 or not stages(len(src)):
        return None
    if not (_fits(src, src, _IDS) and _fits(dst, src, _IDS) and len(src) <= MAX_OPERATIONS):
        return None
    if type(weight) in (float, int) and weight == 1:
        weight = None
    if weight is not None and not _fits(weight, src, _WEIGHTS):
        weight = weight_column(weight, src)
        if not _fits(weight, src, _WEIGHTS):
            return None  # on a device, or of another length
    if time is not None and not _fits(time, src, _TIMES):
        time = time_column(time, src)
        if not _fits(time, src, _TIMES):
            return None
    kinds = kinds_of(kind, len(src))
    columns = Columns(kinds, src, dst, weight, time, checked=True, unvalidated=True)
    columns.on_device = False
    return of_one_kind(kind, columns)


def _fits(values: Any, beside: Array, dtypes: frozenset[np.dtype[Any]]) -> bool:
    return (
        type(values) is np.ndarray
        and values.shape == beside.shape
        and values.dtype in dtypes
        and values.flags.aligned
    )


def admit(stores: Stores, columns: Batched) -> Batched:
    """These columns where the stores can read them; checked here, unless locating does that. Raises
    BatchError, also for a query that the stores cannot answer. REQUIRES: the lock is held."""
    if not columns.checked:
        columns = columns.moved(stores.place.localize)
        is_pinned = columns.block is not None  # then columns have their types
        if not (is_pinned and columns.edges_only and stores.out.backend.validates):
            columns = _checked(stores, columns)
    if not columns.edges_only:
        asked = columns.kind[columns.queries]
        if stores.reverse is None and (asked == Kind.PREDECESSORS).any():
            raise BatchError(NO_PREDECESSORS)
    return columns


def _checked(stores: Stores, columns: Batched) -> Batched:
    if columns.block is None and not _fit_together(columns):
        columns = validated(columns)
    is_large = len(columns.kind) > ONE_LAUNCH_ROWS
    # Checking a few rows here is cheaper than waiting for the device; checking many is not.
    if columns.block is None and not (is_large and stores.out.backend.validates):
        columns.checked = _are_good_edges(columns)
        if columns.checked:
            return columns
    if stores.out.backend.validates and _locating_checks_all(columns):
        return columns
    valid = validated(columns)
    if all(getattr(valid, name) is getattr(columns, name) for name in _TYPES):
        columns.checked = valid.checked  # the same arrays, in the same block if they lie in one
        return columns
    return valid


_TYPES = {
    "kind": frozenset([np.dtype(np.uint8)]),
    "src": frozenset([np.dtype(np.uint32)]),
    "dst": frozenset([np.dtype(np.uint32)]),
    "weight": _WEIGHTS,
    "time": _TIMES,
}


def _fit_together(columns: Columns) -> bool:
    """Whether every column is of a batch's type and the same length, whatever its values: a caller
    may have put others in their place."""
    if type(columns.kind) is not np.ndarray:
        return False
    shape = columns.kind.shape
    for name, types in _TYPES.items():
        column = getattr(columns, name)
        if column is None and name in ("weight", "time"):
            continue
        is_array = type(column) is np.ndarray or on_device(column)
        if not (is_array and column.shape == shape and column.dtype in types):
            return False
        if not column.flags.c_contiguous:
            return False
    return len(shape) == 1


def validated(columns: Batched) -> Batched:
    """The batch with its columns validated, and of a batch's types. Raises BatchError."""
    given = columns.kind, columns.src, columns.dst, columns.weight, columns.time
    valid = Columns.validated(*given)
    return columns.replace(checked=valid.checked, **{name: getattr(valid, name) for name in _TYPES})


def _are_good_edges(columns: Columns) -> bool:
    """Whether these are updates of edges on the host, and good ones."""
    weight = columns.weight
    return (
        columns.edges_only
        and are_ids(columns.src, columns.dst)
        and (weight is None or (type(weight) is np.ndarray and are_weights(weight)))
        and not on_device(columns.time)
    )


def _locating_checks_all(columns: Columns) -> bool:
    """Whether locating would find any bad row. Only batches with updates are located, only rows
    that name their own keys are seen then, and kinds and numbers of steps are not looked at."""
    if columns.edges_only:
        return True
    kinds = columns.kind[columns.queries]
    if not (columns.names_its_keys and 0 < len(kinds) < len(columns)):
        return False
    return columns.largest_kind <= LAST_KIND and not bool((kinds == Kind.HOPS).any())
