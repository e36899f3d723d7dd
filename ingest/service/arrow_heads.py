"""What the heads of an Arrow stream's messages promise, read before Arrow reads what they are of.

Some bytes of a compressed batch become gigabytes, and a batch may promise any number of rows. The
heads are FlatBuffers; the fields that are wanted of them are found by hand:

    table            := int32 back to its vtable; vtable := uint16 size, uint16 of the table, uint16
                        each: a field by its place in it, 0 if it is absent
    Message          := version, header_type, header, bodyLength
    RecordBatch      := length (int64), nodes, buffers, compression
    DictionaryBatch  := id, data (a RecordBatch), isDelta

Source: the specification of Arrow's columnar format, "Encapsulated message format".
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

_HEADER, _DATA, _LENGTH, _COMPRESSION = 2, 1, 0, 3  # places in their tables


class Head(NamedTuple):
    rows: int
    is_compressed: bool


def head_of(message: Any) -> Head:
    """What a message of type "record batch" or "dictionary" promises. Raises struct.error or
    ValueError if its head is damaged."""
    data = message.metadata.to_pybytes()
    batch = _table_at(data, _field(data, _table_at(data, 0), _HEADER))
    if message.type == "dictionary":
        batch = _table_at(data, _field(data, batch, _DATA))
    at = _field(data, batch, _LENGTH)
    rows = struct.unpack_from("<q", data, at)[0] if at else 0
    return Head(int(rows), _field(data, batch, _COMPRESSION) != 0)


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
