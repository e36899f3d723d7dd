"""Lines of text as edge operations, and what a bad line is.

Idea: lines go to NumPy's C parser many at a time; lines that it refuses are split in halves and
tried again, until the bad ones stand alone and the good ones are kept. `edge_layout.py` says which
column is what. A `kind` column holds the numbers of `lpma.Kind`.

If ids are mapped, any field names a vertex: an integer of 64 bits in decimals is that integer,
anything else that text; blanks around it, and a csv's quotes, are not part of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.batch import MAX_WEIGHT, Columns, Kind

from ...errors import RecordError
from ...formats.names import names_of, plain_name
from ...types import MAX_TEXT_BYTES, Name, Rejected
from .edge_layout import Layout

Array = npt.NDArray[Any]
Value = Columns | Rejected


def parse(lines: list[str], layout: Layout) -> Iterator[Value]:
    """The operations of lines, and the bad ones, in order. If vertices are named (`layout.limit`
    is None), src and dst of the columns are names, as `records.Names` has them."""
    if layout.limit is not None:
        yield from _parse(lines, layout)
        return
    # Most names are integers and are read as such, except those that would lose a sign or zeros.
    if _are_plain(lines, layout.delimiter or " "):
        try:
            table = _table(lines, layout, None)
        except ValueError:
            pass
        else:
            yield from _values(table, lines, layout, None)
            return
    yield from _parse(lines, layout, _Words())


_UNPLAIN = re.compile(r"[+]|(?<![0-9.])0[0-9]|-0(?![.])")


def _are_plain(lines: list[str], delimiter: str) -> bool:
    """Whether each integer is as `vertex_names.plain_name` takes it; False if that is unsure."""
    text = "\n".join(["", *lines])
    signs = ("+", "-0", "\n0", " 0", "\t0", '"0', delimiter + "0")  # found sooner than by a pattern
    return not any(sign in text for sign in signs) or not _UNPLAIN.search(text)


class _Words:
    """Numbers names in the order of their appearance."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self.names: list[Name] = []

    def __call__(self, field: str) -> int:
        field = field.strip()
        number = self._numbers.get(field)
        if number is None:
            name = _name(field)
            number = self._numbers[field] = len(self.names)
            self.names.append(name)
        return number


def _name(field: str) -> Name:
    if "\ufffd" in field:  # two such names might be taken for one
        raise RecordError("not UTF-8")
    try:
        return plain_name(field)
    except RecordError:
        message = f"text of 1 to {MAX_TEXT_BYTES} bytes names a vertex"
        raise RecordError(message) from None


def _parse(lines: list[str], layout: Layout, words: _Words | None = None) -> Iterator[Value]:
    """The whole of `lines` at once, else each half: few bad lines cost a few more tries."""
    if not lines:
        return
    try:
        table = _table(lines, layout, words)
    except ValueError as error:
        if len(lines) > 1:
            half = len(lines) // 2
            yield from _parse(lines[:half], layout, words)
            yield from _parse(lines[half:], layout, words)
        elif layout.whole_times and "time" in layout.places:
            yield from _parse(lines, replace(layout, whole_times=False), words)
        else:
            yield Rejected(lines[0].encode(), _reason(error, layout))
        return
    yield from _values(table, lines, layout, words)


def _table(lines: list[str], layout: Layout, words: _Words | None) -> Array:
    """Raises ValueError if any line is bad."""
    places = layout.places
    converters: dict[int | str, Callable[[str], Any]] | None = None
    if words is not None:
        converters = {places["src"]: words, places["dst"]: words}
    table = np.loadtxt(
        lines,
        dtype=layout.dtype,
        delimiter=layout.delimiter,
        usecols=tuple(places.values()),
        comments=None,
        converters=converters,
        quotechar='"' if layout.delimiter else None,
        ndmin=1,
    )
    if len(table) != len(lines):  # a quoted field that holds a line's end
        raise ValueError("not one operation on one line")
    return table


_FAULT = re.compile(r"could not convert string .* at row \d+, column (\d+)\.", re.DOTALL)


def _reason(error: ValueError, layout: Layout) -> str:
    """What is wrong with a line, in words that are the same for all lines with the same fault."""
    text = str(error)
    if text.startswith("invalid column index"):
        return f"fewer than {1 + max(layout.places.values())} columns"
    fault = _FAULT.fullmatch(text)
    if fault is None:
        return text
    field = next(f for f, place in layout.places.items() if place == int(fault[1]) - 1)
    if isinstance(error.__cause__, RecordError):
        return f"{field}: {error.__cause__}"
    number = "a number" if layout.dtype[field].kind == "f" else "an integer of 64 bits"
    return f"{field}: not {number}"


def _values(
    table: Array, lines: list[str], layout: Layout, words: _Words | None
) -> Iterator[Value]:
    named = {field: table[field] for field in layout.places}
    for end in ("src", "dst"):
        if words is not None:
            named[end] = names_of(words.names, end)[named[end]]
        elif layout.limit is None:
            named[end] = names_of(named[end], end)
        else:
            named[end] = named[end] - layout.base
    for value in validated(named, layout.limit, lambda row: lines[row]):
        yield _mirrored(value) if layout.mirror and isinstance(value, Columns) else value


def validated(
    table: Mapping[str, Array], limit: int | None, line_of: Callable[[int], str]
) -> Iterator[Value]:
    """Runs of rows within the limits of an update, and the rows that are not, in order. limit: of
    ids; None: they are names."""
    faults = {}
    if limit is not None:
        for end in ("src", "dst"):
            faults[f"{end}: ids go from 0 to {limit}"] = ~_within(table[end], limit)
    if "weight" in table:
        reason = f"weight: must be finite and at most {MAX_WEIGHT:g} in size"
        faults[reason] = ~(np.abs(table["weight"]) <= MAX_WEIGHT)
    if "time" in table and table["time"].dtype.kind != "i":
        # Written so that NaN fails too; 2^63 is the first float that int64 does not hold.
        inside = (table["time"] >= -(2.0**63)) & (table["time"] < 2.0**63)
        faults["time: outside 64 bits"] = ~inside
    if "kind" in table:
        faults["kind: 0 append, 1 delete, 2 add vertex, 3 remove vertex"] = ~_within(
            table["kind"], int(Kind.REMOVE_VERTEX)
        )
    bad = np.logical_or.reduce([np.zeros(len(table["src"]), bool), *faults.values()])
    start = 0
    for row in [*np.flatnonzero(bad).tolist(), len(bad)]:
        if row > start:
            part = {field: column[start:row] for field, column in table.items()}
            yield _columns(part, named=limit is None)
        if row < len(bad):
            reason = next(reason for reason, rows in faults.items() if rows[row])
            yield Rejected(line_of(row).encode(), reason)
        start = row + 1


def _within(column: Array, limit: int) -> Array:
    return np.asarray((column >= 0) & (column <= limit))


def _columns(table: Mapping[str, Array], named: bool) -> Columns:
    """REQUIRES: every value within the limits of an update."""
    time, src, dst = table.get("time"), table["src"], table["dst"]
    unnamed = np.zeros(len(src), np.uint32)
    columns = Columns.validated(
        table["kind"].astype(np.uint8) if "kind" in table else 0,
        unnamed if named else src.astype(np.uint32),
        unnamed if named else dst.astype(np.uint32),
        table.get("weight"),
        None if time is None else time.astype(np.int64),
    )
    return replace(columns, src=src, dst=dst) if named else columns


def _mirrored(columns: Columns) -> Columns:
    """Every edge followed by its reverse, a loop alone."""
    times = np.where(columns.src == columns.dst, 1, 2)
    row = np.repeat(np.arange(len(columns)), times)
    second = np.append(False, row[1:] == row[:-1])
    src = np.where(second, columns.dst[row], columns.src[row])
    dst = np.where(second, columns.src[row], columns.dst[row])
    weight = None if columns.weight is None else columns.weight[row]
    return replace(columns, kind=columns.kind[row], src=src, dst=dst, weight=weight)
