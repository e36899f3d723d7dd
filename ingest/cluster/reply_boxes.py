"""Supersteps between processes: a box at each shard, and what the driver calls.

Idea: messages go straight from the shard that wrote them to the shard that reads them, as in
Pregel. The driver calls `step` on all boxes at once, and gets their summaries when every message of
that step is delivered: this is the barrier. So it never sees a message, and what it does in a step
grows with the number of shards alone.

Invariants:
1. The receiver's box holds a message of step k before any box begins step k + 1.
2. Messages of another run, or of another step than the next, are refused: an error at the sender.
3. A box that is gone, because its shard started again or newer boxes took its place, is a
   ClusterError for whoever calls it.
"""

from __future__ import annotations

import secrets
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import ClusterError
from .engine import Handle, call_all, try_all

if TYPE_CHECKING:
    from algorithms.sharded import Message, Worker

MAX_BOXES = (
    4  # of one shard, a snapshot each: beyond that, the one that was used least recently goes
)
STEP_TIMEOUT_S = 600.0  # of one superstep, or of the making of a result

Send = Callable[[str, int, "list[Message | None]"], None]


class ReplyBox:
    """One shard's place in one run: a worker, and the boxes of its messages. send: (run, step,
    outbox) → delivers outbox[i] to shard i, those that are None excepted, and waits until all are
    delivered."""

    def __init__(self, run: str, worker: Worker, shards: int, send: Send) -> None:
        self._run = run
        self._worker = worker
        self._shards = shards
        self._send = send
        self._lock = threading.Lock()
        self._next = 0  # the step that will be made next
        self._boxes: dict[int, list[Message | None]] = {}  # by the step that reads them

    def begin(self, program: str, params: dict[str, Any]) -> None:
        with self._lock:
            self._next = 0
            self._boxes.clear()
        self._worker.begin(program, params)

    def step(self, control: Any) -> Any:
        """Make a step, and deliver what it sends; its summary."""
        with self._lock:
            number = self._next
            self._next += 1
            inbox = self._boxes.pop(number, None) or [None] * self._shards
        outbox, summary = self._worker.step(control, inbox)
        self._send(self._run, number + 1, outbox)
        return summary

    def deliver(self, step: int, sender: int, message: Message) -> None:
        """Put a message into the box that step `step` reads."""
        with self._lock:
            # A sender may be done with a step that this box has not begun yet.
            if step not in (self._next, self._next + 1):
                raise ClusterError(f"a message for step {step}, but step {self._next} is next")
            self._boxes.setdefault(step, [None] * self._shards)[sender] = message

    def call(self, method: str, *args: Any) -> Any:
        return getattr(self._worker, method)(*args)


class ReplyBoxes:
    """The boxes of one shard, by run."""

    def __init__(self, shard: int, shards: int, send: Send) -> None:
        self._shard, self._shards, self._send = shard, shards, send
        self._lock = threading.Lock()
        self._boxes: OrderedDict[str, ReplyBox] = OrderedDict()

    def open(self, run: str, worker: Worker) -> None:
        with self._lock:
            self._boxes[run] = ReplyBox(run, worker, self._shards, self._send)
            while len(self._boxes) > MAX_BOXES:
                self._boxes.popitem(last=False)

    def close(self, run: str) -> None:
        """Give up a run's box; does nothing if it has none."""
        with self._lock:
            self._boxes.pop(run, None)

    def at(self, run: str) -> ReplyBox:
        """The box of a run. Raises ClusterError if there is none (invariant 3)."""
        with self._lock:
            if run not in self._boxes:
                why = "holds nothing of this run any more: take a new snapshot"
                raise ClusterError(why, self._shard)
            self._boxes.move_to_end(run)
            return self._boxes[run]


class RemoteWorkers:
    """All workers of an epoch, as the driver of an algorithm sees them (`algorithms.sharded`,
    Workers); `close()` gives up what the shards hold for them, as their own end does. Raises
    ClusterError if a shard dies meanwhile, or has started again: then another
    snapshot is to be taken."""

    def __init__(self, handles: Sequence[Handle], epoch: int, timeout_s: float) -> None:
        self.size = len(handles)
        self._handles = list(handles)
        self._run = secrets.token_hex(8)
        self.close = weakref.finalize(self, _given_up, self._handles, self._run)
        self.close.atexit = False
        call_all(handles, "open_box", self._run, epoch, timeout_s=timeout_s)

    def begin(self, program: str, params: dict[str, Any]) -> None:
        """Begin a program of `algorithms.sharded.PROGRAMS` on all."""
        self._all("begin", program, params)

    def step(self, control: Any) -> list[Any]:
        """One superstep: the summaries, by shard."""
        return self._all("step", control)

    def results(self) -> list[Any]:
        return self.call("result")

    def call(self, method: str, *args: Any) -> list[Any]:
        """What a method of each worker returns, by shard. An error is raised when no other worker
        is at it any more: what it writes may be removed then."""
        asked = "at_box", self._run, "call", method, *args
        found = try_all(self._handles, *asked, timeout_s=STEP_TIMEOUT_S)
        for one in found:
            if isinstance(one, Exception):
                raise one
        return found

    def _all(self, method: str, *args: Any) -> list[Any]:
        asked = "at_box", self._run, method, *args
        return call_all(self._handles, *asked, timeout_s=STEP_TIMEOUT_S)


def _given_up(handles: Sequence[Handle], run: str) -> None:
    """Let all give up the boxes of a run; nobody waits for that."""
    for handle in handles:
        handle.ask("close_box", run)
