"""What launches shards and carries calls to them: the seam that the engines fill.

Idea: a shard has a *supervisor* (`supervisor.py`), which starts it again when it fails. An engine
puts supervisors somewhere, and gives a handle for each: in threads of this process, for tests and
for the GPUs of one machine, or in actors of Ray (`ray_engine.py`). All else, epochs, snapshots,
queries, is written once against handles.

Invariants:
1. No call waits past its time-out, whatever has become of the supervisor.
2. What a method of the supervisor raises is raised at the caller, of the same type. If no answer
   comes, that is a ClusterError that says which shard, and why; EngineLost, early, if none can.
3. A supervisor that dies is started again by its engine; its handle stays good.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Future, wait
from typing import TYPE_CHECKING, Any, TypeVar

from lpma.backend import check_device
from lpma.errors import DeviceError

from ..errors import ClusterError, EngineLost
from .supervisor import ShardSupervisor

if TYPE_CHECKING:
    from algorithms.sharded import Workers

    from .spec import ShardSpec

T = TypeVar("T")

CALL_TIMEOUT_S = 10.0  # of calls that do nothing long
PAUSE_S = 0.1  # before another attempt
LOOK_S = 1.0  # of a wait for an answer, after which it is seen whether one can come


def in_thread(name: str, call: Callable[..., Any], *args: Any) -> Future[Any]:
    """A call in a thread of its own, so that a time-out holds whatever it does."""
    future: Future[Any] = Future()

    def work() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(call(*args))
        except BaseException as error:  # noqa: BLE001 - it is the caller's
            future.set_exception(error)

    threading.Thread(target=work, name=name, daemon=True).start()
    return future


class Handle(ABC):
    """The way to the supervisor of shard `number`. Its methods may be called from any thread."""

    number: int

    @abstractmethod
    def ask(self, method: str, *args: Any) -> Future[Any]:
        """Call a method of the supervisor, without waiting for what it returns."""

    @abstractmethod
    def translated(self, error: BaseException) -> BaseException:
        """What a caller is to get for an error of `ask`'s future (invariant 2)."""

    def check(self) -> None:
        """Raise EngineLost if what carries the calls is gone: no answer will come then."""
        return

    @abstractmethod
    def kill(self) -> None:
        """Let the shard die at once, as a crash would; it is started again."""

    @abstractmethod
    def end(self) -> None:
        """Let supervisor and shard die at once, for good."""

    def call(self, method: str, *args: Any, timeout_s: float = CALL_TIMEOUT_S) -> Any:
        """What a method of the supervisor returns. Raises what it raises, and ClusterError if no
        answer comes within `timeout_s`."""
        return self.result_of(self.ask(method, *args), method, timeout_s)

    def result_of(self, future: Future[Any], method: str, timeout_s: float) -> Any:
        """As `call`, of a call that is under way."""
        deadline = time.monotonic() + timeout_s
        while (left_s := deadline - time.monotonic()) > LOOK_S:
            if wait([future], LOOK_S).done:
                break
            self.check()
        try:
            return future.result(max(0.0, left_s))
        except (Exception, CancelledError) as error:
            if isinstance(error, TimeoutError) and not future.done():
                future.cancel()
                why = f"no answer to {method!r} within {timeout_s:.3g} s"
                raise ClusterError(why, self.number) from None
            translated = self.translated(error)
            if translated is error:
                raise
            raise translated from error


class Engine(ABC):
    """Launches supervisors."""

    @abstractmethod
    def launch(self, spec: ShardSpec) -> Handle:
        """A supervisor for this shard; the one that runs already if this engine finds it, and it
        was made of the same specification."""

    def check(self, devices: Iterable[str]) -> None:
        """Raise ClusterError if no machine has one of these devices. Nothing is launched before."""
        return

    def problem(self) -> str | None:
        """Why no shard can be launched, or started again, any more; None: nothing is known of. Is
        told at once."""
        return None

    @abstractmethod
    def workers(self, handles: Sequence[Handle], epoch: int, timeout_s: float) -> Workers:
        """The workers of all shards over what they hold of an epoch, which from then on the workers
        hold. Raises LookupError if a shard does not hold it, ClusterError if one does not answer.
        """

    def close(self) -> None:
        """Release what the engine itself holds. REQUIRES: its supervisors have ended."""
        return


def try_all(
    handles: Iterable[Handle], method: str, *args: Any, timeout_s: float = CALL_TIMEOUT_S
) -> list[Any]:
    """What each supervisor returns, or the error instead; all within `timeout_s`. Nobody is waited
    for once the engine is lost."""
    deadline = time.monotonic() + timeout_s
    asked = [(handle, handle.ask(method, *args)) for handle in handles]
    found: list[Any] = []
    lost: EngineLost | None = None
    for handle, future in asked:
        try:
            if lost is not None and not future.done():
                raise lost
            found.append(handle.result_of(future, method, deadline - time.monotonic()))
        except Exception as error:  # noqa: BLE001 - it is the caller who tells them apart
            found.append(error)
            lost = error if isinstance(error, EngineLost) else lost
    return found


def call_all(
    handles: Iterable[Handle], method: str, *args: Any, timeout_s: float = CALL_TIMEOUT_S
) -> list[Any]:
    """What each supervisor returns. Raises the first error: then nobody waits for the others."""
    deadline = time.monotonic() + timeout_s
    asked = [(handle, handle.ask(method, *args)) for handle in handles]
    return [h.result_of(future, method, deadline - time.monotonic()) for h, future in asked]


def retried(attempt: Callable[[float], T], until: float) -> T:
    """What `attempt` returns, given the seconds that are left. After a ClusterError it is called
    again, until the time `until` by the monotonic clock, or an error that no other attempt would
    mend: that is raised."""
    while True:
        try:
            return attempt(max(0.0, until - time.monotonic()))
        except ClusterError as error:
            if error.final or time.monotonic() + PAUSE_S >= until:
                raise
        time.sleep(PAUSE_S)


class LocalHandle(Handle):
    def __init__(self, supervisor: ShardSupervisor) -> None:
        self._supervisor = supervisor
        self.number = supervisor.spec().number

    def ask(self, method: str, *args: Any) -> Future[Any]:
        return in_thread(f"lpma-ask-{method}", getattr(self._supervisor, method), *args)

    def translated(self, error: BaseException) -> BaseException:
        return error

    def kill(self) -> None:
        self._supervisor.kill()

    def end(self) -> None:
        self._supervisor.end()


class LocalEngine(Engine):
    """Hosts in this process. make: see `ShardSupervisor`."""

    def __init__(self, make: Callable[[ShardSpec], Any] | None = None) -> None:
        self._make = make

    def check(self, devices: Iterable[str]) -> None:
        for device in devices:
            try:
                check_device(device)
            except DeviceError as error:
                raise ClusterError(f"devices: {error}") from error

    def launch(self, spec: ShardSpec) -> LocalHandle:
        return LocalHandle(ShardSupervisor(spec, self._make))

    def workers(self, handles: Sequence[Handle], epoch: int, timeout_s: float) -> Workers:
        from algorithms.sharded import LocalWorkers

        workers = LocalWorkers(call_all(handles, "worker", epoch, timeout_s=timeout_s))
        call_all(handles, "forget", epoch, timeout_s=timeout_s)  # the workers hold it from now on
        return workers
