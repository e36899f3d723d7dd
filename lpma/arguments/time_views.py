"""The view in time that callers ask a snapshot for: see `Graph.snapshot` and lpma/time_view.py."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np

from ..errors import BatchError
from ..time_view import LEAST, MOST, TimeView
from .convert import MAX_WHOLE
from .scalars import is_integer, shown
from .times import numbered


def time_view(since: Any, until: Any, half_life: Any, now: Any, has_times: bool) -> TimeView | None:
    """The view that these arguments of `Graph.snapshot` ask for; None if they ask for none. Raises
    BatchError."""
    given = {"since": since, "until": until, "half_life": half_life, "now": now}
    names = [name for name, value in given.items() if value is not None]
    if not names:
        return None
    if now is not None and half_life is None:
        raise BatchError("now: it is when weights have decayed to: give half_life, too")
    if not has_times:
        raise BatchError(f"{names[0]}: the edges have no times: make the graph with times=True")
    first = LEAST if since is None else one_time(since, "since")
    last = MOST if until is None else one_time(until, "until") - 1
    if since is not None and until is not None and first > last + 1:
        raise BatchError(f"since, until: {first} is after {last + 1}: exchange the two")
    if last < LEAST:  # nothing is earlier than the first time
        first, last = MOST, LEAST
    return TimeView(
        first,
        last,
        0 if half_life is None else one_width(half_life, "half_life"),
        None if now is None else one_time(now, "now"),
    )


def one_time(value: Any, name: str) -> int:
    """One time in milliseconds. Raises BatchError."""
    found = numbered(value, name)
    if isinstance(found, np.ndarray) and found.ndim == 0:
        found = found[()]
    found = _as_integer(found)
    if not is_integer(found):
        raise BatchError(f"{name}: integer milliseconds or a datetime, not {shown(value)}")
    if not LEAST <= found <= MOST:
        raise BatchError(f"{name}: a time is an integer of 64 bits, not {shown(value)}")
    return int(found)


def one_width(value: Any, name: str) -> int:
    """A span of time in milliseconds, 1 at the least. Raises BatchError."""
    found, rest = _as_integer(value), False
    if isinstance(value, timedelta):
        found, left = divmod(value, timedelta(milliseconds=1))
        rest = bool(left)
    elif isinstance(value, np.timedelta64) and not np.isnat(value):
        milliseconds = value.astype("m8[ms]")
        found, rest = int(milliseconds.astype(np.int64)), milliseconds.astype(value.dtype) != value
    if rest or not is_integer(found) or not 1 <= found <= MOST:
        raise BatchError(
            f"{name}: a span of time, whole milliseconds from 1 to 2^63 - 1 or a timedelta of as "
            f"many, not {shown(value)}"
        )
    return int(found)


def _as_integer(value: Any) -> Any:
    """A float that is a whole number as this, up to where floats skip integers."""
    is_float = isinstance(value, float | np.floating)
    return int(value) if is_float and abs(value) <= MAX_WHOLE and value == int(value) else value
