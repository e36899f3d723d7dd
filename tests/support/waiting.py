"""Waiting for what a test needs, however long a machine takes for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

HANGS_S = 600.0  # only ends a hang
PAUSE_S = 0.005


class Never(Exception):
    """Raised by nothing."""


def wait_for(condition: Callable[[], T], what: str, despite: type[Exception] = Never) -> T:
    """The first true value of `condition()`; what: is waited for; despite: an error that is as good
    as a false value. Raises AssertionError where none comes."""
    deadline = time.monotonic() + HANGS_S
    while True:
        try:
            if found := condition():
                return found
        except despite as error:
            last: object = error
        else:
            last = found
        assert time.monotonic() < deadline, f"{what}: it does not come; the last was {last!r}"
        time.sleep(PAUSE_S)
