"""Waiting for what another thread or process does, however long that takes on the machine."""

from __future__ import annotations

import time
from collections.abc import Callable

HANGS_S = 600.0  # only ends a hang


def wait_for(condition: Callable[[], object], what: str = "") -> None:
    """Return once `condition()` is true. Raises AssertionError, with `what` was waited for, where
    it never is; what `condition` raises ends the wait."""
    deadline = time.monotonic() + HANGS_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what or condition}"
        time.sleep(0.005)
