"""GET /openapi.json: what the service can be asked, for programs (OpenAPI 3.1).

`openapi.json` beside this file is written by hand, but for the options of algorithms, which these
declare (`run_options`). A test holds it against the routes, and real answers against its schemas;
Schemathesis makes requests from it.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from .context import Context
from .run_options import parameters


@cache
def document() -> bytes:
    """The document."""
    written = resources.files(__package__ or "").joinpath("openapi.json").read_bytes()
    found = msgspec.json.decode(written)
    found["paths"]["/v1/run/{algorithm}"]["get"]["parameters"] = parameters()
    return msgspec.json.encode(found)


async def _openapi(request: Request) -> Response:
    return Response(document(), media_type="application/json")


def routes(context: Context) -> list[BaseRoute]:
    """GET /openapi.json."""
    return [Route("/openapi.json", _openapi, methods=["GET"])]
