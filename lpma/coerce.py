"""What callers give, as columns: one dimension, contiguous, of one type, where it lies.

Anything with `__array__` becomes NumPy's. What lies on a CUDA device stays there, as CuPy's array,
without a copy where the type is right: it comes through DLPack, which has CuPy's current stream
wait for its owner's, or through `__cuda_array_interface__`. CuPy is imported only for those.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import numpy.typing as npt

from .arrays import array_module, device_of, on_device
from .cpu.jit import compiled
from .errors import BatchError
from .optional import how_to_install

Array = npt.NDArray[Any]  # or cupy.ndarray

MAX_VERTEX = 2**32 - 2  # 2^32 - 1 marks an isolated vertex (see store.py)
NO_VERTEX = 2**32 - 1
CUDA, CUDA_MANAGED = 2, 13  # kinds of device in DLPack

_UINT32 = np.dtype(np.uint32)
_UNREADABLE = (TypeError, ValueError, BufferError, RuntimeError)
_BOOLEANS = {bool, np.bool_}
_ON_HOST = (np.ndarray, np.generic, list, tuple, int, float, type(None))


def where_it_lies(values: Any) -> Any:
    """`values` as CuPy's array where it lies on a CUDA device; anything else as it is."""
    if isinstance(values, _ON_HOST) or on_device(values):
        return values
    try:
        device = getattr(values, "__dlpack_device__", None)
        exchanged = device is not None and int(device()[0]) in (CUDA, CUDA_MANAGED)
        if not exchanged and (device is not None or not _has_cuda_interface(values)):
            return values
        cupy = importlib.import_module("cupy")
        return cupy.from_dlpack(values) if exchanged else cupy.asarray(values)
    except ImportError as error:
        raise BatchError(
            f"an array on a CUDA device needs CuPy ({error}): "
            f"{how_to_install('cuda12', 'cuda13')}; or give a copy on the host"
        ) from error
    except _UNREADABLE as error:
        raise BatchError(f"an array on a CUDA device cannot be read ({error})") from None


def _has_cuda_interface(values: Any) -> bool:
    return hasattr(values, "__cuda_array_interface__")


def as_array(values: Any, name: str) -> Array:
    """`values` as an array of one dimension where it lies; a scalar has length 1."""
    if type(values) is np.ndarray and values.ndim == 1:
        return values
    array = where_it_lies(values)
    if on_device(array):
        array = array.reshape(1) if array.ndim == 0 else array
    else:
        try:
            if hasattr(array, "__dlpack__") and not hasattr(array, "__array__"):
                array = np.from_dlpack(array)
            array = np.asarray(array)
        except _UNREADABLE as error:
            raise BatchError(f"{name}: cannot be read as an array ({error})") from None
        _refuse_what_would_be_misread(values, array, name)
        array = np.atleast_1d(array)
    if array.ndim != 1:
        raise BatchError(f"{name}: expected one dimension, got shape {array.shape}")
    return array


def _refuse_what_would_be_misread(values: Any, array: Array, name: str) -> None:
    """NumPy makes one object of a set or a generator, numbers of booleans that stand among numbers,
    and forgets what is masked."""
    if array.ndim == 0 and array.dtype == object:
        raise BatchError(
            f"{name}: a {type(values).__name__} is no array: give a number, a list or an array"
        )
    if isinstance(values, list | tuple) and _BOOLEANS & set(map(type, values)):
        raise BatchError(f"{name}: expected numbers, got a boolean")
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise BatchError(f"{name}: some values are masked: leave these rows out")


def is_scalar(values: Any) -> bool:
    """Whether this is one value, on the host or a device, and not a sequence of one. REQUIRES:
    passed through `where_it_lies`."""
    return isinstance(values, int | float | np.generic) or getattr(values, "ndim", None) == 0


def _is_vertices(values: Any) -> bool:
    """Whether `values` is a column of uint32 as it is: most are, and then there is little to do."""
    return (
        type(values) is np.ndarray
        and values.ndim == 1
        and values.dtype == _UINT32
        and values.flags.c_contiguous
    )


def are_ids(src: Any, dst: Any) -> bool:
    """Whether both are columns of vertex ids as they are, of one length. One look at both: a small
    batch feels each reduction of NumPy's, and each call."""
    return (
        type(src) is type(dst) is np.ndarray
        and src.dtype == dst.dtype == _UINT32
        and src.ndim == 1
        and src.shape == dst.shape
        and src.flags.c_contiguous
        and dst.flags.c_contiguous
        and _largest(src, dst) <= MAX_VERTEX
    )


@compiled
def _largest(src: Array, dst: Array) -> int:
    most = np.uint32(0)
    for v in src:
        most = max(most, v)
    for v in dst:
        most = max(most, v)
    return int(most)


def as_column(values: Any, dtype: npt.DTypeLike, name: str) -> Array:
    """`values` as a 1-d column of `dtype`.

    Raises BatchError where a value would change on the way (a fraction, a sign, a range)."""
    target = np.dtype(dtype)
    column = as_array(values, name)
    with device_of(column):
        xp = array_module(column)
        if column.dtype == target:
            return xp.ascontiguousarray(column)
        if column.size == 0:
            return xp.empty(0, target)
        if target.kind in "iu":
            _require_integers(column, name)
            bounds = np.iinfo(target)
            if not np.can_cast(column.dtype, target) and (
                int(column.min()) < bounds.min or int(column.max()) > bounds.max
            ):
                raise BatchError(f"{name}: a value lies outside {bounds.min} … {bounds.max}")
        elif column.dtype.kind not in "iuf":
            raise BatchError(f"{name}: expected numbers, got {column.dtype}")
        return column.astype(target)


_ADVICE = {
    "f": ": convert whole numbers first, with .astype('int64') for one; a missing one has no place",
    "U": ": convert digits first; vertices go by numbers",
    "O": ": convert its values to one type of integers first",
}


def _require_integers(column: Array, name: str) -> None:
    kind = column.dtype.kind
    if kind not in "iu":
        raise BatchError(f"{name}: expected integers, got {column.dtype}{_ADVICE.get(kind, '')}")


def vertex_column(values: Any, name: str) -> Array:
    """`values` as vertex ids, uint32. Raises BatchError; waits for those on a device."""
    if _is_vertices(values):
        if values.size and values.max() > MAX_VERTEX:
            raise BatchError(f"{name}: vertex ids go from 0 to {MAX_VERTEX}")
        return values
    column = _vertices(values, name)
    with device_of(column):
        if column.size and int(column.max()) > MAX_VERTEX:
            raise BatchError(f"{name}: vertex ids go from 0 to {MAX_VERTEX}")
    return column


def batch_vertices(values: Any, name: str) -> Array:
    """`values` as a batch's vertex ids, uint32. Those on a device are not looked at, which would
    be to wait for them: what is no id is NO_VERTEX, and refused when the batch is sorted."""
    if type(values) is np.ndarray:
        return vertex_column(values, name)
    array = where_it_lies(values)
    return _vertices(array, name) if on_device(array) else vertex_column(array, name)


def _vertices(values: Any, name: str) -> Array:
    column = as_array(empty_is_integer(values), name)
    if not on_device(column):
        return as_column(column, np.uint32, name)
    with device_of(column):
        xp, kind = array_module(column), column.dtype.type
        if column.dtype != np.uint32 and column.size:
            _require_integers(column, name)
            if column.dtype.itemsize == 8:
                column = xp.minimum(column, kind(NO_VERTEX))
            if column.dtype.kind == "i":
                column = xp.maximum(column, kind(-1))  # which as uint32 is NO_VERTEX
        return xp.ascontiguousarray(column.astype(np.uint32, copy=False))


def empty_is_integer(values: Any) -> Any:
    """An empty list has no dtype of its own; NumPy would call it float."""
    return np.empty(0, np.int64) if isinstance(values, list | tuple) and not values else values


def stretched(column: Array, n: int, beside: Array) -> Array:
    """A column of length 1 repeated n times, on the device if either of the two lies there."""
    if n == 1 and on_device(column) == on_device(beside):
        return column
    like = column if on_device(column) else beside
    with device_of(like):
        xp = array_module(like)
        return xp.ascontiguousarray(xp.broadcast_to(xp.asarray(column), n))
