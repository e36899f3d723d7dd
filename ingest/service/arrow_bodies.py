"""A body that is a stream of Arrow's record batches, within limits.

Idea: Arrow reads a batch by what its head promises, so the heads are read first. A schema may have
a few columns of plain types; a batch may promise no more rows than are taken, and may not be
compressed, because some bytes of a compressed one become gigabytes. Then Arrow reads it, and
checks every offset and every byte of text. `arrow_heads.py` reads the heads.
"""

from __future__ import annotations

import struct
from typing import Any

from .arrow_heads import head_of
from .problems import Problem, malformed, too_many, wrong

MAX_COLUMNS = 16
MAX_BATCHES = 1024


def read_columns(body: bytes, max_rows: int) -> dict[str, Any]:
    """The columns by name: NumPy arrays for integers and floats, lists where some are text.
    Raises Problem 400, 413 or 422."""
    import pyarrow as pa

    try:
        batches: list[Any] = []
        schema, rows = None, 0
        for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(body)):
            if message.type == "schema" and schema is None:
                schema = pa.ipc.read_schema(message)
                _check_schema(schema)
            elif message.type == "record batch" and schema is not None:
                length, is_compressed = head_of(message)
                rows += length
                if is_compressed:
                    raise wrong("the record batches are compressed: send them plain")
                if length < 0 or rows > max_rows or len(batches) == MAX_BATCHES:
                    raise too_many(f"more than {max_rows:,} rows or {MAX_BATCHES:,} batches")
                batch = pa.ipc.read_record_batch(message, schema)
                batch.validate(full=True)
                batches.append(batch)
            else:
                raise wrong(f"a {message.type} is not taken here: send one schema, then plain "
                            "record batches without dictionaries")  # fmt: skip
        if schema is None:
            raise malformed("an Arrow stream begins with a schema")
        return _columns(pa.Table.from_batches(batches, schema))
    except Problem:
        raise
    except (pa.ArrowException, struct.error, IndexError, ValueError, OSError) as error:
        raise malformed(f"no stream of Arrow record batches: {str(error)[:200]!r}") from None


def _check_schema(schema: Any) -> None:
    import pyarrow as pa

    names = schema.names
    if len(names) > MAX_COLUMNS or len(set(names)) != len(names):
        raise wrong(f"a schema has up to {MAX_COLUMNS} columns, each with a name of its own")
    kinds = pa.types
    for column in schema:
        known = (kinds.is_integer, kinds.is_floating, kinds.is_string, kinds.is_large_string,
                 kinds.is_timestamp, kinds.is_null)  # fmt: skip
        if not any(is_it(column.type) for is_it in known):
            raise wrong(f"{column.name[:64]}: a column of {str(column.type)[:64]} is not taken: "
                        "send integers, floats or text")  # fmt: skip


def _columns(table: Any) -> dict[str, Any]:
    import pyarrow as pa

    found: dict[str, Any] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        plain = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        if column.null_count and name != "after":
            raise wrong(f"{name[:64]}: has {column.null_count:,} nulls: leave such rows out")
        if plain and not column.null_count:
            found[name] = column.to_numpy()
        elif pa.types.is_timestamp(column.type):
            found[name] = column.cast(pa.timestamp("ms"), safe=False).cast(pa.int64()).to_numpy()
        else:
            found[name] = column.to_pylist()
    return found
