"""Blocks of text as edge operations.

Idea: pyarrow's csv reader parses a block at once, straight into the types that a batch needs, and
hands over the rows that have too few or too many fields. If any value is not of its type, the block
is parsed again as text, and Python judges each value: slower, but it is exact about what is bad, and
good files never come here. Fields between blanks become fields between single blanks first, comment
lines become empty ones, so that lines keep their numbers.

If vertices go by names, an integer of 64 bits in decimals is that integer, anything else that text;
blanks around it, and a csv's quotes, are not part of it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import RecordError, SourceError
from ...formats.names import plain_name
from ...types import Rejected
from .opening import Block, lines_of, quoted
from .pieces import NO_COLUMNS, Piece, piece_of
from .reading import Reading

Array = npt.NDArray[Any]

_COMMENT = re.compile(rb"^[ \t]*[#%][^\n]*", re.MULTILINE)
_BLANK_LINE = re.compile(rb"^[ \t\r]+$", re.MULTILINE)
_BLANKS = bytes.maketrans(b"\t\r\f\v", b"    ")
_EXACT = 2.0**53  # integers up to this one are exact as floats
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def without_comments(data: bytes, separator: str | None) -> tuple[bytes, int]:
    """The block with its comment lines, and those of blanks, made empty; and how many comments there
    were."""
    beginnings = _beginnings(data)
    if separator is not None and not beginnings.isdisjoint(b" \t"):
        data = _BLANK_LINE.sub(b"", data)
    if beginnings.isdisjoint(b"#% \t"):
        return data, 0
    if separator is None or b'"' not in data:
        return _COMMENT.subn(b"", data)
    starts, ends = quoted(data, separator)

    def inside(at: int) -> bool:
        before = int(np.searchsorted(starts, at)) - 1
        return before >= 0 and (before >= len(ends) or int(ends[before]) > at)

    count = 0

    def emptied(match: re.Match[bytes]) -> bytes:
        nonlocal count
        if inside(match.start()):
            return match[0]
        count += 1
        return b""

    return _COMMENT.sub(emptied, data), count


def _beginnings(data: bytes) -> set[int]:
    """The bytes that lines begin with. Found sooner so than by a pattern."""
    text = np.frombuffer(data, np.uint8)
    first = text[np.flatnonzero(text[:-1] == 10) + 1]
    return {data[0], *np.flatnonzero(np.bincount(first, minlength=256)).tolist()} if data else set()


def read_text(blocks: Iterator[Block], reading: Reading) -> Iterator[Piece]:
    """The pieces of blocks without comments and without the header."""
    for block in blocks:
        data = block.data
        if reading.separator is None:
            data = _single_blanks(data)
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
    import pyarrow

    try:
        table, ragged = _parsed(data, reading, _types(reading))
        faults: dict[int, str] = {}
        columns = {name: _typed(table.column(name), name, reading) for name in reading.places}
    except pyarrow.ArrowInvalid:
        table, ragged = _parsed(data, reading, dict.fromkeys(reading.places, pyarrow.binary()))
        faults = {}
        columns = {}
        for name in reading.places:
            values = [value.decode("utf-8", "replace") for value in table.column(name).to_pylist()]
            columns[name] = _judged(name, values, reading, faults)
    rows = _Rows(block, reading, [number for number, _ in ragged])
    piece = piece_of(columns, reading, faults, rows) if len(table) else Piece(NO_COLUMNS)
    if reading.guessed and not reading.named:
        for _, rejected in piece.bad:
            if rejected.reason.startswith(NOT_IDS):
                raise SourceError(refusal(rejected, reading))
    if ragged:
        width = len(reading.columns)
        all_bad = [(rows.place(row), rejected) for row, rejected in piece.bad]
        for number, found in ragged:
            some = f"{found} field{'s' * (found != 1)}"
            all_bad.append((number, rows.at(number, f"{some} where {width} are expected")))
        piece.bad = sorted(all_bad, key=lambda one: one[0])
    return piece


def _types(reading: Reading) -> dict[str, Any]:
    import pyarrow

    times = {"whole": pyarrow.int64(), "decimal": pyarrow.float64(), "dates": pyarrow.string()}
    end = pyarrow.string() if reading.named else pyarrow.uint32()
    types = {"src": end, "dst": end, "weight": pyarrow.float64(), "time": times[reading.times],
             "kind": pyarrow.int64()}  # fmt: skip
    return {field: types[field] for field in reading.places}


def _parsed(data: bytes, reading: Reading, types: dict[str, Any]) -> tuple[Any, list[tuple[int, int]]]:
    """The columns as a table of Arrow's, and the rows that have another number of fields: the
    number of each, from 0, and how many it has. Raises ArrowInvalid if a value is not of its type."""
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


def _typed(column: Any, name: str, reading: Reading) -> Any:
    """A column as an array of the type that a batch needs. Raises ArrowInvalid if it is not so."""
    import pyarrow

    array = column.combine_chunks()
    if isinstance(array, pyarrow.ChunkedArray):
        array = pyarrow.concat_arrays(array.chunks) if array.num_chunks else pyarrow.array([], column.type)
    if pyarrow.types.is_binary(array.type):
        raise pyarrow.ArrowInvalid("to be judged one by one")
    if name in ("src", "dst") and reading.named:
        return as_names(array)
    if name == "time" and reading.times == "dates":
        return milliseconds(array)
    values = array.to_numpy(zero_copy_only=False)
    if name == "time" and reading.times == "decimal" and (np.abs(values) >= _EXACT).any():
        raise pyarrow.ArrowInvalid("integers among these are more than a float holds")
    return values


# -- names ----------------------------------------------------------------------------------------


def as_names(array: Any) -> Any:
    """Fields of text as names: integers of 64 bits, text, or objects if some are each."""
    import pyarrow
    import pyarrow.compute as pc

    array = pc.utf8_trim_whitespace(array)
    digits = pc.or_(pc.ascii_is_decimal(array), pc.starts_with(array, "-"))
    if not pc.any(digits).as_py():
        return array
    if pc.all(digits).as_py():
        try:
            numbers = array.cast(pyarrow.int64())
        except pyarrow.ArrowInvalid:
            pass
        else:
            if numbers.cast(pyarrow.string()).equals(array):  # no zeros or signs are lost
                return numbers.to_numpy(zero_copy_only=False)
    return mixed_names(array)


def mixed_names(array: Any) -> Any:
    """The same where some are integers and some are not. What cannot be a name stays text."""
    import pyarrow

    entries = array.dictionary_encode()
    found = np.empty(len(entries.dictionary), object)
    found[:] = [_name(text) for text in entries.dictionary.to_pylist()]
    if all(isinstance(name, str) for name in found):
        return array
    column = found[entries.indices.to_numpy(zero_copy_only=False)]
    return _unnamed_to_text(column, pyarrow)


def _unnamed_to_text(column: Array, pyarrow: Any) -> Any:
    if all(type(name) is int and 0 <= name for name in column):
        return column.astype(np.uint64)
    return column


def _name(text: str) -> int | str:
    try:
        return plain_name(text)
    except RecordError:
        return text


# -- times ----------------------------------------------------------------------------------------


def milliseconds(array: Any) -> Array:
    """Dates and times of ISO 8601, or Arrow's own, as milliseconds since 1970; without a zone they
    are in UTC. Raises ArrowInvalid."""
    import pyarrow
    import pyarrow.compute as pc

    if pyarrow.types.is_string(array.type) or pyarrow.types.is_large_string(array.type):
        array = pc.utf8_trim_whitespace(array)
        zoned = len(array) and _has_zone(array[0].as_py())
        array = array.cast(pyarrow.timestamp("us", "UTC" if zoned else None))
    elif pyarrow.types.is_date(array.type):
        array = array.cast(pyarrow.timestamp("ms"))
    unit = {"s": 1000, "ms": 1}.get(array.type.unit)
    stamps = array.cast(pyarrow.int64()).to_numpy(zero_copy_only=False)
    if unit is not None:
        return np.asarray(stamps * unit)
    return np.asarray(stamps // {"us": 1000, "ns": 1_000_000}[array.type.unit])


def _has_zone(text: str) -> bool:
    return text.endswith(("Z", "z")) or re.search(r"[T ].*[+-]", text) is not None


def _millisecond(text: str) -> int:
    moment = datetime.fromisoformat(text.strip())
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    since = moment - _EPOCH
    return (since.days * 86_400_000) + since.seconds * 1000 + since.microseconds // 1000


# -- values one by one ----------------------------------------------------------------------------

# Reasons that do not arise if vertices go by names.
NOT_IDS = tuple(f"{end}: {fault}" for end in ("src", "dst") for fault in ("not an int", "ids go"))


def _judged(name: str, values: list[str], reading: Reading, faults: dict[int, str]) -> Any:
    """A column's values as its type, and in `faults` the rows where one is not."""
    if name in ("src", "dst") and reading.named:
        return _judged_names(name, values, faults)
    if name in ("src", "dst", "kind"):
        for row, value in enumerate(values):
            if not value.strip():
                faults.setdefault(row, f"{name}: empty")
        return _converted(values, _integer, f"{name}: not an integer of 64 bits", faults, np.int64)
    if name == "weight":
        point = reading.decimal_point
        number: Callable[[str], Any] = _number if point == "." else _comma_number
        return _converted(values, number, "weight: not a number", faults, np.float64)
    if reading.times == "dates":
        reason = "time: not a date or time of ISO 8601"
        return _converted(values, _millisecond, reason, faults, np.int64)
    return _converted(values, _cut_time, "time: not a number of 64 bits", faults, np.int64)


def _converted(
    values: list[str], convert: Callable[[str], Any], reason: str, faults: dict[int, str], dtype: Any
) -> Array:
    column = np.zeros(len(values), dtype)
    for row, value in enumerate(values):
        try:
            column[row] = convert(value)
        except (ValueError, OverflowError):
            faults.setdefault(row, reason)
    return column


def _integer(value: str) -> int:
    if "_" in value or not value.isascii():
        raise ValueError(value)
    return int(value)


def _number(value: str) -> float:
    if "_" in value:
        raise ValueError(value)
    return float(value)


def _comma_number(value: str) -> float:
    return _number(value.replace(",", "."))


def _cut_time(value: str) -> int:
    """A time with a fraction is cut."""
    try:
        return _integer(value)
    except ValueError:
        return int(_number(value))


def _judged_names(name: str, values: list[str], faults: dict[int, str]) -> Any:
    import pyarrow

    texts = [value.strip() for value in values]
    for row, text in enumerate(texts):
        if "\ufffd" in text:  # two such names might be taken for one
            faults.setdefault(row, f"{name}: not UTF-8")
    return as_names(pyarrow.array(texts, pyarrow.string()))


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


def refusal(found: Rejected, reading: Reading) -> str:
    """What to say if a vertex is not the number that it was guessed to be."""
    text = found.value[:60].decode(errors="replace")
    return (
        f"{reading.path}: line {found.line}, {text!r}, names a vertex by text or by a large number, "
        "while the first ones are small numbers: with --names every vertex goes by its name; with "
        "--no-names such lines are left out"
    )
