"""The engine "ray": an actor of Ray for each shard, on whatever machines Ray has.

Idea: Ray places, starts again and carries; what a shard knows it has from its own checkpoint and
from the log. An actor is a `ShardSupervisor`, so a shard that fails is started again within its
process,
and a process that dies is started again by Ray, on another machine if its own is gone.

Actors are named and detached: they outlive the driver, and go on applying and answering while it is
away. A driver that comes back finds them by name, and keeps those that are made of the same
specification and the same release; `close` ends them. What a driver that never comes back leaves
goes with Ray itself (`ray stop`).

Messages of algorithms go from actor to actor (`reply_boxes.py`): small ones within the call,
large ones through Ray's object store, from which the receiver reads them without a copy. Arrays on
a GPU go by way of the host's memory.
When Ray itself ends, its shards do, and soon this process: Ray sees to that. Until then every call
raises EngineLost. What was applied is in the checkpoints, the journals and the log.
Requires: the extra [ray]; lpma on every machine; a source, and a checkpoint directory, that each
machine reaches by the same path, or kept storage (`keep`).
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import lpma
from lpma.arrays import to_host
from lpma.dependencies import how_to_install

from ..errors import ClusterError, EngineLost
from ..events import LOGGER, JsonLines
from ..process import pass_the_lock_on_soon
from .engine import Engine, Handle, call_all
from .niceness import take_usual_priority
from .reply_boxes import RemoteWorkers, ReplyBoxes
from .supervisor import ShardSupervisor

try:
    import ray
    from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError

    from .ray_connection import HOW_TO_GO_ON, Head, connected
except ImportError as error:
    raise ClusterError(f'engine "ray" needs Ray ({error}): {how_to_install("ray")}') from error

if TYPE_CHECKING:
    from algorithms.sharded import Message, Workers

    from .spec import ShardSpec

NAMESPACE = "lpma"
MAIL, TALK, WORK = 8, 8, 8  # threads of an actor: for messages, short calls, supersteps
DELIVER_TIMEOUT_S = 120.0  # of all messages of one step
CPUS = 0.01  # of a shard: where machines are lost, it shares a processor rather than wait for one
CLOSE_TIMEOUT_S = 120.0
ADOPT_TIMEOUT_S = 10.0
END_TIMEOUT_S = 2.0


def actor_name(spec: ShardSpec) -> str:
    """The name of a shard's actor: the checkpoint's place is what a cluster is known by."""
    place = hashlib.blake2b(spec.checkpoint.encode(), digest_size=6).hexdigest()
    return f"shard-{place}-{spec.number}"


def _log_events() -> None:
    """Write this process's events to stderr, which Ray keeps in a file for each process."""
    if not any(isinstance(handler.formatter, JsonLines) for handler in LOGGER.handlers):
        handler = logging.StreamHandler()
        handler.setFormatter(JsonLines())
        LOGGER.addHandler(handler)
        LOGGER.setLevel(logging.INFO)


class _ShardActor(ShardSupervisor):
    """A supervisor as an actor."""

    def __init__(self, spec: ShardSpec, make: Any = None) -> None:
        _log_events()
        take_usual_priority()
        pass_the_lock_on_soon()
        super().__init__(spec, make, self._spoiled_by_failure)
        self._boxes = ReplyBoxes(spec.number, spec.shards, self._send)
        self._peers: dict[int, Any] = {}

    def _spoiled_by_failure(self) -> None:
        """After a failure beside a GPU its context may be beyond use: take a new process."""
        if self._spec.device.startswith("cuda"):
            os._exit(1)

    def release(self) -> str:
        return lpma.__version__

    @ray.method(concurrency_group="work")
    def closed(self, epoch: int, timeout_s: float, or_later: bool = False) -> Any:
        return super().closed(epoch, timeout_s, or_later)

    @ray.method(concurrency_group="work")
    def open_box(self, run: str, epoch: int) -> None:
        """Begin to take part in a run over what is held of an epoch."""
        self._boxes.open(run, self.worker(epoch))
        self.forget(epoch)  # the box holds it from now on

    def close_box(self, run: str) -> None:
        """Take part in a run no more."""
        self._boxes.close(run)

    @ray.method(concurrency_group="work")
    def at_box(self, run: str, method: str, *args: Any) -> Any:
        return getattr(self._boxes.at(run), method)(*args)

    @ray.method(concurrency_group="mail")
    def deliver(self, run: str, step: int, sender: int, *message: Any) -> None:
        """See `ReplyBox.deliver`. The arrays are parameters each, so that large ones stay apart."""
        self._boxes.at(run).deliver(step, sender, message)

    def _send(self, run: str, step: int, outbox: list[Message | None]) -> None:
        own = self._spec.number
        sent = []
        for number, message in enumerate(outbox):
            if message is None:
                continue
            if number == own:
                self._boxes.at(run).deliver(step, own, message)
                continue
            arrays = [to_host(array) for array in message]
            deliver = self._peer(number).deliver
            sent.append((number, deliver.remote(run, step, own, *arrays)))
        for number, reference in sent:
            try:
                ray.get(reference, timeout=DELIVER_TIMEOUT_S)
            except RayError as error:
                self._peers.pop(number, None)
                raise _translated(error, number) from error

    def _peer(self, number: int) -> Any:
        if number not in self._peers:
            name = actor_name(replace(self._spec, number=number))
            try:
                self._peers[number] = ray.get_actor(name, NAMESPACE)
            except ValueError:
                raise ClusterError("its actor is not there", number) from None
        return self._peers[number]


class RayHandle(Handle):
    def __init__(self, number: int, actor: Any, head: Head) -> None:
        self.number = number
        self._actor = actor
        self._head = head

    def ask(self, method: str, *args: Any) -> Future[Any]:
        called = getattr(self._actor, method)
        try:
            if not ray.is_initialized():  # or the call would start another Ray
                raise EngineLost("this process was disconnected from Ray: " + HOW_TO_GO_ON)
            future: Future[Any] = called.remote(*args).future()
        except Exception as error:  # noqa: BLE001 - Ray raises just that for actors of another Ray
            future = Future()
            future.set_exception(error)
        return future

    def translated(self, error: BaseException) -> BaseException:
        if isinstance(error, EngineLost):
            return error
        if not isinstance(error, RayTaskError) and (why := self._head.problem()) is not None:
            return EngineLost(why)
        return _translated(error, self.number)

    def check(self) -> None:
        if (why := self._head.problem()) is not None:
            raise EngineLost(why)

    def kill(self) -> None:
        ray.kill(self._actor, no_restart=False)

    def end(self) -> None:
        if not ray.is_initialized() or self._head.problem() is not None:
            return
        killing = threading.Thread(target=self._kill_for_good, daemon=True)
        killing.start()
        killing.join(END_TIMEOUT_S)  # Ray itself waits a minute for a head that is gone

    def _kill_for_good(self) -> None:
        with suppress(RayError):
            ray.kill(self._actor, no_restart=True)


def _await_gone(name: str) -> None:
    """Wait until no actor has this name any more. Raises ClusterError."""
    deadline = time.monotonic() + ADOPT_TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            ray.get_actor(name, NAMESPACE)
        except ValueError:
            return
        time.sleep(0.05)
    raise ClusterError(f"the actor {name} of an earlier start does not end")


def _translated(error: BaseException, number: int) -> BaseException:
    if isinstance(error, RayTaskError):
        cause: BaseException = error.cause
        return cause
    if isinstance(error, RayActorError):
        return ClusterError("its process died, or its machine is out of reach", number)
    if isinstance(error, GetTimeoutError):
        return ClusterError("no answer in time", number)
    return ClusterError(f"{type(error).__name__}: {error}", number)


class RayEngine(Engine):
    """Actors of the Ray that this process is connected to; else of the one that RAY_ADDRESS or
    `ray start` says is there; else of one that is started here, and ends with this process.

    Raises ClusterError if none can be reached or started."""

    def __init__(self, make: Any = None) -> None:
        self._make = make
        self._head = connected(NAMESPACE)

    def check(self, devices: Iterable[str]) -> None:
        wanted = [device for device in devices if device != "cpu"]
        for device in wanted:
            if not device.startswith("cuda"):
                raise ClusterError(f"devices: {device!r}: on Ray, use 'cpu' or 'cuda'")
        if wanted and not ray.cluster_resources().get("GPU"):
            raise ClusterError(
                f"devices: {wanted[0]!r}: no machine of this Ray offers a GPU: add one (`ray start "
                "--num-gpus`), or take the CPU"
            )

    def problem(self) -> str | None:
        return self._head.problem()

    def launch(self, spec: ShardSpec) -> RayHandle:
        with_gpu = spec.device.startswith("cuda")
        if with_gpu:  # an actor sees the GPUs that are its own, and no others
            spec = replace(spec, device="cuda")
        found = self._running(spec)
        if found is not None:
            return found
        actor_class = ray.remote(concurrency_groups={"mail": MAIL, "work": WORK})(_ShardActor)
        actor = actor_class.options(
            name=actor_name(spec), namespace=NAMESPACE, lifetime="detached", max_restarts=-1,
            max_concurrency=TALK, num_cpus=CPUS, num_gpus=1 if with_gpu else 0,
            scheduling_strategy="SPREAD",
        ).remote(spec, self._make)  # fmt: skip
        return RayHandle(spec.number, actor, self._head)

    def _running(self, spec: ShardSpec) -> RayHandle | None:
        """The actor of this shard that runs already, if it is what would be launched; one that is
        not is ended."""
        try:
            actor = ray.get_actor(actor_name(spec), NAMESPACE)
        except ValueError:
            return None
        handle = RayHandle(spec.number, actor, self._head)
        try:
            (made_of,) = call_all([handle], "spec", timeout_s=ADOPT_TIMEOUT_S)
            (release,) = call_all([handle], "release", timeout_s=ADOPT_TIMEOUT_S)
            if (made_of, release) == (spec, lpma.__version__):
                return handle
            handle.call("close", timeout_s=CLOSE_TIMEOUT_S)
        except ClusterError:
            pass  # it will not answer: its checkpoint and its journal have all that counts
        handle.end()
        _await_gone(actor_name(spec))
        return None

    def workers(self, handles: Sequence[Handle], epoch: int, timeout_s: float) -> Workers:
        return RemoteWorkers(handles, epoch, timeout_s)
