"""GET /: the live page, its files and the chart library; GET /docs: the endpoints, for people.

Idea: the page is our own HTML, CSS and JavaScript modules, in page/ as they are served: nothing is
built, and nothing comes from another host. The one third-party script is Bokeh's, from where pip
installed it. Every file is read and compressed once, when it is first asked for, and its address
carries a digest of all, so that browsers may keep it for good.

Bokeh makes <style> elements, which a Content-Security-Policy forbids unless they carry a nonce. So
the page itself, which is never cached, comes with one of its own, and `nonce.js` hands it on. With
that neither 'unsafe-inline' nor 'unsafe-eval' is needed.
"""

from __future__ import annotations

import gzip
import hashlib
import secrets
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from lpma.dependencies import MissingPackage, how_to_install

from . import events, neighborhood, watching
from .context import Context
from .problems import Problem

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
BOKEH = ("bokeh.min.js", "bokeh-api.min.js")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
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


def charts_folder() -> Path:
    """Where Bokeh's scripts are installed. Raises MissingPackage."""
    spec = find_spec("bokeh")
    if spec is None or spec.origin is None:
        raise MissingPackage(f"the page needs Bokeh: {how_to_install('serve')}", name="bokeh")
    return Path(spec.origin).parent / "server" / "static" / "js"


def _sources() -> dict[str, Path]:
    """Every file that may be asked for, by name."""
    own = Path(str(files(__package__) / "page"))
    found = {path.name: path for path in sorted(own.iterdir()) if path.suffix in TYPES}
    return found | {name: charts_folder() / name for name in BOKEH}


@lru_cache(maxsize=64)
def asset(name: str) -> Asset:
    """A file of the page. Raises KeyError, MissingPackage."""
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
    """An HTML page with a nonce of its own."""
    nonce = secrets.token_urlsafe(16)
    text = asset(name).data.decode().replace("{release}", release()).replace("{nonce}", nonce)
    headers = {
        "Content-Security-Policy": POLICY.format(nonce=nonce),
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
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


async def _page(request: Request) -> Response:
    return document("index.html")


async def _docs(request: Request) -> Response:
    return document("docs.html")


FILES: list[BaseRoute] = [
    Route("/page/{release}/{file}", _file),
    Route("/page/{file}", _file),
]


def handlers(context: Context) -> dict[str, Any]:
    """The page, and what it alone asks for."""
    hub = events.Hub(context)
    looks = watching.Distributions(context)
    return {
        "page": _page,
        "docs": _docs,
        **events.handlers(context, hub),
        **watching.handlers(context, hub, looks),
        **neighborhood.handlers(context, looks),
    }
