"""Times of records and files as milliseconds since 1970, and what unit they look to be in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from lpma.arguments.convert import MAX_WHOLE

from ..errors import RecordError
from ..types import Array

NOT_A_DATE = "not a date or time of ISO 8601"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PER_MS = {"ms": 1, "us": 1000, "ns": 1_000_000}
UNITS: dict[str, tuple[int, str]] = {  # the smallest number that is one since 1970, by magnitude
    "s": (10**8, "seconds"), "ms": (10**11, "milliseconds"), "us": (10**14, "microseconds"),
    "ns": (10**17, "nanoseconds"),
}  # fmt: skip


def millisecond(text: object) -> int:
    """A date or time of ISO 8601, which without a zone is in UTC; " UTC" may stand behind it.
    Raises ValueError, and TypeError if it is not text."""
    if not isinstance(text, str):
        raise TypeError(f"a date is text, not {type(text).__name__}")
    moment = datetime.fromisoformat(text.strip().removesuffix(" UTC"))
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    since = moment - _EPOCH
    return (since.days * 86_400_000) + since.seconds * 1000 + since.microseconds // 1000


def in_ms(time: Any, unit: str) -> Any:
    """An integer in this unit, or a float that is one, or a date, in ms since 1970; what is none of
    these stays. Raises RecordError."""
    if is_whole(time):
        time = int(time)
    if type(time) is int:
        return time * 1000 if unit == "s" else time // _PER_MS[unit]
    if not isinstance(time, str):
        return time
    try:
        return millisecond(time)
    except ValueError:
        raise RecordError(f"time: {NOT_A_DATE}") from None


def is_whole(value: object) -> bool:
    """Whether this is a float that is an integer, and no other."""
    return type(value) is float and value.is_integer() and abs(value) <= MAX_WHOLE


def column_in_ms(times: Array, unit: str) -> Array:
    """int64[n] in this unit, in ms since 1970. Raises RecordError."""
    if unit == "s" and len(times) and not within_ms(times).all():
        raise RecordError("time: seconds that are no milliseconds of 64 bits")
    return times * 1000 if unit == "s" else times // _PER_MS[unit]


def column_from_ms(times: Array, unit: str) -> Array:
    """What `column_in_ms` made ms of: for a finer unit, to the millisecond."""
    return times // 1000 if unit == "s" else times * _PER_MS[unit]


def within_ms(seconds: Array) -> Array:
    """bool[n]: which of these are milliseconds of 64 bits."""
    return (seconds >= -(2**63) // 1000 + 1) & (seconds <= (2**63 - 1) // 1000)


def unit_of(time: int) -> str | None:
    """The unit in which this is a time since 1970, between 1973 and 5138; None: none.

    >>> unit_of(1_700_000_000), unit_of(1_700_000_000_000), unit_of(7)
    ('s', 'ms', None)
    """
    found = (unit for unit, (least, _) in UNITS.items() if least <= time < 1000 * least)
    return next(found, None)


def of_other_units(times: Array) -> dict[str, tuple[int, int]]:
    """By unit, how many of these times are since 1970 in that unit and not in ms, and the first of
    them. ms: those from 1973 to 5138, and what is no such time in any unit."""
    found: dict[str, tuple[int, int]] = {}
    if not len(times) or (times.min() >= UNITS["ms"][0] and times.max() < UNITS["us"][0]):
        return found
    for unit, (least, _) in UNITS.items():
        at = np.flatnonzero((times >= least) & (times < min(1000 * least, 2**63 - 1)))
        if unit != "ms" and len(at):
            found[unit] = len(at), int(times[at[0]])
    return found
