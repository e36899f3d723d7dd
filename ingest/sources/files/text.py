"""Blocks of text as edge operations.

Idea: pyarrow's csv reader parses a block at once, straight into the types that a batch needs, and
hands over the rows that have too few or too many fields. If any value is not of its type, the
block is parsed again as text, and each column that has a bad value is judged value by value:
slower, but exact about what is bad, and good files never come here. Fields between blanks become
fields between single blanks first.

If vertices go by names, an integer of 64 bits in decimals is that integer, anything else text,
unless a column beside it says which (`Reading.numbers`). Blanks around a field, and a csv's quotes,
are not part of it; blanks inside quotes are.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lpma.arguments.arrow import as_numpy, text_array

from ...types import Rejected
from .left_out import HEADER_AGAIN
from .opening import Block
from .pieces import NO_COLUMNS, Fault, Faults, Piece, note, piece_of
from .quotes import trimmed
from .reading import EXACT, Reading
from .values import as_names, as_needed, flags_of, with_integers

_BLANKS = bytes.maketrans(b"\t\r\f\v", b"    ")
_FLAG = "_number"  # a column that says which values of an end are integers


def read_text(blocks: Iterator[Block], reading: Reading) -> Iterator[Piece]:
    """The pieces of blocks without comments and without the header."""
    for block in blocks:
        data = block.data
        if reading.separator is None:
            data = _single_blanks(data)
        elif block.quotes.padded:
            data = trimmed(data, block.quotes, reading.separator)
        if data.strip():
            yield _read_block(data, block, reading)


def _single_blanks(data: bytes) -> bytes:
    data = data.translate(_BLANKS)
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    data = data.replace(b"\n ", b"\n").replace(b" \n", b"\n")
    return data[1:] if data.startswith(b" ") else data


def _read_block(data: bytes, block: Block, reading: Reading) -> Piece:
    """data: the block's, as the reader takes it."""
    import pyarrow.compute as pc

    faults: Faults = {}
    text = _as_utf8(data)
    columns, ragged = _parsed(text, reading)
    if reading.named:
        names = {end: pc.ascii_trim_whitespace(columns[end]) for end in ("src", "dst")}
        if not len(block.quotes.opening):
            columns |= names
        elif any(not names[end].equals(columns[end]) for end in names):
            bare = trimmed(block.data, block.quotes, reading.separator or "")
            columns, ragged = _parsed(_as_utf8(bare), reading)
    numbers = [number for number, _ in ragged]
    for number in _headers(block, reading):
        if number not in numbers:
            faults[number - bisect_left(numbers, number)] = Fault(HEADER_AGAIN)
    if text is not data and reading.named:
        _note_replaced(columns, faults)
    flags = {end: flags_of(reading.numbers[end], columns.pop(end + _FLAG), faults)
             for end in reading.numbers}  # fmt: skip
    table = {name: as_needed(name, column, reading, faults) for name, column in columns.items()}
    for end in ("src", "dst") if reading.named else ():
        if end in flags:
            table[end] = with_integers(table[end], flags[end])
        else:
            table[end] = as_names(table[end], reading.whole)
    rows = _Rows(block, numbers)
    piece = piece_of(table, reading, faults, rows) if len(table["src"]) else Piece(NO_COLUMNS)
    piece.line_of = rows.at
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
    if not header or not all(letter in block.data for letter in set(header)):
        return []  # seen sooner than by the next line
    if header not in block.data:
        return []
    return [number for number, (_, row) in enumerate(block.rows()) if row.strip() == header]


def _types(reading: Reading) -> dict[str, Any]:
    import pyarrow

    times = {"whole": pyarrow.int64(), "decimal": pyarrow.float64(), "dates": pyarrow.string()}
    number = pyarrow.float64() if reading.whole else pyarrow.uint32()
    end = pyarrow.string() if reading.named else number
    weight = pyarrow.string() if reading.thousands else pyarrow.float64()
    types = {"src": end, "dst": end, "weight": weight, "time": times[reading.times],
             "kind": pyarrow.string()}  # fmt: skip
    flags = dict.fromkeys((end + _FLAG for end in reading.numbers), pyarrow.string())
    return {field: types[field] for field in reading.places} | flags


def _parsed(data: bytes, reading: Reading) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """`_parsed_as` the types that a batch needs, or as text if a value is not of its type."""
    import pyarrow

    types = _types(reading)
    try:
        if not reading.named and (b"0x" in data or b"0X" in data):
            raise pyarrow.ArrowInvalid("what Arrow would take for numbers")
        found = _parsed_as(types, data, reading)
        _check_exact(found[0], reading)
    except pyarrow.ArrowInvalid:
        found = _parsed_as(dict.fromkeys(types, pyarrow.string()), data, reading)
    return found


def _parsed_as(
    types: dict[str, Any], data: bytes, reading: Reading
) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """The columns as arrays of Arrow's, and the rows that have another number of fields: the
    number of each, from 0, and how many it has. Raises ArrowInvalid if a value is not of its
    type."""
    import pyarrow
    from pyarrow import csv

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
    return {name: table.column(name).combine_chunks() for name in types}, ragged


def _check_exact(columns: dict[str, Any], reading: Reading) -> None:
    """Raise ArrowInvalid if floats stand for integers that they do not hold."""
    import pyarrow

    ends = [as_numpy(columns[end]) for end in ("src", "dst") if not reading.named and reading.whole]
    if any(not ((np.abs(end) < EXACT) & (np.trunc(end) == end)).all() for end in ends):
        raise pyarrow.ArrowInvalid("not all are whole")
    if reading.times == "decimal" and (np.abs(as_numpy(columns["time"])) >= EXACT).any():
        raise pyarrow.ArrowInvalid("integers among these are more than a float holds")


def _as_utf8(data: bytes) -> bytes:
    """The block with U+FFFD in place of what is not UTF-8."""
    import pyarrow

    if data.isascii():
        return data
    try:
        text_array([data]).validate(full=True)
    except pyarrow.ArrowInvalid:
        return data.decode("utf-8", "replace").encode()
    return data


def _note_replaced(columns: dict[str, Any], faults: Faults) -> None:
    """Note the rows with names that were not UTF-8: two such names might become one."""
    import pyarrow.compute as pc

    for end in ("src", "dst"):
        replaced = as_numpy(pc.match_substring(columns[end], "\ufffd"))
        note(faults, replaced, f"{end}: not UTF-8")


# -- rows as they stand in the file ---------------------------------------------------------------


@dataclass
class _Rows:
    """The rows of a block, by their number among the parsed ones. ragged: the numbers, among all
    rows, of those that were not parsed."""

    block: Block
    ragged: list[int]

    @cached_property
    def _lines(self) -> list[tuple[int, bytes]]:
        return self.block.rows()

    def at(self, number: int, reason: str = "") -> Rejected:
        """Row `number` among all."""
        line, data = self._lines[number]
        return Rejected(data.rstrip(b"\r"), reason, self.block.line + line)

    def place(self, row: int) -> int:
        """The number among all rows of a parsed one: `ragged[j]` has `ragged[j] - j` before it."""
        return row + bisect_right(range(len(self.ragged)), row, key=lambda j: self.ragged[j] - j)

    def __call__(self, row: int) -> Rejected:
        return self.at(self.place(row))
