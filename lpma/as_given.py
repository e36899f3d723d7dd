"""Updates whose columns go to the store as a caller has them.

Columns are validated at the door (coerce.py), which reads each two or three times: for its largest
and smallest value, to make it uint32, and then the store copies it. A store on a device copies a
large batch in any case, and its copy converts and looks at the rows on the way
(lpma/backend/cuda/staging.py), so that each value is read once, and by several threads.

Requires plain arrays of NumPy's: integers of 32 or 64 bits for vertices, float32 or float64 for
weights, int64 for times, in the machine's order of bytes, with or without gaps. What is anything
else goes through the door, as does a batch that the store has refused: for the error that names the
column and the row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .batch import MAX_OPERATIONS, Columns, Kind, kinds_of, of_one_kind
from .coerce import Array, time_column, weight_column
from .converted import within_memory
from .errors import BatchError
from .stores import Stores

_IDS = frozenset(map(np.dtype, (np.uint32, np.int32, np.uint64, np.int64)))
_WEIGHTS = frozenset(map(np.dtype, (np.float32, np.float64)))
_TIMES = frozenset([np.dtype(np.int64)])


def update(
    apply: Callable[[Columns], object], stores: Stores, kind: Kind, src: Any, dst: Any,
    weight: Any, time: Any,
) -> None:  # fmt: skip
    """Apply updates of one kind, APPEND or DELETE, from what a caller gave. Raises BatchError, and
    what `apply` raises."""
    given = kind, src, dst, weight, time
    try:
        columns = as_given(stores.out.backend.stages_given, *given)
        if columns is not None:
            apply(columns)
            return
    except BatchError:
        Columns.edges(*given)  # raises what names the column
        raise
    apply(Columns.edges(*given))


@within_memory
def as_given(
    stages: Callable[[int], bool], kind: Kind, src: Any, dst: Any, weight: Any, time: Any
) -> Columns | None:
    """Updates of one kind, APPEND or DELETE, as columns that nobody has looked at; None where
    `Columns.edges` has to. stages: a backend's `stages_given`. Raises BatchError."""
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
    return of_one_kind(kind, Columns(kinds, src, dst, weight, time, checked=True, as_given=True))


def _fits(values: Any, beside: Array, dtypes: frozenset[np.dtype[Any]]) -> bool:
    return (
        type(values) is np.ndarray
        and values.shape == beside.shape
        and values.dtype in dtypes
        and values.flags.aligned
    )
