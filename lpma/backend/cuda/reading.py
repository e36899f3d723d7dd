"""Reading a store for a caller: on the store's stream, with inputs and results of the caller's."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from .asked import Asked
from .context import Context
from .read_launch import NULL

Array = Any  # cupy.ndarray


class Reading:
    """A context manager: what is done within runs on the store's device and stream.

    `new` allocates results: it orders the store's stream after the caller's, so a first result
    comes before inputs are read. Of results that are allocated one after the other, to order the
    last is enough. `given` brings inputs to where kernels read them."""

    __slots__ = ("_asked", "_caller", "_context", "_taker")

    def __init__(self, context: Context, asked: Asked, taker: Any) -> None:
        self._context, self._asked, self._taker = context, asked, taker

    def __enter__(self) -> Reading:
        self._context.__enter__()
        self._caller = self._context.callers if self._taker is None else self._taker
        return self

    def __exit__(self, *error: Any) -> None:
        context = self._context
        try:  # what is given up is freed in the order of the caller's stream
            self._asked.end(context.stream)
            context.hand_out(self._caller)
        finally:
            context.__exit__(*error)

    def new(self, length: int, dtype: Any, last: bool = True) -> Array:
        """An array of the caller's stream."""
        self._caller.use()
        try:
            array = cupy.empty(length, dtype)
        finally:
            self._context.stream.use()
        if last:
            self._context.take_in(self._caller)
        return array

    def given(self, values: Any, dtype: Any) -> Any:
        """`values` as a contiguous column, on the device or in memory that it reads; NULL for
        None."""
        if values is None:
            return NULL
        if isinstance(values, cupy.ndarray):
            return cupy.ascontiguousarray(values, dtype)
        column = np.ascontiguousarray(values, dtype)
        at = self._asked.put(column)
        return cupy.asarray(column) if at is None else at
