"""The clock of Kafka's sources and sinks: one place, where tests can hold it by hand.

kafka-python has its own: what it waits for is bounded by the time-outs that it is given.
"""

from __future__ import annotations

import time


def now() -> float:
    """Seconds, of a clock that only goes forward."""
    return time.monotonic()


def sleep(seconds: float) -> None:
    time.sleep(seconds)
