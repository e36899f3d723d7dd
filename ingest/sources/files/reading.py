"""How a file is read: decided from its first rows and what the caller says, before it is read.

A `Reading` says in a line which column is what, so that a wrong guess is seen at once, and which
option would have it otherwise.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal, Self, TypedDict

import numpy as np

from lpma.batch.columns import MAX_VERTEX, MAX_WEIGHT

from ...errors import PipelineError, SourceError
from ...fields import Field as Column
from ...fields import Fields, TimeUnit
from ...formats.kinds import FIELDS
from ...formats.times import UNITS, millisecond

_TYPE = re.compile(r"(?<=.):\w+(\[\]|\([^()]*\))?$|(?<=id)\([^()]*\)$")  # behind a name
_WHOLE = re.compile(r"[+-]?\d{1,20}(\.\d{0,20}([eE][+-]?\d{1,2})?|[eE][+-]?\d{1,2})", re.ASCII)
SHOWN = {"src": "source", "dst": "target", "weight": "weight", "time": "time", "kind": "kind"}
SKIP = "-"
EXACT = 2.0**53  # integers below this one are exact as floats
MISSING = r"\N"  # how databases write a value that is missing; so is an empty field
ColumnNames = str | Sequence[str] | Mapping[str, str] | None
Times = Literal["whole", "decimal", "dates"]

SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars", None: "blanks",
              " ": "single blanks"}  # fmt: skip
PROMISED = {"csv": ",", "tsv": "\t", "text": None}  # by a file's name
MAX_SHOWN = 6  # names of columns in a message

# By what a header calls them; the first that is there counts. Names of ends come in pairs.
ENDS = (
    ("src", "dst"), ("source", "target"), ("from", "to"), ("fromnodeid", "tonodeid"),
    ("from_id", "to_id"), ("source_id", "target_id"), ("src_id", "dst_id"), ("u", "v"),
    ("source", "destination"), ("source", "dest"), ("sender", "receiver"),
    ("sender", "recipient"), ("follower", "followee"), ("user", "item"), ("user_id", "item_id"),
    ("userid", "itemid"), (":start_id", ":end_id"), ("~from", "~to"),
)  # fmt: skip
ALIASES: dict[str, tuple[str, ...]] = {
    "src": tuple(dict.fromkeys(source for source, _ in ENDS)),
    "dst": tuple(dict.fromkeys(target for _, target in ENDS)),
    "weight": ("weight", "w", "rating", "sign", "value", "amount", "count", "score", "strength"),
    "time": ("time", "t", "timestamp", "ts", "unixts", "when", "date", "datetime", "created_at",
             "at", "event_time"),
}  # fmt: skip
EITHER_WAY = (("head", "tail"), ("subject", "object"))  # of which no order is agreed on
TWO_KINDS = {"item", "item_id", "itemid", "product", "movie", "movieid", "movie_id", "song",
             "artist", "book", "page", "group", "tag", "business"}  # fmt: skip
VERTEX_IDS = {"id", "~id", ":id", "nodeid", "node_id", "vertex_id"}  # of tables of vertices
KIND_NAMES = ("kind", "op", "operation")  # of columns that may say what each row does


class Arguments(TypedDict, total=False):
    """What functions that read a file take by keyword: see `read_edges`."""

    source: Column | None
    target: Column | None
    weight: Column | None
    time: Column | None
    kind: Column | None
    kinds: Mapping[str, str] | None
    time_unit: TimeUnit | None
    header: bool | None
    separator: str | None
    names: bool | None
    columns: ColumnNames
    decimal: str | None
    thousands: str | None
    bipartite: bool | None


@dataclass(frozen=True)
class Asked:
    """What the caller says about a file; None: guess.

    fields: a column for each, by its name or its number from 1. header: whether the first row names
    the columns. separator: of the fields, " " for blanks. names: whether vertices go by names.
    columns: what the columns are in order, as in "src dst - time", or a map from field to name.
    decimal, thousands: the marks within weights. bipartite: whether sources and targets are two
    kinds of vertices."""

    fields: Fields = field(default_factory=Fields)
    header: bool | None = None
    separator: str | None = None
    names: bool | None = None
    columns: ColumnNames = None
    decimal: str | None = None
    thousands: str | None = None
    bipartite: bool | None = None

    def __post_init__(self) -> None:
        for mark in (self.decimal, self.thousands):
            if mark is not None and (len(mark) != 1 or mark.isalnum()):
                raise SourceError(f"a mark within numbers is one character, not {mark!r}")
        if self.decimal is not None and self.decimal == self.thousands:
            raise SourceError(f"{self.decimal!r} cannot be the mark of decimals and of thousands")

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Self:
        """What these `Arguments` say. Raises SourceError; TypeError for one that is unknown."""
        said = {name: value for name, value in arguments.items() if value is not None}
        if unknown := said.keys() - Arguments.__annotations__.keys():
            raise TypeError(f"unexpected keyword argument {min(unknown)!r}")
        own = {name: said.pop(name) for name in cls.__annotations__.keys() & said}
        for role in said.keys() & SHOWN.values():
            _check_column(role, said[role])
        try:
            return cls(Fields(**said), **own)
        except PipelineError as error:
            raise SourceError(str(error)) from error

    def by_field(self) -> dict[str, Column]:
        """The columns that were named, by field. Raises SourceError."""
        if not isinstance(self.columns, Mapping):
            roles = self.fields.by_role()
            return {role: name for role in FIELDS if (name := roles[role]) is not None}
        if wrong := sorted(set(self.columns) - set(FIELDS)):
            raise SourceError(f"{', '.join(wrong)}: fields are {', '.join(FIELDS)}")
        for role, name in self.columns.items():
            _check_column(SHOWN[role], name)
        return dict(self.columns)

    def in_order(self) -> list[str] | None:
        """The fields of the columns in order, if they were given so."""
        if self.columns is None or isinstance(self.columns, Mapping):
            return None
        given = self.columns
        return given.replace(",", " ").split() if isinstance(given, str) else list(map(str, given))


def _check_column(role: str, name: object) -> None:
    if type(name) not in (str, int):
        raise SourceError(
            f"{role} {name!r}: a column is given by its name or its number from 1, not as "
            f"{type(name).__name__}"
        )


@dataclass(frozen=True)
class Reading:
    """How a file is read.

    columns    what each column is called: by the header, else "column 1" and so on
    places     field → number of its column, from 0
    separator  of the fields; None: blanks
    header     the row that names the columns; commented: it stands in a comment above the first row
    first      the first row, if it is read as an edge between vertices named by text, as any header
               might be
    named      whether vertices go by names; why: what made that so, if it was guessed
    guessed    whether `named` was guessed
    whole      whether ends are numbers of which some are written as 2.0 or 1e+05
    times      how times are written; since: the unit since 1970 that they look like, and one of
               them
    unit       of times, which become milliseconds; None: they stay as they are
    unfit      column called like a field, but that holds something else → that field, a value
    decimal_point, thousands  the marks within weights; thousands: "" for none
    kinds      the words of the column of kinds → numbers of `lpma.Kind`
    base       the smallest id: 1 in Matrix Market; limit: the largest, after `base` was taken off
    directed   what the file says of its graph; None: nothing
    stored     its rows are the edges of a graph that was exported: one of weight 0 is an edge, too
    mirror     an entry off the diagonal stands for its reverse too
    numbers    for an end, the column that says which of its names are integers, as exports write it
    bipartite  sources and targets are two kinds of vertices; left: how many sources, if it is
               known; right_limit: the largest target, if it is another than `limit`
    """

    path: str
    format: str
    columns: tuple[str, ...]
    places: Mapping[str, int]
    separator: str | None = None
    header: str | None = None
    commented: bool = False
    first: str | None = None
    named: bool = False
    why: str = ""
    guessed: bool = False
    whole: bool = False
    times: Times = "whole"
    since: tuple[str, str] | None = None
    unit: str | None = None
    unfit: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    decimal_point: str = "."
    thousands: str = ""
    kinds: Mapping[str, int] = field(default_factory=dict)
    base: int = 0
    limit: int = MAX_VERTEX
    directed: bool | None = None
    stored: bool = False
    mirror: bool = False
    chosen: int = 0  # how many columns the caller spoke of
    numbers: Mapping[str, str] = field(default_factory=dict)
    bipartite: bool = False
    left: int | None = None
    right_limit: int | None = None
    more: tuple[str, ...] = ()  # notes
    called: str = ""  # what the file is, if its name says otherwise

    @property
    def max_weight(self) -> float:
        """The largest size of a weight. What a graph has stored may be a sum above MAX_WEIGHT."""
        return float(np.finfo(np.float32).max) if self.stored else MAX_WEIGHT

    @property
    def has_ids(self) -> bool:
        """Whether vertices that go by numbers could go by names as well: indices from 1 cannot."""
        return self.base == 0

    def of_sides(self, left: int | None) -> Reading:
        """The same of an export whose graph had so many ids on its left side, if it was bipartite.
        By name, the left side is told by the edges, as it is in a file of two kinds."""
        if left is None or (self.named and self.mirror):
            return self
        return replace(self, bipartite=True, left=None if self.named else left)

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
        if self.called:
            notes.append(self.called)
        if self.base and not self.named:
            notes.append(f"ids from {self.base}, as 0 and on")
        if self.format in PROMISED:
            if self.separator != PROMISED[self.format]:
                fields = SEPARATORS.get(self.separator, repr(self.separator))
                notes.append(f"{fields} between fields")
            if self.header is None:
                notes.append("no header")
            if self.commented:
                notes.append("its header in a comment")
        if self.decimal_point != "." or self.thousands:
            notes.append(f"decimal mark {self.decimal_point!r}")
        if self.thousands:
            notes.append(f"{self.thousands!r} between thousands")
        how = f" ({', '.join(notes)})" if notes else ""
        why = f" ({self.why})" if self.why else ""
        text = (
            f"reading {os.path.basename(self.path)}{how}: columns {', '.join(parts)}; vertices by "
        )
        text += ("name" if self.named else "number") + why
        text += ", of two kinds" if self.bipartite else ""
        return f"{text}; {said_unused(self.unused)}" if self.unused else text

    def _shown(self, field: str) -> str:
        if field == "time" and self.times == "dates":
            return "time (dates, as ms since 1970)"
        if field == "time" and self.unit is not None:
            return f"time (in {UNITS[self.unit][1]}, as ms)" if self.unit != "ms" else "time (ms)"
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
            elif name.lower() in KIND_NAMES:
                found.append(f"column {name} is not read: --kind {name} has it say what a row does")
        if self.since is not None and self.unit is None and self.since[0] != "ms":
            unit, value = self.since
            found.append(
                f"times such as {value} look like {UNITS[unit][1]} since 1970 and stay as they "
                f"are: --time-unit {unit} makes them milliseconds, as windows have them"
            )
        ends = [self.columns[self.places[end]].strip().lower() for end in ("src", "dst")]
        if not self.bipartite and not TWO_KINDS.isdisjoint(ends):
            found.append(
                f"columns {ends[0]} and {ends[1]} may be two kinds of vertices, of which equal "
                f"{'names' if self.named else 'numbers'} are one vertex here: --bipartite keeps "
                "them apart"
            )
        found += self.more
        if self.directed and not directed:
            found.append(
                f"{self.path} holds a directed graph: where it has an edge in both directions, the "
                "two are one undirected edge, and their weights are added up"
            )
        return found

    def facts(self) -> dict[str, Any]:
        """The same for a JSON document."""
        return {
            "header": self.header and self.header[:60],
            "columns": {SHOWN[field]: self.columns[place] for field, place in self.places.items()},
            "by_name": self.named,
            "unused_columns": list(self.unused),
        }


def reading_of_indices(
    path: object,
    format: str,
    columns: tuple[str, ...],
    size: int,
    asked: Asked,
    first: int = 0,
    **more: Any,
) -> Reading:
    """The reading of a file whose columns from `first` on are, by its format, the ends, counted
    from 1 up to `size`, and a weight, if there is one. more: as Reading has it. Raises SourceError
    if the caller names columns."""
    if said := {name for name in asked.by_field().values() if name != "none"}:
        raise SourceError(
            f"{path}: no column {min(map(str, said))!r}: a file of {format} says itself what its "
            "numbers are: name no columns"
        )
    places = dict(zip(("src", "dst", "weight"), range(first, len(columns)), strict=False))
    if asked.fields.weight == "none":
        places.pop("weight", None)
    return Reading(
        str(path), format, columns, places, base=1, limit=min(MAX_VERTEX, size - 1),
        named=bool(asked.names), chosen=first, **more,
    )  # fmt: skip


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


def plain_names(columns: Iterable[str]) -> list[str]:
    """The names of a header as ALIASES has them, without the types that Neo4j and Neptune add, as
    in weight:double and :START_ID(Person)."""
    names = [name.strip().lower().lstrip("#%").strip().replace(" ", "_") for name in columns]
    return [_TYPE.sub("", name) for name in names]


def places_by_alias(columns: Iterable[str]) -> dict[str, int]:
    """Where a header names the fields. Of an end that several columns might be, nothing."""
    names = plain_names(columns)
    found = {
        field: names.index(next(alias for alias in aliases if alias in names))
        for field, aliases in ALIASES.items()
        if any(alias in names for alias in aliases)
    }
    several = any(sum(a in names for a in ALIASES[end]) > 1 for end in ("src", "dst"))
    if several:
        pairs = [(u, v) for u, v in ENDS if u in names and v in names]
        found = {field: place for field, place in found.items() if field not in ("src", "dst")}
        if len(pairs) == 1:
            found |= dict(zip(("src", "dst"), map(names.index, pairs[0]), strict=True))
    return found


def either_way(columns: Iterable[str]) -> tuple[str, str] | None:
    """The two columns of a header that are an edge's ends in an order that nobody agrees on."""
    names = plain_names(columns)
    return next((pair for pair in EITHER_WAY if set(pair) <= set(names)), None)


def whole_text(value: str) -> str:
    """A whole number that is written with a fraction or an exponent, as 2.0 or 1e+05, in decimals;
    any other text as it is, and so what was a float too large to be exact."""
    if not _WHOLE.fullmatch(value):
        return value
    number = Decimal(value)
    whole = number == number.to_integral_value() and abs(number) < EXACT
    return str(int(number)) if whole else value


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
    if len(value.strip()) < 8 or "-" not in value.strip()[:5]:
        return False
    try:
        millisecond(value)
    except ValueError:
        return False
    return True
