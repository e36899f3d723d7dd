"""What is plain in a file's first rows: the separator, whether there is a header, which column is
what, whether vertices are numbers, and how times are written. Options override each guess.

The first row is a header if it names the ends of an edge, or a column that the caller asks for, or
if it has text in a column that has numbers in all other rows. Columns are found by the header's
names; two without known names are source and target. Without a header, two columns are source and
target, a third is a time if it holds dates or numbers as large as times since 1970 are, else a
weight, and four are source, target, weight and time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from lpma.batch.columns import MAX_VERTEX

from ...errors import SourceError
from ...formats.kinds import FIELDS
from ...formats.names import DECIMALS
from .reading import (
    SKIP,
    Asked,
    Reading,
    Times,
    are_numbers,
    are_whole,
    is_date,
    is_number,
    place_of,
    places_by_alias,
)
from .separators import Rows, decimal_point_of, separator_of, split

SAMPLE_ROWS = 1000  # that guesses rest on
TEXT_SHARE = 0.1  # of the ends of edges: fewer that are no integers do not make them names
SINCE_1970 = 10**8  # numbers at least this large may be times, in seconds or finer


def guess_text(path: Path, format: str, lines: list[str], asked: Asked) -> Reading:
    """The reading of lines of text that are neither blank nor comments. Raises SourceError."""
    separator = asked.separator or separator_of(format, lines)
    separator = None if separator == " " else separator
    rows = split(lines, separator)
    if not rows:
        raise SourceError(f"{path}: nothing was loaded: it holds no edge")
    reading = guess_rows(path, format, rows, asked, separator, lines[0])
    return reading if asked.names is False else with_numbers(reading, rows[1:])


def with_numbers(reading: Reading, rows: Rows) -> Reading:
    """The reading, and the columns beside the ends that say which names are integers, as exports
    have them: where there are such columns, vertices go by names."""
    beside = {}
    for end in ("src", "dst"):
        name = f"{reading.columns[reading.places[end]]}_number"
        if reading.header is not None and name in reading.columns:
            place = reading.columns.index(name)
            words = {row[place].strip().lower() for row in rows if place < len(row)}
            if words <= {"true", "false"} and place not in reading.places.values():
                beside[end] = name
    if not beside:
        return reading
    why = reading.why or f"as {next(iter(beside.values()))} says"
    return replace(reading, numbers=beside, named=True, why=why if reading.guessed else "")


def guess_rows(
    path: Path, format: str, rows: Rows, asked: Asked, separator: str | None, line: str
) -> Reading:
    """The reading of a file whose first rows, as text, these are; `line` is the first."""
    ordered = asked.in_order()
    header = _has_header(rows, asked, ordered)
    widths = Counter(len(row) for row in rows[header:] if len(row) > 1) or Counter([len(rows[0])])
    width = max(widths.most_common(1)[0][0], len(rows[0]) if header else 0)
    columns = tuple(name.strip() for name in rows[0]) if header else ()
    columns += _numbered(width)[len(columns) :]  # features, say, that a header does not name
    body = [row for row in rows[header:] if len(row) == width]
    unfit: dict[str, tuple[str, str]] = {}
    if ordered is not None:
        places = {name: place for place, name in enumerate(ordered) if name != SKIP}
        if max(places.values(), default=0) >= width and rows:
            width = max(places.values()) + 1
            columns += _numbered(width)[len(columns) :]
        _check_fields(path, [name for name in ordered if name != SKIP])
    else:
        places, unfit = _places(path, columns, body, asked, header)
    places = {field: places[field] for field in FIELDS if field in places}
    ends = [row[places[end]] for row in body for end in ("src", "dst") if places[end] < len(row)]
    named, why = _are_names(ends)
    first = None
    if (
        not header
        and asked.header is None
        and rows
        and not are_whole(
            rows[0][places[end]] for end in ("src", "dst") if places[end] < len(rows[0])
        )
    ):
        first = line.strip()[:60]
    moments = [row[places["time"]] for row in body if "time" in places]
    return Reading(
        str(path), format, columns, places, separator,
        header=line.strip()[:60] if header else None,
        first=first,
        named=named if asked.names is None else asked.names,
        why=why if asked.names is None else "",
        guessed=asked.names is None,
        times=_times(moments),
        seconds=_seconds(moments),
        unfit=unfit,
        decimal_point=decimal_point_of(separator, places, body),
        chosen=len(ordered or ()),
    )  # fmt: skip


def _numbered(width: int) -> tuple[str, ...]:
    return tuple(f"column {place + 1}" for place in range(width))


def _check_fields(path: Path, named: list[str]) -> None:
    for name in named:
        if named.count(name) > 1:
            raise SourceError(f"{path}: columns {', '.join(named)}: only one can be the {name}")
    if not {"src", "dst"} <= set(named) <= set(FIELDS):
        raise SourceError(
            f"{path}: columns {', '.join(named)}: src and dst are needed, others are "
            f"{', '.join(FIELDS[2:])}, and '{SKIP}' skips one: say which they are, as in "
            "columns='src dst weight'"
        )


# -- the header -----------------------------------------------------------------------------------


def _has_header(rows: Rows, asked: Asked, ordered: list[str] | None) -> bool:
    if asked.header is not None:
        return asked.header
    first, rest = rows[0], rows[1:]
    if ordered is None and {"src", "dst"} <= places_by_alias(first).keys():
        return True
    if are_numbers(field for field in first if field.strip()):
        return False
    lowered = {field.strip().lower() for field in first}
    wanted = asked.by_field().values()
    if any(not is_number(name) and str(name).lower() in lowered for name in wanted):
        return True
    if any(map(_is_value, first)):
        return not rest and ordered is not None
    for place, field in enumerate(first):
        below = [row[place] for row in rest if place < len(row)]
        if field.strip() and not _is_value(field) and below:
            values = sum(map(_is_value, below))
            if values > 0.9 * len(below):
                return True
    return not rest and ordered is not None and not are_numbers(first[: len(ordered)])


def _is_value(field: str) -> bool:
    """Whether this is a number or a date, which no column is called."""
    return are_numbers([field.replace(",", ".")]) or is_date(field)


# -- the columns ----------------------------------------------------------------------------------


def _places(
    path: Path, columns: tuple[str, ...], body: Rows, asked: Asked, header: bool
) -> tuple[dict[str, int], dict[str, tuple[str, str]]]:
    """The column of each field, and `Reading.unfit`."""
    wanted = asked.by_field()
    exactly = asked.columns is not None
    by_name = [name for name in wanted.values() if not is_number(name) and name != "none"]
    if by_name and not header:
        raise SourceError(
            f"{path}: has no header that names {by_name[0]!r}: give columns by their number, 1 to "
            f"{len(columns)}; its first row is {', '.join(map(repr, (body or [['']])[0]))}"
        )
    given = {
        field: place_of(path, columns, name, field)
        for field, name in wanted.items()
        if name != "none" or "none" in columns
    }
    guessed: dict[str, int] = {}
    if header and not exactly:
        guessed = places_by_alias(columns)
        free = [i for i in range(len(columns)) if i not in {*guessed.values(), *given.values()}]
        if len(free) == 2 and not {"src", "dst"} & ({*guessed} | {*given}):
            guessed |= {"src": free[0], "dst": free[1]}  # the others are known
    elif not exactly:
        guessed = _by_number(body, len(columns))
    unfit = {}
    for field in ("weight", "time"):  # a column that holds something else is not what it is called
        place = guessed.get(field)
        if place is not None and not _fits(field, [row[place] for row in body], header):
            del guessed[field]
            if header and field not in wanted:
                unfit[columns[place]] = (
                    field,
                    next(row[place] for row in body if row[place].strip()),
                )
    places = {**guessed}
    for field in given:
        places = {f: place for f, place in places.items() if place != given[field]}
    places |= given
    for field, name in wanted.items():
        if name == "none" and "none" not in columns:
            places.pop(field, None)
    if not {"src", "dst"} <= places.keys():
        raise SourceError(_which(path, columns, header))
    if places["src"] == places["dst"]:
        raise SourceError(f"{path}: source and target are one column, {columns[places['src']]!r}")
    return places, unfit


def _which(path: Path, columns: tuple[str, ...], header: bool) -> str:
    if len(columns) < 2:
        return f"{path}: it has one column, and an edge needs two, source and target"
    if header:
        listed = f"the columns are {', '.join(map(repr, columns))}"
    else:
        listed = f"there are {len(columns)} columns and no header"
    return (
        f"{path}: which columns are source and target? Say --source and --target "
        f"(source= and target=), by name or by number; {listed}"
    )


def _by_number(body: Rows, width: int) -> dict[str, int]:
    if width < 2:
        return {}
    places = {"src": 0, "dst": 1}
    if width == 3:
        third = [row[2] for row in body]
        if are_numbers(third) and not _is_since_1970(third):
            places["weight"] = 2
        else:
            places["time"] = 2
    elif width >= 4:
        places |= {"weight": 2, "time": 3}
    return places


def _is_since_1970(values: list[str]) -> bool:
    return bool(values) and min(float(value) for value in values) >= SINCE_1970


def _fits(field: str, values: list[str], header: bool) -> bool:
    """Whether a column may be this field: of one that is called so any value may say it, and the
    others are bad lines; else most must."""
    values = [value for value in values if value.strip()]
    if field == "time":
        fitting = sum(is_date(value) or _is_float(value) for value in values)
    else:
        fitting = sum(_is_float(value.replace(",", ".")) for value in values)
    return not values or (fitting > 0 if header else fitting >= 0.9 * len(values))


def _is_float(value: str) -> bool:
    """Whether this is meant as a number, NaN too."""
    try:
        float(value)
    except ValueError:
        return False
    return True


def _times(values: list[str]) -> Times:
    values = [value for value in values if value.strip()]
    numbers = [value for value in values if _is_float(value)]
    if sum(map(is_date, values)) > len(numbers) or (values and not numbers):
        return "dates"
    return "whole" if are_whole(numbers) else "decimal"


def _seconds(values: list[str]) -> str:
    """The first of these, if whole numbers among them may all be seconds since 1970; else ""."""
    values = [value.strip() for value in values if are_whole([value])]
    fitting = all(SINCE_1970 <= int(value) < 1000 * SINCE_1970 for value in values)
    return values[0] if values and fitting else ""


# -- names ----------------------------------------------------------------------------------------


def _are_names(ends: list[str]) -> tuple[bool, str]:
    """Whether these values of source and target are names, and why. A few that are no integers do
    not say so: they may be what is wrong with the file. "007" is none: as a number it would be the
    vertex 7."""
    ends = [end.strip() for end in ends if end.strip()]
    texts = [end for end in ends if not DECIMALS.fullmatch(end)]
    if texts and len(texts) >= TEXT_SHARE * len(ends):
        plain = len(texts) > len(ends) / 2 and not _is_float(texts[0])
        return True, "" if plain else f"such as {texts[0][:40]!r}"
    outside = [end for end in ends if DECIMALS.fullmatch(end) and not 0 <= int(end) <= MAX_VERTEX]
    if outside and len(outside) >= TEXT_SHARE * len(ends):
        return True, f"since {outside[0][:40]} is not a number from 0 to {MAX_VERTEX}"
    return False, ""
