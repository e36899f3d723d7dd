"""Work that takes long goes on beside the stream, and ends when nobody waits for it any more.

Idea: a turn of the stream (`ingest/pipeline/graph_requests.py`) is for what is short: to copy, or
to look up. What is computed from a copy is a job of a thread of the service. Whoever waits for it
may share it with others; when the last of them has gone, or was refused, the job is stopped. It
notices between two pieces of its work: where it asks itself (`Job.check`), and before each piece
that the kernels of the CPU are cut into (`lpma/cpu/threads.py`).

    in_turn     what a short piece of work returns in a turn, on the event loop
    Job         one piece of long work: what it asks of the stream and whether it is to go on, in
                its thread, and those who wait for it, on the event loop
    Worker      a thread that does one job after the other
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any, Generic, TypeVar

from starlette.requests import ClientDisconnect

from lpma import Snapshot
from lpma.cpu.threads import stopped_by

from ..pipeline.graph_requests import GraphView
from ..types import Closing
from .context import Context
from .problems import Problem
from .query_queue import Receive, until_gone

Result = TypeVar("Result")
Copy = TypeVar("Copy")


class Stopped(Exception):
    """Nobody waits for this job any more."""


def _not_in_time() -> Problem:
    return Problem(503, "the stream did not come to it in time", retry_after_s=1)


async def in_turn(context: Context, work: Callable[[GraphView], Result]) -> Result:
    """What `work` returns in a turn of the stream. Raises Problem if the stream does not come to it
    in time; then, and when the caller is cancelled, it is not done at all unless it has begun."""
    asked = context.requests.ask(work)
    waiting = asyncio.wrap_future(asked)  # whose cancellation cancels what was asked
    try:
        await asyncio.wait({waiting}, timeout=context.limits.deadline_s)
        if not waiting.done():
            raise _not_in_time()
        return waiting.result()
    finally:
        waiting.cancel()


def copied(
    graph: GraphView, compact: bool, view: dict[str, int]
) -> tuple[GraphView, Callable[[], Snapshot]]:
    """In a turn: the graph by ids, with its names, and a copy of it, which becomes a snapshot.
    view: what of it, as `Graph.snapshot` takes it."""
    graph = graph.by_id()
    return graph, graph.graph.begin_snapshot(compact=compact, **view)


class Job(Generic[Result]):
    """One piece of work, which is stopped when the last who waited for it leaves. future: settled
    by the worker."""

    def __init__(self, work: Callable[[Job[Result]], Result]) -> None:
        self.future: Future[Result] = Future()
        self._work: Callable[[Job[Result]], Result] | None = work
        self._stopped = threading.Event()
        self._asked: Future[Any] | None = None  # of the stream, for its next turn
        self._waiting = 0  # requests
        self._is_left = False

    # The event loop --------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether it is still being done for somebody."""
        return not self.future.done() and not self._is_left

    @property
    def result(self) -> Result | None:
        """What was found; None before that, and if it failed."""
        future = self.future
        is_found = future.done() and not future.cancelled() and future.exception() is None
        return future.result() if is_found else None

    async def wait(self, receive: Receive, seconds: float, late: str) -> Result:
        """The result. receive: of the request that waits for it, whose body was read. late: what
        its client is told after so many seconds. Raises Problem, ClientDisconnect, and what the job
        raised."""
        done = asyncio.wrap_future(self.future)
        done.add_done_callback(seen)
        gone = asyncio.ensure_future(until_gone(receive))
        either: set[asyncio.Future[Any]] = {done, gone}
        self._waiting += 1
        try:
            await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if done.done():
                return done.result()
            raise ClientDisconnect if gone.done() else Problem(503, late, retry_after_s=1)
        finally:
            self._waiting -= 1
            if not self._waiting and not self.future.done():
                self._is_left = True
                self.stop()
            gone.cancel()
            with suppress(asyncio.CancelledError):
                await gone

    # Its thread ------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise Stopped once nobody wants the result. From any thread."""
        if self._stopped.is_set():
            raise Stopped

    def stop(self) -> None:
        """Have it end soon, or not begin. From any thread; nothing happens if it is done."""
        self._stopped.set()
        self.future.cancel()
        if self._asked is not None:
            self._asked.cancel()

    def copied(self, context: Context, work: Callable[[GraphView], Copy]) -> Copy:
        """What `work` returns in a turn of the stream, for which this job's thread waits. Raises
        Problem if the stream does not come to it in time."""
        asked = context.requests.ask(work)
        self._asked = asked
        self.check()
        try:
            return asked.result(context.limits.deadline_s)
        except CancelledError:
            raise Stopped from None
        except TimeoutError:
            if asked.done():
                return asked.result()
            asked.cancel()  # or the stream would stop for it when it comes to it
            raise _not_in_time() from None

    def run(self) -> None:
        """In the worker's thread."""
        work, self._work = self._work, None  # which may hold a copy of the graph
        assert work is not None
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            with stopped_by(self.check):
                result = work(self)
        except BaseException as error:  # noqa: BLE001 - whoever asked is told
            self.future.set_exception(error)
        else:
            self.future.set_result(result)


class Worker(Closing):
    """Does jobs one after the other in a thread, which is no reason for the process not to exit."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._queue: queue.SimpleQueue[Job[Any] | None] = queue.SimpleQueue()
        self._jobs: set[Job[Any]] = set()  # that are not done
        self._thread: threading.Thread | None = None

    @property
    def unfinished(self) -> int:
        """How many jobs wait, or are being done."""
        with self._lock:
            return sum(not job.future.done() for job in self._jobs)

    def begin(self, work: Callable[[Job[Result]], Result]) -> Job[Result]:
        """Have `work` done after what was begun before."""
        job = Job(work)
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._jobs.add(job)
        self._queue.put(job)
        return job

    def close(self) -> None:
        """Stop what is being done, without waiting for it, and begin nothing more."""
        with self._lock:
            jobs = list(self._jobs)
        for job in jobs:
            job.stop()
        self._queue.put(None)

    def _run(self) -> None:
        while (job := self._queue.get()) is not None:
            job.run()
            with self._lock:
                self._jobs.discard(job)
            del job  # and with it what was made, unless somebody else has it


def seen(future: asyncio.Future[Any]) -> None:
    """Note that an error was seen, or asyncio would log it where nobody waits any more."""
    if not future.cancelled():
        future.exception()
