"""Blocks of text as edge operations.

Idea: pyarrow's csv reader parses a block at once, straight into the types that a batch needs, and
hands over the rows that have too few or too many fields. If any value is not of its type, the
block is parsed again as text, and Python judges each value: slower, but exact about what is bad,
and good files never come here. Fields between blanks become fields between single blanks first.

If vertices go by names, an integer of 64 bits in decimals is that integer, anything else that text,
unless a column beside it says which (`Reading.numbers`). Blanks around a field, and a csv's quotes,
are not part of it; blanks inside quotes are.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arguments.arrow import as_numpy

from ...types import Rejected
from .left_out import HEADER_AGAIN
from .opening import Block, lines_of
from .pieces import NO_COLUMNS, Fault, Faults, Piece, piece_of
from .quotes import marked, quotes_of, without_blanks_before
from .reading import Reading
from .values import as_names, judged, judged_flags, of_text, with_integers, without_padding

Array = npt.NDArray[Any]

_BLANKS = bytes.maketrans(b"\t\r\f\v", b"    ")
_FLAG = "_number"  # a column that says which values of an end are integers
_EXACT = 2.0**53  # integers up to this one are exact as floats


def read_text(blocks: Iterator[Block], reading: Reading) -> Iterator[Piece]:
    """The pieces of blocks without comments and without the header."""
    for block in blocks:
        data, mark = block.data, ""
        if reading.separator is None:
            data = _single_blanks(data)
        elif b'"' in data:
            quotes = block.quotes or quotes_of(data, reading.separator)
            if len(quotes.padded):
                data = without_blanks_before(quotes, data)
                quotes = quotes_of(data, reading.separator)
            if reading.named:
                data, mark = marked(quotes, data)
        if data.strip():
            yield _read_block(data, mark, block, reading)


def _single_blanks(data: bytes) -> bytes:
    data = data.translate(_BLANKS)
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    data = data.replace(b"\n ", b"\n").replace(b" \n", b"\n")
    return data[1:] if data.startswith(b" ") else data


def _read_block(data: bytes, mark: str, block: Block, reading: Reading) -> Piece:
    """data: the block's, as the reader takes it; mark: see quotes.py."""
    import pyarrow

    faults: Faults = {}
    types = _types(reading)
    heads = _headers(block, reading)
    try:
        table, ragged = _parsed(data, reading, types)
        _note_headers(heads, ragged, faults)
        flags = {end: _typed(table.column(end + _FLAG), end, reading) for end in reading.numbers}
        columns = {
            name: _typed(table.column(name), name, reading, mark, flags.get(name))
            for name in reading.places
        }
    except pyarrow.ArrowInvalid:
        table, ragged = _parsed(data, reading, dict.fromkeys(types, pyarrow.binary()))
        _note_headers(heads, ragged, faults)
        values = {
            name: [value.decode("utf-8", "replace") for value in table.column(name).to_pylist()]
            for name in types
        }
        flags = {
            end: judged_flags(name, values[end + _FLAG], faults)
            for end, name in reading.numbers.items()
        }
        columns = {
            name: judged(name, values[name], reading, faults, mark, flags.get(name))
            for name in reading.places
        }
    rows = _Rows(block, reading, [number for number, _ in ragged])
    piece = piece_of(columns, reading, faults, rows) if len(table) else Piece(NO_COLUMNS)
    if ragged:
        width = len(reading.columns)
        all_bad = [(rows.place(row), rejected) for row, rejected in piece.bad]
        for number, found in ragged:
            some = f"{found} field{'s' * (found != 1)}"
            all_bad.append((number, rows.at(number, f"{some} where {width} are expected")))
        piece.bad = sorted(all_bad, key=lambda one: one[0])
    return piece


def _headers(block: Block, reading: Reading) -> list[int]:
    """The rows, by their number in the block, that are the file's header again."""
    header = reading.header.encode() if reading.header else b""
    if not header or header not in block.data:
        return []
    rows = lines_of(block.data, reading.separator)
    return [number for number, (_, row) in enumerate(rows) if row.strip() == header]


def _note_headers(heads: list[int], ragged: list[tuple[int, int]], faults: Faults) -> None:
    others = [number for number, _ in ragged]
    for number in heads:
        if number not in others:
            faults[number - bisect_left(others, number)] = Fault(HEADER_AGAIN)


def _types(reading: Reading) -> dict[str, Any]:
    import pyarrow

    times = {"whole": pyarrow.int64(), "decimal": pyarrow.float64(), "dates": pyarrow.string()}
    number = pyarrow.float64() if reading.whole else pyarrow.uint32()
    end = pyarrow.string() if reading.named else number
    weight = pyarrow.string() if reading.thousands else pyarrow.float64()
    types = {"src": end, "dst": end, "weight": weight, "time": times[reading.times],
             "kind": pyarrow.string()}  # fmt: skip
    flags = dict.fromkeys((end + _FLAG for end in reading.numbers), pyarrow.bool_())
    return {field: types[field] for field in reading.places} | flags


def _parsed(
    data: bytes, reading: Reading, types: dict[str, Any]
) -> tuple[Any, list[tuple[int, int]]]:
    """The columns as a table of Arrow's, and the rows that have another number of fields: the
    number of each, from 0, and how many it has. Raises ArrowInvalid if a value is not of its
    type."""
    import pyarrow
    from pyarrow import csv

    if not reading.named and (b"0x" in data or b"0X" in data):
        types = dict.fromkeys(types, pyarrow.binary())  # Arrow would take these for numbers
    ragged: list[tuple[int, int]] = []

    def note(row: Any) -> str:
        ragged.append((row.number - 1, row.actual_columns))
        return "skip"

    names = [f"column {place}" for place in range(len(reading.columns))]
    for field, place in reading.places.items():
        names[place] = field
    for end, name in reading.numbers.items():
        names[reading.columns.index(name)] = end + _FLAG
    table = csv.read_csv(
        pyarrow.BufferReader(data),
        csv.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 1),
        csv.ParseOptions(
            delimiter=reading.separator or " ",
            quote_char='"' if reading.separator else False,
            invalid_row_handler=note,
        ),
        csv.ConvertOptions(
            column_types=types, include_columns=list(types), null_values=[],
            strings_can_be_null=False, decimal_point=reading.decimal_point,
        ),
    )  # fmt: skip
    return table, ragged


def _typed(
    column: Any, name: str, reading: Reading, mark: str = "", is_number: Array | None = None
) -> Any:
    """A column as an array of the type that a batch needs; of names, is_number says which are
    integers. Raises ArrowInvalid if it is not so."""
    import pyarrow

    array = column.combine_chunks()
    if isinstance(array, pyarrow.ChunkedArray):
        array = (
            pyarrow.concat_arrays(array.chunks)
            if array.num_chunks
            else pyarrow.array([], column.type)
        )
    if pyarrow.types.is_binary(array.type):
        raise pyarrow.ArrowInvalid("to be judged one by one")
    if pyarrow.types.is_boolean(array.type):
        return as_numpy(array)
    if name in ("src", "dst") and reading.named:
        texts = without_padding(array, mark)
        if is_number is not None:
            return with_integers(texts, is_number)
        return as_names(texts, reading.whole)
    if pyarrow.types.is_string(array.type):
        return of_text(name, array, reading)
    values = as_numpy(array)
    if name in ("src", "dst") and reading.whole:
        if not ((np.abs(values) < _EXACT) & (np.trunc(values) == values)).all():
            raise pyarrow.ArrowInvalid("not all are whole")
        return values.astype(np.int64)
    if name == "time" and reading.times == "decimal" and (np.abs(values) >= _EXACT).any():
        raise pyarrow.ArrowInvalid("integers among these are more than a float holds")
    return values


# -- rows as they stand in the file ---------------------------------------------------------------


@dataclass
class _Rows:
    """The rows of a block, by their number among the parsed ones. ragged: the numbers, among all
    rows, of those that were not parsed."""

    block: Block
    reading: Reading
    ragged: list[int]

    def __post_init__(self) -> None:
        self._lines: list[tuple[int, bytes]] | None = None

    def at(self, number: int, reason: str) -> Rejected:
        """Row `number` among all."""
        if self._lines is None:
            self._lines = lines_of(self.block.data, self.reading.separator)
        line, data = self._lines[number]
        return Rejected(data.rstrip(b"\r"), reason, self.block.line + line)

    def place(self, row: int) -> int:
        """The number among all rows of a parsed one: `ragged[j]` has `ragged[j] - j` before it."""
        return row + bisect_right(range(len(self.ragged)), row, key=lambda j: self.ragged[j] - j)

    def __call__(self, row: int) -> Rejected:
        return self.at(self.place(row), "")
