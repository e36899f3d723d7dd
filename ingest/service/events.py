"""GET /v1/events: what happens in the stream, as it happens, by server-sent events.

Idea: one thread looks at the pipeline (`sampling.py`) for all who watch, ten times a second while
somebody does, else once. Each event is encoded once, numbered, and kept in a ring of `RING`. A
watcher is only a number, that of the last event it was sent, so one that reads slowly costs no
memory; and one that comes back says where it was:

    Last-Event-ID, or ?after=BOOT-SEQ    goes on behind that event
    ?recent=300                          begins with that many of the ring
    neither                              begins with what happens next

    hello   first of all: what is served; its id is where the watcher begins
    gap     events were missed: they have left the ring, or the service was started again
    batch, checkpoint, letter, figures, alert: see sampling.py

A comment is sent after `QUIET_S` of silence, so that a connection that broke is noticed at either
end. The format is that of HTML.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from ..events import log_event
from ..timers import now_ms
from ..types import Closing
from .context import Context
from .messages import RING, EventsQuery, parameters
from .problems import Problem
from .sampling import Sampler

WATCHED_S, UNWATCHED_S = 0.1, 1.0  # between two looks at the pipeline
QUIET_S = 15.0
AT_ONCE = 500  # events in one write
_ID = re.compile(r"([0-9a-f]{8})-(\d{1,15})")


class Watcher:
    """One connection: where it stands, and what wakes it. `wake` is set in its own event loop."""

    def __init__(self, after: int) -> None:
        self.after = after
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """From any thread."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._wake.set)

    async def wait(self) -> bool:
        """Whether it was woken before `QUIET_S`."""
        try:
            await asyncio.wait_for(self._wake.wait(), QUIET_S)
        except TimeoutError:
            return False
        self._wake.clear()
        return True


class Hub(Closing):
    """The events of one service, and who watches."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.boot = secrets.token_hex(4)
        self.closed = False
        self.sampler: Sampler | None = None
        self._lock = threading.Lock()
        self._ring: deque[bytes] = deque(maxlen=RING)
        self._newest = 0  # the number of the newest event; they begin at 1
        self._version = -1  # the newest version that any of them has
        self._watchers: set[Watcher] = set()
        self._thread: threading.Thread | None = None
        if context.pipeline is not None:
            self.sampler = Sampler(context.pipeline, context.alerts)
            self._hurry = threading.Event()
            self._thread = threading.Thread(target=self._look, name="lpma-events", daemon=True)
            self._thread.start()

    def _look(self) -> None:
        assert self.sampler is not None
        while not self.closed:
            try:
                for kind, data in self.sampler.look():
                    self.tell(kind, data)
            except Exception as error:  # noqa: BLE001 - a source that fails must not blind us
                log_event("no figures", logging.WARNING, error=str(error))
                time.sleep(UNWATCHED_S)
            if not self._watchers:
                self._hurry.wait(UNWATCHED_S)
                self._hurry.clear()
            else:
                time.sleep(WATCHED_S)

    def tell(self, kind: str, data: dict[str, Any]) -> None:
        """Send an event to all who watch."""
        with self._lock:
            self._newest += 1
            self._ring.append(self.encoded(kind, data, self._newest))
            self._version = max(self._version, data.get("version", -1))
            watchers = list(self._watchers)
        for watcher in watchers:
            watcher.wake()

    def encoded(self, kind: str, data: dict[str, Any], number: int) -> bytes:
        """One event in bytes."""
        text = json.dumps(data, separators=(",", ":"))
        return f"id: {self.boot}-{number}\nevent: {kind}\ndata: {text}\n\n".encode()

    @contextmanager
    def watching(self, since: str | None, recent: int) -> Iterator[tuple[Watcher, bytes]]:
        """A watcher, and what it is sent first. Raises Problem."""
        boot, number = _parsed(since)
        with self._lock:
            if len(self._watchers) >= self._context.limits.max_watchers:
                raise Problem(503, "too many event streams are open: retry in 5 s", retry_after_s=5)
            kept = self._newest - len(self._ring)  # the number before the oldest one kept
            begin = max(kept, self._newest - recent)
            missed: dict[str, Any] | None = None
            if boot == self.boot:
                begin = min(max(kept, number), self._newest)
                missed = {"missed": kept - number} if number < kept else None
            elif boot is not None:
                missed = {"missed": None, "why": "the service was started again"}
            watcher = Watcher(begin)
            self._watchers.add(watcher)
        if self._thread is not None:
            self._hurry.set()
        first = self.encoded("hello", self._hello(), begin)
        if missed is not None:
            first += self.encoded("gap", missed, begin)
        try:
            yield watcher, b"retry: 1000\n" + first
        finally:
            with self._lock:
                self._watchers.discard(watcher)

    def _hello(self) -> dict[str, Any]:
        rules = [str(rule) for rule in self._context.alerts]
        live = self._context.pipeline is not None
        return {"title": self._context.title, "live": live, "rules": rules, "at": now_ms()}

    def next_for(self, watcher: Watcher) -> bytes:
        """The next events for a watcher, at most `AT_ONCE`; it stands behind them then."""
        with self._lock:
            waiting = self._newest - watcher.after
            if waiting > len(self._ring):
                missed = waiting - len(self._ring)
                watcher.after += missed
                return self.encoded("gap", {"missed": missed}, watcher.after)
            if waiting:
                self._context.requests.note_told(self._version)
            some = list(islice(reversed(self._ring), max(0, waiting - AT_ONCE), waiting))
            watcher.after += len(some)
        return b"".join(reversed(some))

    def close(self) -> None:
        """End the thread and every connection."""
        self.closed = True
        with self._lock:
            watchers = list(self._watchers)
        for watcher in watchers:
            watcher.wake()
        if self._thread is not None:
            self._hurry.set()
            self._thread.join()


def _parsed(since: str | None) -> tuple[str | None, int]:
    """(boot, number) of an event's id. Raises Problem."""
    if since is None:
        return None, 0
    match = _ID.fullmatch(since)
    if match is None:
        raise Problem(400, f"{since[:40]!r} is no event's id: they are like 1f0c9a3e-17")
    return match[1], int(match[2])


class EventStream(StreamingResponse):
    """Events from the hub until the client leaves; the server closes a connection that is not
    read."""

    def __init__(self, hub: Hub, since: str | None, recent: int) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__((), 200, headers, "text/event-stream")
        self._hub, self._since, self._recent = hub, since, recent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._hub.watching(self._since, self._recent) as (watcher, first):
            self.body_iterator = self._events(watcher, first)
            await super().__call__(scope, receive, send)

    async def _events(self, watcher: Watcher, data: bytes) -> AsyncIterator[bytes]:
        hub = self._hub
        while not hub.closed:
            yield data
            data = hub.next_for(watcher)
            while not (data or hub.closed):
                woken = await watcher.wait()
                data = hub.next_for(watcher) if woken else b": still here\n\n"


def handlers(context: Context, hub: Hub) -> dict[str, Any]:
    context.on_close(hub.close)

    async def events(request: Request) -> Response:
        query = parameters(request.scope["query_string"], EventsQuery)
        since = query.after or request.headers.get("last-event-id") or None
        _parsed(since)
        return EventStream(hub, since, query.recent)

    return {"events": events}
