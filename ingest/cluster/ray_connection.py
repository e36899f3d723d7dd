"""How a process comes to be connected to a Ray, one that is there or that it starts; and whether it
still is.

Idea: Ray itself goes on asking an address at which nobody listens, or whose head does not know us,
for 20 to 80 s, and says at the end that it failed. So the head is looked at first: whether anything
listens at its address, and whether it answers us.

    RAY_ADDRESS, or what `ray start` left, names a head at which nothing listens    told at once
    something else than a Ray listens there                          told after `ANSWER_TIMEOUT_S`
    the head wants a token, and this process would show none         told at once
    the head wants another token                                     told when Ray gives up
    no head is named, or RAY_ADDRESS is "local"                      one is started here

Later on: Ray starts nothing again without its head, ends the shards' processes some seconds after
it, and this one after a minute. Without the raylet that this process is connected to, Ray goes on,
but this process waits for ever: it is told of nothing, and where there is no other machine its
shards are never started again. Meanwhile Ray's own calls wait. So whoever has waited for an answer
looks whether both can still be connected to, which takes less than a millisecond on one host.

Trick: a head is asked only if Ray will show it no token, which is so if RAY_AUTH_MODE says so, or
says nothing beside RAY_ADDRESS. In any other case Ray itself looks for a token first.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import ray
from ray._private import worker
from ray._private.services import canonicalize_bootstrap_address_or_die
from ray._raylet import GcsClient  # type: ignore[attr-defined]
from ray.exceptions import RayError

from ..errors import ClusterError
from .engine import in_thread
from .niceness import OF_RAY, VARIABLE

ADDRESS, AUTH_MODE = "RAY_ADDRESS", "RAY_AUTH_MODE"
ANSWER_TIMEOUT_S = 10.0  # of a head that something listens for

_AUTH = (
    f"{AUTH_MODE}, and the token, must be here what they were for `ray start`, which takes "
    f"{AUTH_MODE}=token by itself where it finds one, as in ~/.ray/auth_token"
)


def connected(namespace: str) -> Head:
    """The head of the Ray that this process is connected to; else of one that is there; else of one
    that is started here, and ends with this process. Raises ClusterError."""
    if not ray.is_initialized():
        try:
            with _keeping_handler():
                _connect(namespace)
        except (RayError, OSError, RuntimeError, ValueError) as error:
            raise ClusterError(f"Ray cannot be reached or started: {_told(error)}") from error
    node = worker._global_node  # none of a client's
    raylet = None if node is None else f"{node.node_ip_address}:{node.node_manager_port}"
    return Head(ray.get_runtime_context().gcs_address, raylet)


@contextmanager
def _keeping_handler() -> Iterator[None]:
    """Within, Ray may take over SIGTERM, to end itself with the process. A handler that somebody
    else had set, who sees to that, is put back."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if callable(before) and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def _connect(namespace: str) -> None:
    given = os.environ.get(ADDRESS, "")
    given = "" if given == "auto" else given
    if given == "local":
        _start(namespace)
        return
    if "://" in given:  # it names no head
        ray.init("auto", namespace=namespace, log_to_driver=False)
        return
    try:
        address = canonicalize_bootstrap_address_or_die("auto")
        why = unreachable(address)
    except ConnectionError:  # there is none
        _start(namespace)
        return
    except ValueError:
        raise ConnectionError(f"{ADDRESS} is {given!r}: expected host:port") from None
    if why is not None:
        whose = f"{ADDRESS}={given}" if given else "of the last `ray start` here"
        instead = f"say another {ADDRESS}, or none" if given else "end what is left with `ray stop`"
        raise ConnectionError(
            f"the head at {address} ({whose}) does not answer: {why}: start it, or {instead}"
        )
    mode = os.environ.get(AUTH_MODE)
    if mode == "disabled" or (given and mode is None):
        _ask(address)
    ray.init("auto", namespace=namespace, log_to_driver=False)


def _start(namespace: str) -> None:
    ray.init(
        "local", namespace=namespace, log_to_driver=False, include_dashboard=False,
        _system_config=None if VARIABLE in os.environ else {**OF_RAY},  # Ray adds to it
    )  # fmt: skip


def _ask(address: str) -> None:
    """Ask a head who it is, showing no token. Raises what Ray does, and ConnectionError if it does
    not answer."""
    answer = in_thread("lpma-ray", lambda: GcsClient(address=address))
    try:
        answer.result(ANSWER_TIMEOUT_S)
    except TimeoutError:
        raise ConnectionError(
            f"what listens at {address} does not answer as the head of a Ray: is this its port, as "
            "`ray start --port` was told?"
        ) from None


def _told(error: BaseException) -> str:
    """What helps, what went wrong, and the last line of what caused it."""
    told = str(error)
    if error.__cause__ is not None:
        told += ": " + str(error.__cause__).strip().rpartition("\n")[2]
    return f"{_AUTH}: {told}" if "Authentication" in told else told


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
