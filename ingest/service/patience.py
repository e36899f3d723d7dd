"""How long a client may take, for each of the phases of `protocol.py`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Patience:
    """How long a client may take, in seconds by `clock`."""

    head_s: float = 5.0  # for a handshake, and for a request's head
    body_s: float = 10.0  # for a body, and more as it comes
    stalled_s: float = 20.0  # for reading what is written, and more as it does
    rate: float = 16 << 10  # bytes a second, below which both run out
    idle_s: float = 30.0  # between two requests
    grace_s: float = 5.0  # for what is being answered when it is closed; by the loop's clock
    clock: Callable[[], float] = time.monotonic
