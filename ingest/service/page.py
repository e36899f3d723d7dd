"""GET /: the live page and its files; GET /docs: the endpoints, for people.

Idea: the page is our own HTML, CSS and JavaScript modules, in page/ as they are served: nothing is
built, and nothing comes from another host. Every file is read and compressed once, when it is first
asked for, and its address carries a digest of all, so that browsers may keep it for good.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from . import events, neighborhood, watching
from .context import Context
from .exchange import SECURITY_HEADERS
from .problems import Problem

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
FOR_GOOD = "public, max-age=31536000, immutable"


@dataclass(frozen=True)
class Asset:
    """A file as it is sent."""

    data: bytes
    kind: str
    etag: str

    @cached_property
    def packed(self) -> bytes:
        """Its gzip, made once."""
        return gzip.compress(self.data, 6, mtime=0)


@lru_cache(maxsize=1)
def _sources() -> dict[str, Path]:
    """Every file that may be asked for, by name."""
    own = Path(str(files(__package__) / "page"))
    return {path.name: path for path in sorted(own.iterdir()) if path.suffix in TYPES}


@lru_cache(maxsize=64)
def asset(name: str) -> Asset:
    """A file of the page. Raises KeyError."""
    path = _sources()[name]
    data = path.read_bytes()
    digest = hashlib.blake2b(data, digest_size=12).hexdigest()
    return Asset(data, TYPES[path.suffix], f'"{digest}"')


@lru_cache(maxsize=1)
def release() -> str:
    """A digest of all files: part of their addresses."""
    every = "".join(asset(name).etag for name in _sources())
    return hashlib.blake2b(every.encode(), digest_size=8).hexdigest()


def document(name: str) -> Response:
    """An HTML page."""
    text = asset(name).data.decode().replace("{release}", release())
    headers = {name.decode(): value.decode() for name, value in SECURITY_HEADERS}
    return Response(text, headers=headers, media_type="text/html")


async def _file(request: Request) -> Response:
    name = request.path_params["file"]
    try:
        found = asset(name)
    except KeyError:
        raise Problem(404, f"the page has no file {name!r}") from None
    asked = request.path_params.get("release")
    headers = {
        "Cache-Control": FOR_GOOD if asked == release() else "no-cache",
        "Vary": "Accept-Encoding",
        "X-Content-Type-Options": "nosniff",
    }
    packs = "gzip" in request.headers.get("accept-encoding", "")
    headers["ETag"] = found.etag
    if found.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if packs:
        headers["Content-Encoding"] = "gzip"
    headers["Content-Type"] = found.kind
    data = await run_in_threadpool(lambda: found.packed) if packs else found.data
    return Response(data, headers=headers)


FILES: list[BaseRoute] = [
    Route("/page/{release}/{file}", _file),
    Route("/page/{file}", _file),
]


def handlers(context: Context) -> dict[str, Any]:
    """The page, and what it alone asks for."""
    hub = events.Hub(context)
    looks = watching.Distributions(context)

    async def of_name(request: Request, name: str) -> Response:
        return document(name)

    return {
        "page": partial(of_name, name="index.html"),
        "docs": partial(of_name, name="docs.html"),
        **events.handlers(context, hub),
        **watching.handlers(context, hub, looks),
        **neighborhood.handlers(context, looks),
    }
