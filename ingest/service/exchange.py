"""One request and its answer while they pass the guard, and what all of them take together.

Idea: a request counts when its work begins, which is once its body is whole. What is only half
sent has done nothing yet, so any number of such requests leave the places to those that are whole;
their bytes are bounded instead, and the body that has stood still longest makes room. Probes of
health are not counted: they take no work, a connection has one at a time, and an orchestrator must
not take a busy service for a dead one.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.types import Message, Receive, Scope, Send

from .connection import ENDLESS
from .problems import GONE, Problem

if TYPE_CHECKING:
    from .context import Limits

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
PROBES = frozenset({"/healthz", "/readyz"})

_BODIES_BYTES = 256 << 20  # of all requests
_HALF_BYTES = 48 << 20  # of bodies that are not whole

SECURITY_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        b"connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


@dataclass
class Load:
    """What the service does at the moment."""

    requests: int = 0  # that are whole, and being answered
    body_bytes: int = 0  # of all requests
    half_bytes: int = 0  # of those that are not whole
    # They, with the one whose last part came earliest first.
    halves: dict[Exchange, None] = field(default_factory=dict)


class Exchange:
    """One request. receive, send: what the application gets in place of the server's."""

    def __init__(
        self, load: Load, limits: Limits, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._load = load
        self._limits = limits
        self._scope = scope
        self._receive = receive
        self._send = send
        self._counts = False
        self._body_bytes = 0
        self._task: asyncio.Task[None] | None = None  # that waits for the body
        self._is_options = False
        self.receive: Receive = receive
        self.status = GONE  # of the answer, once it begins
        self.evicted = False  # its body made room for others

    def begin(self, headers: dict[bytes, str]) -> None:
        """Let the request in. Raises Problem if too many are being answered."""
        has_body = b"content-length" in headers or b"transfer-encoding" in headers
        if has_body:
            self.receive = self._read
        if self._scope["method"] in SAFE and self._scope["path"] in PROBES:
            return
        self._check_room()
        if has_body and self._scope["method"] not in SAFE:
            self._task = asyncio.current_task()
        else:
            self._count()

    def _check_room(self) -> None:
        if self._load.requests >= self._limits.max_requests:
            raise Problem(503, "too many requests at once: try again", retry_after_s=1)

    def _count(self) -> None:
        self._check_room()
        self._load.requests += 1
        self._counts = True

    def end(self) -> None:
        self._leave_halves()
        self._load.body_bytes -= self._body_bytes
        self._load.requests -= self._counts

    # The body --------------------------------------------------------------------------------

    async def _read(self) -> Message:
        """The next part of the body, while it is not too long."""
        message = await self._receive()
        size = len(message.get("body", b""))
        self._leave_halves()
        self._body_bytes += size
        self._load.body_bytes += size
        if self._body_bytes > self._limits.max_body_bytes:
            raise too_long(self._limits)
        if self._load.body_bytes > _BODIES_BYTES:
            raise Problem(503, "too much is being sent at once: try again", retry_after_s=1)
        if message.get("more_body", False):
            self._join_halves()
        elif self._task is not None:
            self._task = None
            self._count()
        return message

    def _join_halves(self) -> None:
        """Become the last of those that wait for more, and have the first ones make room."""
        load = self._load
        load.halves[self] = None
        load.half_bytes += self._body_bytes
        while load.half_bytes > _HALF_BYTES and len(load.halves) > 1:
            next(iter(load.halves))._evict()

    def _leave_halves(self) -> None:
        if self in self._load.halves:
            del self._load.halves[self]
            self._load.half_bytes -= self._body_bytes

    def _evict(self) -> None:
        self._leave_halves()
        if self._task is not None:
            self.evicted = True
            self._task.cancel()

    # The answer ------------------------------------------------------------------------------

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._harden(message)
        elif self._is_options:
            message["body"] = b""
        await self._send(message)

    def _harden(self, message: Message) -> None:
        """Add the headers that keep browsers safe, where the endpoint set none of its own."""
        headers: list[tuple[bytes, bytes]] = list(message.get("headers", ()))
        if self._scope["method"] == "OPTIONS" and message["status"] == 405:
            # What it allows is what was asked.
            self._is_options, message["status"] = True, 204
            headers = [header for header in headers if header[0].lower() == b"allow"]
        there = {name.lower(): value for name, value in headers}
        headers += [header for header in SECURITY_HEADERS if header[0] not in there]
        message["headers"] = headers
        if there.get(b"content-type", b"").startswith(b"text/event-stream"):
            # It is counted by its endpoint, and ended by the server.
            self._scope["state"][ENDLESS] = True
            self._load.requests -= self._counts
            self._counts = False


def too_long(limits: Limits) -> Problem:
    return Problem(413, f"a body has at most {limits.max_body_bytes:,} bytes: send it in parts")
