"""Columns of data frames, whichever library they are of, as the store takes them.

A column is a NumPy array or one of Arrow's, which is read where it lies if its type allows. Rows
are counted from 0 in messages, over all batches of a frame.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments.arrow import FLOATS, as_numpy
from ..arguments.convert import MAX_VERTEX, id_column
from ..arguments.times import milliseconds
from ..arrays import Array
from ..errors import BatchError


def holds_text(values: Any) -> bool:
    """Whether these are text, or have text among them: then they name vertices."""
    if isinstance(values, str):
        return True
    if isinstance(values, list | tuple):
        return any(isinstance(value, str) for value in values)
    if isinstance(values, np.ndarray):
        if values.dtype == object:
            return any(isinstance(value, str) for value in values.flat)
        return values.dtype.kind in "UT"
    if type(values).__module__.partition(".")[0] == "pyarrow":
        return _is_text_type(values.type)
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype) or not hasattr(values, "__arrow_c_stream__"):
        # Objects of pandas: any other column of its own is Arrow's to tell.
        return getattr(dtype, "kind", "") == "O" and holds_text(np.asarray(values))
    return _is_text_type(importlib.import_module("pyarrow").chunked_array(values).type)


def _is_text_type(kind: Any) -> bool:
    types = importlib.import_module("pyarrow").types
    return _is_text_type(kind.value_type) if types.is_dictionary(kind) else str(kind) in _TEXTS


_TEXTS = ("string", "large_string", "string_view")


@dataclass(frozen=True)
class FrameColumn:
    """A piece of one column.

    values  numpy.ndarray[n], pyarrow.Array[n] or pyarrow.ChunkedArray[n]
    name    the column's, for messages
    first   the row of the frame that the piece begins with
    advice  what drops rows without a value in this library
    """

    values: Any
    name: str
    first: int
    advice: str

    def __post_init__(self) -> None:
        kind = getattr(self.values, "type", None)
        if kind is not None and getattr(kind, "extension_name", None) is not None:
            raise BatchError(
                f"column {self.name!r} is of the type {kind.extension_name}, whose values are not "
                f"what they are stored as ({kind.storage_type}): convert it to numbers, text or "
                "timestamps, in pandas a Period by .dt.to_timestamp()"
            )

    def named(self, numbers: FrameColumn | None = None) -> Any:
        """Names of vertices: what a graph with names takes. numbers: which of them are integers,
        bool[n], where the names are text. Raises BatchError.

        Text of Arrow's is dictionary-encoded, so that each distinct name of the piece is looked up
        once: two to three times as fast where names occur a few times."""
        self._refuse_missing()
        if numbers is not None and holds_text(self.values):
            return self._with_integers(numbers)
        if isinstance(self.values, np.ndarray) or str(self.values.type) not in _TEXTS:
            return self.values
        return self.values.cast("large_string").dictionary_encode()

    def _with_integers(self, numbers: FrameColumn) -> Array:
        names = np.empty(len(self.values), object)
        is_numpy = isinstance(self.values, np.ndarray)
        names[:] = self.values.tolist() if is_numpy else self.values.to_pylist()
        for row in np.flatnonzero(numbers._numbers("b", "flags are booleans")).tolist():
            try:
                names[row] = int(names[row])
            except ValueError:
                raise BatchError(
                    f"column {self.name!r} has {names[row]!r} in row {self.first + row}, an "
                    f"integer by column {numbers.name!r}"
                ) from None
        return names

    def ids(self) -> Array:
        """uint32[n], vertex ids. Raises BatchError."""
        values = self._numbers("iuf", "vertices go by integers or text")
        if values.dtype.kind in "iu" and values.size:
            least, most = int(values.min()), int(values.max())
            if least < 0 or most > MAX_VERTEX:
                raise BatchError(
                    f"column {self.name!r} has values from {least} to {most}, and ids go from 0 to "
                    f"{MAX_VERTEX}: names=True takes any integers of 64 bits"
                )
        return id_column(values, f"column {self.name!r}")

    def weights(self) -> Array:
        """float[n] or integers. Raises BatchError."""
        return self._numbers("iuf", "weights are numbers")

    def times(self) -> Array:
        """int64[n], milliseconds since 1970. Raises BatchError."""
        values = self._numbers("iuM", "times are timestamps, or integers: milliseconds since 1970")
        is_date = values.dtype.kind == "M"
        return milliseconds(values, f"column {self.name!r}") if is_date else values

    def _numbers(self, kinds: str, wanted: str) -> Array:
        """The values as an array of NumPy's, of one of these kinds, if possible without a copy."""
        self._refuse_missing()
        values = self.values if isinstance(self.values, np.ndarray) else as_numpy(self.values)
        if values.dtype.kind not in kinds:
            held = getattr(self.values, "type", None) or values.dtype
            raise BatchError(f"column {self.name!r} is of {held}, and {wanted}: convert it first")
        return values

    def _refuse_missing(self) -> None:
        """Raise BatchError if a row has no value."""
        missing: Array | None = None
        if isinstance(self.values, np.ndarray):
            missing = _missing(self.values)
        elif self.values.null_count:
            missing = as_numpy(self.values.is_null())
        elif str(self.values.type).startswith("dictionary"):
            chunks = getattr(self.values, "chunks", [self.values])
            if any(chunk.dictionary.null_count for chunk in chunks):
                missing = np.concatenate([
                    as_numpy(chunk.dictionary.is_null())[as_numpy(chunk.indices).astype(np.int64)]
                    for chunk in chunks
                ])  # fmt: skip
        elif str(self.values.type) in FLOATS:
            # Of a frame that was made from pandas: NaN is how floats lack a value.
            missing = _missing(as_numpy(self.values))
        if missing is None or not missing.any():
            return
        row, others = self.first + int(missing.argmax()), int(missing.sum()) - 1
        more = f", nor in {others} more" if others else ""
        raise BatchError(f"column {self.name!r} has no value in row {row}{more}: {self.advice}")


def _missing(values: Array) -> Array | None:
    """bool[n]: which values are missing; None if the type has none that can be."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "M":
        return np.isnat(values)
    if values.dtype == object:
        return np.fromiter((x is None or x != x for x in values), np.bool_, len(values))
    return None
