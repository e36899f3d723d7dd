"""Views in time as texts give them, on the command line and in requests: see `Graph.snapshot`.

A time is a date or time of ISO 8601, in UTC if it names no zone; how long ago, as 30d; or a number
in the unit of the times. A span is 30d, of ms, s, m, h, d, w, or a number in that unit. What has a
unit or is a date is in milliseconds, which times are unless a producer says otherwise.
"""

from __future__ import annotations

import re

from lpma.errors import BatchError

from .errors import PipelineError
from .formats.times import millisecond
from .pipeline import windows
from .timers import now_ms

_NUMBER = re.compile(r"[+-]?\d+", re.ASCII)
_AGO = re.compile(r"\d+ *[a-z]+", re.ASCII)
# What is asked for, and what is said of it.
ABOUT = {
    "since": "Only edges whose last operation is no older than this: a date or time of ISO 8601, "
    "30d for that long ago, or a number in the unit of the times.",
    "until": "Only edges whose last operation is older than this: as since.",
    "half_life": "Halve weights for each such span between an edge's last operation and now: 2d, "
    "of ms, s, m, h, d, w, or a number in the unit of the times.",
    "now": "When weights have decayed to, as since; absent: the time of the newest edge.",
}


def view_of(given: dict[str, str | None]) -> dict[str, int]:
    """The arguments of `Graph.snapshot` that texts are, by their names; without those that are
    None. Raises BatchError.

    >>> view_of({"since": "1970-01-02", "until": None, "half_life": "2d"})
    {'since': 86400000, 'half_life': 172800000}
    """
    return {
        name: span_of(text, name) if name == "half_life" else time_of(text, name)
        for name, text in given.items()
        if text is not None
    }


def time_of(text: str, name: str) -> int:
    """A time in the unit of the times, or in ms since 1970. Raises BatchError.

    >>> time_of("1970-01-01T00:00:01.5", "since"), time_of("-7", "since")
    (1500, -7)
    """
    said = text.strip()
    expected = BatchError(
        f"{name}: {said!r:.80}: expected a date or time of ISO 8601, how long ago, as 30d (ms, s, "
        "m, h, d, w), or a number in the unit of the times"
    )
    try:
        if _NUMBER.fullmatch(said):
            return int(said)
        if _AGO.fullmatch(said):
            return now_ms() - windows.span_of(said, name)
        return millisecond(said)
    except (PipelineError, ValueError):
        raise expected from None


def span_of(text: str, name: str) -> int:
    """A span of time in the unit of the times, or in ms. Raises BatchError.

    >>> span_of("2d", "half_life"), span_of("7", "half_life")
    (172800000, 7)
    """
    try:
        width = windows.span_of(text, name)
    except PipelineError as error:
        raise BatchError(str(error)) from error
    if not width:
        raise BatchError(f"{name}: {text!r:.80}: expected a span above 0, as 2d")
    return width
