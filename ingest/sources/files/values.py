"""Values of text as names, times and numbers: whole columns by Arrow's kernels where all are good,
one by one in Python where some are not.

A name that is an integer of 64 bits in decimals, without a sign or zeros that it can do without, is
that integer; anything else is text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arguments.arrow import as_numpy, text_array
from lpma.arguments.convert import MAX_NAME_BYTES

from ...errors import RecordError, SourceError
from ...formats.names import plain_name
from ...formats.times import NOT_A_DATE, millisecond
from .left_out import NO_NUMBER
from .pieces import Fault, Faults, note
from .reading import EXACT, MISSING, SHOWN, Reading, whole_text

Array = npt.NDArray[Any]


# -- names ----------------------------------------------------------------------------------------


def with_integers(texts: Any, is_number: Array) -> Any:
    """A column of text as names, integers where the text is one and is said to be."""
    if not is_number.any():
        return texts
    names = np.empty(len(texts), object)
    names[:] = texts.to_pylist()
    for row in np.flatnonzero(is_number).tolist():
        names[row] = _name(names[row])
    return names


def as_names(array: Any, whole: bool = False) -> Any:
    """Text as names: integers of 64 bits, text, or objects if some are each. whole: 2.0 is 2."""
    import pyarrow
    import pyarrow.compute as pc

    if whole:
        entries = array.dictionary_encode()
        texts = [whole_text(text) for text in entries.dictionary.to_pylist()]
        array = pyarrow.array(texts, pyarrow.string()).take(entries.indices)
    digits = pc.or_(pc.ascii_is_decimal(array), pc.starts_with(array, "-"))
    if not pc.any(digits).as_py():
        return array
    if pc.all(digits).as_py():
        try:
            numbers = array.cast(pyarrow.int64())
        except pyarrow.ArrowInvalid:
            pass
        else:
            if numbers.cast(pyarrow.string()).equals(array):  # no zeros or signs are lost
                return as_numpy(numbers)
    return mixed_names(array)


def mixed_names(array: Any) -> Any:
    """The same where some are integers and some are not. What cannot be a name stays text."""
    entries = array.dictionary_encode()
    found = np.empty(len(entries.dictionary), object)
    found[:] = [_name(text) for text in entries.dictionary.to_pylist()]
    if all(isinstance(name, str) for name in found):
        return array
    column = found[as_numpy(entries.indices)]
    if all(type(name) is int and name >= 0 for name in column):
        return column.astype(np.uint64)
    return column


def _name(text: str) -> int | str:
    try:
        return plain_name(text)
    except RecordError:
        return text


# -- times ----------------------------------------------------------------------------------------


def milliseconds(array: Any) -> Array:
    """Dates and times of ISO 8601, or Arrow's own, as milliseconds since 1970; without a zone they
    are in UTC. Raises ArrowInvalid."""
    import pyarrow
    import pyarrow.compute as pc

    if pyarrow.types.is_string(array.type) or pyarrow.types.is_large_string(array.type):
        array = pc.utf8_trim_whitespace(array)
        if len(array) and array[0].as_py().endswith(("UTC", "GMT")):
            array = pc.replace_substring_regex(array, " ?(UTC|GMT)$", "Z")
        zoned = len(array) and _has_zone(array[0].as_py())
        array = array.cast(pyarrow.timestamp("us", "UTC" if zoned else None))
    elif pyarrow.types.is_date(array.type):
        array = array.cast(pyarrow.timestamp("ms"))
    unit = {"s": 1000, "ms": 1}.get(array.type.unit)
    stamps = as_numpy(array.cast(pyarrow.int64()))
    if unit is not None:
        return np.asarray(stamps * unit)
    return np.asarray(stamps // {"us": 1000, "ns": 1_000_000}[array.type.unit])


def _has_zone(text: str) -> bool:
    return text.endswith(("Z", "z")) or re.search(r"[T ].*[+-]", text) is not None


# -- columns --------------------------------------------------------------------------------------


def as_needed(field: str, column: Any, reading: Reading, faults: Faults) -> Any:
    """A column of Arrow's as the type that a batch needs; names of text stay as they are. In
    `faults` the rows where it has no such value. Raises SourceError on a type that means nothing
    here."""
    import pyarrow

    types = pyarrow.types
    end = field in ("src", "dst")
    if types.is_dictionary(column.type) and not (end and reading.named and is_text(column.type)):
        column = column.dictionary_decode()
    if str(column.type) == "string_view":
        column = column.cast(pyarrow.string())
    text = is_text(column.type)
    if column.null_count:
        note(faults, as_numpy(column.is_null()), f"{field}: empty")
        column = column.fill_null("?" if text else pyarrow.scalar(0, column.type))
    try:
        if text and end and reading.named:
            _note_names(field, column, faults)
            return column
        if text:
            return _of_text(field, column, reading, faults)
        if end and types.is_floating(column.type):
            return _whole(field, as_numpy(column.cast(pyarrow.float64())), faults)
        if end and types.is_decimal(column.type):
            return as_numpy(column.cast(pyarrow.int64()))
        if end or field == "kind":
            if types.is_integer(column.type):
                return as_numpy(column)
        elif field == "weight":
            return as_numpy(column.cast(pyarrow.float64()))
        elif types.is_integer(column.type):
            return as_numpy(column.cast(pyarrow.int64()))
        elif types.is_floating(column.type):
            return as_numpy(column)
        elif types.is_temporal(column.type):
            return milliseconds(column)
    except pyarrow.ArrowInvalid as error:
        raise SourceError(f"{reading.path}: {SHOWN[field]}: {error}") from error
    raise unfit(field, column.type, reading)


def _note_names(end: str, column: Any, faults: Faults) -> None:
    """Note the rows of a column of text whose name is missing, or too long."""
    import pyarrow.compute as pc

    texts = column.dictionary if hasattr(column, "dictionary") else column
    sizes = as_numpy(pc.binary_length(texts))
    missing = sizes == 0
    if (sizes == len(MISSING)).any():
        missing = missing | as_numpy(pc.is_in(texts, text_array([MISSING.encode()])))
    if texts is not column:
        rows = as_numpy(column.indices)
        sizes, missing = sizes[rows], missing[rows]
    note(faults, missing, f"{end}: empty")
    most = f"{end}: text of 1 to {MAX_NAME_BYTES} bytes names a vertex"
    note(faults, sizes > MAX_NAME_BYTES, most)


def is_text(type: Any) -> bool:
    """Whether a column of this type of Arrow's holds text."""
    from pyarrow import types

    return bool(
        types.is_string(type) or types.is_large_string(type)
        or (types.is_dictionary(type) and is_text(type.value_type))
        or str(type) == "string_view"
    )  # fmt: skip


def unfit(field: str, type: Any, reading: Reading) -> SourceError:
    """That a column of this type cannot be this field."""
    return SourceError(
        f"{reading.path}: column {reading.columns[reading.places[field]]!r} is {type}: it cannot "
        f"be the {SHOWN[field]}" + ("; --names takes text" if field in ("src", "dst") else "")
    )


def _whole(field: str, values: Array, faults: Faults) -> Array:
    """Floats as the integers that they are; in `faults` the rows where one is not."""
    fits = (np.abs(values) < EXACT) & (np.trunc(values) == values)
    note(faults, ~fits, f"{field}: not a whole number that a float holds exactly")
    return np.where(fits, values, 0).astype(np.int64)


def _of_text(field: str, column: Any, reading: Reading, faults: Faults) -> Array:
    """A column of text as numbers; where some value is none, each is judged by itself."""
    import pyarrow

    try:
        found = _by_kernels(field, column, reading)
    except pyarrow.ArrowInvalid:
        found = None
    return _judged(field, column.to_pylist(), reading, faults) if found is None else found


def _by_kernels(field: str, array: Any, reading: Reading) -> Array | None:
    """A column of text as kinds, weights or dates; None for another. Raises ArrowInvalid if a value
    is none."""
    import pyarrow
    import pyarrow.compute as pc

    if field == "kind":
        words = pyarrow.array(list(reading.kinds), pyarrow.string())
        found = pc.index_in(pc.utf8_lower(pc.utf8_trim_whitespace(array)), words)
        if found.null_count:
            raise pyarrow.ArrowInvalid("a word that is no kind")
        return np.array(list(reading.kinds.values()), np.int64)[as_numpy(found)]
    if field == "time" and reading.times == "dates":
        return milliseconds(array)
    if field != "weight":
        return None
    array = pc.ascii_trim_whitespace(array)
    if reading.thousands:
        array = pc.replace_substring(array, reading.thousands, "")
    if reading.decimal_point != ".":
        array = pc.replace_substring(array, ".", "?")
        array = pc.replace_substring(array, reading.decimal_point, ".")
    return as_numpy(array.cast(pyarrow.float64()))


def flags_of(name: str, column: Any, faults: Faults) -> Array:
    """bool[n]: which values of this column of text are "true"; in `faults` the rows where one is
    neither that nor "false"."""
    import pyarrow.compute as pc

    words = pc.utf8_lower(pc.utf8_trim_whitespace(column))
    is_true = as_numpy(pc.equal(words, "true"))
    is_false = as_numpy(pc.equal(words, "false"))
    note(faults, ~is_true & ~is_false, f"{name}: neither true nor false")
    return is_true


# -- values one by one ----------------------------------------------------------------------------


def _judged(field: str, values: list[str], reading: Reading, faults: Faults) -> Array:
    """Text as numbers, and in `faults` the rows where one is none."""
    for row, value in enumerate(values):
        if value.strip() in ("", MISSING):
            faults.setdefault(row, Fault(f"{field}: empty"))
    dtype: Any = np.float64 if field == "weight" else np.int64
    convert: Callable[[str], Any]
    fault = Fault(f"time: {NOT_A_DATE}")
    if field == "kind":
        fault = Fault(f"kind: none of {', '.join(reading.kinds)}")
        values = [value.strip().lower() for value in values]
        convert = reading.kinds.__getitem__
    elif field in ("src", "dst"):
        what = "an integer of 64 bits" if reading.has_ids else "a whole number"
        fault, convert = Fault(f"{field}: not {what}", reading.has_ids), _integer
    elif field == "weight":
        fault, convert = Fault(NO_NUMBER), partial(_number, reading=reading)
    elif reading.times == "dates":
        convert = millisecond
    else:
        fault, convert = Fault("time: not a number of 64 bits"), _cut_time
    column = np.zeros(len(values), dtype)
    for row, value in enumerate(values):
        try:
            column[row] = convert(value)
        except (ValueError, OverflowError, KeyError):
            faults.setdefault(row, fault)
    return column


def _integer(value: str) -> int:
    if "_" in value or not value.isascii():
        raise ValueError(value)
    return int(whole_text(value.strip()))


def _number(value: str, reading: Reading) -> float:
    if "_" in value:
        raise ValueError(value)
    if reading.thousands:
        value = value.replace(reading.thousands, "")
    if reading.decimal_point != ".":
        value = value.replace(".", "?").replace(reading.decimal_point, ".")
    return float(value)


def _cut_time(value: str) -> int:
    """A time with a fraction is cut."""
    try:
        return _integer(value)
    except ValueError:
        return int(float(value.replace("_", "?")))
