"""Records in Confluent's envelope: what they hold, as JSON that the topic's mapping reads.

    record := 00 id body              id: of the schema, 4 bytes, big-endian

No record of another form begins with the byte 0: as JSON it is none, and as msgpack it is an
integer. What the body becomes depends on the schema's kind:

    JSON       the body as it stands
    AVRO       JSON that `avro.py` makes of it, with the fields that the mapping names; many at
               once are rows that `avro_rows.py` reads, where it can
    others     a dead letter, that says so

So both readers of records, the fast one and the careful one, come to the same. Avro says
itself in which unit a time of a logical type counts, so the mapping's own `time_unit` does not hold
there: it becomes ms.

Requires that `Schemas.ready` has been asked about the ids that are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import msgspec.structs
import numpy as np

from ..errors import RecordError
from ..fields import Fields
from ..formats.debezium.recognition import is_change_event
from ..formats.mapped import MAX_MAPPED_BYTES
from ..formats.row_reader import PlainRows
from ..types import Array, Polled, Values
from .avro import AvroReader, SchemaError, Type, parse
from .client import Schema
from .schemas import Schemas

HEADER_BYTES = 5
_MAX_BYTES = HEADER_BYTES + MAX_MAPPED_BYTES
_OF_CHANGES = ("op", "source", "after", "__op", "__deleted")  # fields of change events
_FIRST_OF_MSGPACK = 0x80  # no JSON begins so


class Enveloped(NamedTuple):
    """Where records of one schema, or none in the envelope (id None), lie among others."""

    start: int
    stop: int
    id: int | None


def id_of(value: object) -> int | None:
    """The schema's id of a record in the envelope; None: it is in none, or larger than any may
    be."""
    if type(value) is not bytes or not HEADER_BYTES <= len(value) <= _MAX_BYTES or value[0]:
        return None
    return int.from_bytes(value[1:HEADER_BYTES], "big")


def in_stretches(values: Values) -> Iterator[Enveloped]:
    """All of `values`, in order, cut where the schema changes."""
    within = (values.first_bytes() == 0) & (values.stops - values.starts >= HEADER_BYTES)
    if not within.any():
        yield Enveloped(0, len(values), None)
        return
    ids = _ids(values, within)
    for start, stop in pairwise([0, *(np.flatnonzero(ids[1:] != ids[:-1]) + 1).tolist(), len(ids)]):
        yield Enveloped(start, stop, int(ids[start]) if within[start] else None)


def _ids(values: Values, within: Array) -> Array:
    """int64[n]: the id of each; -1 of one that is in no envelope."""
    data, starts = np.frombuffer(values.data, np.uint8), values.starts[within]
    ids = np.full(len(values), -1, np.int64)
    ids[within] = sum(data[starts + at].astype(np.int64) << 8 * (4 - at) for at in range(1, 5))
    return ids


class Envelope:
    """Unwraps the records of one topic. schemas: None: no registry is known; then it is said what
    to do. fields: the topic's mapping; None: it has none. of_table: whether these are changes of a
    table: they have all of their fields, those of Avro as Kafka Connect writes them beside their
    schema, and keys."""

    def __init__(
        self, schemas: Schemas | None, fields: Fields | None, *, of_table: bool = False
    ) -> None:
        self._schemas, self._fields, self._of_table = schemas, fields, of_table
        self._made: dict[int, Unwrapping | RecordError] = {}

    def ids_in(self, polled: Polled) -> set[int]:
        """The ids of the schemas by which these are read."""
        if self._schemas is None or self._fields is None:
            return set()
        value = polled.value
        # Keys are read of changes of a table alone; others may be any bytes.
        if isinstance(value, Values):
            many = [value, *([value.keys] if self._of_table and value.keys else [])]
            ids = {part.id for values in many for part in in_stretches(values)}
        else:
            ids = {id_of(value), id_of(polled.key) if self._of_table else None}
        return {id for id in ids if id is not None}

    def inner(self, value: bytes, stamp: int) -> tuple[bytes, Fields | None]:
        """What a record holds, and the mapping that reads it; the record itself, if it is in no
        envelope. Raises RecordError."""
        if (id := id_of(value)) is None:
            return value, self._fields
        unwrapping = self.unwrapping(id, stamp)
        return unwrapping.one(value), unwrapping.fields

    def is_of_changes(self, value: bytes, stamp: int) -> bool:
        """Whether a record in the envelope looks like a change event of Debezium: by its schema, as
        only the fields that are mapped are read. Raises RecordError."""
        unwrapping = self.unwrapping(id_of(value) or 0, stamp)
        if unwrapping.schema is None:
            return is_change_event(unwrapping.one(value))
        has = {name: any(True for _ in unwrapping.schema.at([name])) for name in _OF_CHANGES}
        return (has["op"] and has["source"] and has["after"]) or has["__op"] or has["__deleted"]

    def unwrapping(self, id: int, stamp: int) -> Unwrapping:
        """How records with this schema are unwrapped. Raises RecordError if they are not."""
        if self._schemas is None:
            raise RecordError(
                f"this looks like Confluent's envelope, with schema {id}: give schema_registry, or "
                "--schema-registry URL",
                "unserved",
            )
        if self._fields is None:
            raise RecordError(
                "a record in Confluent's envelope is read by a mapping: say which of its fields "
                "are what, as records=Fields(…) or --source and --target",
                "unserved",
            )
        schema = self._schemas.of(id, stamp)
        found = self._made.get(id)
        if found is None:
            try:
                found = self._unwrapping(schema, self._fields)
            except SchemaError as error:
                found = RecordError(f"schema {id}: {error}", error.kind)
            self._made[id] = found
        if isinstance(found, RecordError):
            raise RecordError(str(found), found.kind)
        return found

    def _unwrapping(self, schema: Schema, fields: Fields) -> Unwrapping:
        """Raises SchemaError."""
        id, kind = schema.id, schema.kind
        if kind == "JSON":
            return Unwrapping(id, fields, None)
        if kind != "AVRO":
            name = {"PROTOBUF": "Protobuf"}.get(kind, kind)
            raise SchemaError(
                f"it is one of {name}, which is not read: JSON and Avro are", "unserved"
            )
        of = parse(schema.text, schema.references)
        if self._of_table:
            return Unwrapping(id, fields, AvroReader(of, None))
        from .avro_rows import program_of  # not above: Numba takes a third of a second to import

        names = {name for name in fields.by_role().values() if name is not None}
        if isinstance(fields.time, str) and any(t.is_time for t in of.at(fields.time.split("."))):
            fields = msgspec.structs.replace(fields, time_unit="ms")
        return Unwrapping(id, fields, AvroReader(of, names), program_of(of, fields), of)


class Unwrapping:
    """Of records of one topic that have the same schema. fields: the mapping that reads them then.
    avro: None: they are JSON. program: see `avro_rows.py`. schema: of rows in Avro."""

    def __init__(
        self, id: int, fields: Fields, avro: AvroReader | None, program: Array | None = None,
        schema: Type | None = None,
    ) -> None:  # fmt: skip
        self.fields, self.schema = fields, schema
        self._id = id
        self._avro = avro
        self._program = program

    def plain_rows(self, values: Values, names: bool) -> PlainRows | None:
        """The rows of many records, as far as they are plain; None: of this schema none are."""
        if self._program is None or values.longest > _MAX_BYTES:
            return None
        from .avro_rows import read_rows

        return read_rows(values, HEADER_BYTES, self._program, names)

    def one(self, value: bytes) -> bytes:
        """What a record holds, as JSON. Raises RecordError."""
        if len(value) > _MAX_BYTES:
            raise RecordError(f"{len(value)} bytes: at most {_MAX_BYTES} here", "oversized")
        body = value[HEADER_BYTES:]
        if self._avro is not None:
            try:
                return self._avro.read(body)
            except RecordError as error:
                raise RecordError(f"schema {self._id}: {error}", error.kind) from None
        if not body or body[0] >= _FIRST_OF_MSGPACK:
            raise RecordError("not JSON, as its schema has it", "malformed")
        return body

    def many(self, values: Values) -> Values | None:
        """The same of many; None if some cannot be unwrapped, or not in this way."""
        if values.longest > _MAX_BYTES:
            return None
        data, starts = values.data, values.starts + HEADER_BYTES
        if self._avro is None:
            bodies = Values(data, starts, values.stops, values.times)
            first = bodies.first_bytes()
            return bodies if bool(((first > 0) & (first < _FIRST_OF_MSGPACK)).all()) else None
        places = zip(starts.tolist(), values.stops.tolist(), strict=True)
        lines = self._avro.read_many([data[start:stop] for start, stop in places])
        if lines is None:
            return None
        ends = np.flatnonzero(np.frombuffer(lines, np.uint8) == ord("\n"))
        if len(ends) != len(values):
            return None
        return Values.in_lines(lines, np.diff(ends, prepend=-1) - 1)
