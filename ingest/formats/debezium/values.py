"""What columns hold in Debezium's encodings, and what the schema of a record says of them.

Debezium writes a decimal as base64 whose scale is in the schema, or beside it, or as text; times in
milliseconds, microseconds, nanoseconds or days, by the name of the type in the schema; and MongoDB
its values as extended JSON, {"$numberLong": "5"}. A record without its schema says none of this:
then text is read as what it looks like, and integers by the mapping's unit.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from ...errors import RecordError
from ..mapped import JSON, REFUSED
from ..times import in_ms

UNAVAILABLE = "__debezium_unavailable_value"  # of a large column that did not change
_DAY_MS = 86_400_000
_EXACT = 2**53
_MOST_DECIMALS = 400  # of a weight that is summed exactly: text of a few bytes could name millions
# By a schema's name, how many of its units are a millisecond; a day is many.
_TIMES = {
    "io.debezium.time.Date": "days", "org.apache.kafka.connect.data.Date": "days",
    "io.debezium.time.Timestamp": "ms", "org.apache.kafka.connect.data.Timestamp": "ms",
    "io.debezium.time.MicroTimestamp": "us", "io.debezium.time.NanoTimestamp": "ns",
    "io.debezium.time.Time": "ms", "org.apache.kafka.connect.data.Time": "ms",
    "io.debezium.time.MicroTime": "us", "io.debezium.time.NanoTime": "ns",
}  # fmt: skip
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
# NaN and infinities are numbers in text, too: what is said of them is that they are not finite.
_PLAIN = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?i:nan|inf(?:inity)?)"
)


class ColumnType(NamedTuple):
    """What a schema says of a column: its name for the type, and the scale of a decimal."""

    name: str
    scale: int = 0


Types = Mapping[str, ColumnType]
NO_TYPES: Types = {}  # of a row without its schema
UNNAMED = ColumnType("")  # of a column whose schema has no name for its type


# Schemas -------------------------------------------------------------------------------------


@lru_cache(256)
def types_of(schema: bytes) -> Mapping[str, Types]:
    """What a schema says: of the rows in an envelope, by "before" and "after"; of the columns of
    anything else, by "". Raises RecordError."""
    if schema == b"null":
        return {}
    JSON.check_depth(schema)
    try:
        fields = msgspec.json.decode(schema, type=_Schema).fields
    except REFUSED as error:
        raise RecordError(f"the schema is none of Kafka Connect: {error}", "malformed") from None
    found: dict[str, Types] = {"": dict(_types(fields, ""))}
    for part in fields:
        if part.field in ("before", "after"):
            found[part.field] = dict(_types(part.fields, ""))
    return found


class _Schema(msgspec.Struct):
    fields: list[_Schema] = []
    field: str = ""
    name: str | None = None
    parameters: dict[str, Any] | None = None


def _types(fields: Iterable[_Schema], path: str) -> Iterator[tuple[str, ColumnType]]:
    for one in fields:
        if one.name is not None:
            scale = str((one.parameters or {}).get("scale", "0"))
            if not scale.removeprefix("-").isdecimal() or len(scale) > 6:
                raise RecordError(f"the schema has a scale {scale!r}", "malformed")
            yield path + one.field, ColumnType(one.name, int(scale))
        yield from _types(one.fields, f"{path}{one.field}.")


# Values --------------------------------------------------------------------------------------


def _decimal(value: Any, type: ColumnType | None) -> Any:
    """The number that a value stands for, as `Decimal`; what is none stays. Raises RecordError."""
    if isinstance(value, str) and type is not None and type.name == _DECIMAL:
        return _unscaled(value, type.scale)
    if not isinstance(value, dict):
        return value
    if value.keys() == {"scale", "value"} and isinstance(value["scale"], int):
        return _unscaled(value["value"], value["scale"])
    if len(value) == 1:
        ((wrapper, inner),) = value.items()
        if wrapper in ("$numberLong", "$numberInt", "$numberDecimal", "$numberDouble"):
            return _number(inner)
        if wrapper in ("$oid", "$date"):
            return _decimal(inner, None)
    raise RecordError("expected a number or text, not an object")


def _unscaled(text: Any, scale: int) -> Decimal:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise RecordError(f"{text!r} is no decimal in base64") from None
    if len(data) > 64 or abs(scale) > 1000:
        raise RecordError("a decimal with too many digits")
    # Not `scaleb`, which rounds to 28 digits.
    return Decimal(f"{int.from_bytes(data, 'big', signed=True)}e{-scale}")


def _number(text: Any) -> Decimal:
    # Python reads more than databases write: 1_000, blanks, digits of other scripts.
    if isinstance(text, str) and not _PLAIN.fullmatch(text):
        raise RecordError(f"{text!r} is no number")
    try:
        found = Decimal(text)
    except (InvalidOperation, TypeError, ValueError):
        raise RecordError(f"{text!r} is no number") from None
    if not found.is_finite():
        raise RecordError(f"{text!r} is no finite number")
    return found


def _is_base64(text: str) -> bool:
    with suppress(binascii.Error, ValueError):
        return bool(base64.b64decode(text, validate=True))
    return False


def vertex_of(value: Any, type: ColumnType | None = None) -> Any:
    """The vertex that a value names; None of null. Raises RecordError."""
    found = _decimal(value, type)
    if not isinstance(found, Decimal):
        return found
    if found != found.to_integral_value() or found.adjusted() > 40:
        raise RecordError(f"{found} names no vertex: it is not whole")
    return int(found)


def weight_of(value: Any, type: ColumnType | None = None) -> Any:
    """The weight that a value is, a number or its text; None of null. type: None: there is no
    schema. Raises RecordError."""
    found = _weight(value, type)
    return float(found) if isinstance(found, Decimal) else found


def exact_weight_of(value: Any, type: ColumnType | None = None) -> Any:
    """The same, as a `Decimal` if it is not the shortest decimal of a float. Raises RecordError."""
    found = _weight(value, type)
    if isinstance(found, int) and not is_exact(found):
        found = Decimal(found)
    if not isinstance(found, Decimal):
        return found
    rounded = float(found)
    if Decimal(repr(rounded)) == found or -found.adjusted() > _MOST_DECIMALS or (
        len(found.as_tuple().digits) > _MOST_DECIMALS
    ):  # fmt: skip
        return rounded
    return found


def float_weight_of(value: Any, type: ColumnType | None = None) -> Any:
    """The same where it is a float. Raises RecordError where it is none, too."""
    found = exact_weight_of(value, type)
    if isinstance(found, Decimal):
        raise RecordError(f"{found} is no float")
    return found


def is_exact(number: float) -> bool:
    """Whether an integer that was read as this float is sure to be it."""
    return -_EXACT < number < _EXACT


def _weight(value: Any, type: ColumnType | None) -> Any:
    """A weight as it is told, text and wrapped numbers as `Decimal`. Raises RecordError."""
    found = _decimal(value, type)
    if isinstance(found, str):
        try:
            found = _number(found)
        except RecordError as error:
            if type is not None or _PLAIN.fullmatch(found) or not _is_base64(found):
                raise
            raise RecordError(
                f"{error}: without their schema decimals in base64 cannot be read: "
                "decimal.handling.mode=double or string, or schemas.enable=true for values"
            ) from None
    return found


def time_of(value: Any, unit: str, type: ColumnType | None = None) -> Any:
    """The time that a value is, in ms; None of null. unit: of an integer without a type. Raises
    RecordError."""
    if isinstance(value, dict) and value.keys() == {"$date"}:
        unit = "ms"
    found = _decimal(value, type)
    if isinstance(found, Decimal):
        found = int(found)
    if isinstance(found, str):
        return in_ms(found.removesuffix("Z") if _is_date(found) else found, "ms")
    unit = unit if type is None else _TIMES.get(type.name, unit)
    if unit == "days":
        return found * _DAY_MS if isinstance(found, int) else found
    return in_ms(found, unit)


def _is_date(text: str) -> bool:
    """Whether this is a date of `io.debezium.time.IsoDate`, which has a zone."""
    return len(text) == 11 and text[-1] == "Z"


def is_unavailable(value: Any) -> bool:
    return isinstance(value, str) and value in (UNAVAILABLE, _UNAVAILABLE_64)


_UNAVAILABLE_64 = base64.b64encode(UNAVAILABLE.encode()).decode()  # of bytes and decimals
