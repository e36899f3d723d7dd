"""Columns of updates in a stream of Arrow's IPC format, from a client that nobody trusts.

Idea: an uncompressed stream holds what it says, byte for byte, so its columns take no more memory
than the body that they are read from. Compression is refused before a buffer is touched. Types are
checked before batches are read, and every batch is validated, because offsets in it may point
anywhere.

Columns: src and dst integers or text, weight numbers, time integers or timestamps (which become ms
since 1970), kind integers or text; text may be dictionary-encoded. Nothing may be null.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arguments.times import milliseconds
from lpma.errors import BatchError

from ..errors import RecordError
from ..formats.records import MAX_ROWS
from .arrow_heads import head_of

Array = npt.NDArray[Any]

_MAX_BATCHES = 4096


def columns_of(body: bytes, known: tuple[str, ...]) -> tuple[dict[str, Any], int]:
    """The columns of a stream by name, an array of numbers or a list of names each, and how many
    rows they have. Raises RecordError."""
    import pyarrow

    try:
        _refuse_compressed(body)
        with pyarrow.ipc.open_stream(body) as reader:
            _check_schema(reader.schema, known)
            batches = _read(reader)
            table = pyarrow.Table.from_batches(batches, reader.schema)
    except (pyarrow.ArrowException, OSError, ValueError, struct.error) as error:
        if isinstance(error, RecordError):
            raise
        raise RecordError(f"not a stream of Arrow's: {error}", "malformed") from None
    return {name: _values(table[name], name) for name in table.column_names}, table.num_rows


def _read(reader: Any) -> list[Any]:
    batches, rows = [], 0
    for batch in reader:
        batch.validate(full=True)
        batches.append(batch)
        rows += batch.num_rows
        if rows > MAX_ROWS or len(batches) > _MAX_BATCHES:
            raise RecordError(
                f"more than {MAX_ROWS} rows, or {_MAX_BATCHES} batches: send it in parts",
                "oversized",
            )
    return batches


def _check_schema(schema: Any, known: tuple[str, ...]) -> None:
    import pyarrow

    if unknown := [name for name in schema.names if name not in known]:
        raise RecordError(f"unknown column {unknown[0][:64]!r}: known are {', '.join(known)}")
    if len(set(schema.names)) != len(schema.names):
        raise RecordError("a column appears twice")
    types = pyarrow.types
    for field in schema:
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        text = types.is_string(kind) or types.is_large_string(kind)
        fits = {
            "weight": types.is_integer(kind) or types.is_floating(kind),
            "time": types.is_integer(kind) or types.is_timestamp(kind),
        }.get(field.name, text or types.is_integer(kind))
        if not fits or (kind is not field.type and not text):
            raise RecordError(f"column {field.name!r} is of {field.type}: convert it first")


def _values(column: Any, name: str) -> Any:
    """A column of numbers as an array, of text as a list. Raises RecordError."""
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        found = [item for chunk in column.chunks for item in _looked_up(chunk)]
        if None not in found:
            return found
    elif not column.null_count:
        if not pyarrow.types.is_integer(column.type) and not _is_number(column.type):
            return column.to_pylist()
        values = np.concatenate([np.asarray(chunk) for chunk in column.chunks] or [np.empty(0)])
        if values.dtype.kind != "M":
            return _fitting(values, name)
        try:
            return milliseconds(values, name)
        except BatchError as error:
            raise RecordError(str(error)) from None
    raise RecordError(f"column {name!r} has nulls: fill them in, or drop these rows")


def _is_number(kind: Any) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_floating(kind) or pyarrow.types.is_timestamp(kind))


def _fitting(values: Array, name: str) -> Array:
    """Times as int64, and other numbers as they are."""
    if name == "time" and values.dtype == np.uint64 and values.max(initial=0) >= 1 << 63:
        raise RecordError("time: an integer is too large")
    return values.astype(np.int64) if name == "time" else values


def _looked_up(chunk: Any) -> list[Any]:
    """Text behind codes, each name one object however often it occurs."""
    words = chunk.dictionary.to_pylist()
    return [None if code is None else words[code] for code in chunk.indices.to_pylist()]


def _refuse_compressed(body: bytes) -> None:
    import pyarrow

    for message in pyarrow.ipc.MessageReader.open_stream(body):
        if message.type in ("record batch", "dictionary") and head_of(message).is_compressed:
            raise RecordError("buffers are compressed: write the stream without compression")
