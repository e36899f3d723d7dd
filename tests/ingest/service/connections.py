"""What the tests of connections share: an application that answers at length, or never."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ingest.service.patience import Patience
from ingest.service.server import AsgiServer
from tests.support.raw_http import ask, request

GET = request()
BRIEF = Patience(head_s=0.3, body_s=0.3, stalled_s=0.3, rate=1 << 20, idle_s=0.3, grace_s=0.3)
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


def is_served(port: int) -> bool:
    return ask(port, GET).body == b"/ 0"
