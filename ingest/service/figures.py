"""What a service counts of itself: requests by endpoint and status, their seconds, how many there
are.

Idea: a middleware of a few additions a request. An endpoint is the path of its route, not the path
that was asked for, so that no client can make the figures many. Written by the event loop alone,
and read from any thread.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..timers import Stage

NO_ENDPOINT = "other"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
_GONE = 499  # for a request without an answer: its client went


class Figures:
    """The figures of one service. connections: how many clients are connected; set by the
    server."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()  # (endpoint, method, status)
        self.seconds: defaultdict[str, Stage] = defaultdict(Stage)  # by endpoint
        self.in_progress = 0
        self.connections: Callable[[], int] | None = None

    def note(self, scope: Scope, status: int, seconds: float) -> None:
        """Count one request that has been answered."""
        endpoint = getattr(scope.get("route"), "path", NO_ENDPOINT)
        method = scope["method"] if scope["method"] in _METHODS else NO_ENDPOINT
        self.requests[endpoint, method, status] += 1
        self.seconds[endpoint].add(seconds)


class Counted:
    """The application `app`, whose requests are counted in `figures`."""

    def __init__(self, app: ASGIApp, figures: Figures) -> None:
        self._app = app
        self._figures = figures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = _GONE

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        figures, started = self._figures, time.perf_counter()
        figures.in_progress += 1
        try:
            await self._app(scope, receive, noting)
        except Exception:
            status = 500 if status == _GONE else status  # which is sent further out
            raise
        finally:
            figures.in_progress -= 1
            figures.note(scope, status, time.perf_counter() - started)
