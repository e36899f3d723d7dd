"""The engine "local": hosts as threads of this process, for tests and for the GPUs of one machine.

Idea: a call to a host is a call in a thread of its own, so that a time-out holds whatever the host
does. Arrays pass by reference, or from device to device.
Requires: nothing. What all shards share is the interpreter: below some 10^6 operations a batch it
is the limit, and processes are the way (`on_ray.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from lpma.backend import check_device
from lpma.errors import DeviceError

from ..errors import ClusterError
from .engine import Engine, Handle, call_all
from .host import ShardHost

if TYPE_CHECKING:
    from algorithms.sharded import Workers

    from .spec import ShardSpec


class LocalHandle(Handle):
    """The way to a host of this process."""

    def __init__(self, host: ShardHost) -> None:
        self._host = host
        self.number = host.spec().number

    def ask(self, method: str, *args: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(getattr(self._host, method)(*args))
            except BaseException as error:  # noqa: BLE001 - it is the caller's
                future.set_exception(error)

        threading.Thread(target=work, name=f"lpma-ask-{method}", daemon=True).start()
        return future

    def translated(self, error: BaseException) -> BaseException:
        return error

    def kill(self) -> None:
        self._host.kill()

    def end(self) -> None:
        self._host.end()


class LocalEngine(Engine):
    """Hosts in this process. make: see `ShardHost`."""

    def __init__(self, make: Callable[[ShardSpec], Any] | None = None) -> None:
        self._make = make

    def check(self, devices: Iterable[str]) -> None:
        for device in devices:
            try:
                check_device(device)
            except DeviceError as error:
                raise ClusterError(f"devices: {error}") from error

    def launch(self, spec: ShardSpec) -> LocalHandle:
        return LocalHandle(ShardHost(spec, self._make))

    def workers(self, handles: Sequence[Handle], epoch: int, timeout_s: float) -> Workers:
        from algorithms.sharded import LocalWorkers

        workers = LocalWorkers(call_all(handles, "worker", epoch, timeout_s=timeout_s))
        call_all(handles, "forget", epoch, timeout_s=timeout_s)  # the workers hold it from now on
        return workers
