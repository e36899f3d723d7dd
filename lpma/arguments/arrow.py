"""Columns of Arrow's as NumPy's arrays, where they lie, and the other way round.

pyarrow's own `to_numpy` and `array` import pandas, if there is one, and so do empty tables, which
takes longer than reading a small file. This module imports nothing of Arrow's until it is given
something of it, or asked for it.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays import Array

FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}  # to Arrow, to NumPy


def as_numpy(values: Any) -> Array:
    """A pyarrow.Array or ChunkedArray without nulls as an array of NumPy's: a view of one piece of
    numbers, times or dates, a copy of several. Dictionaries are decoded, decimals become float64,
    truth values bool, and what has no type (all are null) is empty."""
    types = importlib.import_module("pyarrow").types
    kind = values.type
    if types.is_dictionary(kind):
        return as_numpy(values.cast(kind.value_type))
    if types.is_decimal(kind):
        return as_numpy(values.cast("float64"))
    if types.is_boolean(kind):
        return as_numpy(values.cast("uint8")).view(np.bool_)
    if types.is_null(kind):
        return np.empty(0, np.int64)
    pieces = [_viewed(chunk, types) for chunk in getattr(values, "chunks", [values])]
    if len(pieces) == 1:
        return pieces[0]
    joined: Array = np.concatenate([_viewed(values.slice(0, 0).combine_chunks(), types), *pieces])
    return joined


def as_arrow(values: Array) -> Any:
    """Integers or floats, of one dimension, as a pyarrow.Array of the same memory, or of a copy if
    they do not follow each other there."""
    pyarrow = importlib.import_module("pyarrow")
    held = pyarrow.py_buffer(np.ascontiguousarray(values))
    return pyarrow.Array.from_buffers(
        pyarrow.from_numpy_dtype(values.dtype), len(values), [None, held]
    )


def text_array(texts: Sequence[bytes]) -> Any:
    """Text in UTF-8, which is not checked, as a pyarrow.StringArray."""
    pyarrow = importlib.import_module("pyarrow")
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    return pyarrow.StringArray.from_buffers(
        len(texts), pyarrow.py_buffer(ends), pyarrow.py_buffer(b"".join(texts))
    )


def _viewed(array: Any, types: Any) -> Array:
    kind = array.type
    if types.is_integer(kind) or types.is_floating(kind):
        dtype: Any = FLOATS.get(str(kind)) or str(kind)
    elif types.is_timestamp(kind):
        dtype = f"M8[{kind.unit}]"
    elif types.is_date64(kind):
        dtype = "M8[ms]"
    elif types.is_date32(kind):
        return _viewed(array.view("int32"), types).astype("M8[D]")
    else:
        held: Array = array.to_numpy(zero_copy_only=False)
        return held
    if not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype)[array.offset : array.offset + len(array)]
