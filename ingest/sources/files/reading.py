"""How a file is read: decided from its first rows and what the caller says, before it is read.

A `Reading` says in a line which column is what, so that a wrong guess is seen at once, and which
option would have it otherwise.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

import numpy as np

from lpma.batch.columns import MAX_VERTEX, MAX_WEIGHT

from ...errors import SourceError
from ...formats.kinds import FIELDS

SHOWN = {"src": "source", "dst": "target", "weight": "weight", "time": "time", "kind": "kind"}
SKIP = "-"
Column = str | int  # by its name or its number from 1
ColumnNames = str | Sequence[str] | Mapping[str, str] | None
Times = Literal["whole", "decimal", "dates"]

SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars", None: "blanks"}
PROMISED = {"csv": ",", "tsv": "\t", "text": None}  # by a file's name
MAX_SHOWN = 6  # names of columns in a message

# By what a header calls them; the first that is there counts.
ALIASES: dict[str, tuple[str, ...]] = {
    "src": ("src", "source", "from", "fromnodeid", "from_id", "source_id", "src_id", "u", "user",
            "user_id", "userid", "sender", "follower", "tail"),
    "dst": ("dst", "target", "to", "tonodeid", "to_id", "target_id", "dst_id", "v", "destination",
            "dest", "item", "item_id", "itemid", "receiver", "recipient", "followee", "head"),
    "weight": ("weight", "w", "rating", "sign", "value", "amount", "count", "score", "strength"),
    "time": ("time", "t", "timestamp", "ts", "unixts", "when", "date", "datetime", "created_at",
             "at", "event_time"),
    "kind": ("kind", "op"),
}  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """What the caller says about a file; None: guess.

    source, target, weight, time, kind: a column, by its name or its number from 1; weight and time
    also "none". separator: of the fields, " " for blanks. header: whether the first row names the
    columns. names: whether vertices go by names. columns: what the columns are in order, as in
    "src dst - time", or a map from field to name."""

    source: Column | None = None
    target: Column | None = None
    weight: Column | None = None
    time: Column | None = None
    header: bool | None = None
    separator: str | None = None
    names: bool | None = None
    columns: ColumnNames = None

    def by_field(self) -> dict[str, Column]:
        """The columns that were named, by field. Raises SourceError."""
        if isinstance(self.columns, Mapping):
            if wrong := sorted(set(self.columns) - set(FIELDS)):
                raise SourceError(f"{', '.join(wrong)}: fields are {', '.join(FIELDS)}")
            given: dict[str, Any] = dict(self.columns)
        else:
            named = zip(FIELDS, (self.source, self.target, self.weight, self.time), strict=False)
            given = {field: name for field, name in named if name is not None}
        for role, name in given.items():
            if not isinstance(name, str | int) or isinstance(name, bool):
                raise SourceError(
                    f"{SHOWN[role]} {name!r}: a column is given by its name or its number from 1, "
                    f"not as {type(name).__name__}"
                )
        return given

    def in_order(self) -> list[str] | None:
        """The fields of the columns in order, if they were given so."""
        if self.columns is None or isinstance(self.columns, Mapping):
            return None
        given = self.columns
        return given.replace(",", " ").split() if isinstance(given, str) else list(map(str, given))


@dataclass(frozen=True)
class Reading:
    """How a file is read.

    columns    what each column is called: by the header, else "column 1" and so on
    places     field → number of its column, from 0
    separator  of the fields; None: blanks
    header     the row that names the columns
    first      the first row, if it is read as an edge between vertices named by text, as any header
               might be
    named      whether vertices go by names; why: what made that so, if it was guessed
    guessed    whether `named` was guessed
    times      how times are written; seconds: the first, if they look like seconds since 1970
    unfit      column called like a field, but that holds something else → that field, a value
    base       the smallest id: 1 in Matrix Market; limit: the largest, after `base` was taken off
    directed   what the file says of its graph; None: nothing
    stored     its rows are the edges of a graph that was exported: one of weight 0 is an edge, too
    mirror     an entry off the diagonal stands for its reverse too
    numbers    for an end, the column that says which of its names are integers, as exports write it
    """

    path: str
    format: str
    columns: tuple[str, ...]
    places: Mapping[str, int]
    separator: str | None = None
    header: str | None = None
    first: str | None = None
    named: bool = False
    why: str = ""
    guessed: bool = False
    times: Times = "whole"
    seconds: str = ""
    unfit: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    decimal_point: str = "."
    base: int = 0
    limit: int = MAX_VERTEX
    directed: bool | None = None
    stored: bool = False
    mirror: bool = False
    chosen: int = 0  # how many columns the caller spoke of
    numbers: Mapping[str, str] = field(default_factory=dict)

    @property
    def max_weight(self) -> float:
        """The largest size of a weight. What a graph has stored may be a sum above MAX_WEIGHT."""
        return float(np.finfo(np.float32).max) if self.stored else MAX_WEIGHT

    @property
    def has_ids(self) -> bool:
        """Whether vertices that go by numbers could go by names as well: indices of a matrix
        cannot."""
        return self.format != "mtx"

    @property
    def unused(self) -> tuple[str, ...]:
        """Columns that are left out without the caller having said so."""
        used = set(self.places.values())
        return tuple(
            name for place, name in enumerate(self.columns)
            if place not in used and place >= self.chosen and name not in self.numbers.values()
        )  # fmt: skip

    def __str__(self) -> str:
        parts = [f"{self.columns[place]} → {self._shown(f)}" for f, place in self.places.items()]
        notes = []
        if self.format in PROMISED:
            if self.separator != PROMISED[self.format]:
                fields = SEPARATORS.get(self.separator, repr(self.separator))
                notes.append(f"{fields} between fields")
            if self.header is None:
                notes.append("no header")
        how = f" ({', '.join(notes)})" if notes else ""
        why = f" ({self.why})" if self.why else ""
        text = (
            f"reading {os.path.basename(self.path)}{how}: columns {', '.join(parts)}; vertices by "
        )
        text += ("name" if self.named else "number") + why
        return f"{text}; {said_unused(self.unused)}" if self.unused else text

    def _shown(self, field: str) -> str:
        if field == "time" and self.times == "dates":
            return "time (dates, as ms since 1970)"
        if field == "time" and self.times == "decimal":
            return "time (fractions are cut off)"
        return SHOWN[field]

    def notes(self, directed: bool) -> list[str]:
        """What the caller, whose graph is directed or not, may want to change."""
        found = []
        if self.first is not None:
            found.append(
                f"the first line, {self.first!r}, is read as an edge; if it is a header, say "
                "--header"
            )
        for name in self.unused:
            if name in self.unfit:
                place, value = self.unfit[name]
                what = (
                    "not a number" if place == "weight" else "neither a number nor an ISO 8601 date"
                )
                found.append(f"column {name} is not read as the {place}: {value[:40]!r} is {what}")
        if self.directed and not directed:
            found.append(
                f"{self.path} holds a directed graph: where it has an edge in both directions, the "
                "two are one undirected edge, and their weights are added up"
            )
        return found

    def facts(self) -> dict[str, Any]:
        """The same for a JSON document."""
        return {
            "header": self.header,
            "columns": {SHOWN[field]: self.columns[place] for field, place in self.places.items()},
            "by_name": self.named,
            "unused_columns": list(self.unused),
        }


def said_unused(names: Sequence[str]) -> str:
    """How many columns are not used, and the first of them."""
    more = ", …" if len(names) > MAX_SHOWN else ""
    plural = "s" if len(names) > 1 else ""
    return f"{len(names)} column{plural} unused ({', '.join(names[:MAX_SHOWN])}{more})"


def is_number(wanted: Column) -> bool:
    """Whether a caller may mean a column by its number."""
    return isinstance(wanted, int) or wanted.isdecimal()


def place_of(path: object, columns: Sequence[str], wanted: Column, field: str) -> int:
    """The number, from 0, of the column that a caller means. Raises SourceError listing those there
    are."""
    if isinstance(wanted, str):
        lowered = [name.lower() for name in columns]
        if wanted in columns:
            return columns.index(wanted)
        if wanted.lower() in lowered:
            return lowered.index(wanted.lower())
    if is_number(wanted) and 1 <= int(wanted) <= len(columns):
        return int(wanted) - 1
    raise SourceError(
        f"{path}: no column {wanted!r} for the {SHOWN[field]}: the columns are "
        f"{', '.join(map(repr, columns))}"
    )


def places_by_alias(columns: Iterable[str]) -> dict[str, int]:
    """Where a header names the fields."""
    names = [name.strip().lower().lstrip("#%").strip().replace(" ", "_") for name in columns]
    return {
        field: names.index(next(alias for alias in aliases if alias in names))
        for field, aliases in ALIASES.items()
        if any(alias in names for alias in aliases)
    }


def are_whole(values: Iterable[str]) -> bool:
    """Whether each is an integer in decimals."""
    return all(_digits(value).isascii() and _digits(value).isdecimal() for value in values)


def _digits(value: str) -> str:
    return value.strip().removeprefix("-").removeprefix("+")


def are_numbers(values: Iterable[str]) -> bool:
    """Whether each is a finite number."""
    return all(map(_is_number, values))


def _is_number(value: str) -> bool:
    try:
        return "_" not in value and math.isfinite(float(value))
    except ValueError:
        return False


def is_date(value: str) -> bool:
    """Whether this is a date or a time of ISO 8601."""
    value = value.strip()
    if len(value) < 8 or "-" not in value[:5]:
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True
