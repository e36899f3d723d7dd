"""Waiting for what another thread or process does, however long that takes on the machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

HANGS_S = 600.0  # only ends a hang
PAUSE_S = 0.005


def wait_for(
    condition: Callable[[], T], what: str = "", despite: type[Exception] | tuple[()] = ()
) -> T:
    """The first true value of `condition()`. what: is waited for, for the message; despite: an
    error that means not yet. Raises AssertionError where none comes."""
    deadline = time.monotonic() + HANGS_S
    while True:
        try:
            if found := condition():
                return found
            last: object = found
        except despite as error:
            last = error
        assert time.monotonic() < deadline, f"{what or condition}: never came; last {last!r}"
        time.sleep(PAUSE_S)
