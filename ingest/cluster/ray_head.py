"""What a driver depends on in its Ray, looked at: the head, and the raylet of its own machine.

Idea: Ray starts nothing again without its head, ends the shards' processes some seconds after it,
and this one after a minute. Without the raylet that this process is connected to, Ray goes on, but
this process waits for ever: it is told of nothing, and where there is no other machine its shards
are never started again. Meanwhile Ray's own calls wait. So whoever has waited for an answer looks
whether both can still be connected to, which takes less than a millisecond on one host.
How a process comes to be connected is in `ray_door.py`.
"""

from __future__ import annotations

import socket
import time

CONNECT_TIMEOUT_S = 1.0
FRESH_S = 0.5  # how long a look stays good: many handles ask at once

HOW_TO_GO_ON = "start Ray, and the cluster with the same checkpoint: it goes on from there"


def unreachable(address: str) -> OSError | None:
    """Why nothing can be connected to at "host:port"; None if something can. Raises ValueError if
    that is no address."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_S).close()
    except OSError as error:
        return error
    return None


class Head:
    """The head of a Ray, at `address`: without it Ray starts nothing again, and soon ends all that
    runs, this process too. raylet: the address of this machine's raylet, without which this
    process is of no use; None: it is not known."""

    def __init__(self, address: str, raylet: str | None = None) -> None:
        self._address = address
        self._raylet = raylet
        self._looked = -float("inf")  # by the monotonic clock
        self._problem: str | None = None

    def problem(self) -> str | None:
        """Why there is no Ray any more; None if its head and the raylet can be connected to."""
        if time.monotonic() - self._looked >= FRESH_S:
            self._problem = self._look()
            self._looked = time.monotonic()
        return self._problem

    def _look(self) -> str | None:
        if (why := unreachable(self._address)) is not None:
            gone = f"its head at {self._address} does not answer ({why})"
        elif self._raylet is not None and (why := unreachable(self._raylet)) is not None:
            gone = f"its raylet on this machine, at {self._raylet}, does not answer ({why})"
        else:
            return None
        return f"Ray is gone: {gone}: " + HOW_TO_GO_ON
