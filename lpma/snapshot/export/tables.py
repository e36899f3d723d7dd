"""A snapshot's edges as a table of Arrow's, of pandas' or polars', and as files of tables: Parquet
and csv; and arrays that hold a value for each row as a table of vertices.

Names of vertices are made into Arrow's columns once, row by row, and each chunk of edges takes its
own from them: a name that ends many edges is not made again for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...arguments.arrow import as_arrow
from ...arguments.scalars import shown
from ...arrays import Array, to_host
from ...dependencies import MissingPackage, optional_import
from ...file.atomic import StrPath, atomic_write
from ..csr import Csr
from ..vertices import OfRows
from .edges import chunks_as, named
from .room import ExportError, check_target, tell_left

LIBRARIES = ("auto", "pandas", "polars", "arrow")

_LIKE_INTEGERS = r"^[\s\pZ\x1c-\x1f\x85]*[+-]*[0-9]*[\s\pZ\x1c-\x1f\x85]*$"  # or blanks
CSV_BYTES_PER_EDGE = 60  # two ids of 10 digits, a weight of 24 characters, a time of 14


def vertex_columns(pyarrow: Any, s: Csr, rows: Array) -> dict[str, Any]:
    """What these rows go by as Arrow's columns, "" or, where names are of two types, "" and
    "_number": see names/forms.py."""
    columns = {"": named(s, rows)} if s.names is None else s.names.columns("", rows)
    return {
        name: pyarrow.array(column, pyarrow.string()) if column.dtype == object
        else pyarrow.array(column) if column.dtype == bool else as_arrow(column)
        for name, column in columns.items()
    }  # fmt: skip


def _ends_of_all(pyarrow: Any, s: Csr) -> dict[str, Any] | None:
    """The names of all rows as Arrow's columns; None without names."""
    if s.names is None:
        return None
    return vertex_columns(pyarrow, s, np.arange(s.num_rows, dtype=np.uint32))


def _with_numbers(pyarrow: Any, ends: dict[str, Any] | None) -> dict[str, Any] | None:
    """The same for csv, which has no types: text that a reader might take for an integer needs the
    column that says which names are integers, even if none is."""
    if ends is None or "_number" in ends or not pyarrow.types.is_string(ends[""].type):
        return ends
    compute = optional_import("pyarrow.compute", "pyarrow", "write_csv()")
    like = compute.match_substring_regex(ends[""], _LIKE_INTEGERS)
    if not compute.any(like).as_py():
        return ends
    return {**ends, "_number": pyarrow.array(np.zeros(len(like), np.bool_))}


def _schema(pyarrow: Any, s: Csr, of_rows: dict[str, Any] | None) -> Any:
    ends = of_rows or vertex_columns(pyarrow, s, np.empty(0, np.uint32))
    fields = [(end + name, held.type) for end in ("src", "dst") for name, held in ends.items()]
    if s._weights is not None:
        fields.append(("weight", pyarrow.from_numpy_dtype(s._weights.dtype)))
    if s._times is not None:
        fields.append(("time", pyarrow.int64()))
    facts = {"directed": str(s.directed).lower(), "rows": s.num_rows, "vertices": s.num_vertices}
    facts |= {"version": s.version, "time": s.time}
    facts |= {} if s.left is None else {"left": s.left}
    return pyarrow.schema(fields, metadata={f"lpma.{x}": str(its) for x, its in facts.items()})


def _batches(pyarrow: Any, s: Csr, schema: Any, of_rows: dict[str, Any] | None) -> Iterator[Any]:
    """The edges as Arrow's record batches. of_rows: the names of all rows, if they have any."""

    def batch(table: dict[str, Array]) -> Any:
        columns = []
        for name, column in table.items():
            held = as_arrow(column)
            if of_rows is not None and name in ("src", "dst"):
                columns += [_whole(its.take(held)) for its in of_rows.values()]
            else:
                columns.append(held)
        return pyarrow.RecordBatch.from_arrays(columns, schema=schema)

    return chunks_as(s, batch, by_row=of_rows is not None)


def _whole(column: Any) -> Any:
    """A column of Arrow's in one piece: above 2 GiB, text comes in several."""
    return column.combine_chunks() if hasattr(column, "combine_chunks") else column


def to_arrow(s: Csr) -> Any:
    pyarrow = optional_import("pyarrow", "pyarrow", "to_arrow()")
    of_rows = _ends_of_all(pyarrow, s)
    schema = _schema(pyarrow, s, of_rows)
    return pyarrow.Table.from_batches(list(_batches(pyarrow, s, schema, of_rows)), schema=schema)


def as_pandas(table: Any, purpose: str) -> Any:
    optional_import("pandas", "pandas", purpose)
    return table.to_pandas()


def as_polars(table: Any, purpose: str) -> Any:
    return optional_import("polars", "polars", purpose).from_arrow(table)


def frame(s: Csr, library: str, found: Any, columns: dict[str, Any]) -> Any:
    if not isinstance(library, str) or library not in LIBRARIES:
        raise ExportError(f"library: one of {', '.join(LIBRARIES)}, not {shown(library)}")
    if not isinstance(found, OfRows | None):
        raise ExportError(f"found: a result that has `vertices`, not {shown(found)}")
    pyarrow = optional_import("pyarrow", "pyarrow", "frame()")
    if found is None:
        table = _of_each_vertex(pyarrow, s, {}, columns)
    elif columns:
        raise ExportError(f"frame: a result or columns, not both: {', '.join(columns)}")
    else:
        table = _of_result(pyarrow, s, found)
    made = pyarrow.table(table)
    if library == "polars":
        return as_polars(made, 'frame("polars")')
    try:
        return made if library == "arrow" else as_pandas(made, 'frame("pandas")')
    except MissingPackage:
        if library == "auto":
            return made
        raise


def _of_result(pyarrow: Any, s: Csr, found: Any) -> dict[str, Any]:
    """The columns of a result that holds rows of s, by its vertices."""
    fields = {name: np.asarray(to_host(values)) for name, values in found._asdict().items()}
    of_vertices: dict[str, Any] = {}
    for name in found.row_fields:
        rows = fields[name]
        if len(rows) and int(rows.max()) >= s.num_rows:
            raise ExportError(f"frame: {name} has rows that this snapshot has not")
        of_rows = vertex_columns(pyarrow, s, np.maximum(rows, 0))
        if len(rows) and int(rows.min()) < 0:  # no row
            compute = optional_import("pyarrow.compute", "pyarrow", "frame()")
            is_row = pyarrow.array(rows >= 0)
            of_rows = {end: compute.if_else(is_row, held, None) for end, held in of_rows.items()}
        of_vertices[name] = {name + end: held for end, held in of_rows.items()}
    if found.is_by_row:
        return _of_each_vertex(pyarrow, s, of_vertices, fields)
    table: dict[str, Any] = {}
    for name, values in fields.items():
        table |= of_vertices.get(name) or {name: pyarrow.array(np.ascontiguousarray(values))}
    return table


def _of_each_vertex(
    pyarrow: Any, s: Csr, of_vertices: dict[str, Any], columns: dict[str, Any]
) -> dict[str, Any]:
    """The vertices present beside columns with an entry for each row. of_vertices: those of them
    that are vertices, as Arrow's columns."""
    rows = np.flatnonzero(to_host(s._present))
    table = {f"vertex{name}": held for name, held in vertex_columns(pyarrow, s, rows).items()}
    for name, values in columns.items():
        held = np.asarray(to_host(values))
        if held.shape != (s.num_rows,):
            raise ExportError(
                f"frame: {name} has shape {list(held.shape)}, and one value for each of "
                f"{s.num_rows} rows is asked for: give what an algorithm returns for this snapshot"
            )
        if name in table:
            raise ExportError(f"frame: {name} is the column of the vertices: choose another name")
        if name in of_vertices:
            table |= {column: its.take(rows) for column, its in of_vertices[name].items()}
        else:
            table[name] = pyarrow.array(np.ascontiguousarray(held[rows]))
    return table


def write_parquet(s: Csr, path: StrPath) -> None:
    """In row groups of about a million edges. Ids are written as differences: two thirds of the
    time of a dictionary, and of the bytes."""
    pyarrow = optional_import("pyarrow", "pyarrow", "write_parquet()")
    parquet = optional_import("pyarrow.parquet", "pyarrow", "write_parquet()")
    columns = (column for column in (s._weights, s._times) if column is not None)
    sizes = sum(column.dtype.itemsize for column in columns)
    check_target(path, ".parquet", s.num_edges * (8 + sizes))
    of_rows = _ends_of_all(pyarrow, s)
    schema = _schema(pyarrow, s, of_rows)
    ids = ("src", "dst") if of_rows is None else ()
    encoded = {
        "use_dictionary": [name for name in schema.names if name not in ids],
        "column_encoding": dict.fromkeys(ids, "DELTA_BINARY_PACKED"),
    }
    with atomic_write(path) as file, parquet.ParquetWriter(file, schema, **encoded) as writer:
        for batch in _batches(pyarrow, s, schema, of_rows):
            writer.write_batch(batch)


def write_csv(s: Csr, path: StrPath) -> None:
    pyarrow = optional_import("pyarrow", "pyarrow", "write_csv()")
    check_target(path, ".csv", s.num_edges * CSV_BYTES_PER_EDGE + 4096)
    tell_left(s, ".csv")
    of_rows = _with_numbers(pyarrow, _ends_of_all(pyarrow, s))
    from .csv_lines import Lines  # with Numba, which takes a third of a second to import

    names, lines = _schema(pyarrow, s, of_rows).names, Lines(of_rows)
    with atomic_write(path) as file:
        file.write(f"{','.join(names)}\n".encode())
        for piece in chunks_as(s, lines.of, by_row=of_rows is not None):
            file.write(piece)
