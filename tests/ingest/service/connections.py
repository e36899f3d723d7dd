"""What the tests of connections share: an application that answers at length, or never."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest

from ingest.service import server as server_module
from ingest.service.connection import Connection, Timeouts
from ingest.service.server import AsgiServer
from tests.support.raw_http import ask, request
from tests.support.waiting import wait_for

GET = request()
HUGE = 256 << 20  # bytes, more than the system's buffers hold
LONG = 24 << 20
CHUNKED = request("/", "POST", Transfer_Encoding="chunked")


async def toy(scope: Any, receive: Any, send: Any) -> None:
    """Says how long the body was; /huge answers more than fits, /events without an end, /never not
    at all."""
    path, length, more = scope["path"], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        length += len(message["body"])
        more = message["more_body"]
    if path == "/never":
        await receive()
        return
    start = {"type": "http.response.start", "status": 200, "headers": []}
    if path in ("/huge", "/events"):
        scope["state"]["endless"] = True
        await send(start)
        part = bytes(1 << 20) if path == "/huge" else b"data: x\n\n"
        gone = asyncio.ensure_future(receive())
        for _ in range(HUGE >> 20 if path == "/huge" else 1 << 30):
            await send({"type": "http.response.body", "body": part, "more_body": True})
            if path == "/events":
                await asyncio.sleep(0.01)
            if gone.done():
                return
        gone.cancel()
        await send({"type": "http.response.body", "body": b""})
        return
    said = bytes(LONG) if path == "/long" else f"{path} {length}".encode()
    start["headers"] = [(b"content-length", str(len(said)).encode())]
    await send(start)
    await send({"type": "http.response.body", "body": said})


Serve = Callable[..., AsgiServer]


class Held:
    """One server of the toy, whose clock stands still until the test moves it on."""

    def __init__(self, serve: Serve, patch: pytest.MonkeyPatch, **timeouts: float) -> None:
        self._now, self._looks, self._parsed, self._is_met = 0.0, 0, 0, False
        parse, sweep = Connection.parse, AsgiServer._sweep

        def counted(connection: Connection, data: bytes) -> None:
            parse(connection, data)
            self._parsed += len(data)

        def noted(server: AsgiServer) -> None:
            self._looks += 1
            sweep(server)

        patch.setattr(server_module, "_SWEEP_S", 0.001)
        patch.setattr(Connection, "parse", counted)
        patch.setattr(AsgiServer, "_sweep", noted)
        clock: Any = lambda: self._now  # noqa: E731
        self.timeouts = Timeouts(clock=clock, **timeouts)
        self._server = serve(timeouts=self.timeouts)
        self.port = self._server.port
        self.connections = self._server.connections

    @property
    def _open(self) -> list[Any]:
        return [*self._server._open]

    def send(self, client: socket.socket, *parts: bytes) -> None:
        """Send each part when the server has read what came before, and return when it has read
        all, or closed the connection."""
        if not self._is_met:
            wait_for(lambda: self.connections() == 1, "the connection")
            self._is_met = True
        read = self._parsed
        for part in parts:
            try:
                client.sendall(part)
            except ConnectionError:
                return
            read += len(part)
            wait_for(lambda: self._has_read(read), "what was sent is read")  # noqa: B023

    def _has_read(self, size: int) -> bool:
        if not self._open:
            return True
        held_up = any(c.is_behind or c.flow.read_paused for c in self._open)
        return self._parsed >= size and not held_up

    def pass_time(self, seconds: float) -> None:
        """Return when the server has seen what time it is, and has done what is due."""
        self._now += seconds
        looks = self._looks
        wait_for(lambda: self._looks > looks + 2, "the server looks at the clock")

    def until_idle(self) -> None:
        """Wait until all that was asked is answered, as far as the server is concerned."""
        wait_for(lambda: all(c._idle for c in self._open), "all is answered")

    def until_stalled(self) -> None:
        """Wait until the server waits for somebody to read."""
        wait_for(lambda: any(c.flow.write_paused for c in self._open), "an answer is not read")


def is_served(port: int) -> bool:
    return ask(port, GET).body == b"/ 0"
