"""Values of text as names, times and numbers: whole columns by Arrow's kernels where all are good,
one by one in Python where some are not.

A name that is an integer of 64 bits in decimals, without a sign or zeros that it can do without, is
that integer; anything else is text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arguments.arrow import as_numpy

from ...errors import RecordError
from ...formats.names import plain_name
from ...formats.times import NOT_A_DATE, millisecond
from .left_out import NO_NUMBER
from .pieces import Fault, Faults
from .quotes import BLANKS
from .reading import MISSING, Reading, whole_text

Array = npt.NDArray[Any]


# -- names ----------------------------------------------------------------------------------------


def without_padding(array: Any, mark: str) -> Any:
    """Fields of text without the blanks around them, except those that were quoted, which have the
    mark beside them: see quotes.py."""
    import pyarrow.compute as pc

    array = pc.ascii_trim_whitespace(array)
    return pc.replace_substring(array, mark, "") if mark else array


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


# -- values one by one ----------------------------------------------------------------------------


def judged(
    name: str,
    values: list[str],
    reading: Reading,
    faults: Faults,
    mark: str = "",
    is_number: Array | None = None,
) -> Any:
    """A column's values as its type, and in `faults` the rows where one is not. mark, is_number:
    see quotes.py, and `with_integers`."""
    if name in ("src", "dst") and reading.named:
        texts = _judged_names(name, values, faults, mark)
        if is_number is not None:
            return with_integers(texts, is_number)
        return as_names(texts, reading.whole)
    if mark:
        values = [value.replace(mark, "") for value in values]
    for row, value in enumerate(values):
        if value.strip() in ("", MISSING):
            faults.setdefault(row, Fault(f"{name}: empty"))
    if name == "kind":
        fault = Fault(f"kind: none of {', '.join(reading.kinds)}")
        words = [value.strip().lower() for value in values]
        return _converted(words, reading.kinds.__getitem__, fault, faults, np.int64)
    if name in ("src", "dst"):
        what = "an integer of 64 bits" if reading.has_ids else "a whole number"
        fault = Fault(f"{name}: not {what}", reading.has_ids)
        return _converted(values, _integer, fault, faults, np.int64)
    if name == "weight":
        number: Callable[[str], Any] = _number
        if reading.decimal_point != "." or reading.thousands:
            values = [_plain_number(value, reading) for value in values]
        return _converted(values, number, Fault(NO_NUMBER), faults, np.float64)
    if reading.times == "dates":
        return _converted(values, millisecond, Fault(f"time: {NOT_A_DATE}"), faults, np.int64)
    return _converted(values, _cut_time, Fault("time: not a number of 64 bits"), faults, np.int64)


def _converted(
    values: list[str],
    convert: Callable[[str], Any],
    fault: Fault,
    faults: Faults,
    dtype: Any,
) -> Array:
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


def _number(value: str) -> float:
    if "_" in value:
        raise ValueError(value)
    return float(value)


def _plain_number(value: str, reading: Reading) -> str:
    """The number as Python writes it."""
    point = reading.decimal_point
    value = value.replace(reading.thousands, "") if reading.thousands else value
    return value if point == "." else value.replace(".", "?").replace(point, ".")


def of_text(name: str, array: Any, reading: Reading) -> Array:
    """A column of text as kinds, weights or dates, by Arrow's kernels. Raises ArrowInvalid."""
    import pyarrow
    import pyarrow.compute as pc

    if name == "kind":
        words = pyarrow.array(list(reading.kinds), pyarrow.string())
        found = pc.index_in(pc.utf8_lower(pc.utf8_trim_whitespace(array)), words)
        if found.null_count:
            raise pyarrow.ArrowInvalid("a word that is no kind")
        return np.array(list(reading.kinds.values()), np.int64)[as_numpy(found)]
    if name == "time" and reading.times == "dates":
        return milliseconds(array)
    if name != "weight":
        raise pyarrow.ArrowInvalid("to be judged one by one")
    array = pc.ascii_trim_whitespace(array)
    if reading.thousands:
        array = pc.replace_substring(array, reading.thousands, "")
    if reading.decimal_point != ".":
        array = pc.replace_substring(array, ".", "?")
        array = pc.replace_substring(array, reading.decimal_point, ".")
    return as_numpy(array.cast(pyarrow.float64()))


def _cut_time(value: str) -> int:
    """A time with a fraction is cut."""
    try:
        return _integer(value)
    except ValueError:
        return int(_number(value))


def judged_flags(name: str, values: list[str], faults: Faults) -> Array:
    """bool[n]: which values of the column `name` are "true"."""
    words = [value.strip().lower() for value in values]
    for row, word in enumerate(words):
        if word not in ("true", "false"):
            faults.setdefault(row, Fault(f"{name}: neither true nor false"))
    return np.array([word == "true" for word in words], np.bool_)


def _judged_names(name: str, values: list[str], faults: Faults, mark: str) -> Any:
    import pyarrow

    texts = [value.strip(BLANKS) for value in values]
    if mark:
        texts = [text.replace(mark, "") for text in texts]
    for row, text in enumerate(texts):
        if text in ("", MISSING):
            faults.setdefault(row, Fault(f"{name}: empty"))
        if "\ufffd" in text:  # two such names might be taken for one
            faults.setdefault(row, Fault(f"{name}: not UTF-8"))
    return pyarrow.array(texts, pyarrow.string())
