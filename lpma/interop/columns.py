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
    if _is_arrow(values):
        return _is_text_type(values.type)
    if isinstance(getattr(values, "dtype", None), np.dtype) or not _offers_arrow(values):
        return values is not None and _has_text_objects(values)
    arrow = importlib.import_module("pyarrow")
    return _is_text_type(arrow.chunked_array(values).type)


def _offers_arrow(values: Any) -> bool:
    return hasattr(values, "__arrow_c_stream__")


def _has_text_objects(values: Any) -> bool:
    """As pandas has them: any other column of its own is Arrow's to tell."""
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    return kind == "O" and holds_text(np.asarray(values))


def _is_arrow(values: Any) -> bool:
    return type(values).__module__.partition(".")[0] == "pyarrow"


def _is_text_type(kind: Any) -> bool:
    types = importlib.import_module("pyarrow").types
    if types.is_dictionary(kind):
        return _is_text_type(kind.value_type)
    return bool(types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view")


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
        numbers._refuse_missing()
        names = np.empty(len(self.values), object)
        is_numpy = isinstance(self.values, np.ndarray)
        names[:] = self.values.tolist() if is_numpy else self.values.to_pylist()
        for row in np.flatnonzero(numbers._numbers()).tolist():
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
        self._refuse_missing()
        values = self._numbers()
        if values.dtype.kind not in "iuf":
            raise self._wrong("vertices go by integers or text")
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
        self._refuse_missing()
        values = self._numbers()
        if values.dtype.kind not in "iuf":
            raise self._wrong("weights are numbers")
        return values

    def times(self) -> Array:
        """int64[n], milliseconds since 1970. Raises BatchError."""
        self._refuse_missing()
        values = self._numbers()
        if values.dtype.kind == "M":
            return milliseconds(values, f"column {self.name!r}")
        if values.dtype.kind not in "iu":
            raise self._wrong("times are timestamps, or integers: milliseconds since 1970")
        return values

    @property
    def weight_type(self) -> np.dtype[Any]:
        """What type the weights are of."""
        return self.weights()[:0].dtype

    def _wrong(self, wanted: str) -> BatchError:
        held = getattr(self.values, "type", None) or self.values.dtype
        return BatchError(f"column {self.name!r} is of {held}, and {wanted}: convert it first")

    def _numbers(self) -> Array:
        """The values as an array of NumPy's, without a copy if they lie in one piece."""
        if isinstance(self.values, np.ndarray):
            return self.values
        return as_numpy(self.values)

    @staticmethod
    def _nulls(values: Any) -> Array:
        """bool[n]: which values of Arrow's are null."""
        return as_numpy(values.is_null())

    def _refuse_missing(self) -> None:
        """Raise BatchError if a row has no value."""
        if isinstance(self.values, np.ndarray):
            missing = _missing(self.values)
        elif self.values.null_count:
            missing = self._nulls(self.values)
        elif str(self.values.type).startswith("dictionary"):
            chunks = getattr(self.values, "chunks", [self.values])
            if not any(chunk.dictionary.null_count for chunk in chunks):
                return
            missing = np.concatenate([self._nulls(c.dictionary)[_viewed_codes(c)] for c in chunks])
        else:
            # Floats of a frame that was made from pandas: NaN is how those lack a value.
            is_float = str(self.values.type) in FLOATS
            missing = _missing(as_numpy(self.values)) if is_float else None
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


def _viewed_codes(chunk: Any) -> Array:
    return as_numpy(chunk.indices).astype(np.int64)
