"""What the tests of the guard share: an application behind it, and what is asked of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from ingest.service.context import Limits
from tests.support.raw_http import Answer

READ = "to-read-" + "r" * 20
WRITE = "to-write-" + "w" * 20
LIMITS = Limits(max_body_bytes=1000, max_requests=3)


async def echo(asked: Request) -> Response:
    return PlainTextResponse(f"{asked.url.path} {len(await asked.body())}")


async def slow(asked: Request) -> Response:
    """Answers when its client is gone."""
    await asked.body()
    while not await asked.is_disconnected():
        await asyncio.sleep(0.01)
    return PlainTextResponse("")


async def broken(asked: Request) -> Response:
    raise ValueError("a bug")


async def events(asked: Request) -> Response:
    async def parts() -> Any:
        yield "data: 1\n\n"
        await never.wait()

    never = asyncio.Event()
    return StreamingResponse(parts(), media_type="text/event-stream")


PATHS = [
    "/", "/docs", "/openapi.json", "/healthz", "/readyz", "/metrics", "/page/page.js",
    "/v1/graph", "/v1/page/letters",
]  # fmt: skip
QUERIES = ["edges", "successors", "predecessors", "degree", "vertices", "hops"]


def toy() -> Starlette:
    return Starlette(
        routes=[
            *(Route(path, echo) for path in PATHS),
            *(Route(f"/v1/{name}", echo, methods=["POST"]) for name in QUERIES),
            Route("/v1/updates", echo, methods=["POST"]),
            Route("/v1/successors/{u:path}", echo),
            Route("/v1/broken", broken),
            Route("/v1/slow", slow, methods=["GET", "POST"]),
            Route("/v1/events", events),
        ]
    )


Serve = Callable[..., int]


def problem(answer: Answer) -> str:
    """What a problem document says to do."""
    assert answer.headers["content-type"] == "application/problem+json"
    document = json.loads(answer.body)
    assert document.keys() == {"type", "title", "status", "detail"}
    assert document["status"] == answer.status
    return str(document["detail"])


def bearer(token: str | None) -> dict[str, Any]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}
