"""A batch on its way into the stores: brought to where they read it, checked, and which way it
goes.

What the backend checks while it locates a batch is not checked here. It locates before it writes,
so bad input changes nothing either way; a mixed batch whose queries come first is applied
afterwards, and what they answered is lost with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from .arrays import on_device
from .backend.overlapping import ONE_LAUNCH_ROWS
from .batch import Columns, Kind
from .coerce import are_ids, are_weights
from .errors import BatchError
from .stores import Stores

Result = TypeVar("Result")

NO_PREDECESSORS = "predecessors need an in-neighbour store: make the graph with predecessors=True"


def usable(stores: Stores, columns: Columns) -> Columns:
    """These columns where the stores can read them; checked here, unless locating does that.
    Raises BatchError. REQUIRES: the caller holds the graph's lock where the columns are pinned."""
    columns = columns.moved(stores.place.near)
    if columns.block is None and not _fit_together(columns):
        columns = validated(columns)
    is_large, overlap = len(columns.kind) > ONE_LAUNCH_ROWS, stores.out.overlap
    if is_large and overlap is not None and columns.block is not None:
        overlap.expect(columns)
    # A device is not waited for where rows are known to be good; to look at many takes longer.
    if columns.block is None and not (is_large and stores.out.backend.validates):
        columns.checked = _are_good_edges(columns)
        if columns.checked:
            return columns
    if stores.out.backend.validates and _is_seen_through(columns):
        return columns
    valid = validated(columns)
    if all(getattr(valid, name) is getattr(columns, name) for name in _TYPES):
        columns.checked = valid.checked  # the same arrays, in the same block if they lie in one
        return columns
    return valid


def apply_pinned(
    apply: Callable[[Stores, Columns], Result], stores: Stores, columns: Columns
) -> Result:
    """Apply a batch in pinned memory, which a device fetches while it is looked at here."""
    columns = usable(stores, columns)
    if not columns.edges_only:
        refuse_unanswerable(stores, columns)
        stores.take_in()
    return apply(stores, columns)


def refuse_unanswerable(stores: Stores, columns: Columns) -> None:
    """Raises BatchError if a query is for what the stores cannot look up."""
    asked = columns.kind[columns.queries]
    if stores.reverse is None and (asked == Kind.PREDECESSORS).any():
        raise BatchError(NO_PREDECESSORS)


_TYPES = {
    "kind": frozenset([np.dtype(np.uint8)]),
    "src": frozenset([np.dtype(np.uint32)]),
    "dst": frozenset([np.dtype(np.uint32)]),
    "weight": frozenset(map(np.dtype, (np.float32, np.float64))),
    "time": frozenset([np.dtype(np.int64)]),
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


def validated(columns: Columns) -> Columns:
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


def _is_seen_through(columns: Columns) -> bool:
    """Whether all that may be wrong with these columns shows while they are located: which only
    batches with updates are, and which needs keys that the rows name, and tells nothing of kinds
    and of a query's steps."""
    if columns.edges_only:
        return True
    kinds = columns.kind[columns.queries]
    if not (columns.names_its_keys and 0 < len(kinds) < len(columns)):
        return False
    return int(kinds.max()) <= Kind.VERTEX and not bool((kinds == Kind.HOPS).any())
