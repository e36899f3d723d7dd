"""Which column of a text file is what.

Columns are found by `columns`, else by a header line's names, else by their number: two are src
dst, four are src dst weight time. Three are refused without a word from the caller, because a time
read as a weight would look like a graph. What is not read though nobody said so is told: `Unused`.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lpma.batch import MAX_VERTEX

from ..errors import SourceError
from ..records import Ids

SAMPLE_LINES = 100  # looked at to tell a header and the type of a time column

FIELDS = ("src", "dst", "weight", "time", "kind")
SKIP = "-"
ColumnNames = str | Sequence[str] | Mapping[str, str] | None

_ALIASES = {
    "src": {"src", "source", "from", "fromnodeid", "u", "user", "user_id"},
    "dst": {"dst", "target", "to", "tonodeid", "v", "destination", "item", "item_id"},
    "weight": {"weight", "w", "rating", "sign", "value"},
    "time": {"time", "t", "timestamp", "ts", "unixts"},
    "kind": {"kind", "op"},
}


@dataclass(frozen=True)
class Layout:
    """Where a text line keeps its fields."""

    places: Mapping[str, int]  # field → number of the column, from 0
    delimiter: str | None  # None: blanks
    whole_times: bool = True  # False: some times have a fraction, which is cut
    base: int = 0  # the smallest id: 1 in Matrix Market
    limit: int | None = MAX_VERTEX  # the largest id, after `base` was taken off; None: names
    mirror: bool = False  # an entry off the diagonal stands for its reverse too

    @property
    def dtype(self) -> np.dtype[Any]:
        types = {"weight": "f8", "time": "i8" if self.whole_times else "f8"}
        return np.dtype([(field, types.get(field, "i8")) for field in self.places])


@dataclass(frozen=True)
class Unused:
    """Columns of a file that are not read though nobody said so. columns: that would read them."""

    names: tuple[str, ...] = ()
    columns: str | None = None

    def __str__(self) -> str:
        text = f"not used: {', '.join(self.names)}"
        if self.columns is None:
            return text
        return f"{text}: --columns '{self.columns}' uses them ('-' skips one)"


def find_layout(
    sample: list[str], path: Path, columns: ColumnNames, delimiter: str | None, ids: Ids = "dense"
) -> tuple[Layout, int, Unused]:
    """The layout, how many header lines there are (0 or 1), and what is not used."""
    fields = [_split(line, delimiter) for line in sample]
    names = [field.strip().lower() for field in fields[0]]
    known = _places_by_name(names)
    given = columns.replace(",", " ").split() if isinstance(columns, str) else columns
    if given is not None and not isinstance(given, Mapping):
        places = {name: place for place, name in enumerate(given) if name != SKIP}
    elif given is None and len(names) in (2, 4):
        places = {field: place for place, field in enumerate(FIELDS[: len(names)])}
    else:
        places = {}
    header = _is_header(fields[0], places, known, ids)
    if isinstance(given, Mapping):
        if not header:
            raise SourceError(f"{path}: has no header line; name the columns in their order")
        by_name = {name: place for place, name in reversed(list(enumerate(names)))}
        places = {f: by_name[name.lower()] for f, name in given.items() if name.lower() in by_name}
    elif given is None and header:
        places = known
    elif not places:
        raise SourceError(
            f"{path}: {len(names)} columns and no header: say which they are, as in "
            "columns='src dst time' or 'src dst weight' ('-' skips one)"
        )
    if not {"src", "dst"} <= places.keys() <= set(FIELDS):
        first = sample[0].strip()[:60]
        found = f"columns {', '.join(places)}" if places else f"the header {first!r}"
        named = ids == "dense" and given is None
        raise SourceError(
            f"{path}: {found}: src and dst are needed, others are {', '.join(FIELDS[2:])}, and "
            f"'{SKIP}' skips one: say which they are, as in columns='src dst weight'"
            + (", and if vertices go by text, ids='mapped' (--ids mapped)" if named else "")
        )
    place = places.get("time")
    times = [line[place] for line in fields[header:] if place is not None and place < len(line)]
    whole = all("." not in time and "e" not in time.lower() for time in times)
    limit = None if ids == "mapped" else MAX_VERTEX
    unused = _unused(fields, header, places, len(given) if isinstance(given, Sequence) else 0)
    return Layout(places, delimiter, whole_times=whole, limit=limit), int(header), unused


def _places_by_name(names: list[str]) -> dict[str, int]:
    return {
        field: place
        for place, name in reversed(list(enumerate(names)))
        for field, known in _ALIASES.items()
        if name in known
    }


def _is_header(first: list[str], places: Mapping[str, int], known: Mapping[str, int],
               ids: Ids) -> bool:  # fmt: skip
    """Whether the first line names the columns. `places`: of the fields, as far as their order is
    told; `known`: where the line names them. Where any text may name a vertex, a line is a header
    if it names src and dst, or has no number where others have one."""
    if ids == "dense":
        return not all(_is_number(field) for field in first if field)
    if {"src", "dst"} <= known.keys() or not places:
        return not all(_is_number(field) for field in first if field)
    numbers = [place for field, place in places.items() if field not in ("src", "dst")]
    return any(place < len(first) and not _is_number(first[place]) for place in numbers)


def _unused(fields: list[list[str]], header: bool, places: Mapping[str, int], told: int) -> Unused:
    """The columns from the place `told` on that are in no place, and how they might be read."""
    width, sample = len(fields[0]), fields[-1]
    columns = [SKIP] * width
    for field, place in places.items():
        if place < width:
            columns[place] = field
    unused = [place for place in range(told, width) if columns[place] == SKIP]
    free = [field for field in ("weight", "time") if field not in places]
    for place in unused:
        if free and place < len(sample) and _is_number(sample[place]):
            columns[place] = free.pop(0)
    names = [fields[0][place].strip() if header else f"column {place + 1}" for place in unused]
    return Unused(tuple(names), " ".join(columns) if unused else None)


def _split(line: str, delimiter: str | None) -> list[str]:
    if delimiter is None:
        return line.split()
    return next(csv.reader([line.rstrip("\r")], delimiter=delimiter), [])


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
