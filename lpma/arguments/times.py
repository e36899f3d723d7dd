"""Times as callers have them, in milliseconds since 1970 (UTC): the form in which edges carry them.

Integers are milliseconds already. `datetime64` of any unit, datetimes, dates, pandas Timestamps and
columns of them are converted; what is finer than a millisecond is rounded down. A time without a
zone is taken as UTC. A missing time (NaT) is refused, and so is one that does not fit 64 bits.

Source: the proleptic Gregorian calendar without leap seconds, as NumPy and Python have it. Arrow's
and polars' columns come as `datetime64` through NumPy. pandas gives columns with a zone as objects,
which would be slow: their values in UTC are asked for instead.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import BatchError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_COARSER = {"s", "m", "h", "D", "W", "M", "Y"}  # units of which int64 milliseconds hold fewer


def numbered(values: Any, name: str) -> Any:
    """`values` with times as int64 milliseconds; anything that is no time stays as it is, for the
    caller to judge. Raises BatchError.

    >>> numbered("now", "time"), numbered(np.datetime64("1970-01-01T00:00:01"), "time")
    ('now', array(1000))
    """
    if type(values) is int:
        return values
    if isinstance(values, date):  # as datetimes and Timestamps are, and NaT
        return np.array(_one(values, name))
    if isinstance(values, list | tuple):
        if values and isinstance(values[0], date | np.datetime64):
            return _each(values, name)
        return values
    if getattr(getattr(values, "dtype", None), "tz", None) is not None:  # of pandas, with a zone
        values = values.to_numpy(f"datetime64[{values.dtype.unit}]")
    if type(values) is not np.ndarray and not isinstance(values, np.generic):
        return values  # a masked array is judged first, by `as_array`
    if values.dtype.kind == "M":
        return milliseconds(np.asarray(values), name)
    if values.dtype == object and values.size and isinstance(values.flat[0], date | np.datetime64):
        return _each(values.ravel(), name).reshape(values.shape)
    return values


def milliseconds(array: Array, name: str) -> Array:
    """A `datetime64` array as int64 milliseconds since 1970. Raises BatchError."""
    unit = np.datetime_data(array.dtype)[0]
    if unit == "generic":
        raise BatchError(f"{name}: a datetime64 without a unit says no time: use datetime64[ms]")
    missing = np.isnat(array)
    if missing.any():
        row = int(np.argmax(missing))
        raise BatchError(f"{name}: row {row} has no time (NaT): leave such rows out, or fill them")
    outside = BatchError(f"{name}: a time lies outside 64 bits of milliseconds")
    try:
        converted = array.astype("M8[ms]")
    except OverflowError as error:  # from NumPy 2.5 on; before, the number wraps
        raise outside from error
    if unit in _COARSER and not np.array_equal(converted.astype(array.dtype), array):
        raise outside
    return converted.view(np.int64)


def _each(values: Any, name: str) -> Array:
    return np.fromiter((_one(value, name) for value in values), np.int64, len(values))


def _one(value: Any, name: str) -> int:
    if isinstance(value, np.datetime64):
        return int(milliseconds(np.asarray(value), name))
    if not isinstance(value, date):
        raise BatchError(f"{name}: {value!r} is no time, which the values before it are")
    if value != value:  # pandas' NaT
        raise BatchError(f"{name}: a time is missing (NaT): leave such rows out, or fill them")
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    elif value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return (value - _EPOCH) // _MILLISECOND
