"""How long calls wait, as they are given it: whatever is a time is waited for, all else refused."""

from __future__ import annotations

import socket
import threading
import time
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ingest.arguments import of_socket, seconds_of
from ingest.errors import ClusterError

TIMES = [float("inf"), 1e308, 9e18, 1e12, 10**400, threading.TIMEOUT_MAX, np.float64("inf")]
NO_TIMES = [float("nan"), -1, -1e-9, float("-inf"), "1", None, True, b"", [1]]


@pytest.mark.parametrize("given", [*TIMES, 1, 0.0, np.int64(3), np.float32(0.5), Fraction(1, 2)])
def test_times_can_be_waited_for(given: Any) -> None:
    seconds = seconds_of(given, "timeout_s", ClusterError)
    assert type(seconds) is float
    assert seconds == given or seconds > 1e9
    left_s = time.monotonic() + seconds - time.monotonic()
    if seconds > 1e9:  # the system takes it, with the clock added
        released = threading.Lock()
        released.acquire()
        threading.Timer(0.01, released.release).start()
        assert released.acquire(timeout=left_s)


@pytest.mark.parametrize("given", NO_TIMES, ids=repr)
def test_what_is_no_time_is_refused(given: Any) -> None:
    with pytest.raises(ClusterError, match=r"wait_s is .*expected seconds, 0 or more"):
        seconds_of(given, "wait_s", ClusterError)


@pytest.mark.parametrize("ms", [2**31 + 5, 2**32 + 60, 10**15])
def test_what_a_socket_cannot_count(ms: int) -> None:
    """It would take the lower 32 bits, and may give up at once."""
    one, other = socket.socketpair()
    with one, other:
        one.settimeout(of_socket(ms / 1000))
        threading.Timer(0.1, lambda: other.send(b"1")).start()
        assert one.recv(1) == b"1"
    assert of_socket(60.0) == 60.0
