"""Requests put to an ASGI application without a server: for what must run without sockets."""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import urlsplit


class Answered(NamedTuple):
    status: int
    body: bytes


async def call(
    app: Any, method: str, target: str, body: bytes = b"", content_type: str = "application/json"
) -> Answered:
    """One request, as uvicorn would put it."""
    parts = urlsplit(target)
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
        "scheme": "http", "path": parts.path, "raw_path": parts.path.encode(), "root_path": "",
        "query_string": parts.query.encode(), "client": None, "server": ("127.0.0.1", 80),
        "headers": [(b"host", b"127.0.0.1"), (b"content-type", content_type.encode())],
    }  # fmt: skip
    sent = [{"type": "http.request", "body": body, "more_body": False}]
    told: list[Any] = []

    async def receive() -> Any:
        return sent.pop() if sent else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        told.append(message)

    await app(scope, receive, send)
    return Answered(told[0]["status"], b"".join(bytes(m.get("body", b"")) for m in told[1:]))
