"""GET /openapi.json: what the service can be asked, for programs (OpenAPI 3.1).

`openapi.json` beside this file is written by hand. A test holds it against the routes, and real
answers against its schemas; Schemathesis makes requests from it.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from .context import Context


@cache
def document() -> bytes:
    """The document."""
    return resources.files(__package__ or "").joinpath("openapi.json").read_bytes()


async def _openapi(request: Request) -> Response:
    return Response(document(), media_type="application/json")


def routes(context: Context) -> list[BaseRoute]:
    """GET /openapi.json."""
    return [Route("/openapi.json", _openapi, methods=["GET"])]
