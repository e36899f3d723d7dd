"""Records of Avro, read with the schema of whoever wrote them, as JSON that a mapping reads.

Idea: fastavro decodes a record to a dictionary of Python's, msgspec writes that as JSON, a tenth of
the work, and from there on it is read like any object of JSON, by the fast reader and the careful
one alike. What Avro knows and JSON does not is said on the way: a time of any logical type becomes
ms since 1970, a decimal a number, an enum its symbol.

Tricks. The schema is rewritten before fastavro sees it, to one that lies in the same bytes:
- Logical types are left out: fastavro would make objects of Python's, which take longer than all
  the rest. What is mapped is converted here.
- Fields that are not mapped are read as cheaply as can be, text as bytes and a map as an array, and
  so need not be UTF-8. fastavro's own projection, by a reader's schema, takes half as long again.
- Many records are read at once, as an array whose items each end with the same 16 random bytes.
  fastavro does not say where a record ends, and these bytes do: no record reads into the next
  unnoticed.

Schemas come from elsewhere, so they are bounded: MAX_TYPES with all names resolved, MAX_NESTING.
A type that holds itself is refused, since a record of it could nest as deep as it is long, and so
are arrays whose items have no bytes, of which a few bytes could hold billions.
"""

from __future__ import annotations

import io
import math
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any
from uuid import UUID

import msgspec
import msgspec.json

from lpma.dependencies import how_to_install

from ..errors import PipelineError, RecordError

MAX_TYPES = 10_000
MAX_NESTING = 64
_MAX_INTEGER = 2**64  # that JSON is written with
_MARK = secrets.token_bytes(16)
_MARK_FIELD = "end of the record"  # no field of Avro can be called so

_PRIMITIVES = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
_DAY_MS = 86_400_000
# How times become ms: (multiplied by, divided by), by Avro's name and by Debezium's.
_TIMES = {
    "date": (_DAY_MS, 1), "io.debezium.time.Date": (_DAY_MS, 1),
    "timestamp-millis": (1, 1), "local-timestamp-millis": (1, 1),
    "io.debezium.time.Timestamp": (1, 1),
    "timestamp-micros": (1, 1000), "local-timestamp-micros": (1, 1000),
    "io.debezium.time.MicroTimestamp": (1, 1000),
    "timestamp-nanos": (1, 1_000_000), "local-timestamp-nanos": (1, 1_000_000),
    "io.debezium.time.NanoTimestamp": (1, 1_000_000),
    "org.apache.kafka.connect.data.Date": (_DAY_MS, 1),
    "org.apache.kafka.connect.data.Timestamp": (1, 1),
}  # fmt: skip
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_VARIABLE_DECIMAL = "io.debezium.data.VariableScaleDecimal"
# What Connect calls logical types of Avro, with the same units.
_OF_CONNECT = {
    "decimal": _DECIMAL, "date": "org.apache.kafka.connect.data.Date",
    "timestamp-millis": "org.apache.kafka.connect.data.Timestamp",
    "local-timestamp-millis": "org.apache.kafka.connect.data.Timestamp",
    "timestamp-micros": "io.debezium.time.MicroTimestamp",
    "local-timestamp-micros": "io.debezium.time.MicroTimestamp",
    "timestamp-nanos": "io.debezium.time.NanoTimestamp",
    "local-timestamp-nanos": "io.debezium.time.NanoTimestamp",
}  # fmt: skip

Convert = Callable[[Any], Any]
# What is wanted of a value: all of it (a leaf that a mapping names), or some of its fields.
Wanted = Mapping[str, Any] | None
LEAF: Wanted = None


class SchemaError(RecordError):
    """A schema cannot be read, so that no record of it can."""


@dataclass(frozen=True)
class Type:
    """A type of Avro. kind: a primitive, or "record", "enum", "array", "map", "union" or "fixed".
    parts: (name, type) of a record's fields, and of others the types within, by "". logical: its
    logical type, or what Kafka Connect calls it."""

    kind: str
    parts: tuple[tuple[str, Type], ...] = ()
    logical: str | None = None
    scale: int = 0
    symbols: tuple[str, ...] = ()
    size: int = 0

    @property
    def least(self) -> int:
        """The fewest bytes that a value has."""
        if self.kind == "record":
            return sum(each.least for _, each in self.parts)
        return {"null": 0, "fixed": self.size, "float": 4, "double": 8}.get(self.kind, 1)

    @property
    def is_time(self) -> bool:
        """Whether it says itself in which unit it counts the time."""
        if self.kind == "union":
            return any(each.is_time for _, each in self.parts)
        return self.kind in ("int", "long") and self.logical in _TIMES

    def at(self, path: Sequence[str]) -> Iterable[Type]:
        """The types at the end of a path of fields."""
        if self.kind == "union":
            for _, each in self.parts:
                yield from each.at(path)
        elif not path:
            yield self
        elif self.kind == "map":
            yield from self.parts[0][1].at(path[1:])
        elif self.kind == "record" and path[0] in dict(self.parts):
            yield from dict(self.parts)[path[0]].at(path[1:])


# Schemas -------------------------------------------------------------------------------------


def parse(text: str, references: Sequence[str] = ()) -> Type:
    """The type that a schema describes, which may name types of the schemas before it. Raises
    SchemaError."""
    parser = _Parser()
    try:
        for each in references:
            parser.type(msgspec.json.decode(each), "", 0)
        return parser.type(msgspec.json.decode(text), "", 0)
    except (msgspec.DecodeError, LookupError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, SchemaError):
            raise
        raise SchemaError(f"not a schema of Avro: {error}", "unserved") from None
    except RecursionError:
        raise SchemaError("nests too deeply", "unserved") from None


class _Parser:
    """Resolves names, so that every type stands where it is used."""

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}  # definitions, and the namespace that each stands in
        self._open: list[str] = []
        self._types = 0

    def type(self, schema: Any, space: str, depth: int) -> Type:
        self._types += 1
        if self._types > MAX_TYPES or depth > MAX_NESTING:
            what = f"more than {MAX_TYPES} types" if depth <= MAX_NESTING else "nests too deeply"
            raise SchemaError(what, "unserved")
        if isinstance(schema, str):
            return Type(schema) if schema in _PRIMITIVES else self._by_name(schema, space, depth)
        if isinstance(schema, list):
            branches = tuple(("", self.type(each, space, depth + 1)) for each in schema)
            return Type("union", branches)
        kind = schema["type"]
        if not isinstance(kind, str):
            return self.type(kind, space, depth + 1)
        if kind in ("record", "error", "enum", "fixed"):
            return self._define(schema, space, depth)
        within: tuple[tuple[str, Type], ...] = ()
        if kind in ("array", "map"):
            within = (("", self.type(schema["items" if kind == "array" else "values"], space,
                                     depth + 1)),)  # fmt: skip
            if kind == "array" and not within[0][1].least:
                raise SchemaError("an array whose items have no bytes is not read", "unserved")
        elif kind not in _PRIMITIVES:
            return self._by_name(kind, space, depth)
        return Type(kind, within, *_logical(schema))

    def _define(self, schema: dict[str, Any], space: str, depth: int) -> Type:
        name = schema["name"]
        space = name.rpartition(".")[0] if "." in name else schema.get("namespace", space) or ""
        full = name if "." in name or not space else f"{space}.{name}"
        self._named[full] = schema, space
        return self._defined(full, depth)

    def _by_name(self, name: str, space: str, depth: int) -> Type:
        full = f"{space}.{name}" if "." not in name and space else name
        full = full if full in self._named else name
        if full not in self._named:
            raise SchemaError(f"no type is called {name!r}", "unserved")
        return self._defined(full, depth)

    def _defined(self, full: str, depth: int) -> Type:
        if full in self._open:
            raise SchemaError(f"{full} holds itself: such types are not read", "unserved")
        schema, space = self._named[full]
        kind = schema["type"]
        if kind == "enum":
            return Type("enum", symbols=tuple(schema["symbols"]))
        if kind == "fixed":
            return Type("fixed", (), *_logical(schema), size=int(schema["size"]))
        self._open.append(full)
        parts = tuple((each["name"], self.type(each["type"], space, depth + 1))
                      for each in schema["fields"])  # fmt: skip
        self._open.pop()
        if len(dict(parts)) < len(parts):
            raise SchemaError(f"{full} has a field twice", "unserved")
        return Type("record", parts, *_logical(schema))


def _logical(schema: Mapping[str, Any]) -> tuple[str | None, int]:
    """The logical type, or what Connect calls it; and the scale of a decimal."""
    logical = schema.get("connect.name") or schema.get("logicalType")
    scale = schema.get("scale", (schema.get("connect.parameters") or {}).get("scale", 0))
    return "decimal" if logical == _DECIMAL else logical, int(scale)


def wanted(fields: Iterable[str]) -> dict[str, Any]:
    """What a mapping to these fields wants of an object: each by its name, or by the path that it
    is."""
    found: dict[str, Any] = {}
    for name in fields:
        *path, last = name.split(".")
        within: dict[str, Any] | None = found
        for step in path:
            if within is not None:
                within = within.setdefault(step, {})
        if within is not None:
            within[last] = LEAF
        found[name] = LEAF
    return found


# As fastavro is told -------------------------------------------------------------------------

_SKIPPED = {"string": "bytes", "enum": "int"}  # what lies in the same bytes, and costs less


class _Rewriter:
    """The same schema without names that repeat, logical types and what costs in vain."""

    def __init__(self) -> None:
        self._numbers = count()

    def named(self, kind: str, **content: Any) -> dict[str, Any]:
        return {"type": kind, "name": f"t{next(self._numbers)}", **content}

    def all(self, of: Type) -> Any:
        """A type all of which is wanted."""
        return self._rewritten(of, lambda name, each: self.all(each), is_wanted=True)

    def some(self, of: Type, want: Mapping[str, Any]) -> Any:
        """A type of whose values some fields are wanted."""
        if of.kind == "union":
            return [self.some(each, want) for _, each in of.parts]
        if of.kind == "map":
            # A key may be wanted, so all values are read.
            return {"type": "map", "values": self.all(of.parts[0][1])}
        if of.kind != "record":
            return self.skipped(of)
        return self._rewritten(of, lambda name, each: self._field(each, want, name))

    def _field(self, of: Type, want: Mapping[str, Any], name: str) -> Any:
        if name not in want:
            return self.skipped(of)
        return self._leaf(of) if want[name] is LEAF else self.some(of, want[name])

    def _leaf(self, of: Type) -> Any:
        if of.kind == "union":
            return [self._leaf(each) for _, each in of.parts]
        scalar = of.kind not in ("record", "array", "map") or of.logical == _VARIABLE_DECIMAL
        return self.all(of) if scalar else self.skipped(of)

    def skipped(self, of: Type) -> Any:
        if of.kind == "map":
            entry = [{"name": "k", "type": "bytes"},
                     {"name": "v", "type": self.skipped(of.parts[0][1])}]  # fmt: skip
            return {"type": "array", "items": self.named("record", fields=entry)}
        if of.kind in _SKIPPED:
            return _SKIPPED[of.kind]
        return self._rewritten(of, lambda name, each: self.skipped(each))

    def _rewritten(
        self, of: Type, part: Callable[[str, Type], Any], is_wanted: bool = False
    ) -> Any:
        if of.kind == "record":
            fields = [{"name": name, "type": part(name, each)} for name, each in of.parts]
            return self.named("record", fields=fields)
        if of.kind == "union":
            return [part("", each) for _, each in of.parts]
        if of.kind == "enum":
            return self.named("enum", symbols=list(of.symbols)) if is_wanted else "int"
        if of.kind == "fixed":
            return self.named("fixed", size=of.size)
        if of.kind == "array":
            return {"type": "array", "items": part("", of.parts[0][1])}
        if of.kind == "map":
            return {"type": "map", "values": part("", of.parts[0][1])}
        return of.kind


# What values become --------------------------------------------------------------------------


def time_scale(of: Type) -> tuple[int, int] | None:
    """By what a time of this type is multiplied, and then divided, to be in ms; None: it is no
    time, or does not say."""
    return _TIMES[str(of.logical)] if of.is_time and of.kind != "union" else None


@cache
def _as_time(times: int, over: int) -> Convert | None:
    if (times, over) == (1, 1):
        return None
    return lambda value: value * times // over


def _number(unscaled: int, scale: int) -> int | float:
    """An integer if it is one, else the nearest float. Raises RecordError if it is beyond both."""
    unit = 10 ** abs(scale)
    try:
        if scale <= 0:
            found: int | float = unscaled * unit
        else:
            whole, rest = divmod(unscaled, unit)
            found = unscaled / unit if rest else whole
    except OverflowError:
        raise RecordError("a decimal out of all bounds") from None
    if type(found) is int and not -(2**63) <= found < _MAX_INTEGER:
        raise RecordError("a decimal out of all bounds")
    return found


@cache
def _as_decimal(scale: int) -> Convert:
    if abs(scale) > 1000:
        raise SchemaError(f"a decimal of scale {scale}", "unserved")
    return lambda value: _number(int.from_bytes(value, "big", signed=True), scale)


def _as_variable_decimal(value: Any) -> Any:
    scale = value["scale"]
    if abs(scale) > 1000:
        raise RecordError("a decimal out of all bounds")
    return _number(int.from_bytes(value["value"], "big", signed=True), scale)


def _as_float(value: float) -> Any:
    if not math.isfinite(value):
        raise RecordError(f"a number that is {value}")
    return value


def _as_float_or_text(value: float) -> Any:
    return value if math.isfinite(value) else str(value)


def _as_uuid(value: bytes) -> str:
    return str(UUID(bytes=value))


def _refuse_bytes(_: Any) -> Any:
    raise RecordError("bytes are neither a number nor text")


def _refuse_nested(_: Any) -> Any:
    raise RecordError("an object or a list, where a number or text is expected")


def _nothing(_: Any) -> None:
    """In place of what has no fields, though one of it is wanted."""


def _scalar(of: Type, whole: bool) -> Convert | None:
    """How such a value becomes one of JSON; None: it is one. whole: it is part of something that is
    wanted whole, not a field that a mapping names."""
    if of.kind in ("float", "double"):
        return _as_float_or_text if whole else _as_float
    if of.logical == "uuid" and of.size == 16:
        return _as_uuid
    if whole:
        return None
    if (scale := time_scale(of)) is not None:
        return _as_time(*scale)
    if of.kind in ("bytes", "fixed"):
        return _as_decimal(of.scale) if of.logical == "decimal" else _refuse_bytes
    return None


def _whole(of: Type) -> Convert | None:
    """How a value that is wanted whole becomes one of JSON, as Kafka Connect writes it: bytes and
    decimals in base64, times as they are."""
    if of.kind == "record":
        return _record({name: _whole(each) for name, each in of.parts}, ())
    if of.kind == "union":
        return _union(of, _whole)
    if of.kind in ("array", "map") and (convert := _whole(of.parts[0][1])) is not None:
        if of.kind == "array":
            return lambda value: [convert(each) for each in value]
        return lambda value: {key: convert(each) for key, each in value.items()}
    return _scalar(of, whole=True)


def _leaf(of: Type) -> Convert | None:
    """The same of a field that a mapping names."""
    if of.logical == _VARIABLE_DECIMAL:
        return _as_variable_decimal
    if of.kind == "union":
        return _union(of, _leaf)
    if of.kind in ("record", "array", "map"):
        return _refuse_nested
    return _scalar(of, whole=False)


def _some(of: Type, want: Mapping[str, Any]) -> Convert | None:
    """The same of a value of which some fields are wanted."""
    if of.kind == "union":
        records = [each for _, each in of.parts if each.kind == "record"]
        pick = _picking(_merged(records, want)) if len(records) > 1 else None
        return _union(of, lambda each: pick if each in records and pick else _some(each, want))
    if of.kind == "record":
        dropped, converts = _parts(of, want)
        return _record(converts, dropped)
    if of.kind == "map":
        return _picking({key: _at(of.parts[0][1], part) for key, part in want.items()})
    return None if of.kind == "null" else _nothing


def _parts(of: Type, want: Mapping[str, Any]) -> tuple[list[str], dict[str, Convert | None]]:
    """The fields of a record that are dropped, and what becomes of the others."""
    converts = {name: _at(each, want[name]) for name, each in of.parts if name in want}
    return [name for name, _ in of.parts if name not in want], converts


def _at(of: Type, want: Wanted) -> Convert | None:
    return _leaf(of) if want is None else _some(of, want)


def _merged(records: Iterable[Type], want: Mapping[str, Any]) -> dict[str, Convert | None]:
    """What becomes of the fields of several records, of which it is not known which one a value
    is. Raises SchemaError where that matters."""
    found: dict[str, tuple[bool, Convert | None]] = {}
    for record in records:
        for name, each in record.parts:
            if name in want:
                one = each.is_time, _at(each, want[name])
                if found.setdefault(name, one) != one:
                    raise SchemaError(f"a union of records that differ in {name}", "unserved")
    return {name: convert for name, (_, convert) in found.items()}


def _picking(converts: Mapping[str, Convert | None]) -> Convert:
    return lambda value: {
        name: value[name] if convert is None or value[name] is None else convert(value[name])
        for name, convert in converts.items() if name in value
    }  # fmt: skip


def _record(converts: Mapping[str, Convert | None], dropped: Sequence[str]) -> Convert | None:
    todo = [(name, convert) for name, convert in converts.items() if convert is not None]
    if not todo and not dropped:
        return None

    def convert_record(value: dict[str, Any]) -> dict[str, Any]:
        for name in dropped:
            del value[name]
        for name, convert in todo:
            if (found := value[name]) is not None:
                value[name] = convert(found)
        return value

    return convert_record


_PYTHON = {
    "boolean": bool, "int": int, "long": int, "float": float, "double": float, "bytes": bytes,
    "fixed": bytes, "string": str, "enum": str, "record": dict, "map": dict, "array": list,
}  # fmt: skip


def _union(of: Type, made: Callable[[Type], Convert | None]) -> Convert | None:
    """By the type that the value has in Python, which must tell what it is. Raises SchemaError."""
    by_type: dict[type, tuple[Type, Convert | None]] = {}
    for _, each in of.parts:
        if each.kind == "null":
            continue
        convert, kind = made(each), _PYTHON[each.kind]
        before = by_type.setdefault(kind, (each, convert))
        if before[1] is not convert or before[0].is_time != each.is_time:
            names = " and ".join(t.logical or t.kind for t in (before[0], each))
            raise SchemaError(f"a union of {names}, which cannot be told apart", "unserved")
    converts = {kind: convert for kind, (_, convert) in by_type.items() if convert is not None}
    if len(by_type) == 1 and converts:
        return next(iter(converts.values()))
    if not converts:
        return None

    def convert_branch(value: Any) -> Any:
        convert = converts.get(type(value))
        return value if convert is None or value is None else convert(value)

    return convert_branch


def connect_schema(of: Type) -> bytes:
    """What `AvroReader` leaves unsaid of values that are wanted whole, as Kafka Connect's JSON says
    it: what types are called, and the scales of decimals."""
    return msgspec.json.encode(_connect(of, ""))


def _connect(of: Type, field: str) -> dict[str, Any]:
    branches = [each for _, each in of.parts if each.kind != "null"]
    if of.kind == "union" and len(branches) == 1:
        return _connect(branches[0], field)
    found: dict[str, Any] = {"field": field, "type": "struct" if of.kind == "record" else of.kind}
    if of.logical is not None:
        found["name"] = _OF_CONNECT.get(of.logical, of.logical)
    if of.logical == "decimal":
        found["parameters"] = {"scale": str(of.scale)}
    if of.kind == "record":
        found["fields"] = [_connect(each, name) for name, each in of.parts]
    return found


# Reading -------------------------------------------------------------------------------------


class AvroReader:
    """Reads records of one writer's schema to JSON. fields: those that are wanted, by name or
    dotted path; None: all, as Kafka Connect writes them beside their schema. Raises SchemaError,
    PipelineError if fastavro is not installed."""

    def __init__(self, of: Type, fields: Iterable[str] | None) -> None:
        avro = _fastavro()
        self._decode = avro.schemaless_reader
        rewriter = _Rewriter()
        self._before = self._behind = b""
        if fields is None:
            plain, convert = rewriter.all(of), _whole(of)
            self._before = b'{"schema":%s,"payload":' % connect_schema(of)
            self._behind = b"}"
        else:
            want = wanted(fields)
            plain, convert = rewriter.some(of, want), _some(of, want)
            if of.kind == "record":
                self._dropped, self._converts = _parts(of, want)
        self._convert: Convert = convert or (lambda value: value)
        self._is_record = of.kind == "record"
        try:
            self._one = avro.parse_schema(plain)
            if self._is_record:
                end = {"name": _MARK_FIELD, "type": rewriter.named("fixed", size=len(_MARK))}
                marked = rewriter.named("record", fields=[*plain["fields"], end])
                self._many = avro.parse_schema({"type": "array", "items": marked})
        except Exception as error:  # noqa: BLE001 - it has a class for each mistake, and others
            raise SchemaError(f"not a schema of Avro: {error}", "unserved") from None

    def read(self, body: bytes) -> bytes:
        """A record as JSON. Raises RecordError."""
        data = io.BytesIO(body)
        try:
            value = self._decode(data, self._one)
        except Exception as error:  # noqa: BLE001 - damaged bytes raise anything in fastavro
            what = "its bytes are others"
            if isinstance(error, EOFError):
                what = "it ends too early"
            elif isinstance(error, UnicodeDecodeError):
                what = "text that is not UTF-8"
            raise RecordError(f"not a record of its schema: {what}", "malformed") from None
        if data.tell() != len(body):
            raise RecordError("not a record of its schema: bytes are left over", "malformed")
        if not isinstance(value, dict):
            raise RecordError("a record of Avro is a record or a map", "malformed")
        return self._before + msgspec.json.encode(self._convert(value)) + self._behind

    def _converted(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What `convert` makes of each, field by field. Raises RecordError, and ValueError if it
        may be that one is not read."""
        for name in self._dropped:
            for row in rows:
                del row[name]
        for name, convert in self._converts.items():
            if convert is _as_float:
                # One that is no number makes the sum none; so may others, which is seen by halves.
                if not math.isfinite(sum(filter(None, [row[name] for row in rows]))):
                    raise ValueError(name)
            elif convert is not None:
                for row in rows:
                    if (found := row[name]) is not None:
                        row[name] = convert(found)
        return rows

    def read_many(self, bodies: Sequence[bytes]) -> bytes | None:
        """Many records as JSON, one a line; None if some cannot be read, or not in this way.
        REQUIRES: not all fields are wanted."""
        if not self._is_record:
            return None
        data = _varint(len(bodies)) + _MARK.join(bodies) + _MARK + b"\0"
        try:
            rows = self._decode(io.BytesIO(data), self._many)
            if [row.pop(_MARK_FIELD) for row in rows] != [_MARK] * len(bodies):
                return None
            return msgspec.json.Encoder().encode_lines(self._converted(rows))
        except Exception:  # noqa: BLE001 - as above; each is then read by itself, which says why
            return None


def _varint(number: int) -> bytes:
    """As Avro writes a long."""
    number, found = number << 1, bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _fastavro() -> Any:
    try:
        import fastavro
    except ImportError:
        raise PipelineError(
            f"records of Avro are read with fastavro: {how_to_install('registry')}"
        ) from None
    return fastavro
