"""Arrays wherever they are: NumPy's on the host, CuPy's on a device.

The host's logic is written once for both: a function calls `array_module` on an array that it was
given and then uses that module, whose functions have NumPy's names. CuPy is imported here only for
pinned memory: whoever has one of its arrays has imported it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from ctypes import c_int64
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]  # or cupy.ndarray, which has no types


def on_device(array: Any) -> bool:
    """Whether this is a CuPy array."""
    cupy = sys.modules.get("cupy")
    return cupy is not None and isinstance(array, cupy.ndarray)


DATA = object.__basicsize__  # in every NumPy array the address follows what all objects begin with


def address(array: Any) -> int:
    """Where the data of an array of the host lies. NumPy would take ten times as long to say."""
    return c_int64.from_address(id(array) + DATA).value


def array_module(array: Any) -> Any:
    """numpy or cupy, whichever the array belongs to."""
    return sys.modules["cupy"] if on_device(array) else np


def device_of(array: Any) -> AbstractContextManager[Any]:
    """A context in which the array's device is the current one, on which CuPy computes."""
    return array.device if on_device(array) else _HOST


_HOST = nullcontext()


def _synchronize(stream: Any) -> None:
    stream.synchronize()


await_stream: Callable[[Any], None] = _synchronize  # until lpma/cuda/driver.py is imported


def finish(array: Any) -> None:
    """Wait for all work on the current stream of the array's device, if it lies on one."""
    if on_device(array):
        with array.device:
            await_stream(array_module(array).cuda.get_current_stream())


def stream_of(array: Any) -> AbstractContextManager[Any]:
    """The current stream of the array's device, for another thread; on the host, nothing."""
    if not on_device(array):
        return _HOST
    with array.device:
        stream: AbstractContextManager[Any] = array_module(array).cuda.get_current_stream()
        return stream


def to_host(array: Any) -> Any:
    """A device array copied to the host; anything else as it is."""
    if not on_device(array):
        return array
    with array.device:
        return array.get()


def row_numbers(indptr: Any, length: int) -> Any:
    """int64[length]: the row of each entry of a CSR of `length` entries."""
    xp = array_module(indptr)
    if xp is np:
        return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return xp.searchsorted(indptr[1:], xp.arange(length), side="right")


def rows_of(column: Any, rows: Any) -> Any:
    """Rows of a column, by a slice, a mask or their numbers on the host. The column is an array
    wherever it lies, one of Arrow's, or whatever else has `take`, which then knows all three."""
    if type(column) is np.ndarray:
        return column[rows]
    if on_device(column):
        with column.device:
            return column[rows if isinstance(rows, slice) else array_module(column).asarray(rows)]
    if not hasattr(column, "to_numpy"):
        return column.take(rows)
    if isinstance(rows, slice):
        return column[rows]
    rows = np.asarray(rows)
    return column.filter(rows) if rows.dtype == np.bool_ else column.take(rows)


class PinnedBlock:
    """Page-locked memory at `ptr`, and the arrays that were made of it."""

    __slots__ = ("_arrays", "at", "memory", "ptr")

    def __init__(self, memory: Any) -> None:
        self.memory, self.ptr = memory, int(memory.ptr)
        self._arrays: tuple[Any, ...] = ()
        self.at: dict[int, int] = {}  # where they lie, by their identities; None at 0

    def keep(self, *arrays: Any) -> None:
        """Keep arrays of this memory, and note where they lie: nothing else has their identity."""
        self._arrays = arrays
        self.at = {id(None): 0} | {id(array): address(array) for array in arrays}


def pinned_block(size: int) -> PinnedBlock | None:
    """Page-locked host memory of at least `size` bytes. None without CuPy or a device."""
    try:
        cupy = importlib.import_module("cupy")
        if not cupy.cuda.is_available():
            return None
    except ImportError:
        return None
    return PinnedBlock(cupy.cuda.alloc_pinned_memory(max(size, 1)))


def any_of(mask: Any) -> bool:
    """Whether any entry of a bool array is True.

    Of bytes CuPy brings the compiled reduction along. `mask.any()` would be compiled when it is
    first used, CUB's headers with it: more than a second."""
    if not on_device(mask):
        return bool(mask.any())
    return mask.size > 0 and bool(mask.view(np.uint8).max())


def all_of(mask: Any) -> bool:
    """Whether all entries of a bool array are True. See `any_of`."""
    if not on_device(mask):
        return bool(mask.all())
    return mask.size == 0 or bool(mask.view(np.uint8).min())


def count_true(mask: Any) -> int:
    """How many entries of a bool array are True. See `any_of`."""
    if not on_device(mask):
        return int(np.count_nonzero(mask))
    return int(mask.astype(np.int64).sum())


def distinct(values: Any) -> Any:
    """The distinct values of a column, ascending, many times faster than by `np.unique`."""
    xp = array_module(values)
    values = xp.sort(values, kind="stable")
    first = xp.ones(len(values), np.bool_)
    first[1:] = values[1:] != values[:-1]
    return values[first]


def first_not_below(rising: Any, value: int) -> int:
    """The first place in a rising column of unsigned integers, on the host, whose entry is not
    below `value` ≥ 0, or its length. NumPy converts the column first to search for a Python int."""
    dtype = rising.dtype
    if value > np.iinfo(dtype).max:
        return len(rising)
    return int(rising.searchsorted(dtype.type(value)))


def places_of(values: Any, rising: Any) -> Any:
    """int64, on the host: where each value is in a rising array, −1 where it is not."""
    if not len(rising):
        return np.full(len(values), -1)
    at = np.minimum(np.searchsorted(rising, values), len(rising) - 1)
    return np.where(rising[at] == values, at, -1)
