"""How wide a sliding window is, and what its bound is: `sliding.py` says what a window does.

A width is in the unit of the edges' times, of which a stream says nothing: producers choose it.
What is given as a duration is taken as milliseconds, the unit of stamps and of datetimes
(lpma/arguments/times.py).
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, Literal

import numpy as np

from .errors import PipelineError

WindowTime = Literal["event", "arrival"]
Width = int | timedelta | str | None

NO_TIMES = "expire: this graph keeps no times, so nothing of it can expire: make it with times=True"
LOWEST = -(2**63)
MAX_WIDTH = 2**63 - 1
_UNITS_MS = {
    "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000,
    "w": 604_800_000,
}  # fmt: skip
_TEXT = re.compile(r"([0-9]{1,19})\s*([a-z]*)")
_SAID = (
    "expected '24h' or the like (ms, s, m, h, d, w), a timedelta, or a whole number in the unit of "
    "the times"
)


def width_of(given: Width) -> int | None:
    """A window's width as a number in the unit of the times. Text with a unit and a timedelta are
    taken as milliseconds, which times are unless a producer says otherwise; a number, also as text,
    stays as it is. Raises PipelineError.

    >>> width_of("24h"), width_of("86400"), width_of(timedelta(minutes=1)), width_of(7)
    (86400000, 86400, 60000, 7)
    """
    if given is None:
        return None
    width: Any = given
    if isinstance(given, timedelta):
        width, rest = divmod(given, timedelta(milliseconds=1))
        if rest:
            raise PipelineError(f"window is {given!r}: whole milliseconds are taken")
    elif isinstance(given, str):
        found = _TEXT.fullmatch(given.strip())
        unit = None if found is None else 1 if not found[2] else _UNITS_MS.get(found[2])
        if found is None or unit is None:
            raise PipelineError(f"window is {given!r}: {_SAID}")
        width = int(found[1]) * unit
    if isinstance(width, np.integer):
        width = int(width)
    if type(width) is not int or not 0 <= width <= MAX_WIDTH:
        raise PipelineError(f"window is {given!r}: {_SAID}, from 0 to 2^63 − 1")
    return width


def bound_of(newest: int | None, width: int | None) -> int | None:
    """What is older than this has expired; None: nothing has.

    >>> bound_of(100, 30), bound_of(-(2**63) + 5, 6), bound_of(None, 30)
    (70, None, None)
    """
    if newest is None or width is None or newest - width < LOWEST:
        return None
    return newest - width


def facts_of(
    width: int | None, moved_by: WindowTime, newest: int | None
) -> dict[str, int | str | None] | None:
    """A window as reports tell it; None: there is none."""
    if width is None:
        return None
    return {"width": width, "time": moved_by, "expired_before": bound_of(newest, width)}
