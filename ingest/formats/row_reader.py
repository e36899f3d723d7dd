"""Many small records at once: rows become columns, read by decoders that are made for their topic.

Idea: where Python reads a record field by field, a row costs some ten microseconds. So a decoder is
made of the topic's mapping: a struct of msgspec's that has the fields which are mapped, with the
types that the graph wants, and skips what else stands in a record, of JSON or msgpack. The values
are then checked as columns. Rows of msgpack in our own form are read by compiled code: see
plain_rows.py.

What is read here `decode_record` reads with the same result. The other way round it need not be:
what a decoder refuses (a query, columns, an expiry, a whole float, a bad record), or what has a
value that does not pass as part of a column, is left to `decode_record`, which says why. So records
are cut into stretches: of rows that became columns, and of others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby, pairwise
from operator import attrgetter, itemgetter
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from lpma.arrays import Array
from lpma.batch.columns import (
    EXPIRE,
    MAX_VERTEX,
    MAX_WEIGHT,
    OF_EDGES,
    UPDATES,
    Columns,
    edge_rows,
    weighted_rows,
)
from lpma.errors import BatchError
from lpma.names import Column, column_of
from lpma.names.column import names_of_entries

from ..errors import RecordError
from ..fields import Fields
from ..types import MAX_TEXT_BYTES, Polled, Values
from .kinds import FIELDS, MEANT, UPDATE_KINDS
from .mapped import JSON, MAX_DEPTH, MAX_MAPPED_BYTES, MSGPACK, REFUSED, Codec
from .names import names_of
from .times import column_in_ms, in_ms, within_ms

_OWN = Fields().of_topic()
_IN_COLUMNS = tuple(int(kind) for kind in UPDATES if kind != EXPIRE)  # kinds that are read here
LEFT = -1  # the code of a kind that is not read here
_MOST = 2**63 - 1
MOST_DIGITS = 19  # of an integer that is a kind
_BLOCK = 1 << 16  # bytes
NOTHING = Annotated[int, Meta(gt=0, lt=0)]  # the type of a field that must not be there
_MAPS, _ARRAYS, _TEXTS = 0x80, 0x90, 0xA0  # the first bytes of short ones in msgpack

_GET: dict[str, Callable[[list[Any]], list[Any]]] = {  # as fast as Python can
    "src": lambda rows: [row.src for row in rows],
    "dst": lambda rows: [row.dst for row in rows],
    "weight": lambda rows: [row.weight for row in rows],
    "time": lambda rows: [row.time for row in rows],
    "kind": lambda rows: [row.kind for row in rows],
    "source": lambda rows: [row.source for row in rows],
    "seq": lambda rows: [row.seq for row in rows],
}

Decode = Callable[[bytes], Any]


class Stretch(NamedTuple):
    """The records from `start` to `stop`: their rows; None: to be read one by one. ends: src and
    dst of each row in turn, if vertices go by names; then those of `rows` are zeros that wait for
    the ids. producers: (source, seq) of each row, if they name them. changes: how
    many remembered rows of a table they changed. tables: of each row, where rows are remembered."""

    start: int
    stop: int
    rows: Columns | None = None
    ends: Column | None = None
    producers: list[tuple[str, int]] | None = None
    changes: int = 0
    tables: Sequence[str] = ()

    def moved(self, by: int) -> Stretch:
        """The same where so many records come before."""
        return self._replace(start=self.start + by, stop=self.stop + by) if by else self


class RowReader:
    """Reads the rows of one topic. fields: its mapping; None: it has our own forms alone. names:
    whether vertices go by names. others: whether an object of JSON is read that has other fields,
    too."""

    def __init__(self, fields: Fields | None, names: bool, *, others: bool = True) -> None:
        vertex: Any = int | str if names else Annotated[int, Meta(ge=0, le=MAX_VERTEX)]
        fields = None if fields is None else fields.of_topic()
        self._names = names
        self._unit = (fields and fields.time_unit) or "ms"
        self._plain_from = _MAPS if fields is None or _reads_ours(fields) else _ARRAYS
        self._lines: tuple[RowForm, ...] = ()  # of JSON: one that many have, and one for all
        self._maps: tuple[RowForm, ...] = ()  # of msgpack, of which each is tried
        if fields is None or not fields.ends_are_ours:
            self._maps = (_msgpack_map(vertex, names, self._unit),)
        if fields is not None and not overlap(fields):
            roles = fields.by_role_of_maps()
            if fields.ends_are_ours or {roles["src"], roles["dst"]} & fields.foreign():
                self._maps = (_mapped(fields, MSGPACK, int | str, vertex, names), *self._maps)
            self._lines = tuple(
                _mapped(fields, JSON, time, vertex, names, others) for time in (int, int | str)
            )
        self._forms: list[tuple[RowForm, ...]] = [()] * 256  # by a record's first byte
        self._forms[:0x80] = [self._lines[-1:]] * 0x80
        for first in MSGPACK.maps:
            self._forms[first] = self._maps

    def stretches(self, values: Values) -> Iterator[Stretch]:
        """All of `values`, in order. REQUIRES: there is one."""
        first = values.first_bytes()
        may_be_plain = (first >= self._plain_from) & (first < _TEXTS)
        if not may_be_plain.any():
            yield from self._decoded(values, 0)
            return
        rows = PlainRows.read(values, self._names, self._unit)
        np.logical_and(rows.plain, may_be_plain, out=rows.plain)
        for start, stop in rows.bounds():
            if rows.plain[start]:
                yield rows.stretch(start, stop)
            else:
                yield from self._decoded(values[start:stop], start)

    def _decoded(self, values: Values, first: int) -> Iterator[Stretch]:
        """The same of records that begin at number `first`, by msgspec's decoders."""
        lines = as_lines(values) if self._lines else None
        for form in self._lines if lines is not None else self._maps[:1]:
            rows = form.of_lines(lines) if lines is not None else form.of_each(values)
            if rows is not None and len(rows) == len(values):
                yield from form.stretches(rows, first)
                return
        start = first
        for one, group in groupby(map(self._row, values), itemgetter(0)):
            of_form = [row for _, row in group]
            if one is None:
                yield Stretch(start, start + len(of_form))
            else:
                yield from one.stretches(of_form, start)
            start += len(of_form)

    def _row(self, value: bytes) -> tuple[RowForm | None, Any]:
        """The form that reads it, and the row; None for a record that is left."""
        for form in self._forms[value[0]] if 0 < len(value) <= MAX_MAPPED_BYTES else ():
            if not form.nests_too_deeply(value):
                with suppress(*REFUSED):
                    row = form.decode(value)
                    if form.get["src"]([row]) != [None]:
                        return form, row
        return None, None


class PlainRows(NamedTuple):
    """What records say, and which are plain rows. kind to timed: arrays of one length. ends: of src
    and dst of each row in turn; where vertices go by ids, these are the keys."""

    plain: npt.NDArray[np.bool_]
    kind: npt.NDArray[np.uint8]
    weight: npt.NDArray[np.float64]
    time: npt.NDArray[np.int64]
    weighted: npt.NDArray[np.bool_]  # whether it names a weight
    timed: npt.NDArray[np.bool_]  # whether it names a time
    ends: Column
    names: bool

    @classmethod
    def read(cls, values: Values, names: bool, unit: str) -> PlainRows:
        from .plain_rows import read_all  # not above: Numba takes a third of a second to import

        n, data = len(values), np.frombuffer(values.data, np.uint8)
        plain, weighted, timed = (np.zeros(n, np.bool_) for _ in range(3))
        kind, weight, time = np.zeros(n, np.uint8), np.ones(n), np.zeros(n, np.int64)
        kinds, keys = np.zeros(2 * n, np.uint8), np.zeros(2 * n, np.uint64)
        bounds, blob = np.zeros(2 * n + 1, np.int64), np.empty(len(data) if names else 0, np.uint8)
        texts = read_all(
            data, values.starts, values.stops, names, plain, kind, weight, time, weighted, timed,
            kinds, keys, bounds, blob,
        )  # fmt: skip
        try:
            # No text begins within a character, so each is UTF-8 if all of them are.
            str(blob[: bounds[texts]].data, "utf-8")
        except UnicodeDecodeError:
            plain[:] = False
        if unit != "ms":
            plain &= ~timed | within_ms(time) | (unit != "s")
            time = column_in_ms(np.where(plain, time, 0), unit)
        ends = Column(kinds, keys, bounds[: texts + 1], blob)
        return cls(plain, kind, weight, time, weighted, timed, ends, names)

    def bounds(self) -> Iterator[tuple[int, int]]:
        """Where to cut: between plain and other records, and between rows with a time and
        without."""
        cut = self.plain[1:] != self.plain[:-1]
        cut |= self.timed[1:] != self.timed[:-1]
        return pairwise([0, *(np.flatnonzero(cut) + 1).tolist(), len(self.plain)])

    def stretch(self, start: int, stop: int) -> Stretch:
        part = slice(start, stop)
        weight = self.weight[part] if self.weighted[part].any() else None
        time = self.time[part] if self.timed[start] else None
        ends = self.ends.take(slice(2 * start, 2 * stop))
        if self.names:
            return Stretch(start, stop, _unnamed(self.kind[part], weight, time), ends)
        src, dst = (ends.keys[at::2].astype(np.uint32) for at in range(2))
        return Stretch(start, stop, Columns(self.kind[part], src, dst, weight, time, checked=True))


def _unnamed(kind: Array, weight: Array | None, time: Array | None) -> Columns:
    zeros = np.zeros(len(kind), np.uint32)
    return Columns(kind, zeros, zeros, weight, time, checked=True)


def as_lines(values: Values) -> bytes | None:
    """These records, one a line, if each looks like an object of JSON, which nests no deeper than
    it may; else None.

    A record that begins with { and ends with } is one object, or several, or none that can be read:
    a line's end is not allowed within a string, and after a } none can follow that opens another
    within the same. So where as many objects as records are read of the lines, each is one."""
    data, starts, stops = np.frombuffer(values.data, np.uint8), values.starts, values.stops
    if not (stops > starts).all() or values.longest > MAX_MAPPED_BYTES:
        return None
    if (data[starts] != ord("{")).any() or (data[stops - 1] != ord("}")).any():
        return None
    if values.longest > MAX_DEPTH:
        within = data[starts[0] : stops[-1]]  # of some of many records, their bytes alone
        starts, stops = starts - starts[0], stops - starts[0]
        opens = _brackets(within)
        if (np.searchsorted(opens, stops) - np.searchsorted(opens, starts)).max() > MAX_DEPTH:
            return None
    return values.lines()


def _brackets(data: Array) -> Array:
    """The places of { and [ in these bytes, which differ in one bit. In blocks: what is made on the
    way stays in the cache, which takes a fifth of the time."""
    return np.concatenate([
        start + np.flatnonzero((data[start : start + _BLOCK] & 0xDF) == ord("["))
        for start in range(0, len(data), _BLOCK)
    ])  # fmt: skip


class RowForm(NamedTuple):
    """One form of rows. get: for each role that it has, how its values are had from rows.
    codes: by the word of the kind, None for a row without one. codec: of rows that a mapping reads;
    None: they are our own, and flat. decode_lines: as `decode`, of rows one a line."""

    decode: Decode
    get: dict[str, Callable[[list[Any]], list[Any]]]
    names: bool
    codes: dict[str | int | None, int]
    unit: str = "ms"
    default_weight: float = 1.0
    codec: Codec | None = None
    decode_lines: Decode | None = None

    def nests_too_deeply(self, value: bytes) -> bool:
        return self.codec is not None and self.codec.nests_too_deeply(value)

    def of_lines(self, lines: bytes) -> list[Any] | None:
        """The rows of these lines; None if some is no row of this form. REQUIRES: decode_lines."""
        assert self.decode_lines is not None
        try:
            rows: list[Any] = self.decode_lines(lines)
        except REFUSED:
            return None
        return rows

    def of_each(self, values: Values) -> list[Any] | None:
        """The same of records of msgpack that a mapping reads."""
        if self.codec is not MSGPACK or values.longest > MAX_MAPPED_BYTES:
            return None
        each = list(values)
        if values.longest > MAX_DEPTH and any(map(MSGPACK.nests_too_deeply, each)):
            return None
        try:
            rows = list(map(self.decode, each))
        except REFUSED:
            return None
        return None if None in self.get["src"](rows) else rows

    def stretches(self, rows: list[Any], start: int) -> Iterator[Stretch]:
        """Of these rows, the first of which is record number `start`."""
        values = {role: get(rows) for role, get in self.get.items()}
        codes = values.get("kind")
        if codes is not None:
            codes = values["kind"] = [self.codes.get(word, LEFT) for word in codes]
        elif self.codes[None] == LEFT:
            yield Stretch(start, start + len(rows))
            return
        yield from self.of_values(values, start, len(rows))

    def of_values(self, values: dict[str, list[Any]], start: int, count: int) -> Iterator[Stretch]:
        """The same of so many rows, by role; a kind by its code, LEFT of one that is left."""
        for first, stop, is_left in _runs(values, count):
            if is_left:
                yield Stretch(start + first, start + stop)
            else:
                part = {role: column[first:stop] for role, column in values.items()}
                yield from self._passing(part, start + first, stop - first)

    def _passing(self, values: dict[str, list[Any]], start: int, count: int) -> Iterator[Stretch]:
        """Rows as columns; where one does not pass, the halves."""
        try:
            rows, ends = self._columns(values, count)
        except (RecordError, BatchError, OverflowError, TypeError):
            if count == 1:
                yield Stretch(start, start + 1)
                return
            half = count // 2
            for first, stop in ((0, half), (half, count)):
                part = {role: column[first:stop] for role, column in values.items()}
                yield from self._passing(part, start + first, stop - first)
            return
        producers = None
        if "source" in values and values["source"][0] is not None:
            producers = list(zip(values["source"], values["seq"], strict=True))
        yield Stretch(start, start + count, rows, ends, producers)

    def _columns(self, values: dict[str, list[Any]], count: int) -> tuple[Columns, Column | None]:
        """Raises RecordError, BatchError, OverflowError or TypeError if a value does not pass."""
        src, dst = values["src"], values["dst"]
        kinds = values.get("kind")
        kind = np.full(count, self.codes[None], np.uint8)
        if kinds is not None:
            kind[:] = kinds
        of_one = ~edge_rows(kind)
        if of_one.any():
            if [end is None for end in dst] != of_one.tolist():
                raise RecordError("dst: operations on edges have it, and no others")
            dst = [0 if end is None else end for end in dst]
        weight, time = self._weights(values.get("weight"), kind), self._times(values.get("time"))
        if not self.names:
            ids = [np.fromiter(end, np.uint32, count) for end in (src, dst)]
            return Columns(kind, ids[0], ids[1], weight, time, checked=True), None
        ends: list[Any] = [None] * (2 * count)
        ends[::2], ends[1::2] = src, dst
        return _unnamed(kind, weight, time), column_of(ends, "src and dst")

    def _weights(self, given: list[Any] | None, kind: Array) -> Array | None:
        if given is None or given.count(None) == len(kind):
            if self.default_weight == 1:
                return None
            return np.where(weighted_rows(kind), self.default_weight, 1.0)
        weight = np.array(given, np.float64)  # None becomes NaN
        if np.isnan(weight).any():
            absent = np.array([each is None for each in given])
            fill = np.where(weighted_rows(kind), self.default_weight, 1.0)
            weight = np.where(absent, fill, weight)
        if not bool((np.abs(weight) <= MAX_WEIGHT).all()):  # NaN fails, too
            raise RecordError("weight: out of range")
        return weight

    def _times(self, given: list[Any] | None) -> Array | None:
        """REQUIRES: all are there, or none is."""
        if given is None or given[0] is None:
            return None
        if self.unit != "ms" or str in set(map(type, given)):
            given = [in_ms(each, self.unit) for each in given]
        return np.fromiter(given, np.int64, len(given))


def _runs(values: dict[str, list[Any]], count: int) -> Iterator[tuple[int, int, bool]]:
    """(start, stop, whether they are left) of stretches whose rows all have a time or all have
    none, and so with their producers. Expiries are left, and bad producers.
    """
    marks: list[list[int]] = []
    codes, times = values.get("kind"), values.get("time")
    if codes is not None and LEFT in codes:
        marks.append([min(code, 0) for code in codes])
    if times is not None and 0 < times.count(None) < count:
        marks.append([time is None for time in times])
    sources, seqs = values.get("source"), values.get("seq")
    if (
        sources is not None
        and seqs is not None
        and not sources.count(None) == seqs.count(None) == count
    ):
        marks.append(list(map(_sent, sources, seqs)))
    if not marks:
        yield 0, count, False
        return
    start = 0
    for mark, group in groupby(zip(*marks, strict=True)):
        stop = start + sum(1 for _ in group)
        yield start, stop, LEFT in mark
        start = stop


def _sent(source: str | None, seq: int | None) -> int:
    """Whether a row names its producer; LEFT if it does so badly."""
    if source is None and seq is None:
        return 0
    good = source and len(source.encode(errors="replace")) <= MAX_TEXT_BYTES
    return 1 if good and seq is not None and 0 <= seq <= _MOST else LEFT


# Forms ---------------------------------------------------------------------------------------


def _reads_ours(fields: Fields) -> bool:
    """Whether a plain row of our own is what it is without a mapping, but for the unit of times."""
    if not fields.ends_are_ours:
        return fields.foreign() >= {fields.source, fields.target}
    roles = fields.by_role_of_maps()
    alike = all(roles[role] == role for role in FIELDS)
    return alike and not fields.has_defaults and not fields.kinds


def _msgpack_map(vertex: Any, names: bool, unit: str) -> RowForm:
    """A row as a map of these of our own fields, each of which has a value where it is there."""
    types: dict[str, Any] = {"weight": float, "time": Annotated[int, Meta(le=_MOST)], "kind": str,
                             "source": str, "seq": int}  # fmt: skip
    made = msgspec.defstruct(
        "Row", [("src", vertex), ("dst", vertex), *((role, types[role], None) for role in types)],
        forbid_unknown_fields=True, gc=False,
    )  # fmt: skip
    return RowForm(msgspec.msgpack.Decoder(made).decode, _GET, names, _codes_of(_OWN), unit)


def _mapped(
    fields: Fields, codec: Codec, time: Any, vertex: Any, names: bool, others: bool = True
) -> RowForm:
    """An object with these fields, and others where these may be; one that is null is not there.
    time: the type of times. Of msgpack it has no field of what is no row: see `codec_of`."""
    types = {"src": vertex, "dst": vertex, "weight": float, "time": time,
             "kind": int | str, "source": str, "seq": int}  # fmt: skip
    tree = FieldTree({}, {})
    get: dict[str, Callable[[list[Any]], list[Any]]] = {}
    roles = fields.by_role() if codec is JSON else fields.by_role_of_maps()
    for role, name in roles.items():
        if name is not None:
            get[role] = tree.place(role, name, types[role])
    kinds = _IN_COLUMNS
    if codec is MSGPACK:
        for name in fields.of_others():
            tree.leaves[nested(name)] = name, NOTHING
        if not fields.ends_are_ours and roles["src"] not in fields.foreign():
            kinds = OF_EDGES  # only its dst tells a row of the mapping from one of ours
    decoder = codec.decoder(tree.struct(others))
    return RowForm(
        decoder.decode, get, names, _codes_of(fields, kinds), fields.time_unit or "ms",
        fields.default_weight, codec, getattr(decoder, "decode_lines", None),
    )  # fmt: skip


def overlap(fields: Fields) -> bool:
    """Whether one field lies within another: then no struct has both."""
    named = [f"{name}." for name in fields.by_role().values() if name is not None]
    return any(one != other and one.startswith(other) for one in named for other in named)


class FieldTree(NamedTuple):
    """A struct to be: (field, type) by role, and by field what nests in it."""

    leaves: dict[str, tuple[str, Any]]
    inner: dict[str, FieldTree]

    def place(self, role: str, name: str, kind: Any) -> Callable[[list[Any]], list[Any]]:
        """Give the field of that name, and the one at the end of that path, a place, and return how
        its values are had from rows."""
        self.leaves[role] = name, kind
        if "." not in name:
            return _GET[role]
        *steps, last = name.split(".")
        tree, path = self, []
        for step in steps:
            path.append(nested(step))
            tree = tree.inner.setdefault(step, FieldTree({}, {}))
        tree.leaves[role] = last, kind
        direct, steps_to = attrgetter(role), [*path, role]

        def found(row: Any) -> Any:
            value = direct(row)
            if value is None:
                value = row
                for attribute in steps_to:
                    value = getattr(value, attribute, None)
            return value

        return lambda rows: [found(row) for row in rows]

    def struct(self, others: bool) -> type[msgspec.Struct]:
        leaves = {role: (name, kind) for role, (name, kind) in self.leaves.items()}
        inner = {nested(name): (name, tree.struct(others)) for name, tree in self.inner.items()}
        every = leaves | inner
        return msgspec.defstruct(
            "Row", [(attribute, kind | None, None) for attribute, (_, kind) in every.items()],
            rename={attribute: name for attribute, (name, _) in every.items()}, gc=False,
            forbid_unknown_fields=not others,
        )  # fmt: skip


def nested(name: str) -> str:
    """What a field in which others nest is called in a struct: it may have any name."""
    return f"in_{name.encode().hex()}"


def _is_number(word: str) -> bool:
    """Whether an integer is written so."""
    return word.lstrip("-").isdecimal() and len(word) <= MOST_DIGITS and str(int(word)) == word


def _codes_of(fields: Fields, kinds: Sequence[int] = _IN_COLUMNS) -> dict[str | int | None, int]:
    """What the words and numbers of this mapping mean, of these kinds."""
    words: dict[str | int | None, str] = {word: word for word in UPDATE_KINDS}
    if fields is not _OWN:
        said = MEANT | {word.upper(): meant for word, meant in MEANT.items()} | fields.kinds
        words.update(said)
        words.update((int(word), meant) for word, meant in said.items() if _is_number(word))
    codes = {word: int(UPDATE_KINDS[meant]) for word, meant in words.items()}
    known = {w: code for w, code in codes.items() if code in kinds}
    default = int(UPDATE_KINDS[fields.default_kind])
    return known | {None: default if default in kinds else LEFT}


# Polled records ------------------------------------------------------------------------------


def in_runs(polled: Sequence[Polled]) -> Iterator[Polled]:
    """The same records in the same order: encoded ones at consecutive offsets of a partition
    together."""
    run: list[Polled] = []
    place, following = None, -1  # where the next record of this run would lie
    for one in polled:
        partition, offset, value, *_ = one
        encoded = type(value) is bytes
        if run and not (encoded and offset == following and partition == place):
            yield _together(run)
            run = []
        if encoded:
            run.append(one)
            place, following = partition, offset + 1
        else:
            yield one
    if run:
        yield _together(run)


def _together(run: list[Polled]) -> Polled:
    if len(run) == 1:
        return run[0]
    values = Values.of([one.value for one in run])  # type: ignore[misc]
    values.times = np.array([one.time for one in run], np.int64)
    values.keys = Values.of_keys([one.key for one in run])
    return run[-1]._replace(offset=run[0].offset, value=values, key=b"")


def as_columns(polled: Sequence[Polled], reader: RowReader) -> Iterator[Polled]:
    """The same records in the same order, rows at consecutive offsets as columns, whose ends are
    names if the vertices go by these. Rows that name their producers stay by themselves."""
    for run in in_runs(polled):
        if not isinstance(run.value, Values):
            yield run
            continue
        for stretch in reader.stretches(run.value):
            at = run.offset + stretch.start
            if stretch.rows is None or stretch.producers is not None:
                for offset, value in enumerate(run.value[stretch.start : stretch.stop], at):
                    yield Polled(run.partition, offset, value, run.time)
                continue
            yield Polled(run.partition, at, with_names(stretch.rows, stretch.ends), run.time)


def with_names(rows: Columns, ends: Column | None) -> Columns:
    """Rows whose ends are names, if these are."""
    if ends is None:
        return rows
    src, dst = named_ends(ends)
    return rows.replace(src=names_of(src, "src"), dst=names_of(dst, "dst"))


def named_ends(ends: Column) -> tuple[Array, Array]:
    """The names of src, and of dst, of each row."""
    entries = ends.kinds, ends.keys, ends.bounds, ends.blob
    src, dst = (names_of_entries(np.arange(at, len(ends), 2), *entries) for at in range(2))
    return src, dst
