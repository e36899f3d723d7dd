"""Questions of requests on their way to the graph and back, on the event loop.

Idea: a question is appended to a list, and that is all a request pays for. The first one has the
list flushed when the loop comes round; a flush hands all that wait to one turn, where they are
answered together (`answering.py`). While one turn is under way the next questions gather, so
the groups grow with the load, and with them what one turn of the pipeline's thread achieves. The
answers come back by one call to the loop.

Bounds, each checked before anything is done:

    max_waiting   questions that are waiting or under way: one more is told to come back
    max_rows      vertices of one flush, and ten times that of all that wait
    deadline_s    after which a question is answered with 504
    a client that goes away is noticed after `LOOK_S`; then its question is dropped, if it waits

Invariants:
1. At most one turn of ours is under way.
2. `_count` and `_rows` are those of the questions whose futures are not done.

Used by one event loop alone; only `_come_back` is called by the pipeline's thread.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

from starlette.requests import ClientDisconnect

from lpma import Kind

from ..types import Name
from .answering import Answer, AnswerTooLarge, Most, Outcome, Question, Vertices, answer
from .context import Context
from .problems import Problem

LOOK_S = 0.25  # between two looks at deadlines and at clients that went away
WAITING_ROWS = 10  # times max_rows, of all questions that wait
TOO_LARGE, UNSUPPORTED = "urn:lpma:too-large", "urn:lpma:unsupported"
DEADLINE, HOPS = "urn:lpma:deadline", "urn:lpma:hops"

Receive = Callable[[], Awaitable[Any]]


class QueryQueue:
    """Asks the graph of a service."""

    def __init__(self, context: Context) -> None:
        self._requests = context.requests
        self._limits = context.limits
        # One answer must fit what is kept of answers, beside its row bounds.
        limits = context.limits
        kept = max(1 << 10, limits.kept_bytes - 16 * limits.max_rows)
        self._most = Most(kept, limits.max_answer_rows, limits.max_walked_edges)
        self._waiting: deque[Question] = deque()
        self._sent: list[Question] = []  # under way
        self._scheduled = self._looking = False
        self._count = self._rows = 0

    async def ask(
        self,
        receive: Receive,
        kind: Kind,
        u: Vertices,
        v: Vertices | None = None,
        after: list[Name | None] | None = None,
        k: int = 0,
    ) -> Answer:
        """The answer to one question. receive: of its request, whose body was read. Raises
        Problem, and ClientDisconnect if the client went away before."""
        rows, limits = len(u), self._limits
        if self._count >= limits.max_waiting or self._rows > WAITING_ROWS * limits.max_rows:
            raise Problem(
                503, f"{self._count:,} questions wait: ask again in a second", retry_after_s=1
            )
        loop = asyncio.get_running_loop()
        question = Question(
            kind, u, v, after, k, time.monotonic() + limits.deadline_s, loop.create_future()
        )
        question.watch = receive
        self._count += 1
        self._rows += rows
        self._waiting.append(question)
        if not self._scheduled and not self._sent:
            self._scheduled = True
            loop.call_soon(self._flush)
        if not self._looking:
            self._looking = True
            loop.call_later(LOOK_S, self._look)
        try:
            return await question.future
        finally:
            self._count -= 1
            self._rows -= rows

    def _flush(self) -> None:
        """Hand over what waits."""
        self._scheduled = False
        if self._sent:
            return
        group: list[Question] = []
        rows = 0
        while self._waiting and (not group or rows < self._limits.max_rows):
            question = self._waiting.popleft()
            if not question.future.done():
                group.append(question)
                rows += len(question.u)
        if not group:
            return
        self._sent = group
        loop = asyncio.get_running_loop()
        work = partial(answer, questions=group, most=self._most)
        self._requests.ask(work).add_done_callback(partial(self._come_back, loop))

    def _come_back(
        self,
        loop: asyncio.AbstractEventLoop,
        done: concurrent.futures.Future[list[Outcome]],
    ) -> None:
        with suppress(RuntimeError):  # the loop was closed
            loop.call_soon_threadsafe(self._deliver, done)

    def _deliver(self, done: concurrent.futures.Future[list[Outcome]]) -> None:
        group, self._sent = self._sent, []
        failure, again = done.exception(), []
        outcomes = done.result() if failure is None else [failure] * len(group)
        for question, outcome in zip(group, outcomes, strict=True):
            future = question.future
            if future.done():
                continue
            if isinstance(outcome, Answer):
                future.set_result(outcome)
            elif outcome is None:
                again.append(question)
            elif isinstance(outcome, AnswerTooLarge):
                future.set_exception(Problem(413, str(outcome), type=TOO_LARGE))
            else:
                future.set_exception(outcome)
        self._waiting.extendleft(reversed(again))
        self._flush()

    # Deadlines -------------------------------------------------------------------------------

    def _look(self) -> None:
        """Settle the questions whose deadline has passed, and watch the clients of slow ones."""
        now = time.monotonic()
        self._waiting = deque(q for q in self._waiting if not q.future.done())
        open_ones = [q for q in (*self._sent, *self._waiting) if not q.future.done()]
        for question in open_ones:
            if now > question.until:
                question.future.set_exception(
                    Problem(
                        504,
                        f"no answer within {self._limits.deadline_s:g} s: the stream is busy, "
                        "or it is asked for much: ask for less at once",
                        type=DEADLINE,
                    )
                )
            elif callable(question.watch) and now - question.asked > LOOK_S:
                watching = _drop_if_gone(question.watch, question.future)
                question.watch = asyncio.ensure_future(watching)
        self._looking = bool(open_ones)
        if open_ones:
            asyncio.get_running_loop().call_later(LOOK_S, self._look)


async def _drop_if_gone(receive: Receive, future: asyncio.Future[Answer]) -> None:
    """Drop a question when its client has gone away."""
    gone: asyncio.Future[Any] = asyncio.ensure_future(until_gone(receive))
    try:
        await asyncio.wait([gone, future], return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
    if not future.done() and gone.done() and not gone.cancelled():
        future.set_exception(ClientDisconnect())


async def until_gone(receive: Receive) -> None:
    """Return when the client has gone away."""
    while (await receive())["type"] != "http.disconnect":
        pass  # the body of a request that has none
