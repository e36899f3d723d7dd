"""Many change events at once: those that set or delete one edge become columns.

Idea: as in `../row_reader.py`, a decoder is made of the topic's mapping. It reads `op`, and of
`before` and `after` the columns that are mapped, and passes over the rest; of the key it checks
that it has the columns that the table's key had before. Then each event is told by its values
alone: what is read or created sets the edge of `after`; an update does if `before` has the same
ends, or none and the key has them; a deletion deletes the edge of `before`.

What is read here `ChangeReader` reads with the same result. What is left to it: a changed end, an
end in the key alone, NULL, or 0 and "" where a database may mean that it does not know, MongoDB's
rows, whatever is no change of a row, whatever is bad. Where rows are remembered it is enough to
know what a row is now, so an update is read like an insertion, and a deletion is left.

There are four forms of values, the envelope and the flattened row, each with its schema and
without. A topic mostly has one, whose decoder reads all lines at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Raw

from lpma.batch.columns import MAX_VERTEX

from ...errors import RecordError
from ...fields import Debezium
from ...types import Values
from ..mapped import JSON, MAX_MAPPED_BYTES, REFUSED
from ..row_reader import LEFT, NOTHING, FieldTree, RowForm, Stretch, as_lines, nested, overlap
from ..times import in_ms
from .changes import FLAT_DELETED, FLAT_OP, TABLE_PARTS, ChangeReader, key_text, table_text
from .values import (
    NO_TYPES,
    UNAVAILABLE,
    ColumnType,
    Types,
    float_weight_of,
    is_exact,
    is_unavailable,
    time_of,
    types_of,
    vertex_of,
    weight_of,
)

_SETS = {"c": True, "r": True, "u": True, "d": False}
_INSERTIONS = ("c", "r")
_NOT_KNOWN = (None, 0, "")  # of an end: what databases put where they do not know it
_SCALAR = int | float | str | bool


class ChangeRows:
    """Reads the change events of one topic. reader: reads what is left. remembers: whether its rows
    are remembered, for their sums."""

    def __init__(
        self, table: Debezium, names: bool, topic: str, is_alone: bool, directed: bool = True,
        has_partitions: bool = False,
    ) -> None:  # fmt: skip
        self.reader = reader = ChangeReader(table, names, topic, is_alone, directed, has_partitions)
        fields = reader.table.fields
        self._forms: list[_Form] = []
        self._keys = _Keys(reader)
        self._of_edges = not table.are_vertices
        self.remembers = table.on_repeat == "sum"
        if overlap(fields) or reader.is_of_mongo:
            return
        vertex: Any = int | str if names else Annotated[int, Meta(ge=0, le=MAX_VERTEX)]
        made = [_envelope(reader, vertex), _flat(reader, vertex)]
        self._forms = [form for one in made for form in (one, one.with_schema())]
        sets, removes = map(int, reader.kinds)
        self._codes = {True: sets, False: removes}
        self._columns = RowForm(
            JSON.decoder(int).decode, {}, names, {None: sets},
            default_weight=fields.default_weight,
        )  # fmt: skip

    def stretches(self, values: Values) -> Iterator[Stretch]:
        """All of `values`, in order. REQUIRES: there is one."""
        if not self._forms:
            yield Stretch(0, len(values))
            return
        keys = self._keys.read(values)
        lines = as_lines(values)
        for form in self._forms if lines is not None and _is_utf8(lines) else ():
            try:
                rows = form.decode_lines(lines)
            except REFUSED:
                continue
            if len(rows) == len(values):
                yield from self._read(form, rows, keys, 0)
                self._forms.remove(form)  # tried first the next time
                self._forms.insert(0, form)
                return
        start = 0
        for one, group in groupby(map(self._decoded, values), itemgetter(0)):
            rows = [row for _, row in group]
            stop = start + len(rows)
            if one is None:
                yield Stretch(start, stop)
            else:
                yield from self._read(one, rows, keys[start:stop], start)
            start = stop

    def row_keys(self, keys: Values) -> list[str]:
        """What tells rows apart, of keys that were read: see `ChangeReader.row_key`."""
        return self._keys.texts(keys)

    def _decoded(self, value: bytes) -> tuple[_Form | None, Any]:
        """The form that reads a record, and what it reads; None for one that is left."""
        if len(value) <= MAX_MAPPED_BYTES and not JSON.nests_too_deeply(value) and _is_utf8(value):
            for form in self._forms:
                with suppress(*REFUSED):
                    return form, form.decode(value)
        return None, None

    def _read(
        self, form: _Form, rows: list[Any], keys: Sequence[int], start: int
    ) -> Iterator[Stretch]:
        """The events of these rows, which the records from number `start` on have."""
        if not form.has_schema:
            yield from self._events(form, rows, keys, {}, start)
            return
        at = 0
        for schema, group in groupby(rows, lambda row: bytes(row.schema)):
            part = [row.payload for row in group]
            stop = at + len(part)
            types = None
            with suppress(RecordError):
                types = types_of(schema)
            if types is None:
                yield Stretch(start + at, start + stop)
            else:
                yield from self._events(form, part, keys[at:stop], types, start + at)
            at = stop

    def _events(
        self, form: _Form, rows: list[Any], keys: Sequence[int], types: Any, start: int
    ) -> Iterator[Stretch]:
        """The same of events whose schema says these types."""
        reader = self.reader
        sets, picked, moved = form.open(rows)
        part = _Part(sets, *(types.get(name, NO_TYPES) for name in form.parts))
        if _BAD in keys:
            part.leave(at for at, key in enumerate(keys) if key == _BAD)
        src = part.read(form.src(picked), str(reader.source), vertex_of)
        dst: list[Any] = [None] * len(rows)
        if not reader.table.are_vertices:
            dst = part.read(form.dst(picked), str(reader.target), vertex_of)
        for ends in (src,) if reader.table.are_vertices else (src, dst):
            if None in ends or UNAVAILABLE in ends:
                part.leave(at for at, end in enumerate(ends) if end in (None, UNAVAILABLE))
        if self.remembers:
            part.leave(at for at in moved if not sets[at])
            moved = []
        are_typed = not part.of_deletion.keys().isdisjoint(reader.ends)
        part.leave(at for at in moved if at not in part.left and not self._is_plain(
            form, rows[at], sets[at], keys[at], src[at], dst[at], are_typed
        ))  # fmt: skip
        values: dict[str, list[Any]] = {"src": src, "dst": dst}
        if reader.weight is not None and not reader.table.are_vertices:
            values["weight"] = self._weights(form.weight(picked), part)
        if reader.time is not None:
            of = rows if reader.event_unit is not None else picked
            values["time"] = self._times(form.time(of), part)
        codes = [self._codes[bool(is_set)] for is_set in sets]
        for at in part.left:
            codes[at] = LEFT
        values["kind"] = codes
        stretches = self._columns.of_values(values, start, len(rows))
        if not self.remembers:
            yield from stretches
            return
        tables = form.tables(rows)
        for each in stretches:
            yield each._replace(tables=tables[each.start - start : each.stop - start])

    def _is_plain(
        self, form: _Form, row: Any, is_set: bool | None, key: int, src: Any, dst: Any,
        are_typed: bool,
    ) -> bool:  # fmt: skip
        """Whether an event that is no insertion sets or deletes this one edge. are_typed: whether
        ends of `before` are yet to be read by their types."""
        of_edges = self._of_edges
        before = form.before(row)
        if is_set and before is None:
            return key == _WITH_ENDS
        if src in _NOT_KNOWN or (of_edges and dst in _NOT_KNOWN) or is_set is None:
            return False
        if not is_set:
            return True
        if are_typed:
            return False
        return bool(form.src([before])[0] == src and (not of_edges or form.dst([before])[0] == dst))

    def _weights(self, found: list[Any], part: _Part) -> list[Any]:
        """Of rows that are set; one that is not there is left."""
        for at, is_set in enumerate(part.sets) if False in part.sets else ():
            if not is_set:
                found[at] = 1.0
        if None in found:
            part.leave(at for at, value in enumerate(found) if value is None)
        said = part.of_set.get(str(self.reader.weight))
        read = float_weight_of if self.remembers else weight_of
        if said is not None or str in set(map(type, found)):
            for at, value in enumerate(found):
                if value is not None and part.sets[at]:
                    found[at] = part.converted(at, value, read, said)
        if self.remembers:
            part.leave(at for at, weight in enumerate(found)
                       if weight is not None and not is_exact(weight))  # fmt: skip
        return found

    def _times(self, found: list[Any], part: _Part) -> list[Any]:
        """In ms; of a row that is set and has none of its own, it is left."""
        reader, name = self.reader, str(self.reader.time)
        of_event = reader.event_unit
        unit = of_event or reader.unit
        if of_event is None and None in found:
            part.leave(at for at, value in enumerate(found) if value is None and part.sets[at])
        is_typed = of_event is None and (name in part.of_set or name in part.of_deletion)
        if is_typed or unit != "ms" or str in set(map(type, found)):
            read = partial(_time_of, unit=unit, of_event=bool(of_event))
            for at, value in enumerate(found):
                if value is not None:
                    said = None if of_event else part.type_of(name, at)
                    found[at] = part.converted(at, value, read, said)
        return found


def _time_of(value: Any, said: ColumnType | None, *, unit: str, of_event: bool) -> Any:
    return in_ms(value, unit) if of_event else time_of(value, unit, said)


def _is_utf8(data: bytes) -> bool:
    """A decoder passes over what is none; `ChangeReader` refuses it in the name of a field."""
    try:
        return data.isascii() or bool(str(data, "utf-8"))
    except UnicodeDecodeError:
        return False


class _Part:
    """Events that are read together. sets: whether each sets its edge. of_set, of_deletion: what
    the schema says of their rows. left: the numbers of those that are left."""

    def __init__(self, sets: list[Any], of_set: Types, of_deletion: Types) -> None:
        self.sets, self.of_set, self.of_deletion = sets, of_set, of_deletion
        self.left: set[int] = set()

    def leave(self, numbers: Iterable[int]) -> None:
        self.left.update(numbers)

    def type_of(self, name: str, at: int) -> ColumnType | None:
        return (self.of_set if self.sets[at] else self.of_deletion).get(name)

    def read(
        self, found: list[Any], name: str, read: Callable[[Any, ColumnType | None], Any]
    ) -> list[Any]:
        """The values of a column as its types have them."""
        if name in self.of_set or name in self.of_deletion:
            for at, value in enumerate(found):
                if (said := self.type_of(name, at)) is not None and value is not None:
                    found[at] = self.converted(at, value, read, said)
        return found

    def converted(
        self, at: int, value: Any, read: Callable[[Any, ColumnType | None], Any],
        said: ColumnType | None,
    ) -> Any:  # fmt: skip
        """What `read` makes of one; an event of which it makes nothing is left."""
        try:
            if not is_unavailable(value):
                return read(value, said)
        except RecordError:
            pass
        self.left.add(at)
        return None


# Keys ----------------------------------------------------------------------------------------

_BAD, _GOOD, _WITH_ENDS = 0, 1, 2  # a key that is left, another, and one that has all ends


class _Keys:
    """Checks keys: they have the columns that one had which `reader` read, and no others."""

    def __init__(self, reader: ChangeReader) -> None:
        self._reader = reader
        self._columns: frozenset[str] = frozenset()
        self._decoders: list[Any] = []

    def read(self, values: Values) -> Sequence[int]:
        """Of each record: one of these three."""
        strict = self._reader.table.on_repeat != "last"
        if values.keys is None:
            return [_BAD if strict else _GOOD] * len(values)
        lines = as_lines(values.keys)
        if lines is not None:
            for again in range(2):
                for decoder in self._decoders:
                    with suppress(RecordError, *REFUSED):
                        found = decoder.decode_lines(lines)
                        if len(found) == len(values):
                            _check_schemas(found)
                            return [self._judged] * len(values)
                if again or not self._learn(values.keys[0]):
                    break
        return [self._of(key, strict) for key in values.keys]

    def _of(self, key: bytes, strict: bool) -> int:
        if not key:
            return _BAD if strict else _GOOD
        if len(key) > MAX_MAPPED_BYTES or JSON.nests_too_deeply(key):
            return _BAD
        for decoder in self._decoders:
            with suppress(RecordError, *REFUSED):
                _check_schemas([decoder.decode(key)])
                return self._judged
        return _BAD

    @property
    def _judged(self) -> int:
        """Of a key with these columns."""
        if self._reader.table.on_repeat is None and self._reader.may_repeat(self._columns):
            return _BAD
        return _WITH_ENDS if self._reader.ends <= self._columns else _GOOD

    def _learn(self, key: bytes) -> bool:
        """Take the columns of this key; whether they are others than before."""
        try:
            row = self._reader.key(key)
            columns = frozenset() if row is None else frozenset(row.columns())
        except RecordError:
            return False
        if not columns or columns == self._columns:
            return False
        self._columns = columns
        one = msgspec.defstruct(
            "Key", [(f"column_{at}", _SCALAR) for at, _ in enumerate(columns)],
            rename={f"column_{at}": name for at, name in enumerate(columns)},
            forbid_unknown_fields=True, gc=False,
        )  # fmt: skip
        both = msgspec.defstruct(
            "KeyAndSchema", [("schema", Raw), ("payload", one)], forbid_unknown_fields=True,
            gc=False,
        )  # fmt: skip
        self._decoders = [msgspec.json.Decoder(kind) for kind in (one, both)]
        return True

    def texts(self, keys: Values) -> list[str]:
        """REQUIRES: all were read, and their columns are the same."""
        names = sorted(self._columns)
        raw = msgspec.defstruct(
            "RawKey", [(f"column_{at}", Raw) for at, _ in enumerate(names)],
            rename={f"column_{at}": name for at, name in enumerate(names)},
            forbid_unknown_fields=True, gc=False,
        )  # fmt: skip
        both: Any = msgspec.defstruct(
            "RawKeyAndSchema", [("schema", Raw), ("payload", raw)], gc=False
        )
        decode, decode_both = msgspec.json.Decoder(raw).decode, msgspec.json.Decoder(both).decode
        found = []
        for key in keys:
            try:
                one = decode(key)
            except msgspec.ValidationError:
                one = decode_both(key).payload
            found.append(key_text([
                (name, bytes(column))
                for name, column in zip(names, msgspec.structs.astuple(one), strict=True)
            ]))  # fmt: skip
        return found


def _check_schemas(keys: list[Any]) -> None:
    """Raises RecordError if one of these stands beside a schema that is none."""
    if hasattr(keys[0], "schema"):
        for schema in {bytes(key.schema) for key in keys}:
            types_of(schema)


# Forms of values -----------------------------------------------------------------------------

Column = Callable[[list[Any]], list[Any]]  # how the values of a column are had from rows


class _Form(NamedTuple):
    """One form of values. open: of events, whether each sets its edge (False: it deletes it; None:
    neither), the row that has its edge, and the numbers of those whose rows may have had other
    ends, or are not sure to be known. before: the row before, if it is known. parts: of the schema,
    by which rows that are set, and others, are read."""

    kind: type[msgspec.Struct]
    open: Callable[[list[Any]], tuple[list[bool | None], list[Any], list[int]]]
    before: Callable[[Any], Any]
    parts: tuple[str, str]
    src: Column
    dst: Column
    weight: Column
    time: Column
    tables: Callable[[list[Any]], list[str]]  # REQUIRES: rows are remembered
    decode: Callable[[bytes], Any] = len
    decode_lines: Callable[[Any], list[Any]] = list
    has_schema: bool = False

    def decoding(self, kind: type[msgspec.Struct]) -> _Form:
        decoder = msgspec.json.Decoder(kind)
        return self._replace(decode=decoder.decode, decode_lines=decoder.decode_lines)

    def with_schema(self) -> _Form:
        both = msgspec.defstruct(
            "WithSchema", [("schema", Raw), ("payload", self.kind)], forbid_unknown_fields=True,
            gc=False,
        )  # fmt: skip
        return self.decoding(both)._replace(has_schema=True)


def _none(rows: list[Any]) -> list[Any]:
    return [None] * len(rows)


def _row_columns(reader: ChangeReader, vertex: Any) -> tuple[FieldTree, list[Column]]:
    """A struct of a row to be, and how its source, target, weight and time are had."""
    tree = FieldTree({}, {})
    types = {"src": vertex, "dst": vertex, "weight": float | str, "time": int | str}
    of_vertices = reader.table.are_vertices
    names = {
        "src": reader.source, "dst": None if of_vertices else reader.target,
        "weight": None if of_vertices else reader.weight,
        "time": reader.time if reader.event_unit is None else None,
    }  # fmt: skip
    get = [_none if name is None else tree.place(role, str(name), types[role])
           for role, name in names.items()]  # fmt: skip
    return tree, get


def _tables(tree: FieldTree, prefix: str, within: str = "") -> Callable[[list[Any]], list[str]]:
    """How the tables of events are had, whose parts are fields of `tree`: of events themselves, or
    of this attribute of theirs."""
    tree.leaves.update((f"table_{part}", (f"{prefix}{part}", str)) for part in TABLE_PARTS)
    parts = attrgetter(*(f"table_{part}" for part in TABLE_PARTS))
    text = lru_cache(1024)(table_text)

    def found(event: Any) -> str:
        around = getattr(event, within) if within else event
        return "" if around is None else text(parts(around))

    return lambda events: [found(event) for event in events]


def _envelope(reader: ChangeReader, vertex: Any) -> _Form:
    tree, columns = _row_columns(reader, vertex)
    row = tree.struct(True)
    nothing = row()
    around = FieldTree({}, {})
    if reader.event_unit is not None:
        columns[3] = around.place("time", str(reader.time), int | str)
    tables: Any = _none
    if reader.table.on_repeat == "sum":
        tables = _tables(around.inner.setdefault("source", FieldTree({}, {})), "", nested("source"))
    outer = around.struct(True)
    kind = msgspec.defstruct(
        "Envelope", [("before", row | None, None), ("after", row | None, None), ("op", str)],
        bases=(outer,), gc=False, kw_only=True,
    )  # fmt: skip

    def opened(events: list[Any]) -> tuple[list[bool | None], list[Any], list[int]]:
        ops = [event.op for event in events]
        sets = [_SETS.get(op) for op in ops]
        rows = [event.after if is_set else event.before
                for event, is_set in zip(events, sets, strict=True)]  # fmt: skip
        if None in rows:
            rows = [nothing if each is None else each for each in rows]
        return sets, rows, [at for at, op in enumerate(ops) if op not in _INSERTIONS]

    src, dst, weight, time = columns
    return _Form(
        kind,
        opened,
        lambda event: event.before,
        ("after", "before"),
        src,
        dst,
        weight,
        time,
        tables,
    ).decoding(kind)


def _flat(reader: ChangeReader, vertex: Any) -> _Form:
    tree, columns = _row_columns(reader, vertex)
    tree.leaves["flat_op"] = FLAT_OP, str
    tree.leaves["flat_deleted"] = FLAT_DELETED, str | bool
    mapped = {str(name) for name in reader.table.fields.named().values()}
    for name in {"op", "schema", "payload"} - mapped:
        tree.leaves[f"no_{name}"] = name, NOTHING
    if reader.event_unit is not None:
        columns[3] = tree.place("time", "__" + str(reader.time).replace(".", "_"), int | str)
    tables: Any = _none
    if reader.table.on_repeat == "sum":
        tables = _tables(tree, "__")
    kind = tree.struct(True)

    def opened(rows: list[Any]) -> tuple[list[bool | None], list[Any], list[int]]:
        moved = [at for at, row in enumerate(rows) if row.flat_op not in _INSERTIONS]
        return [_flat_sets(row) for row in rows], rows, moved

    src, dst, weight, time = columns
    return _Form(kind, opened, lambda _: None, ("", ""), src, dst, weight, time, tables).decoding(
        kind
    )


def _flat_sets(row: Any) -> bool | None:
    op, deleted = row.flat_op, row.flat_deleted
    if op not in (None, "c", "r", "u", "d") or deleted not in (None, True, False, "true", "false"):
        return None
    return not (op == "d" or deleted in (True, "true"))
