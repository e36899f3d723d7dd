"""The edge feed as records: what each version of a graph changed. `docs/reference/format.md` is the
specification.

A version is one record, or several *parts* if it is large. A reader finds its place by three
fields: `run`, which changes only when the feed begins anew; `version`, which rises by one in a run;
and `part`, which rises in a version. Each part says what the whole graph is after its version, so
that a copy of the graph can be held against the feed wherever reading begins.

Edges and names are columns, of msgpack or, on a line of a file, as lists of JSON. A feed of rows
has one edge a part, as an object of JSON. `decode_changes` reads both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import msgpack
import numpy as np

from lpma import Change

from ..errors import RecordError
from ..types import Array
from .msgpack import binary, integer, number, only_fields, short_text, unpack
from .names import field_names, name_fields, names_of, read_names

ChangesFormat = Literal["columns", "json"]

MAX_CHANGES_BYTES = 1_000_000  # brokers take records of 1 MiB unless they are told otherwise
MAX_CHANGES_ROWS = 1 << 16
MAX_CHANGES_LINE_BYTES = 6 * MAX_CHANGES_BYTES
WORDS = {
    Change.INSERTED: "inserted", Change.REMOVED: "removed", Change.CHANGED: "changed",
    Change.VERTEX_ADDED: "vertex-added", Change.VERTEX_REMOVED: "vertex-removed",
}  # fmt: skip

_CHANGES = {word: change for change, word in WORDS.items()}
_HEAD_BYTES = 1 << 10  # of a part beside its columns, at most
_ROW_BYTES = 17  # of a row beside its ends
_NAME_BYTES = 5  # of a text beside its bytes
_MOST_VERTEX = 2**32 - 2
_MAX_FIELDS = 32
_PLACE = ("run", "version", "part", "parts", "stamp", "graph", "updated", "edges", "digest")
_HEAD = frozenset({*_PLACE, "absent", "first"})
_NEW = field_names("names")
_COLUMNS = frozenset({"rows", "change", "weight", "time"}) | field_names("src") | field_names("dst")
_NONE = np.empty(0, np.uint32)


class GraphFacts(NamedTuple):
    """What a graph was made as, which every copy of it has to be, too."""

    directed: bool
    weights: str | None  # "float32" or "float64"
    times: bool
    names: bool

    def __str__(self) -> str:
        """
        >>> str(ingest.formats.changes.GraphFacts(True, "float32", True, False))
        'directed float32 times'
        """
        given = "directed" if self.directed else "undirected", self.weights
        kept = "times" if self.times else None, "names" if self.names else None
        return " ".join(filter(None, (*given, *kept)))

    @classmethod
    def of(cls, graph: Any) -> GraphFacts:
        """Those of an `lpma.Graph`."""
        dtype = graph.weight_dtype
        weights = None if dtype is None else dtype.name
        return cls(graph.directed, weights, graph.has_times, graph.names is not None)

    @classmethod
    def read(cls, text: str) -> GraphFacts:
        """What `str` gave. Raises RecordError."""
        words = text.split()
        weights = next((word for word in words if word in ("float32", "float64")), None)
        found = cls("directed" in words, weights, "times" in words, "names" in words)
        if str(found) != text:
            raise RecordError(f"graph: {text!r} says of no graph how it was made")
        return found


@dataclass(frozen=True)
class EdgeChanges:
    """What one version changed, or a part of it: first vertices that were removed, then all else.
    A part has rows, or names, or neither.

    >>> log = ingest.SqliteLog("log")
    >>> _ = log.produce("updates", ingest.encode_updates([1, 2], [2, 3], time=[5, 6]))
    >>> found = []
    >>> with ingest.Pipeline(log, lpma.Graph(device="cpu"), changes=found.append) as pipeline:
    ...     _ = pipeline.run("end")
    >>> [(part.version, part.src.tolist(), part.dst.tolist()) for part in found]
    [(0, [], []), (1, [1, 2], [2, 3])]
    """

    run: str
    version: int  # of the graph that it led to
    part: int  # place among the parts of this version, from 0
    parts: int
    stamp: int  # of the version's last operation, ms since 1970
    graph: GraphFacts
    updated: int  # `Graph.time` after it
    edges: int  # `Graph.num_edges` after it
    digest: int  # of all edges after it: see `ingest/feed/content.py`
    absent: int = _MOST_VERTEX  # an id without an edge to itself
    change: Array = field(default_factory=lambda: _NONE)  # uint8[n]: each an `lpma.Change`
    src: Array = field(
        default_factory=lambda: _NONE
    )  # uint32[n], or names; of a vertex, this vertex
    dst: Array = field(default_factory=lambda: _NONE)  # likewise; of a vertex, again this vertex
    weight: Array | None = None  # float32[n] or float64[n]; None: the graph has none
    time: Array | None = None  # int64[n]; None likewise
    names: Array | None = None  # that got the next ids with this version, from id `first` on
    first: int = 0

    @property
    def rows(self) -> int:
        """How many edges and vertices changed."""
        return len(self.change)

    @property
    def pieces(self) -> int:
        """How many it can be cut into at most."""
        return max(self.rows, 0 if self.names is None else len(self.names))

    @property
    def place(self) -> tuple[int, int]:
        """(version, part), which rises within a run."""
        return self.version, self.part

    @property
    def is_last(self) -> bool:
        """Whether the version ends with it."""
        return self.part == self.parts - 1

    @property
    def alert(self) -> None:
        """A feed has no alerts."""
        return None


# Cutting -------------------------------------------------------------------------------------


def parts_of(changes: EdgeChanges, rows: int = MAX_CHANGES_ROWS) -> list[EdgeChanges]:
    """What a whole version changed, in parts that a log takes, of at most so many rows."""
    names, most = changes.names, MAX_CHANGES_BYTES - _HEAD_BYTES
    found: list[EdgeChanges] = []
    bare = replace(changes, names=None)
    empty = _cut(bare, slice(0, 0))
    if names is not None and len(names):
        step = min(MAX_CHANGES_ROWS, most // _width(names))
        for start in range(0, len(names), step):
            some, first = names[start : start + step], changes.first + start
            found.append(replace(empty, names=some, first=first))
    width = _ROW_BYTES + _width(changes.src) + _width(changes.dst)
    step = min(rows, most // width)
    found += [_cut(bare, slice(at, at + step)) for at in range(0, changes.rows, step)]
    return _numbered(found or [bare])


def within(parts: Sequence[EdgeChanges], max_bytes: int) -> list[EdgeChanges]:
    """All parts of one version, cut into ones of at most about so many bytes; into single rows or
    names where even these have more."""
    return _numbered([piece for part in parts for piece in _halved(part, max_bytes)])


def _halved(part: EdgeChanges, max_bytes: int) -> Iterator[EdgeChanges]:
    count = part.pieces
    if count <= 1 or len(encode_changes(part)) <= max_bytes:
        yield part
        return
    half = -(-count // 2)
    for piece in (slice(0, half), slice(half, count)):
        if part.names is None:
            yield from _halved(_cut(part, piece), max_bytes)
        else:
            first = part.first + piece.start
            some = replace(part, names=part.names[piece], first=first)
            yield from _halved(some, max_bytes)


def _numbered(parts: Sequence[EdgeChanges]) -> list[EdgeChanges]:
    return [replace(each, part=i, parts=len(parts)) for i, each in enumerate(parts)]


def _cut(changes: EdgeChanges, rows: slice) -> EdgeChanges:
    weight, time = (None if c is None else c[rows] for c in (changes.weight, changes.time))
    return replace(
        changes, change=changes.change[rows], src=changes.src[rows], dst=changes.dst[rows],
        weight=weight, time=time,
    )  # fmt: skip


def _width(column: Array) -> int:
    """Bytes of one vertex of a column at most."""
    if column.dtype != object:
        return 8
    longest = max((len(str(name).encode()) for name in column.tolist()), default=0)
    return _NAME_BYTES + longest


# Columns of msgpack --------------------------------------------------------------------------


def encode_changes(changes: EdgeChanges) -> bytes:
    """The bytes of a part, as columns. Raises RecordError.

    >>> part = ingest.EdgeChanges("5f0c", 7, 0, 1, 9, ingest.formats.changes.GraphFacts.read(
    ...     "directed times"), 6, 0, 0)
    >>> ingest.decode_changes(ingest.formats.changes.encode_changes(part)).version
    7
    """
    fields = _head(changes)
    if changes.rows:
        rows = changes.rows
        if rows > MAX_CHANGES_ROWS:
            raise RecordError(f"{rows} rows: a part has at most {MAX_CHANGES_ROWS}")
        fields |= {"rows": rows, "change": changes.change.astype(np.uint8).tobytes()}
        fields |= name_fields("src", names_of(changes.src, "src"))
        fields |= name_fields("dst", names_of(changes.dst, "dst"))
        if changes.weight is not None:
            fields["weight"] = changes.weight.astype(f"<{changes.weight.dtype.str[1:]}").tobytes()
        if changes.time is not None:
            fields["time"] = changes.time.astype("<i8").tobytes()
    if changes.names is not None:
        fields |= {"first": changes.first, "named": len(changes.names)}
        fields |= name_fields("names", names_of(changes.names, "names"))
    data: bytes = msgpack.packb(fields)
    return data


def _head(changes: EdgeChanges) -> dict[str, Any]:
    fields: dict[str, Any] = {name: getattr(changes, name) for name in _PLACE}
    fields |= {"graph": str(changes.graph), "digest": f"{changes.digest:016x}"}
    if changes.absent != _MOST_VERTEX:
        fields["absent"] = changes.absent
    return fields


def decode_changes(data: bytes) -> EdgeChanges:
    """The part in `data`, columns or an object of JSON. Raises RecordError only.

    >>> ingest.decode_changes(b"x")
    Traceback (most recent call last):
    ingest.errors.RecordError: changes are a map
    """
    if isinstance(data, bytes) and data[:1] == b"{":
        return decode_changes_line(data)
    fields = unpack(data, MAX_CHANGES_BYTES, max_fields=_MAX_FIELDS)
    if not isinstance(fields, dict):
        raise RecordError("changes are a map")
    only_fields(fields, _HEAD | _COLUMNS | _NEW | {"named"})
    found = _checked(fields)
    if "rows" in fields:
        rows = integer(fields, "rows", 1, MAX_CHANGES_ROWS)
        found = replace(
            found,
            change=binary(fields, "change", "u1", rows),
            src=read_names(_only(fields, "src"), "src", rows, rows),
            dst=read_names(_only(fields, "dst"), "dst", rows, rows),
            weight=binary(fields, "weight", "f", rows) if "weight" in fields else None,
            time=binary(fields, "time", "<i8", rows) if "time" in fields else None,
        )
    if "named" in fields:
        count = integer(fields, "named", 1, MAX_CHANGES_ROWS)
        found = replace(found, names=read_names(_only(fields, "names"), "names", count, count))
    return _sound(found)


def _only(fields: dict[Any, Any], name: str) -> dict[Any, Any]:
    return {key: fields[key] for key in field_names(name) & fields.keys()}


def _checked(fields: dict[Any, Any]) -> EdgeChanges:
    parts = integer(fields, "parts", 1, 2**31 - 1)
    absent = integer(fields, "absent", 0, _MOST_VERTEX) if "absent" in fields else _MOST_VERTEX
    return EdgeChanges(
        short_text(fields, "run"),
        integer(fields, "version", 0, 2**63 - 1),
        integer(fields, "part", 0, parts - 1),
        parts,
        integer(fields, "stamp", -(2**63), 2**63 - 1),
        GraphFacts.read(short_text(fields, "graph")),
        integer(fields, "updated", -(2**63), 2**63 - 1),
        integer(fields, "edges", 0, 2**63 - 1),
        _digest(short_text(fields, "digest")),
        absent,
        first=integer(fields, "first", 0, _MOST_VERTEX) if "first" in fields else 0,
    )


def _digest(text: str) -> int:
    if not re.fullmatch("[0-9a-f]{16}", text):
        raise RecordError(f"digest: expected 16 digits of hex, got {text!r}")
    return int(text, 16)


def _sound(changes: EdgeChanges) -> EdgeChanges:
    """The same, if a copy of the graph can apply it. Raises RecordError."""
    facts = changes.graph
    if not changes.rows:
        return changes
    if int(changes.change.max()) > max(Change):
        raise RecordError(f"change: 0 to {int(max(Change))} are changes")
    for name, column, has in (
        ("weight", changes.weight, facts.weights is not None), ("time", changes.time, facts.times),
    ):  # fmt: skip
        if (column is not None) != has:
            raise RecordError(f"{name}: a graph that is {facts} {'has' if has else 'lacks'} it")
    if changes.weight is not None:
        if changes.weight.dtype.name != facts.weights:
            raise RecordError(f"weight: expected {facts.weights}, got {changes.weight.dtype.name}")
        if not bool((changes.weight >= 0).all()):
            raise RecordError("weight: that of an edge is 0 or more")
    if not facts.names:
        for name, ids in (("src", changes.src), ("dst", changes.dst)):
            if ids.dtype.kind != "u" or int(ids.max()) > _MOST_VERTEX:
                raise RecordError(f"{name}: ids go from 0 to {_MOST_VERTEX}")
    return changes


# JSON ----------------------------------------------------------------------------------------


def changes_line(changes: EdgeChanges) -> bytes:
    """A part as a line of JSON, with lists for columns, without its end."""
    return _json(_head(changes) | _lists(changes))


def changes_row(changes: EdgeChanges) -> bytes:
    """A part of one row as an object of JSON, without an end. REQUIRES: it has one, or none."""
    lists = _lists(changes)
    if changes.rows:
        lists = {name: value[0] for name, value in lists.items()}
    return _json(_head(changes) | lists)


def _lists(changes: EdgeChanges) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if changes.rows:
        fields["change"] = [WORDS[Change(each)] for each in changes.change.tolist()]
        for name in ("src", "dst", "weight", "time"):
            column = getattr(changes, name)
            if column is not None:
                fields[name] = column.tolist()
    if changes.names is not None:
        fields |= {"first": changes.first, "names": changes.names.tolist()}
    return fields


def _json(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()


_BEGINS = b'{"run":"'


def begins_changes_line(data: bytes) -> bool:
    """Whether `data` is the beginning of a line of a feed, or all of one."""
    return _BEGINS.startswith(data) or data.startswith(_BEGINS)


def decode_changes_line(line: bytes) -> EdgeChanges:
    """The part in an object of JSON: of columns as lists, or of one row. Raises RecordError
    only."""
    try:
        fields = json.loads(line)
    except (TypeError, ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise RecordError("a line of a feed is a JSON object")
    only_fields(fields, _HEAD | {"change", "src", "dst", "weight", "time", "names"})
    found = _checked(fields)
    if "change" in fields:
        lists = {name: _list(fields[name]) for name in ("change", "src", "dst", "weight", "time")
                 if name in fields}  # fmt: skip
        count = len(lists["change"])
        if any(len(column) != count for column in lists.values()) or not lists.keys() >= _ENDS:
            raise RecordError(f"change: expected columns of {count} values, src and dst among them")
        found = replace(
            found,
            change=np.array([_change(word) for word in lists["change"]], np.uint8),
            src=names_of(lists["src"], "src"),
            dst=names_of(lists["dst"], "dst"),
            weight=_weights(lists, found.graph),
            time=_times(lists),
        )
    if "names" in fields:
        found = replace(found, names=names_of(_list(fields["names"]), "names"))
    return _sound(found)


_ENDS = {"src", "dst"}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _change(word: Any) -> Change:
    if not isinstance(word, str) or word not in _CHANGES:
        raise RecordError(f"change: expected one of {', '.join(_CHANGES)}")
    return _CHANGES[word]


def _weights(lists: dict[str, list[Any]], facts: GraphFacts) -> Array | None:
    if "weight" not in lists:
        return None
    return np.array([number(each, "weight") for each in lists["weight"]], facts.weights)


def _times(lists: dict[str, list[Any]]) -> Array | None:
    if "time" not in lists:
        return None
    return np.array([integer({"time": each}, "time", -(2**63), 2**63 - 1)
                     for each in lists["time"]], np.int64)  # fmt: skip
