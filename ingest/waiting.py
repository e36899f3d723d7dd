"""How long a call may wait, as its caller gives it: one reading of it for all calls that wait.

A time that is infinite, or longer than the system can wait, means as long as it takes. What is not
a time, NaN or a negative one for instance, is refused when it is given.
"""

from __future__ import annotations

import threading
from numbers import Real
from typing import Any

from .errors import IngestError

# More than a hundred years, which sums with the clock stay below what threads can wait for.
TIMEOUT_MAX_S = threading.TIMEOUT_MAX / 2
MOST_OF_A_SOCKET_S = 1e6  # poll(2) counts ms in 31 bits


def seconds_of(given: Any, name: str, error: type[IngestError]) -> float:
    """Seconds, 0 or more, that can be waited for and added to a clock. Raises `error`, which names
    the argument, for what is none.

    >>> from ingest.errors import ClusterError
    >>> from ingest.waiting import TIMEOUT_MAX_S, seconds_of
    >>> seconds_of(2, "timeout_s", ClusterError)
    2.0
    >>> seconds_of(float("inf"), "timeout_s", ClusterError) == TIMEOUT_MAX_S
    True
    """
    is_number = not isinstance(given, bool) and isinstance(given, Real)
    if not is_number or not given >= 0:
        raise error(f"{name} is {given!r}: expected seconds, 0 or more; inf: as long as it takes")
    return float(min(given, TIMEOUT_MAX_S))


def of_socket(seconds: float) -> float | None:
    """What a socket's time-out is set to for it. REQUIRES: as `seconds_of` gives them."""
    return seconds if seconds <= MOST_OF_A_SOCKET_S else None
