"""Columns of vertex names: integers of 64 bits, text, or both.

    column X of names := X: bin u4 or u8              not negative; which of the two, by its length
                       | X_signed: bin i8
                       | X_text: bin, X_ends: bin u4  UTF-8, and where each name ends in it
                       , X_number: bin u1             absent: zeros; 1: this name is an integer

An integer in a column of text is written in decimals, without a plus sign or leading zeros. So a
column may hold any mixture, and the integer 5 and the text "5" stay two vertices.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from lpma.arguments.convert import MAX_NAME_BYTES
from lpma.arguments.scalars import is_integer, shown

from ..errors import RecordError
from ..types import Array, Name
from .msgpack import binary, text_name, unsigned

MIN_NAME, MAX_NAME = -(2**63), 2**64 - 1
DECIMALS = re.compile(r"0|-?[1-9][0-9]{0,19}")  # an integer, where these limits hold too


def field_names(name: str) -> frozenset[str]:
    """Every field that a column of names may take."""
    return frozenset({name, f"{name}_signed", f"{name}_text", f"{name}_ends", f"{name}_number"})


def read_names(fields: dict[Any, Any], name: str, rows: int, max_texts: int) -> Array:
    """The column `name` of `rows` names: uint32 or uint64, int64 where some are negative, objects
    where some are text. Raises RecordError."""
    integers, signed, text = name in fields, f"{name}_signed" in fields, f"{name}_text" in fields
    if integers + signed + text != 1:
        raise RecordError(f"{name}: one of {name}, {name}_signed and {name}_text is expected")
    if not text and (f"{name}_ends" in fields or f"{name}_number" in fields):
        raise RecordError(f"{name}: ends and number belong to {name}_text")
    if text:
        if rows > max_texts:
            raise RecordError(
                f"{rows} rows: at most {max_texts} of text a record; cut it", "oversized"
            )
        return _read_texts(fields, name, rows)
    if signed:
        column = binary(fields, f"{name}_signed", "<i8", rows)
        return column if bool((column < 0).any()) else column.view(np.uint64)
    return unsigned(fields, name, rows)


def _read_texts(fields: dict[Any, Any], name: str, rows: int) -> Array:
    blob = fields[f"{name}_text"]
    if not isinstance(blob, bytes):
        raise RecordError(f"{name}_text: expected a bin column")
    ends = binary(fields, f"{name}_ends", "<u4", rows).astype(np.int64)
    sizes = ends.copy()
    sizes[1:] -= ends[:-1]
    if (int(ends[-1]) if rows else 0) != len(blob):
        raise RecordError(f"{name}_ends: the last is not the end of the text")
    if rows and not 1 <= int(sizes.min()) <= int(sizes.max()) <= MAX_NAME_BYTES:
        raise RecordError(f"{name}_ends: each text has 1 to {MAX_NAME_BYTES} bytes")
    numbers = None
    if f"{name}_number" in fields:
        numbers = binary(fields, f"{name}_number", "u1", rows)
        if int(numbers.max(initial=0)) > 1:
            raise RecordError(f"{name}_number: 0 or 1 is expected")
    column = np.empty(rows, object)
    start = 0
    try:
        for i, end in enumerate(ends.tolist()):
            column[i] = blob[start:end].decode()
            start = end
    except UnicodeDecodeError as error:
        raise RecordError(f"{name}_text: row {i} is not UTF-8: {error.reason}") from None
    if numbers is not None:
        for i in np.flatnonzero(numbers).tolist():
            column[i] = _integer(column[i], name)
    return column


def _integer(decimals: str, name: str) -> int:
    value = int(decimals) if DECIMALS.fullmatch(decimals) else MAX_NAME + 1
    if not MIN_NAME <= value <= MAX_NAME:
        raise RecordError(f"{name}_text: {decimals!r} is not a 64-bit integer in decimal")
    return value


def names_of(values: Any, name: str) -> Array:
    """What a caller gave as vertices, as `read_names` would read it. Raises RecordError."""
    if isinstance(values, np.ndarray) and np.ma.is_masked(values):
        raise RecordError(f"{name}: some values are masked: leave these rows out")
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        values = np.asarray(values)
        column = values.reshape(1) if values.ndim == 0 else values
    else:
        items = values.tolist() if hasattr(values, "tolist") else values
        single = isinstance(items, str | bytes) or not isinstance(items, Iterable)
        column = _column_of([items] if single else list(items), name)
    if column.ndim != 1:
        raise RecordError(f"{name}: expected one dimension, got {column.ndim}")
    if column.dtype.kind == "i":
        wide = column.astype(np.int64)
        column = wide if bool((wide < 0).any()) else wide.view(np.uint64)
    if column.dtype.kind == "u" and int(column.max(initial=0)) < 2**32:
        column = column.astype(np.uint32)  # half the bytes
    return column


def _column_of(items: list[Any], name: str) -> Array:
    checked = [_name(item, name) for item in items]
    integers = [item for item in checked if isinstance(item, int)]
    if len(integers) == len(checked):
        low, high = min(integers, default=0), max(integers, default=0)
        if low >= 0 or high < 2**63:
            return np.array(integers, np.uint64 if low >= 0 else np.int64)
    column = np.empty(len(checked), object)
    column[:] = checked
    return column


def _name(item: Any, name: str) -> Name:
    if isinstance(item, str):
        return text_name(str(item), name)
    if not is_integer(item):
        raise RecordError(f"{name}: expected integers or text, got {type(item).__name__}")
    if not MIN_NAME <= item <= MAX_NAME:
        raise RecordError(f"{name}: {shown(item)} is not a 64-bit integer")
    return int(item)


def name_fields(name: str, column: Array) -> dict[str, bytes]:
    """The fields that `column`, as `names_of` makes it, is written as."""
    if column.dtype.kind == "u":
        narrow = int(column.max(initial=0)) < 2**32
        return {name: column.astype("<u4" if narrow else "<u8").tobytes()}
    if column.dtype.kind == "i":
        return {f"{name}_signed": column.astype("<i8").tobytes()}
    items = column.tolist()
    texts = [str(item).encode() for item in items]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    fields = {f"{name}_text": b"".join(texts), f"{name}_ends": ends.astype("<u4").tobytes()}
    numbers = bytes(type(item) is int for item in items)
    return fields | ({f"{name}_number": numbers} if any(numbers) else {})


def joined(columns: Sequence[Array]) -> Array:
    """Columns of names one after the other. Names of two types become objects: any single NumPy
    type would change some of them. REQUIRES: at least one column."""
    filled = [column for column in columns if len(column)] or columns[:1]
    alike = len({column.dtype for column in filled}) == 1
    return np.concatenate(filled if alike else [column.astype(object) for column in filled])


def plain_name(field: str) -> Name:
    """The name in a field of a text file: an integer where it is one of 64 bits in decimals, else
    the text. Raises RecordError."""
    if DECIMALS.fullmatch(field) and MIN_NAME <= (value := int(field)) <= MAX_NAME:
        return value
    return text_name(field, "name")
