"""A snapshot's edges as an Arrow table, and as a Parquet file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..csr import Csr
from ..files import StrPath, atomic_write, check_writable
from ..optional import optional_import
from .edges import edge_chunks
from .room import refuse_beyond_disk

Array = npt.NDArray[Any]


class Names(Protocol):
    """The names of vertices, if they have names other than their ids."""

    def columns(self, end: str, ids: Array, /) -> dict[str, Array]:
        """The names of `ids` (of rows, for the snapshot's own): a column called `end`, of integers
        or of text objects, and the further columns needed to tell the names apart. The columns have
        the same names and types whatever the ids."""
        ...


def _arrow_schema(pyarrow: Any, s: Csr, names: Names | None = None) -> Any:
    fields = []
    for end in ("src", "dst"):
        none = np.empty(0, np.uint32)
        columns = {end: none} if names is None else names.columns(end, none)
        for name, column in columns.items():
            text, dtype = column.dtype.kind == "O", column.dtype
            fields.append((name, pyarrow.string() if text else pyarrow.from_numpy_dtype(dtype)))
    if s.weights is not None:
        fields.append(("weight", pyarrow.from_numpy_dtype(s.weights.dtype)))
    if s.times is not None:
        fields.append(("time", pyarrow.int64()))
    metadata = {
        "lpma.directed": str(s.directed).lower(),
        "lpma.rows": str(s.num_rows),
        "lpma.vertices": str(s.num_present),
        "lpma.version": str(s.version),
        "lpma.time": str(s.time),
    }
    return pyarrow.schema(fields, metadata=metadata)


def _arrow_batches(pyarrow: Any, s: Csr, schema: Any, names: Names | None = None) -> Iterator[Any]:
    for table in edge_chunks(s, by_row=names is not None and names is s.names):
        if names is not None:
            src, dst = table.pop("src"), table.pop("dst")
            table = {**names.columns("src", src), **names.columns("dst", dst), **table}
        columns = [pyarrow.array(column) for column in table.values()]
        yield pyarrow.RecordBatch.from_arrays(columns, schema=schema)


def to_arrow(s: Csr) -> Any:
    """pyarrow.Table of `src`, `dst` (uint32 ids, or names: see names/forms.py), `weight`, `time`.
    The schema's metadata has the keys lpma.directed, lpma.rows, lpma.vertices (those present),
    lpma.version and lpma.time."""
    pyarrow = optional_import("pyarrow", "pyarrow", "to_arrow()")
    schema = _arrow_schema(pyarrow, s, s.names)
    batches = list(_arrow_batches(pyarrow, s, schema, s.names))
    return pyarrow.Table.from_batches(batches, schema=schema)


def _entry_bytes(s: Csr) -> int:
    weight = 0 if s.weights is None else s.weights.dtype.itemsize
    return 4 + weight + (0 if s.times is None else 8)


def write_parquet(s: Csr, path: StrPath, names: Names | None = None) -> None:
    """The table of `to_arrow` as a Parquet file, row groups of about a million edges. names: what
    `src` and `dst` hold instead of ids; None: the snapshot's own names, if it has some.

    Raises PathError (the name must end with .parquet), ExportError, MissingPackage."""
    pyarrow = optional_import("pyarrow", "pyarrow", "write_parquet()")
    parquet = optional_import("pyarrow.parquet", "pyarrow", "write_parquet()")
    target = check_writable(path, ".parquet")
    names = s.names if names is None else names
    refuse_beyond_disk(target, s.num_edges * (4 + _entry_bytes(s)))
    schema = _arrow_schema(pyarrow, s, names)
    with atomic_write(path) as file, parquet.ParquetWriter(file, schema) as writer:
        for batch in _arrow_batches(pyarrow, s, schema, names):
            writer.write_batch(batch)
