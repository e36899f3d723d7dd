"""One flat msgpack value within limits, and checks of its fields, which all record formats share.

Idea: bytes are judged before they are decoded, because msgpack turns 1 MB of nested empties into
65 MB of objects: first the size, then msgpack's own limits, then at most one container, which
leaves nothing to nest (or a few, in a body of HTTP). Whatever is wrong raises RecordError and
nothing else.
"""

from __future__ import annotations

import re
from typing import Any

import msgpack
import numpy as np
import numpy.typing as npt

from lpma.arguments.convert import MAX_NAME_BYTES, TAKEN_WEIGHTS
from lpma.batch.columns import MAX_WEIGHT, Kind

from ..errors import RecordError
from ..types import MAX_TEXT_BYTES

MAX_ENTRIES = 16

_TOPIC = re.compile(r"[A-Za-z0-9._-]+")


class NestedRecord(RecordError):
    """Containers nest where a record is flat."""

    def __init__(self) -> None:
        super().__init__("containers do not nest in a record", "malformed")


class RepeatedFields(dict[Any, Any]):
    """A map in which a field appears twice: of a row the last counts, anything else is refused."""


def unpack(
    data: bytes | bytearray | memoryview,
    max_bytes: int,
    max_text: int = MAX_NAME_BYTES,
    *,
    max_items: int = MAX_ENTRIES,
    max_fields: int = MAX_ENTRIES,
    max_containers: int = 1,
    may_repeat: bool = False,
) -> Any:
    """One flat msgpack value within limits; max_items: of an array; max_fields: of a map;
    may_repeat: whether a map that has a field twice becomes RepeatedFields. Raises RecordError
    only."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise RecordError(f"a record is bytes, got {type_name(data)}", "malformed")
    if len(data) > max_bytes:
        message = f"{len(data)} bytes: at most {max_bytes} here; cut it into records"
        raise RecordError(message, "oversized")
    containers = 0

    def counted(items: list[Any]) -> list[Any]:
        # The innermost container completes first, so where one is allowed, a nested one is refused
        # at its second.
        nonlocal containers
        containers += 1
        if containers > max_containers:
            raise NestedRecord
        return items

    def one_map(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
        fields = dict(counted(pairs))
        if len(fields) == len(pairs):
            return fields
        if not may_repeat:
            raise RecordError("a field appears twice")
        return RepeatedFields(fields)

    try:
        return msgpack.unpackb(
            data,
            object_pairs_hook=one_map,
            list_hook=counted,
            ext_hook=_refuse_extension,
            strict_map_key=True,
            max_str_len=max_text,
            max_bin_len=max_bytes,
            max_array_len=min(max_items, len(data)),
            max_map_len=max_fields,
            max_ext_len=0,
        )
    except RecordError:
        raise
    except (ValueError, TypeError, OverflowError, msgpack.UnpackException) as error:
        reason = str(error) or f"its bytes are none of the format ({type(error).__name__})"
        if isinstance(error, msgpack.StackError):
            reason = "it nests too deeply"
        elif "max_array_len" in reason:  # msgpack has one type for all its limits
            if max_items >= len(data):
                reason = "a list is said to be longer than the bytes that came"
            elif max_containers == 1:
                raise NestedRecord from None
            else:
                raise RecordError(f"it has more than {max_items:,} values", "oversized") from None
        raise RecordError(f"not a msgpack record: {reason}", "malformed") from None


def _refuse_extension(code: int, data: bytes) -> Any:
    raise RecordError(f"msgpack extension {code} has no meaning here", "malformed")


def only_fields(fields: dict[Any, Any], known: frozenset[str]) -> None:
    """REQUIRES: the map's keys are text or bytes. Raises RecordError for one not known."""
    if not fields.keys() <= known:
        unknown = ", ".join(sorted(repr(name)[:70] for name in fields.keys() - known))
        raise RecordError(f"unknown field {unknown}")


def integer(fields: dict[Any, Any], name: str, low: int, high: int) -> int:
    """Field `name`, an integer within [low, high]. Raises RecordError."""
    value = fields.get(name)
    if type(value) is not int:
        raise RecordError(f"{name}: expected an integer, got {type_name(value)}")
    if not low <= value <= high:
        raise RecordError(f"{name}: {value} lies outside {low} … {high}")
    return value


def text(fields: dict[Any, Any], name: str) -> str:
    """Field `name`, non-empty text. Raises RecordError."""
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise RecordError(f"{name}: expected non-empty text, got {type_name(value)}")
    return value


def short_text(fields: dict[Any, Any], name: str) -> str:
    """Field `name`, text of up to MAX_TEXT_BYTES. Raises RecordError."""
    value = text(fields, name)
    if len(value.encode(errors="replace")) > MAX_TEXT_BYTES:
        raise RecordError(f"{name}: text of at most {MAX_TEXT_BYTES} bytes is taken")
    return value


def text_name(value: str, name: str) -> str:
    """`value` where it can name a vertex. Raises RecordError."""
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise RecordError(f"{name}: a lone surrogate is not valid text") from None
    if not 1 <= size <= MAX_NAME_BYTES:
        raise RecordError(f"{name}: text of 1 to {MAX_NAME_BYTES} bytes names a vertex, not {size}")
    return value


def topic_name(name: str) -> str:
    """`name` where it can name a topic. Raises RecordError."""
    if len(name) > MAX_TEXT_BYTES or not _TOPIC.fullmatch(name):
        raise RecordError(f"{name[:64]!r}: a topic is up to 64 letters, digits, '.', '_' or '-'")
    return name


def number(value: object, name: str) -> float:
    """`value`, a weight. Raises RecordError."""
    if type(value) not in (int, float):
        raise RecordError(f"{name}: expected a number, got {type_name(value)}")
    # Compared before it is converted: an integer of any size compares, NaN fails.
    if not abs(value) <= MAX_WEIGHT:  # type: ignore[arg-type]
        raise RecordError(f"{name}: {TAKEN_WEIGHTS}")
    return float(value)  # type: ignore[arg-type]


def has_expiry(kind: npt.NDArray[Any]) -> bool:
    """Whether a row of this column of kinds, of updates, is an expiry."""
    return bool((kind == Kind.EXPIRE).any())


def type_name(value: object) -> str:
    return {type(None): "nothing", dict: "object"}.get(type(value), type(value).__name__)


def binary(fields: dict[Any, Any], name: str, dtype: str, rows: int) -> npt.NDArray[Any]:
    """Field `name`, a column of `rows` values; "f" is float32 or float64, by the length."""
    value = fields.get(name)
    if not isinstance(value, bytes):
        raise RecordError(f"{name}: expected a bin column, got {type_name(value)}")
    if dtype == "f":
        dtype = "<f4" if len(value) == 4 * rows else "<f8"
    expected = rows * np.dtype(dtype).itemsize
    if len(value) != expected:
        raise RecordError(f"{name}: {len(value)} bytes, but {rows} rows take {expected}")
    return np.frombuffer(value, dtype)


def unsigned(fields: dict[Any, Any], name: str, rows: int) -> npt.NDArray[Any]:
    """Field `name`, a column of `rows` integers: uint32 or uint64, by the length."""
    value = fields.get(name)
    wide = isinstance(value, bytes) and len(value) != 4 * rows
    return binary(fields, name, "<u8" if wide else "<u4", rows)
