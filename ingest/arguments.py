"""What callers say of names, times and addresses: one reading of each for all calls that take it.

*Names.* The word is `names=True`, as of `lpma.Graph`. Until the next release `ids="mapped"` says
the same, and `ids="dense"` the contrary.
*How long a call may wait.* A time that is infinite, or longer than the system can wait, means as
long as it takes. What is not a time, NaN or a negative one for instance, is refused.
*Addresses to serve on*, as they are given on the command line.
"""

from __future__ import annotations

import re
import sys
import threading
import warnings
from numbers import Real
from typing import TYPE_CHECKING, Any

from .errors import IngestError, PipelineError

if TYPE_CHECKING:
    from .types import Ids

# More than a hundred years, which sums with the clock stay below what threads can wait for.
TIMEOUT_MAX_S = threading.TIMEOUT_MAX / 2
MOST_OF_A_SOCKET_S = 1e6  # poll(2) counts ms in 31 bits

LOOPBACK = "127.0.0.1"
_ADDRESS = re.compile(r"(?:(?P<host>\[[0-9A-Fa-f:.]+\]|[^:\[\]]+):)?(?P<port>[0-9]{1,5})")


def by_name(names: bool, ids: Ids | None, error: type[IngestError]) -> bool:
    """What `names` says, or `ids`, with a DeprecationWarning. Raises `error` if `names` is no bool,
    if `ids` is none of its words, or if they contradict each other."""
    if not isinstance(names, bool):
        raise error(f"names is {names!r}: expected True or False")
    if ids is None:
        return names
    if ids not in ("dense", "mapped"):
        raise error(f"ids is {ids!r}: leave it out, and say names=True or names=False")
    named = ids == "mapped"
    if names and not named:
        raise error("names=True and ids='dense' contradict each other: leave ids out")
    warnings.warn(
        f"ids={ids!r} goes with the next release: say names={named}",
        DeprecationWarning,
        stacklevel=_level_outside(),
    )
    return named


def _level_outside() -> int:
    """The level of the caller's nearest caller outside this package, as `warnings.warn` counts."""
    frame, level = sys._getframe(1), 1
    package = f"{__package__}."
    while frame.f_back and f"{frame.f_globals.get('__name__')}.".startswith(package):
        frame, level = frame.f_back, level + 1
    return level


def seconds_of(given: Any, name: str, error: type[IngestError]) -> float:
    """Seconds, 0 or more, that can be waited for and added to a clock. Raises `error`, which names
    the argument, for what is none.

    >>> from ingest.errors import ClusterError
    >>> from ingest.arguments import TIMEOUT_MAX_S, seconds_of
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


def parse_address(address: str | int) -> tuple[str, int]:
    """(host, port) of "port" or "host:port"; loopback if no host is named. An IPv6 host stands
    in brackets. Raises PipelineError."""
    match = _ADDRESS.fullmatch(str(address))
    if not match or int(match["port"]) > 65535:
        raise PipelineError(f"{address!r}: give a port, or host:port, as 9464 or 0.0.0.0:9464")
    return (match["host"] or LOOPBACK).strip("[]"), int(match["port"])
