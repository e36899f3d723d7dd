"""Which column of a text file is what.

Columns are found by `columns`, else by a header line's names, else by their number: two are src
dst, four are src dst weight time. Three are refused unless the caller says what they are, because a
time read as a weight would go unnoticed. Columns that are left out without the caller having said
so are reported: `Noticed`.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lpma.batch import MAX_VERTEX

from ...errors import SourceError
from ...types import Ids

SAMPLE_LINES = 100  # read to detect a header and the type of a time column

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
class Noticed:
    """What the first lines of a file showed that the caller should know.

    unused: columns that are left out without the caller having said so. uses: what would read them.
    header: the line that names the columns. first: the first line, if it is read as an edge between
    vertices named by text, as any header might be."""

    unused: tuple[str, ...] = ()
    uses: str | None = None
    header: str | None = None
    first: str | None = None

    def notes(self) -> list[str]:
        """The same in words."""
        notes = []
        if self.unused:
            uses = f": {self.uses}" if self.uses else ""
            notes.append(f"not used: {', '.join(self.unused)}{uses}")
        if self.first is not None:
            notes.append(
                f"the first line, {self.first!r}, is read as an edge: a header would name src and "
                "dst (or source and target, from and to, user and item)"
            )
        return notes


def find_layout(
    sample: list[str], path: Path, columns: ColumnNames, delimiter: str | None, ids: Ids = "dense"
) -> tuple[Layout, int, Noticed]:
    """The layout, how many header lines there are (0 or 1), and what was noticed."""
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
        found = f"the header {first!r}" if places is known else f"columns {', '.join(places)}"
        named = ids == "dense" and given is None
        raise SourceError(
            f"{path}: {found}: src and dst are needed, others are {', '.join(FIELDS[2:])}, and "
            f"'{SKIP}' skips one: say which they are, as in columns='src dst weight'"
            + (", and if vertices go by text, ids='mapped' (--names)" if named else "")
        )
    places = {field: places[field] for field in FIELDS if field in places}  # src is judged first
    place = places.get("time")
    times = [line[place] for line in fields[header:] if place is not None and place < len(line)]
    whole = all("." not in time and "e" not in time.lower() for time in times)
    limit = None if ids == "mapped" else MAX_VERTEX
    chosen = 0 if given is None or isinstance(given, Mapping) else len(given)
    noticed = _noticed(sample[0], fields, header, places, chosen)
    return Layout(places, delimiter, whole_times=whole, limit=limit), int(header), noticed


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
    known; `known`: where the line names them. If any text may name a vertex, a line is a header if
    it names src and dst, or has no number where others have one."""
    if ids == "dense":
        return not all(_is_number(field) for field in first if field)
    if {"src", "dst"} <= known.keys() or not places:
        return not all(_is_number(field) for field in first if field)
    numbers = [place for field, place in places.items() if field not in ("src", "dst")]
    return any(place < len(first) and not _is_number(first[place]) for place in numbers)


def _noticed(
    line: str, fields: list[list[str]], header: bool, places: Mapping[str, int], chosen: int
) -> Noticed:
    """REQUIRES: `places` of src and dst. chosen: how many columns the caller named."""
    first, sample, width = fields[0], fields[-1], len(fields[0])
    columns = [SKIP] * width
    for field, place in places.items():
        if place < width:
            columns[place] = field
    unused = [place for place in range(chosen, width) if columns[place] == SKIP]
    free = [field for field in ("weight", "time") if field not in places]
    for place in unused:
        if free and place < len(sample) and _is_number(sample[place]):
            columns[place] = free.pop(0)
    names = [first[place].strip() if header else f"column {place + 1}" for place in unused]
    ends = [first[places[end]] for end in ("src", "dst") if places[end] < width]
    text, line = not all(map(_is_number, ends)), line.strip()[:60]
    return Noticed(
        tuple(names),
        f"--columns '{' '.join(columns)}' uses them ('-' skips one)" if unused else None,
        line if header else None,
        line if text and not header else None,
    )


def _split(line: str, delimiter: str | None) -> list[str]:
    if delimiter is None:
        return line.split()
    try:
        return next(csv.reader([line.rstrip("\r")], delimiter=delimiter), [])
    except csv.Error as error:
        raise SourceError(
            f"a line cannot be cut into fields ({error}): lines end in LF or CR LF, fields hold at "
            "most 131,072 characters"
        ) from error


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
