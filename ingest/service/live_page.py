"""GET /: the live page and its files; GET /docs: the endpoints, for people.

The page is our own HTML, CSS and JavaScript modules, in page/ as they are served: nothing is built,
and nothing comes from another host. A browser asks each time whether a file has changed.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from . import distributions, events, neighborhood
from .context import Context

FOLDER = Path(__file__).parent / "page"


class _Files(StaticFiles):
    def file_response(
        self, full_path: Any, stat_result: os.stat_result, scope: Any, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["Cache-Control"] = "no-cache"
        return response


FILES: list[BaseRoute] = [Mount("/page", GZipMiddleware(_Files(directory=FOLDER)))]


async def _document(request: Request, name: str) -> Response:
    return FileResponse(FOLDER / name)


def handlers(context: Context) -> dict[str, Any]:
    """The page, and what it alone asks for."""
    hub = events.Hub(context)
    looks = distributions.Distributions(context)
    return {
        "page": partial(_document, name="index.html"),
        "docs": partial(_document, name="docs.html"),
        **events.handlers(context, hub),
        **distributions.handlers(context, hub, looks),
        **neighborhood.handlers(context, looks),
    }
