"""What keeps a shard running: it is made, watched, and made again when it fails. The same for every
engine.

Idea: a shard that fails has lost nothing, since its checkpoint, its journal and the log hold all
of it. So the cure for any failure is another `Shard` of the same specification, which resumes. The
pause before it doubles while starts keep failing. What failed, and how often, stays readable, so
that an operator sees why a shard does not come up.

Invariants:
1. At most one shard of a supervisor has its directory: a new one is made after the last one has
   closed or was killed.
2. `status` answers at once, whatever the shard does.
3. After `end` nothing is started again.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import ClusterError
from ..events import log_event

if TYPE_CHECKING:
    from .shard import Shard
    from .spec import EpochClosed, ShardSpec, ShardStatus

LOOK_S = 0.05  # between two looks at whether the shard still runs
FIRST_PAUSE_S, MOST_PAUSE_S = 0.1, 5.0  # before it is started again
END_TIMEOUT_S = 5.0
STEADY_S = 1.0  # a shard that ran so long starts again after the first pause


@dataclass(frozen=True)
class SupervisorStatus:
    """What a supervisor says of its shard. starts: how often it began to make one. failures: how
    many of those failed in a row, up to now. problem: what went wrong last; it stays after the
    cure."""

    number: int
    name: str  # random text, new with each supervisor
    pid: int
    starts: int
    failures: int
    problem: str | None
    shard: ShardStatus | None  # None: none could be made yet


class ShardSupervisor:
    """Keeps the shard of `spec` running. Methods may be called from any thread.

    make: makes a `Shard`, or what can do the same, not started yet. spoiled: called after a failure
    of a shard that ran, for an engine that gives it a new process then."""

    def __init__(
        self,
        spec: ShardSpec,
        make: Callable[[ShardSpec], Any] | None = None,
        spoiled: Callable[[], None] = lambda: None,
    ) -> None:
        self._spec = spec
        self._make = make or _shard
        self._spoiled = spoiled
        self._name = secrets.token_hex(8)
        self._starts = self._failures = 0
        self._problem: str | None = None
        self._shard: Shard | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(
            target=self._keep_running, name=f"lpma-shard-{spec.number}", daemon=True
        )
        self._thread.start()

    # What is asked of it -----------------------------------------------------------------------

    def ping(self) -> None:
        """Returns, if the supervisor is there."""

    def spec(self) -> ShardSpec:
        return self._spec

    def status(self) -> SupervisorStatus:
        shard = self._shard
        return SupervisorStatus(
            self._spec.number, self._name, os.getpid(), self._starts, self._failures,
            self._problem, None if shard is None else shard.status(),
        )  # fmt: skip

    def expect(self, epoch: int, or_later: bool = False) -> str:
        """See `Shard.expect`. Returns the shard's incarnation: what it expects dies with that."""
        shard = self._running()
        shard.expect(epoch, or_later)
        return shard.status().incarnation

    def closed(
        self, epoch: int, timeout_s: float, or_later: bool = False
    ) -> tuple[EpochClosed | None, bool]:
        """See `Shard.closed`; and if it is None, whether that will stay so."""
        shard = self._running()
        until = time.monotonic() + timeout_s
        found = shard.closed(epoch, timeout_s, or_later)
        return found, found is None and not or_later and time.monotonic() < until

    def forget(self, epoch: int) -> None:
        self._running().forget(epoch)

    def worker(self, epoch: int) -> Any:
        return self._running().worker(epoch)

    # How it ends -------------------------------------------------------------------------------

    def kill(self) -> None:
        """Let the shard die as in a crash. It is started again."""
        if self._shard is not None:
            self._shard.kill()

    def close(self) -> None:
        """Close the shard, which takes a last checkpoint, and start none again. Raises what that
        raises, and ClusterError if there is none that could take it."""
        self._ended.set()
        shard = self._shard
        try:
            if shard is None:
                raise ClusterError(self._problem or "it was never started")
            shard.close()
        finally:
            self._thread.join()

    def end(self) -> None:
        """Let the shard die, for good. Does not wait for what hangs."""
        self._ended.set()
        dying = threading.Thread(target=self.kill, daemon=True)
        dying.start()
        dying.join(END_TIMEOUT_S)

    # The thread that watches -------------------------------------------------------------------

    def _keep_running(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._ended.is_set():
            began = time.monotonic()
            self._starts += 1
            problem = self._run_one()
            if self._ended.is_set():
                return
            steady = time.monotonic() - began >= STEADY_S
            pause_s = FIRST_PAUSE_S if steady else pause_s
            log_event("shard failed", logging.WARNING, shard=self._spec.number, problem=problem,
                      again_in_s=pause_s)  # fmt: skip
            self._spoiled()
            self._ended.wait(pause_s)
            pause_s = min(2 * pause_s, MOST_PAUSE_S)

    def _run_one(self) -> str:
        """Make a shard, and start it; returns when it has failed: why."""
        shard = None
        try:
            shard = self._make(self._spec)
            self._shard = shard
            if self._ended.is_set():  # meanwhile, perhaps before the shard was seen
                shard.kill()
            shard.start()
            problem = self._watched(shard)
        except Exception as error:  # noqa: BLE001 - whatever it is, another start is the cure
            problem = f"{type(error).__name__}: {error}"
        self._failures += 1
        self._problem = problem
        if shard is not None and not self._ended.is_set():
            shard.kill()  # it may hold its directory still (invariant 1)
        return problem

    def _watched(self, shard: Shard) -> str:
        """Wait until the shard runs no more; why."""
        while not self._ended.wait(LOOK_S):
            status = shard.status()
            if status.state == "running":
                self._failures = 0
            elif status.state in ("failed", "stopped"):
                return status.problem or f"the shard is {status.state}"
        return "the supervisor ends"

    def _running(self) -> Shard:
        """The shard, if it can be asked."""
        shard = self._shard
        number = self._spec.number
        if shard is None:
            raise ClusterError(self._problem or "is starting", number)
        status = shard.status()
        if status.state != "running":
            why = self._problem or status.problem
            raise ClusterError(f"is {status.state}" + (f": {why}" if why else ""), number)
        return shard


def _shard(spec: ShardSpec) -> Shard:
    from .shard import Shard

    return Shard(spec)
