"""The columns of a stream of Arrow's IPC format, from a client that nobody trusts.

Idea: an uncompressed stream holds what it says, byte for byte, so its columns take no more memory
than the body they are read from. The heads of all messages are read first, since some bytes of a
compressed batch become gigabytes. Types are checked before batches are read, and every batch is
validated, because offsets in it may point anywhere.

Integers and floats, text, also dictionary-encoded, and timestamps, which become ms since 1970. The
heads are FlatBuffers; the fields that are wanted of them are found by hand:

    table            := int32 back to its vtable; vtable := uint16 size, uint16 of the table, uint16
                        each: a field by its place in it, 0 if it is absent
    Message          := version, header_type, header, bodyLength
    RecordBatch      := length, nodes, buffers, compression
    DictionaryBatch  := id, data (a RecordBatch), isDelta

Source: the specification of Arrow's columnar format, "Encapsulated message format".
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from lpma.arguments.times import milliseconds
from lpma.errors import BatchError

from ..errors import RecordError

MAX_COLUMNS = 16
MAX_BATCHES = 4096
_HEADER, _DATA, _COMPRESSION = 2, 1, 3  # places in their tables

Check = Callable[[str, Any], bool]  # whether a column of this name may be of this type


def read_columns(
    body: bytes, max_rows: int, fits: Check, nullable: str = ""
) -> tuple[dict[str, Any], int]:
    """(the columns by name, arrays of numbers and lists of text; how many rows they have).
    nullable: the one column that may have nulls, which becomes a list. Raises RecordError."""
    import pyarrow

    try:
        messages = list(pyarrow.ipc.MessageReader.open_stream(body))
        _check_heads(messages)
        schema = pyarrow.ipc.read_schema(messages[0])
        _check_schema(schema, fits)
        if any(map(pyarrow.types.is_dictionary, schema.types)):
            batches = list(pyarrow.ipc.open_stream(body))
        else:
            batches = [pyarrow.ipc.read_record_batch(each, schema) for each in messages[1:]]
        for batch in batches:
            batch.validate(full=True)
        if sum(batch.num_rows for batch in batches) > max_rows:
            raise RecordError(f"more than {max_rows:,} rows: send it in parts", "oversized")
        table = pyarrow.Table.from_batches(batches, schema)
    except RecordError:
        raise
    except (pyarrow.ArrowException, struct.error, IndexError, ValueError, OSError) as error:
        said = str(error)[:200]
        raise RecordError(f"not a stream of Arrow record batches: {said}", "malformed") from None
    columns = {name: _values(table[name], name, nullable) for name in table.column_names}
    return columns, table.num_rows


# Heads ---------------------------------------------------------------------------------------


def _check_heads(messages: list[Any]) -> None:
    """Raise ValueError for messages that are not a schema and then batches: PyArrow reads any as a
    schema, and one of unknown type, which nothing verifies, crashes the process. Raise RecordError
    for batches that are compressed, or many."""
    if messages[0].type != "schema":
        raise ValueError("the first message is not a schema")
    if len(messages) > MAX_BATCHES:
        raise RecordError(f"more than {MAX_BATCHES:,} batches: send it in parts", "oversized")
    for message in messages[1:]:
        if message.type not in ("record batch", "dictionary"):
            raise ValueError(f"a message after the schema is no batch: {message.type}")
        if _is_compressed(message):
            raise RecordError(
                "the record batches are compressed: write the stream without compression"
            )


def _is_compressed(message: Any) -> bool:
    """Whether a batch is. Raises struct.error or ValueError if its head is damaged."""
    data = message.metadata.to_pybytes()
    batch = _table_at(data, _field(data, _table_at(data, 0), _HEADER))
    if message.type == "dictionary":
        batch = _table_at(data, _field(data, batch, _DATA))
    return _field(data, batch, _COMPRESSION) != 0


def _table_at(data: bytes, at: int) -> int:
    """Where the table lies that the offset at `at` points to."""
    return at + int(struct.unpack_from("<I", data, at)[0])


def _field(data: bytes, table: int, place: int) -> int:
    """Where a field of a table lies; 0: it is absent."""
    vtable = table - int(struct.unpack_from("<i", data, table)[0])
    if vtable < 0:
        raise ValueError("a vtable before the message")
    size = struct.unpack_from("<H", data, vtable)[0]
    if 4 + 2 * place >= size:
        return 0
    offset = struct.unpack_from("<H", data, vtable + 4 + 2 * place)[0]
    return table + int(offset) if offset else 0


# Columns -------------------------------------------------------------------------------------


def is_text(kind: Any) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind))


def _check_schema(schema: Any, fits: Check) -> None:
    import pyarrow

    if len(schema.names) > MAX_COLUMNS or len(set(schema.names)) != len(schema.names):
        raise RecordError(f"a schema has up to {MAX_COLUMNS} columns, each with its own name")
    for field in schema:
        is_encoded = pyarrow.types.is_dictionary(field.type)
        kind = field.type.value_type if is_encoded else field.type
        if not fits(field.name, kind) or (is_encoded and not is_text(kind)):
            raise RecordError(
                f"column {field.name[:64]!r} is of {str(field.type)[:64]}: convert it first"
            )


def _values(column: Any, name: str, nullable: str) -> Any:
    """A column of numbers as an array, of text as a list. Raises RecordError."""
    import pyarrow

    types = pyarrow.types
    if types.is_dictionary(column.type):
        found = [item for chunk in column.chunks for item in _looked_up(chunk)]
        has_nulls = None in found
    else:
        has_nulls = column.null_count > 0
        is_number = types.is_integer(column.type) or types.is_floating(column.type)
        if not has_nulls and (is_number or types.is_timestamp(column.type)):
            return _numbers(column, name)
        found = column.to_pylist() if name == nullable or not has_nulls else []
    if has_nulls and name != nullable:
        raise RecordError(f"column {name[:64]!r} has nulls: fill them in, or drop these rows")
    return found


def _numbers(column: Any, name: str) -> Any:
    values = column.to_numpy()
    if values.dtype.kind == "M":
        try:
            return milliseconds(values, name)
        except BatchError as error:
            raise RecordError(str(error)) from None
    return values


def _looked_up(chunk: Any) -> list[Any]:
    """Text behind codes, each name one object however often it occurs."""
    words = chunk.dictionary.to_pylist()
    return [None if code is None else words[code] for code in chunk.indices.to_pylist()]
