"""Columns of Arrow's as edges, and Parquet files, which are read by row groups.

Nothing is guessed of what types say: a column of text names vertices by text, "5" too; one of
integers by integers, or numbers them if all are small enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from lpma.arguments.arrow import as_numpy
from lpma.batch.columns import MAX_VERTEX

from ...errors import SourceError
from ...types import Rejected
from .guess import guess_rows
from .pieces import Array, Fault, Faults, Piece, piece_of
from .reading import SHOWN, Asked, Reading
from .values import judged, milliseconds, of_text, with_integers

BATCH_ROWS = 1 << 17
SAMPLE_ROWS = 1000


def open_parquet(path: Path, asked: Asked, mirror: bool) -> tuple[Reading, Iterator[Piece]]:
    """How the file is read, and its pieces. mirror: whether the edge of an undirected export gives
    both. Raises SourceError, OSError."""
    import pyarrow
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(path)
    except pyarrow.ArrowNotImplementedError as error:
        raise SourceError(
            f"{path}: a column is of a type that pyarrow does not read ({error}): write it again "
            "with integers of 64 bits, in polars by df.cast({pl.Int128: pl.Int64}), or as text"
        ) from error
    schema = file.schema_arrow
    if not schema.names:
        raise SourceError(f"{path}: nothing was loaded: it has no columns")
    batches = file.iter_batches(batch_size=SAMPLE_ROWS)
    sample = next(batches, None)
    table = (
        {name: sample.column(place) for place, name in enumerate(schema.names)} if sample else {}
    )
    reading = guessed_of_columns(
        path, "parquet", {n: _as_text(c) for n, c in table.items()}, schema.names, asked
    )
    if (directed := (schema.metadata or {}).get(b"lpma.directed")) is not None:
        reading = reading_of_export(reading, directed == b"true", mirror)
    for place, name in enumerate(schema.names):
        if place in reading.places.values() or name in reading.unfit:
            _refuse_extension(path, schema.field(place))
    ends = [schema.names[reading.places[end]] for end in ("src", "dst")]
    for place in reading.places.values():
        if schema.names.count(schema.names[place]) > 1:
            raise SourceError(f"{path}: two columns are called {schema.names[place]!r}: rename one")
    texts = [name for name in ends if pyarrow.types.is_string(schema.field(name).type)]
    file = parquet.ParquetFile(path, read_dictionary=texts)
    if reading.guessed:
        ranges = [_range_of(file, reading.places[end]) for end in ("src", "dst")]
        reading = named_by_range(reading, ranges, bool(texts))
    if reading.named:
        beside = {end: f"{name}_number" for end, name in zip(("src", "dst"), ends, strict=True)}
        kept = {end: name for end, name in beside.items() if name in schema.names}
        reading = replace(reading, numbers=kept)
    wanted = [schema.names[place] for place in reading.places.values()]
    wanted += reading.numbers.values()

    def pieces() -> Iterator[Piece]:
        row = 0
        for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=wanted):
            columns = {field: batch.column(schema.names[p]) for field, p in reading.places.items()}
            numbers = {
                end: as_numpy(batch.column(name).cast("int8").fill_null(0)) != 0
                for end, name in reading.numbers.items()
            }
            yield piece_of_arrow(columns, reading, row, numbers)
            row += len(batch)

    return reading, pieces()


def _refuse_extension(path: Path, field: Any) -> None:
    """Raise SourceError if a column's type is one that others have defined, as pandas's Period:
    what it is stored as means something else."""
    name = (field.metadata or {}).get(b"ARROW:extension:name", b"").decode()
    name = getattr(field.type, "extension_name", name)
    if name:
        raise SourceError(
            f"{path}: column {field.name!r} is of the type {name}, stored as {field.type}, which "
            "is not read: write it as numbers, text or timestamps, or say which columns to read"
        )


def reading_of_export(reading: Reading, directed: bool, mirror: bool) -> Reading:
    """How the export of such a graph is read."""
    return replace(reading, directed=directed, stored=True, mirror=mirror and not directed)


def _range_of(file: Any, place: int) -> tuple[int, int] | None:
    """The smallest and the largest value of a column, if the file says so."""
    found: list[Any] = []
    for group in range(file.metadata.num_row_groups):
        statistics = file.metadata.row_group(group).column(place).statistics
        if statistics is None or not statistics.has_min_max:
            return None
        found += [statistics.min, statistics.max]
    if not found or not all(isinstance(value, int) for value in found):
        return None
    return min(found), max(found)


def named_by_range(reading: Reading, ranges: list[Any], text: bool) -> Reading:
    """The reading, by name if there is text, or if an end's smallest or largest value says so."""
    for span in ranges:
        if span is not None and not 0 <= span[0] <= span[1] <= MAX_VERTEX:
            outside = span[1] if span[1] > MAX_VERTEX else span[0]
            return replace(
                reading, named=True, why=f"since {outside} is not a number from 0 to {MAX_VERTEX}"
            )
    return replace(reading, named=True, why="") if text else reading


def _as_text(column: Any) -> list[str]:
    """The values as a text file would have them: floats that are whole as integers."""
    values = column.to_pylist()
    return [
        "" if v is None else str(int(v)) if isinstance(v, float) and v.is_integer() else str(v)
        for v in values
    ]


def guessed_of_columns(
    path: Path, format: str, sample: dict[str, list[str]], names: list[str], asked: Asked
) -> Reading:
    """The reading of typed columns whose first rows, as text, these are."""
    rows = [list(names), *map(list, zip_longest(*sample.values(), fillvalue=""))]
    told = replace(asked, header=True, separator=None)
    reading = guess_rows(path, format, rows, told, None, ", ".join(names))
    return replace(reading, header=None)


def piece_of_arrow(
    columns: dict[str, Any],
    reading: Reading,
    first: int,
    numbers: Mapping[str, Array] | None = None,
) -> Piece:
    """Rows of columns of Arrow's, by field; `first` rows of the file came before them. numbers: of
    an end of text, bool[n], which names are integers. Raises SourceError on a type that means
    nothing."""
    faults: Faults = {}
    table = {field: _as_needed(field, column, reading, faults) for field, column in columns.items()}
    for end, is_number in (numbers or {}).items():
        if not isinstance(table[end], np.ndarray):
            table[end] = with_integers(table[end], is_number)

    def row_of(row: int) -> Rejected:
        values = {SHOWN[field]: column[row].as_py() for field, column in columns.items()}
        return Rejected(str(values).encode(), "", first + row + 1)

    return piece_of(table, reading, faults, row_of)


def _as_needed(field: str, column: Any, reading: Reading, faults: Faults) -> Any:
    """A column as the type that a batch needs; in `faults` the rows where it has no value. Raises
    SourceError on a type that means nothing here."""
    import pyarrow

    types = pyarrow.types
    end = field in ("src", "dst")
    if isinstance(column.type, pyarrow.BaseExtensionType):
        raise SourceError(
            f"{reading.path}: column {reading.columns[reading.places[field]]!r} is "
            f"{column.type}: it cannot be the {SHOWN[field]}"
        )
    if types.is_dictionary(column.type) and not end:
        column = column.dictionary_decode()
    text = (
        types.is_string(column.type)
        or types.is_large_string(column.type)
        or types.is_dictionary(column.type)
    )
    if str(column.type) == "string_view":
        column, text = column.cast(pyarrow.string()), True
    if column.null_count:
        for row in np.flatnonzero(as_numpy(column.is_null())).tolist():
            faults.setdefault(row, Fault(f"{field}: empty"))
        column = column.fill_null("?" if text else pyarrow.scalar(0, column.type))
    try:
        if text and not end:
            return _of_text(field, column, reading, faults)
        if text and reading.named:
            return column
        if end and types.is_floating(column.type):
            return _whole(field, as_numpy(column.cast(pyarrow.float64())), faults)
        if end and types.is_decimal(column.type):
            return as_numpy(column.cast(pyarrow.int64()))
        if end or field == "kind":
            if types.is_integer(column.type):
                return as_numpy(column)
        elif field == "weight":
            return as_numpy(column.cast(pyarrow.float64()))
        elif types.is_integer(column.type):
            return as_numpy(column.cast(pyarrow.int64()))
        elif types.is_floating(column.type):
            return as_numpy(column)
        elif types.is_temporal(column.type):
            return milliseconds(column)
    except pyarrow.ArrowInvalid as error:
        raise SourceError(f"{reading.path}: {SHOWN[field]}: {error}") from error
    raise SourceError(
        f"{reading.path}: column {reading.columns[reading.places[field]]!r} is {column.type}: it "
        f"cannot be the {SHOWN[field]}" + ("" if not end else "; --names takes text")
    )


def _of_text(field: str, column: Any, reading: Reading, faults: Faults) -> Array:
    """A column of text as weights, times or kinds; in `faults` the rows where one is none."""
    import pyarrow

    try:
        return of_text(field, column, reading)
    except pyarrow.ArrowInvalid:  # which rows are bad is found one by one
        values: Array = judged(field, column.to_pylist(), reading, faults)
        return values


def _whole(field: str, values: Array, faults: Faults) -> Array:
    """Floats as the integers that they are; in `faults` the rows where one is not."""
    fits = (np.abs(values) < 2.0**63) & (np.trunc(values) == values)
    for row in np.flatnonzero(~fits).tolist():
        faults.setdefault(row, Fault(f"{field}: not a whole number of 64 bits"))
    return np.where(fits, values, 0).astype(np.int64)
