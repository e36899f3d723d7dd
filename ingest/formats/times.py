"""Times of records and files as milliseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ..errors import RecordError

NOT_A_DATE = "not a date or time of ISO 8601"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PER_MS = {"ms": 1, "us": 1000, "ns": 1_000_000}


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
    """An integer in this unit, or a date, in ms since 1970; what is neither stays. Raises
    RecordError."""
    if type(time) is int:
        return time * 1000 if unit == "s" else time // _PER_MS[unit]
    if not isinstance(time, str):
        return time
    try:
        return millisecond(time)
    except ValueError:
        raise RecordError(f"time: {NOT_A_DATE}") from None
