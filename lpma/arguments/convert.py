"""The entrance: what callers give becomes columns of one dimension and one type, wherever it lies.

Each argument is read once, by `as_array`; the functions after it take arrays. What lies on a CUDA
device stays there as a CuPy array, without a copy if the type is right: it comes through DLPack,
which makes CuPy's current stream wait for its owner's, or through `__cuda_array_interface__`. CuPy
is imported only for those.

A scalar is an array of no dimension; its column of one row is repeated by `stretched`. The values
of a batch on a device are checked while it is sorted there, since to inspect them means waiting.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import Array, array_module, device_of, on_device
from ..cpu import columns
from ..dependencies import how_to_install
from ..errors import BatchError
from .scalars import is_bool, is_integer, is_real, shown
from .times import numbered

MAX_VERTEX = 2**32 - 2  # 2^32 - 1 marks a vertex added by itself (see keys.py)
MAX_NAME_BYTES = 1024  # of text that names a vertex, as UTF-8 (see names/)
NO_VERTEX = 2**32 - 1
MAX_WHOLE = 2**53  # the largest of the floats up to which none skips an integer
MAX_WEIGHT = 1e30  # finite sums of many of these stay finite in float32
BAD_VERTEX = f"vertex ids go from 0 to {MAX_VERTEX}"
TAKEN_WEIGHTS = f"finite values of at most {MAX_WEIGHT:g} in size are taken"
BAD_WEIGHT = f"weight: {TAKEN_WEIGHTS}"
CUDA, CUDA_MANAGED = 2, 13  # kinds of device in DLPack

_UINT32 = np.dtype(np.uint32)
_UNREADABLE = (TypeError, ValueError, BufferError, RuntimeError)
_BOOLEANS = {bool, np.bool_}
_ON_HOST = (np.ndarray, np.generic, list, tuple, int, float, type(None))
_PLAIN = (np.generic, list, tuple, int, float)


def as_cupy_if_on_device(values: Any) -> Any:
    """`values` as a CuPy array if it lies on a CUDA device; anything else as it is."""
    if isinstance(values, _ON_HOST) or on_device(values):
        return values
    try:
        device = getattr(values, "__dlpack_device__", None)
        exchanged = device is not None and int(device()[0]) in (CUDA, CUDA_MANAGED)
        has_interface = device is None and hasattr(values, "__cuda_array_interface__")
        if not exchanged and not has_interface:
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


def as_array(values: Any, name: str) -> Array:
    """`values` as an array where it lies, of one dimension or, for a scalar, of none. On the host
    it is exactly a numpy.ndarray, not a subclass. Raises BatchError."""
    if type(values) is np.ndarray:
        array = values
    elif isinstance(values, _PLAIN):
        array = _host_array(values, name)
    else:
        array = as_cupy_if_on_device(values)
        if not on_device(array):
            array = _host_array(array, name)
    if array.ndim > 1:
        raise BatchError(f"{name}: expected one dimension, got shape {array.shape}")
    return array


def _host_array(values: Any, name: str) -> Array:
    try:
        if hasattr(values, "__dlpack__") and not hasattr(values, "__array__"):
            values = np.from_dlpack(values)
        array = np.asarray(values)
        if array.dtype.kind == "f" and isinstance(values, list | tuple) and name != "weight":
            array = _as_given(values, array)
    except _UNREADABLE as error:
        raise BatchError(f"{name}: cannot be read as an array ({error})") from None
    _refuse_what_would_be_misread(values, array, name)
    return array


def _as_given(values: list[Any] | tuple[Any, ...], floats: Array) -> Array:
    """Integers, some of 64 bits, as they are: NumPy makes floats of them, which skip some."""
    if not floats.size or not all(map(is_integer, values)):
        return floats
    fits = min(values) >= 0 and max(values) < 1 << 64
    return np.array(values, np.uint64 if fits else object)


def _refuse_what_would_be_misread(values: Any, array: Array, name: str) -> None:
    """Refuse what NumPy would misread: it makes one object of a set or a generator, turns booleans
    among numbers into numbers, and forgets what is masked."""
    if array.ndim == 0 and array.dtype == object:
        if isinstance(values, int):
            raise BatchError(f"{name}: {shown(values)} has more than 64 bits")
        raise BatchError(
            f"{name}: a {type(values).__name__} is no array: give a number, a list or an array"
        )
    if isinstance(values, list | tuple) and _BOOLEANS & set(map(type, values)):
        row = next(row for row, value in enumerate(values) if is_bool(value))
        raise BatchError(f"{name}: expected numbers, and row {row} has {values[row]}, a boolean")
    # `np.ma` is imported when it is named, which takes milliseconds: only its own arrays need that.
    is_derived = isinstance(values, np.ndarray) and type(values) is not np.ndarray
    if is_derived and isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise BatchError(f"{name}: some values are masked: leave these rows out")


def as_column(array: Array, dtype: npt.DTypeLike, name: str) -> Array:
    """`array` as a contiguous column of `dtype`, one row for a scalar.

    Raises BatchError if a value would change on the way (a fraction, a sign, a range)."""
    if type(array) is np.ndarray:
        return _column(array, np.dtype(dtype), name)
    with device_of(array):
        return _column(array, np.dtype(dtype), name)


def _column(array: Array, target: np.dtype[Any], name: str) -> Array:
    column = array.reshape(1) if array.ndim == 0 else array
    if column.dtype == target:
        return column if column.flags.c_contiguous else column.copy()
    if column.size == 0:
        return column.astype(target)  # to NumPy an empty list holds floats
    if target.kind in "iu":
        _require_integers(column, name)
        bounds = np.iinfo(target)
        if not np.can_cast(column.dtype, target) and (
            int(column.min()) < bounds.min or int(column.max()) > bounds.max
        ):
            raise BatchError(f"{name}: a value lies outside {bounds.min} … {bounds.max}")
    elif column.dtype.kind not in "iuf":
        got = f"got {column.dtype}"
        for row, value in _objects(column):
            if not is_real(value):
                got = f"and row {row} has {shown(value)}"
                break
        raise BatchError(f"{name}: expected numbers, {got}")
    return column.astype(target)


def _require_integers(column: Array, name: str) -> None:
    if column.dtype.kind in "iu":
        return
    got, hint = f"got {column.dtype}", advice(name, column.dtype.kind)
    for row, value in _objects(column):
        if is_integer(value) and -(1 << 63) <= value < 1 << 64:
            continue
        got = f"and row {row} has {shown(value)}"
        if is_integer(value) and name not in ("kind", "time"):
            raise BatchError(f"{name}: {BAD_VERTEX}, {got}")
        if shown(value) in _MISSING and name not in ("kind", "time"):
            hint = ": leave out the rows that have none"
        break
    raise BatchError(f"{name}: expected integers, {got}{hint}")


_MISSING = ("None", "nan", "<NA>", "NaT")


def _objects(column: Array) -> Iterable[tuple[int, Any]]:
    """The rows of a column of Python's objects; of any other column none."""
    return enumerate(column.tolist() if column.dtype == object else ())


def refused_rows(complaint: str, rows: int) -> BatchError:
    """What a device says of bad rows, which it counts."""
    return BatchError(f"{complaint} ({rows:,} {'row' if rows == 1 else 'rows'})")


# -- vertices -----------------------------------------------------------------------------------


def are_ids(src: Any, dst: Any) -> bool:
    """Whether both are already columns of vertex ids, of one length: in most batches they are. Both
    are checked at once, because each NumPy call shows in the time of a small batch."""
    return (
        type(src) is type(dst) is np.ndarray
        and src.dtype == dst.dtype == _UINT32
        and src.ndim == 1
        and src.shape == dst.shape
        and src.flags.c_contiguous
        and dst.flags.c_contiguous
        and columns.largest(src, dst) <= MAX_VERTEX
    )


def id_column(array: Array, name: str) -> Array:
    """A batch's vertex ids, uint32. Raises BatchError; but on a device a value that is not an id
    becomes NO_VERTEX, and is refused when the batch is sorted."""
    if type(array) is np.ndarray:
        if array.dtype.kind == "f" and array.size:
            array = whole_numbers(array, name)
        if array.dtype.kind not in "iu" or not array.size:
            return _column(array, _UINT32, name)
        if array.ndim and (seen := columns.ids(array)) is not None:
            return seen
        _refuse_no_ids(array, name)
        column = array if array.ndim else array.reshape(1)
        ids: Array = column.astype(_UINT32, "C", copy=False)
        if ids is not array and ids.max() > MAX_VERTEX:
            raise BatchError(f"{name}: another thread writes to this array: give the batch a copy")
        return ids
    if array.dtype == _UINT32 and array.ndim and array.flags.c_contiguous:
        return array
    with device_of(array):
        return _ids_unseen(array, name)


def _refuse_no_ids(array: Array, name: str) -> None:
    """Raise BatchError if one of these integers is no vertex id. On the host."""
    # As most callers have them, in one look: as uint64, those below 0 are the largest.
    seen = array.view(np.uint64) if array.dtype == np.int64 else array
    if seen.max() <= MAX_VERTEX and (seen.dtype.kind == "u" or seen.min() >= 0):
        return
    column = array.reshape(-1)
    row = int(np.argmax((column < 0) | (column > MAX_VERTEX)))
    raise BatchError(f"{name}: {BAD_VERTEX}, and {_which(array, row)}")


def _which(array: Array, row: int) -> str:
    """What is wrong with a column, or with the one value of all rows."""
    return f"row {row} has {array[row]}" if array.ndim else f"this is {array}"


def whole_numbers(array: Array, name: str, what: str = "a vertex") -> Array:
    """Floats as int64: data frames have them where a column once lacked some values. On the host.
    Raises BatchError if one is no whole number, or beyond 2^53, where floats skip integers. what:
    a row's value, for errors."""
    if array.dtype.itemsize < 4:
        array = array.astype(np.float32)  # which can be compared with 2^53
    bad = ~(np.abs(array) <= MAX_WHOLE)  # NaN fails the comparison
    if not bad.any():
        numbers: Array = array.astype(np.int64)
        bad = numbers != array
        if not bad.any():
            return numbers
    row = int(np.argmax(bad))
    value = array.reshape(-1)[row].item()
    if value != value:
        why = "nan: leave out the rows that have none, with dropna() or drop_nulls()"
    elif abs(value) > MAX_WHOLE:
        why = f"{value!r}, beyond 2^53, from where on floats skip integers: give integers"
    else:
        why = f"{value!r}: floats are taken only where they are whole numbers"
    raise BatchError(f"{name}: {what} is an integer, and row {row} has {why}")


def _ids_unseen(array: Array, name: str) -> Array:
    xp, kind = array_module(array), array.dtype.type
    column = array.reshape(1) if array.ndim == 0 else array
    if column.dtype.kind == "f" and column.size:
        # What is no id becomes NO_VERTEX: fractions and NaN differ from what they are cut to.
        inside = xp.minimum(xp.maximum(column.astype(np.float64), -1.0), float(NO_VERTEX))
        cut = inside.astype(np.int64)
        column = xp.where(cut == column, cut, NO_VERTEX)
        kind = column.dtype.type
    if column.dtype != _UINT32 and column.size:
        _require_integers(column, name)
        if column.dtype.itemsize == 8:
            column = xp.minimum(column, kind(NO_VERTEX))
        if column.dtype.kind == "i":
            column = xp.maximum(column, kind(-1))  # which as uint32 is NO_VERTEX
    return xp.ascontiguousarray(column.astype(np.uint32, copy=False))


def vertices_asked_for(values: Any, name: str) -> Array:
    """The vertex ids of a query, uint32. Raises BatchError; but on a device a value that is not an
    id becomes NO_VERTEX, and is refused when it is looked up."""
    return id_column(as_array(values, name), name)


def one_vertex(value: Any, name: str) -> int:
    """The vertex id of a query for one vertex. Raises BatchError."""
    array = as_array(value, name)
    if array.ndim:
        raise BatchError(
            f"{name}: one vertex is asked for, not an array of {len(array)}: `edges`, `successors` "
            "and `degree` take arrays"
        )
    vertex = int(id_column(array, name)[0])
    if vertex > MAX_VERTEX:
        raise BatchError(f"{name}: {BAD_VERTEX}")
    return vertex


# -- weights and times --------------------------------------------------------------------------


def weight_column(
    values: Any, beside: Array, kinds: Array | None = None, weighted: Sequence[int] = ()
) -> Array:
    """The weights of a batch, float32, or else float64; a scalar counts for every row. `beside` is
    a column of the batch. If `kinds` are given, only rows of the kinds `weighted` count.
    Weights on a device are not inspected. Raises BatchError."""
    array = as_array(values, "weight")
    column = as_column(array, np.float32 if array.dtype == np.float32 else np.float64, "weight")
    if array.ndim == 0:
        column = stretched(column, len(beside), beside)
    if len(column) != len(beside) or type(column) is not np.ndarray:
        return column
    if are_weights(column):  # of all rows: selecting takes longer and is rarely needed
        return column
    bad = ~(np.abs(column) <= MAX_WEIGHT)
    if kinds is not None and len(kinds) == len(column):
        bad &= np.isin(kinds, weighted)
    if bad.any():
        raise BatchError(f"{BAD_WEIGHT}, and {_which(array, int(np.argmax(bad)))}")
    return column


def one_weight(value: Any) -> float:
    """The weight of one operation; None: 1. Raises BatchError."""
    if type(value) is float:
        return value
    if value is None:
        return 1.0
    array = as_array(value, "weight")
    if array.ndim:
        raise BatchError(f"weight: one operation has one number, not an array of {len(array)}")
    return float(as_column(array, np.float64, "weight")[0])


def are_weights(values: Array) -> bool:
    """Whether all are finite and small enough. NaN, which is the maximum of any values that
    contain it, fails the comparison."""
    most, least = values.max(initial=0), values.min(initial=0)
    return bool(most <= MAX_WEIGHT) and bool(least >= -MAX_WEIGHT)


def time_column(values: Any, beside: Array) -> Array:
    """The times of a batch, int64 milliseconds; a scalar is every row's. Raises BatchError."""
    array = time_array(values)
    column = as_column(array, np.int64, "time")
    return stretched(column, len(beside), beside) if array.ndim == 0 else column


def time_array(values: Any) -> Array:
    """Times as `as_array` has them, what is no integer as milliseconds. Raises BatchError."""
    if type(values) is int or (type(values) is np.ndarray and values.dtype.kind in "iu"):
        return as_array(values, "time")
    # Twice: lists of datetimes are no array yet, and other libraries' columns are times then.
    array: Array = numbered(as_array(numbered(values, "time"), "time"), "time")
    if type(array) is np.ndarray and array.dtype.kind == "f" and array.size:
        return whole_numbers(array, "time", "a time")
    return array


def one_time(value: Any, name: str) -> int:
    """One time, in milliseconds. Raises BatchError."""
    found = numbered(value, name)
    if getattr(found, "ndim", None) == 0:  # of NumPy, or wherever it lies
        found = found.item()
    if isinstance(found, float) and found.is_integer() and abs(found) <= MAX_WHOLE:
        found = int(found)
    if is_integer(found) and -(1 << 63) <= found < 1 << 63:
        return int(found)
    raise BatchError(f"{name}: one time, in integer milliseconds or a datetime, not {shown(value)}")


def stretched(column: Array, n: int, beside: Array) -> Array:
    """A column of one row repeated n times, on the device if either of the two lies there."""
    if type(column) is type(beside) is np.ndarray:
        return column if n == 1 else np.full(n, column[0])
    if n == 1 and on_device(column) == on_device(beside):
        return column
    like = column if on_device(column) else beside
    with device_of(like):
        xp = array_module(like)
        return xp.ascontiguousarray(xp.broadcast_to(xp.asarray(column), n))


_VERTICES = {
    "b": ", booleans: give integers",
    "f": ": convert whole numbers first, with .astype('int64') for one; a missing one has no place",
    "M": ": these are times",
    "m": ": these are spans of time, not times",
    "U": ": vertices go by numbers, unless the graph is made with names=True",
    "T": ": vertices go by numbers, unless the graph is made with names=True",
    "O": ": convert its values to one type of integers first, or make the graph with names=True",
}


def advice(name: str, kind: str) -> str:
    """The end of a message on the column `name` of a dtype of this kind."""
    if name == "kind":
        return ": one of lpma.Kind, such as lpma.Kind.INSERT, or a number for each row"
    if name == "time" and kind in "UTSO":
        what = "a value of another type" if kind == "O" else "text"
        return f": {what} is no time here: give datetimes, or milliseconds, in each row"
    return _VERTICES.get(kind, "")
