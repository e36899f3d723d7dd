"""The head of a Ray, on which all of it depends: connected to, and looked at.

Idea: Ray starts nothing again without its head, ends the shards' processes some seconds after it,
and this one after a minute. Meanwhile its own calls wait. So whoever has waited for an answer looks
whether the head can still be connected to, which takes less than a millisecond on one host.
"""

from __future__ import annotations

import socket
import time

import ray
from ray.exceptions import RayError

from ..errors import ClusterError

CONNECT_TIMEOUT_S = 1.0
FRESH_S = 0.5  # how long a look stays good: many handles ask at once

HOW_TO_GO_ON = "start Ray, and the cluster with the same checkpoint: it goes on from there"


class Head:
    """The head of a Ray, at `address`: without it Ray starts nothing again, and soon ends all that
    runs, this process too."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._looked = -float("inf")  # by the monotonic clock
        self._problem: str | None = None

    def problem(self) -> str | None:
        """Why there is no Ray any more; None if its head can be connected to."""
        if time.monotonic() - self._looked >= FRESH_S:
            self._problem = self._look()
            self._looked = time.monotonic()
        return self._problem

    def _look(self) -> str | None:
        host, _, port = self._address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_S).close()
        except OSError as error:
            return (
                f"Ray is gone: its head at {self._address} does not answer ({error}): "
                + HOW_TO_GO_ON
            )
        return None


def connected(namespace: str) -> Head:
    """The head of the Ray that this process is connected to; else of one that is there; else of one
    that is started here, and ends with this process. Raises ClusterError."""
    if not ray.is_initialized():
        _connect(namespace)
    return Head(ray.get_runtime_context().gcs_address)


def _connect(namespace: str) -> None:
    """Connect to a Ray that is there, or start one that ends with this process."""
    try:
        try:
            ray.init("auto", namespace=namespace, log_to_driver=False)
        except ConnectionError:
            ray.init(namespace=namespace, log_to_driver=False, include_dashboard=False)
    except (RayError, OSError, RuntimeError, ValueError) as error:
        raise ClusterError(f"Ray cannot be reached or started: {error}") from error
