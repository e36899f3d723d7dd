"""What callers give as names becomes a column: lists, arrays, columns of data frames, one name.

A column that comes from Arrow (pyarrow's own, or of pandas, polars or DuckDB, which offer it) is
read where it lies; of a dictionary-encoded one, each distinct name is looked up once. Text that
Python holds is encoded in one go. pyarrow is imported only for columns of Arrow's."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

import numpy as np

from ..arguments.arrow import as_numpy
from ..arguments.convert import MAX_NAME_BYTES, MAX_WHOLE, as_cupy_if_on_device, whole_numbers
from ..arguments.scalars import is_integer, shown
from ..arrays import Array, to_host
from ..errors import BatchError
from .column import MAX_NAME, MIN_NAME, TEXT, Column, Name, of_integers, of_texts


def name_of(value: Any, name: str) -> Name:
    """One name, as Python's own type. Raises BatchError."""
    if type(value) is int and MIN_NAME <= value <= MAX_NAME:
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    return _checked(value, name, "")


def column_of(values: Any, name: str) -> Column:
    """What a caller gave as names. Raises BatchError, which says which row is wrong and why.

    values: an array, a list, a tuple or a column of a data frame of integers of 64 bits, text, or
    both (floats only where they are whole); or one name, which `is_scalar` then says."""
    if values is None or isinstance(values, str | int) or np.isscalar(values):
        return _scalar(values, name)
    if not isinstance(values, np.ndarray | list | tuple):
        column = _of_arrow(values, name)  # first: Arrow's text has DLPack's methods, which fail
        if column is not None:
            return column
        values = to_host(as_cupy_if_on_device(values))
        if not isinstance(values, np.ndarray):
            values = _as_items(values, name)
    if isinstance(values, np.ndarray):
        if values.ndim == 0:
            return _scalar(values.item(), name)
        if values.ndim > 1:
            raise BatchError(f"{name}: expected one dimension, got shape {values.shape}")
        if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
            raise BatchError(f"{name}: some values are masked: leave these rows out")
        if values.dtype.kind in "iu":
            return of_integers(np.asarray(values))
        if values.dtype.kind == "f":
            return of_integers(whole_numbers(values, name))
        values = values.tolist()
    return _of_items(values, name)


def _scalar(value: Any, name: str) -> Column:
    return replace(_of_items([name_of(value, name)], name), is_scalar=True)


def _as_items(values: Any, name: str) -> Any:
    """A foreign container as an array or a list."""
    if hasattr(values, "__array__"):
        try:
            return np.asarray(values)
        except MemoryError:
            raise
        except Exception as error:
            raise BatchError(f"{name}: cannot be read as an array ({error})") from error
    if hasattr(values, "__iter__") and not isinstance(values, dict | bytes | set | frozenset):
        return list(values)
    raise BatchError(f"{name}: a {type(values).__name__} is no column of names: give a list")


# -- items of Python's ----------------------------------------------------------------------------


def _of_items(items: list[Any] | tuple[Any, ...], name: str) -> Column:
    types = set(map(type, items))
    if types <= {int}:
        for dtype in (np.int64, np.uint64):
            try:
                return of_integers(np.array(items, dtype))
            except OverflowError:
                continue
    if types == {str}:
        return of_texts(*_encoded(items, name), name)
    n, names = len(items), [_checked(item, name, f": row {i}") for i, item in enumerate(items)]
    texts = of_texts(*_encoded([x for x in names if isinstance(x, str)], name), name)
    kinds = np.fromiter((TEXT if isinstance(x, str) else x < 0 for x in names), np.uint8, n)
    keys = np.fromiter((0 if isinstance(x, str) else x & MAX_NAME for x in names), np.uint64, n)
    keys[kinds == TEXT] = texts.keys
    return Column(kinds, keys, texts.bounds, texts.blob)


def _encoded(texts: list[str] | tuple[str, ...], name: str) -> tuple[Array, Array]:
    """Bounds and bytes of these texts. Raises BatchError."""
    joined = "".join(texts)
    if joined.isascii():  # a letter is a byte
        sizes, blob = map(len, texts), joined.encode()
    else:
        try:
            encoded = [text.encode() for text in texts]
        except UnicodeEncodeError:
            for row, text in enumerate(texts):
                _checked(text, name, f": row {row}")
            raise
        sizes, blob = map(len, encoded), b"".join(encoded)
    bounds = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(sizes, np.int64, len(texts)), out=bounds[1:])
    return bounds, np.frombuffer(blob, np.uint8)


def _checked(item: Any, name: str, row: str) -> Name:
    """One item as a name. Raises BatchError."""
    if isinstance(item, str):
        try:
            size = len(item.encode())
        except UnicodeEncodeError:
            raise BatchError(f"{name}{row} is no text: it has half of a surrogate pair") from None
        if not 1 <= size <= MAX_NAME_BYTES:
            raise BatchError(
                f"{name}{row} is text of {size} bytes, and 1 to {MAX_NAME_BYTES} name a vertex"
            )
        return str(item)
    is_whole_float = isinstance(item, float | np.floating) and float(item).is_integer()
    if not (is_integer(item) or is_whole_float):
        raise BatchError(_wrong(name, row, item))
    value = int(item)
    if is_whole_float and abs(value) > MAX_WHOLE:
        raise BatchError(
            f"{name}{row} is {shown(item)}, beyond 2^53, from where on floats skip integers: give "
            "integers"
        )
    if not MIN_NAME <= value <= MAX_NAME:
        raise BatchError(f"{name}{row} is {shown(value)}: no integer of 64 bits")
    return value


def _wrong(name: str, row: str, item: Any) -> str:
    if _is_missing(item):
        return f"{name}{row} is missing: leave such rows out"
    return f"{name}{row} is {shown(item)}: a vertex goes by text or by an integer of 64 bits"


def _is_missing(item: Any) -> bool:
    """Whether this stands for a value that is not there. What is compared is a scalar: a column of
    pandas is neither equal to itself nor not."""
    if item is None or type(item).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(item, float | np.floating | np.datetime64 | np.timedelta64) and item != item


# -- Arrow ----------------------------------------------------------------------------------------


def _of_arrow(values: Any, name: str) -> Column | None:
    """The column of anything that offers itself to Arrow; None of anything else."""
    is_stream = hasattr(values, "__arrow_c_stream__")
    if not is_stream and not hasattr(values, "__arrow_c_array__"):
        return None
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind == "O":
        return None  # objects of pandas, which Arrow would have to guess the type of
    pyarrow = importlib.import_module("pyarrow")
    array = pyarrow.chunked_array(values).combine_chunks() if is_stream else pyarrow.array(values)
    if isinstance(array, pyarrow.ChunkedArray):
        array = pyarrow.concat_arrays(array.chunks)
    if array.null_count:
        row = as_numpy(array.is_null()).argmax()
        raise BatchError(_wrong(name, f": row {row}", None))
    return _of_arrow_array(pyarrow, array, name)


def _of_arrow_array(pyarrow: Any, array: Any, name: str) -> Column:
    types = pyarrow.types
    if types.is_dictionary(array.type):
        entries, codes = array.dictionary, as_numpy(array.indices).astype(np.int64)
        if entries.null_count:
            row = int(as_numpy(entries.is_null())[codes].argmax())
            raise BatchError(_wrong(name, f": row {row}", None))
        return replace(_of_arrow_array(pyarrow, entries, name), codes=codes)
    if types.is_integer(array.type):
        return of_integers(as_numpy(array))
    if types.is_floating(array.type):
        return of_integers(whole_numbers(as_numpy(array), name))
    is_text = types.is_string(array.type) or types.is_large_string(array.type)
    if not is_text and str(array.type) != "string_view":
        raise BatchError(f"{name}: a column of {array.type}: vertices go by text or by integers")
    array = array.cast(pyarrow.large_string())
    _, offsets, data = array.buffers()
    first = array.offset
    bounds = np.frombuffer(offsets, np.int64)[first : first + len(array) + 1]
    blob = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    start, end = (int(bounds[0]), int(bounds[-1])) if len(array) else (0, 0)
    return of_texts(bounds - start if len(array) else np.zeros(1, np.int64), blob[start:end], name)
