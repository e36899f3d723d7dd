"""Typed columns as edges: Parquet files by row groups, Arrow's and others' as they are held whole.

Nothing is guessed of what types say: a column of text names vertices by text, "5" too; one of
integers by integers, or numbers them if all are small enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from lpma.arguments.arrow import as_numpy
from lpma.batch.columns import MAX_VERTEX

from ...errors import SourceError
from ...types import Rejected
from .guess import SAMPLE_ROWS, guess_rows
from .pieces import Faults, Piece, piece_of
from .reading import SHOWN, Asked, Reading
from .values import as_needed, is_text, unfit, with_integers

BATCH_ROWS = 1 << 17
Range = tuple[int, int] | None  # the smallest and the largest value of a column, if it is known


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
    first = next(file.iter_batches(batch_size=SAMPLE_ROWS), None)
    sample = [[] for _ in schema.names] if first is None else list(map(_as_text, first.columns))
    directed = (schema.metadata or {}).get(b"lpma.directed")

    def batches(wanted: list[str]) -> Iterable[Any]:
        texts = [name for name in wanted if pyarrow.types.is_string(schema.field(name).type)]
        again = parquet.ParquetFile(path, read_dictionary=texts)
        return again.iter_batches(batch_size=BATCH_ROWS, columns=wanted)

    left = (schema.metadata or {}).get(b"lpma.left")

    reading, pieces = read_table(
        path, "parquet", schema, sample, asked,
        lambda place: _range_of(file.metadata, schema.names[place]), batches, mirror,
        directed=None if directed is None else directed == b"true", stored=directed is not None,
    )  # fmt: skip
    if asked.bipartite is False or left is None or not left.isdigit():
        return reading, pieces
    return reading.of_sides(int(left)), pieces


def open_arrow(path: Path, asked: Asked, mirror: bool) -> tuple[Reading, Iterator[Piece]]:
    """The same of a file of Arrow's, as Feather is one. It is mapped, and read whole."""
    import pyarrow

    with pyarrow.memory_map(str(path)) as source:
        table = pyarrow.ipc.open_file(source).read_all()
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    return read_columns(path, "arrow", columns, asked, mirror)


def _range_of(metadata: Any, name: str) -> Range:
    found: list[Any] = []
    leaves = [metadata.schema.column(place).path for place in range(metadata.num_columns)]
    if name not in leaves:  # others nest in it
        return None
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(leaves.index(name)).statistics
        if statistics is None or not statistics.has_min_max:
            return None
        found += [statistics.min, statistics.max]
    if not found or not all(isinstance(value, int) for value in found):
        return None
    return min(found), max(found)


def read_columns(
    path: Path, format: str, columns: Mapping[str, Any], asked: Asked, mirror: bool, **more: Any
) -> tuple[Reading, Iterator[Piece]]:
    """How a file is read that holds these arrays of Arrow's, and its pieces. REQUIRES: those that
    are read are equally long, before a piece is asked for. more: as `read_table` has it."""
    import pyarrow
    import pyarrow.compute as pc

    arrays = list(columns.values())

    def range_of(place: int) -> Range:
        if not len(arrays[place]) or not pyarrow.types.is_integer(arrays[place].type):
            return None
        found = pc.min_max(arrays[place]).as_py()
        return None if found["min"] is None else (found["min"], found["max"])

    def batches(wanted: list[str]) -> Iterable[Any]:
        table = pyarrow.table({name: columns[name] for name in wanted})
        return table.to_batches(max_chunksize=BATCH_ROWS)

    schema = pyarrow.schema([(name, array.type) for name, array in columns.items()])
    sample = [_as_text(array[:SAMPLE_ROWS]) for array in arrays]
    return read_table(path, format, schema, sample, asked, range_of, batches, mirror, **more)


def read_table(
    path: Path,
    format: str,
    schema: Any,
    sample: list[list[str]],
    asked: Asked,
    range_of: Callable[[int], Range],
    batches: Callable[[list[str]], Iterable[Any]],
    mirror: bool,
    *,
    directed: bool | None = None,
    stored: bool = False,
    named: bool = False,
) -> tuple[Reading, Iterator[Piece]]:
    """How a file of typed columns is read, and its pieces. sample: of each column the first values,
    as text. range_of: of a column by its place. batches: all rows, of the columns with these names.
    directed, stored: see Reading. named: its vertices are known to go by names. Raises
    SourceError."""
    names = list(schema.names)
    if not names:
        raise SourceError(f"{path}: nothing was loaded: it has no columns")
    reading = guessed_of_columns(path, format, names, sample, asked)
    if directed is not None:
        reading = replace(reading, directed=directed, stored=stored, mirror=mirror and not directed)
    for place, name in enumerate(names):
        if place in reading.places.values() or name in reading.unfit:
            _refuse_extension(path, schema.field(place))
        if place in reading.places.values() and names.count(name) > 1:
            raise SourceError(f"{path}: two columns are called {name!r}: rename one")
    ends = [reading.places[end] for end in ("src", "dst")]
    if reading.guessed:
        text = named or any(is_text(schema.field(place).type) for place in ends)
        reading = _named_by_range(reading, list(map(range_of, ends)), text)
    if reading.named:
        beside = {end: f"{names[reading.places[end]]}_number" for end in ("src", "dst")}
        beside = {end: name for end, name in beside.items() if _is_flag(schema, name)}
        reading = replace(reading, numbers=beside)
    return reading, _pieces(batches, reading)


def guessed_of_columns(
    path: Path, format: str, names: list[str], sample: list[list[str]], asked: Asked
) -> Reading:
    """The reading of columns that have these names, and these first values."""
    rows = [names, *map(list, zip_longest(*sample, fillvalue=""))]
    told = replace(asked, header=True, separator=None)
    return replace(guess_rows(path, format, rows, told, None, ", ".join(names)), header=None)


def _is_flag(schema: Any, name: str) -> bool:
    """Whether there is such a column, and it may say which names are integers."""
    from pyarrow import types

    if name not in schema.names:
        return False
    return types.is_boolean(schema.field(name).type) or types.is_integer(schema.field(name).type)


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


def _named_by_range(reading: Reading, ranges: list[Range], text: bool) -> Reading:
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


def _pieces(batches: Callable[[list[str]], Iterable[Any]], reading: Reading) -> Iterator[Piece]:
    used = {field: reading.columns[place] for field, place in reading.places.items()}
    row = 0
    for batch in batches([*used.values(), *reading.numbers.values()]):
        columns = {field: batch.column(name) for field, name in used.items()}
        numbers = {end: batch.column(name) for end, name in reading.numbers.items()}
        yield piece_of_arrow(columns, reading, row, numbers)
        row += len(batch)


def piece_of_arrow(
    columns: Mapping[str, Any],
    reading: Reading,
    first: int = 0,
    numbers: Mapping[str, Any] | None = None,
) -> Piece:
    """Rows of columns of Arrow's, by field; `first` rows of the file came before them. numbers: of
    an end of text, a column that says which names are integers. Raises SourceError on a type that
    means nothing."""
    faults: Faults = {}
    for end in ("src", "dst"):
        if not reading.named and is_text(columns[end].type):
            raise unfit(end, columns[end].type, reading)
    table = {field: as_needed(field, column, reading, faults) for field, column in columns.items()}
    for end, flags in (numbers or {}).items():
        if is_text(columns[end].type):
            is_number = as_numpy(flags.cast("int8").fill_null(0)) != 0
            table[end] = with_integers(table[end], is_number)

    def row_of(row: int) -> Rejected:
        values = {SHOWN[field]: column[row].as_py() for field, column in columns.items()}
        return Rejected(str(values).encode(), "", first + row + 1)

    return piece_of(table, reading, faults, row_of)
