"""What every request passes before an endpoint sees it: host, path, origin, token, sizes.

    checked, in this order                                                   refused with
    `Host` is loopback's name, an address, or a name that is allowed         421
    the path stays below its folder and has no control characters            400
    another page's script did not send it (`Origin`, `Sec-Fetch-Site`)       403
    the token allows it: everything but the page needs one                   401, 403
    its body is no longer than `max_body_bytes`, whatever it says            413
    its body is as it says, not compressed, and in UTF-8 where it is text     415
    no more than `max_requests` are answered at once; see exchange.py        503

The check of `Host` is against DNS rebinding: a page of another name, which resolves to this
machine, would count as our own. No answer allows another origin to read it (there is no CORS), and
all of them carry headers by which a browser loads nothing from elsewhere. The page itself has no
data, so it needs no token: it asks for one, and sends it along with what it fetches.

Nothing here logs a header, a path or a body.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from ..events import LOGGER, Event
from .access import Access, Right
from .exchange import SAFE, Exchange, Load, too_long
from .problems import Problem, problem_response
from .routes import PUBLIC, QUERIES

if TYPE_CHECKING:
    from .context import Limits
    from .figures import Figures

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

_PUBLIC_FOLDER = "/page/"  # whose files have no data of the graph
_READ = frozenset(
    {b"host", b"authorization", b"content-encoding", b"content-length", b"content-type",
     b"transfer-encoding", b"origin", b"sec-fetch-site"}
)  # fmt: skip
_BAD_PATH = re.compile(r"(?:^|/)\.\.?(?:/|$)|[\x00-\x1f\x7f]")
_CHARSET = re.compile(r';\s*charset\s*=\s*"?([^\s";]*)', re.IGNORECASE)
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[^\s:/@\[\]]+)(?::[0-9]{1,5})?")


class Guard:
    """An ASGI application that lets through to `app` what is in order.

    host: what the service is bound to. figures: where refusals are counted."""

    def __init__(
        self, app: ASGIApp, access: Access, host: str, limits: Limits, figures: Figures
    ) -> None:
        self._app = app
        self._access = access
        self._allowed = frozenset(name.lower() for name in access.allow_hosts)
        self._hosts = LOOPBACK_NAMES | self._allowed | {host.lower()}
        self._limits = limits
        self._figures = figures
        self._load = Load()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(self._load, self._limits, scope, receive, send)
        try:
            headers = _headers(scope)
            self._check(scope, headers)
            exchange.begin(headers)
            await self._app(scope, exchange.receive, exchange.send)
            return
        except Problem as refusal:
            problem = refusal
        except asyncio.CancelledError:
            if exchange.evicted:
                why = "too much is being sent at once, and this body stood still: send it again"
                problem = Problem(503, why, retry_after_s=1)
            else:
                problem = Problem(503, "the service is being closed", retry_after_s=5)
        except ClientDisconnect:
            return  # there is nobody to tell
        except Exception as error:  # noqa: BLE001 - a bug ends its request, not the service
            _log(scope, error)
            problem = Problem(500, "an error of the service itself: its log says more")
        finally:
            exchange.end()
        if exchange.started:
            raise problem  # the connection is closed, or half an answer would look whole
        if not exchange.begun:
            self._figures.note(scope, problem.status_code, 0.0)
        await problem_response(problem)(scope, receive, exchange.send)

    def _check(self, scope: Scope, headers: dict[bytes, str]) -> None:
        """Raise Problem unless the request may be answered."""
        host, path, method = headers.get(b"host", ""), scope["path"], scope["method"]
        self._check_host(host)
        if _BAD_PATH.search(path) or ("\\" in path and not path.startswith("/v1/")):
            raise Problem(
                400, "the path has '.', '..' or control characters: ask for such a name by POST"
            )
        is_public = path in PUBLIC or path.startswith(_PUBLIC_FOLDER)
        if not (is_public and method in SAFE):
            self._check_origin(host, headers)
            reads = method in SAFE or (method == "POST" and path in QUERIES)
            self._check_token(Right.READ if reads else Right.WRITE, headers.get(b"authorization"))
        length = headers.get(b"content-length", "0")
        if int(length) > self._limits.max_body_bytes:
            raise too_long(self._limits)
        if method not in SAFE:
            _check_coding(headers)

    def _check_host(self, host: str) -> None:
        match = _HOST.fullmatch(host.lower())
        if match is None:
            raise Problem(400, "the request has no Host, or none that can be read")
        name = match["name"].strip("[]")
        if name not in self._hosts and not _is_address(name):
            raise Problem(421, f"this is not {name}: serve it as that with --allow-host {name}")

    def _check_origin(self, host: str, headers: dict[bytes, str]) -> None:
        """Refuse what the script of another page sends, or has a browser load."""
        origin = headers.get(b"origin")
        if origin is not None:
            authority = origin.lower().partition("://")[2]
            if authority != host.lower() and authority.partition(":")[0] not in self._allowed:
                raise Problem(403, "a page of another origin may not use this service")
        if headers.get(b"sec-fetch-site", "none") not in ("same-origin", "none"):
            raise Problem(403, "a page of another site may not use this service")

    def _check_token(self, needed: Right, authorization: str | None) -> None:
        scheme, _, token = (authorization or "").partition(" ")
        given = token.strip().encode("latin-1") if scheme.lower() == "bearer" else None
        right = self._access.right_of(given)
        if right >= needed:
            return
        if right is Right.NOTHING:
            wrong = ', error="invalid_token"' if given is not None else ""
            raise Problem(
                401, "send a token that is valid here: Authorization: Bearer TOKEN",
                headers={"WWW-Authenticate": f'Bearer realm="lpma"{wrong}'},
            )  # fmt: skip
        raise Problem(
            403, "this token only reads: send the one that writes (--write-token-file)",
            headers={"WWW-Authenticate": 'Bearer realm="lpma", error="insufficient_scope"'},
        )  # fmt: skip


def _headers(scope: Scope) -> dict[bytes, str]:
    """The headers that the guard reads. Raises Problem if one of them comes twice."""
    found: dict[bytes, str] = {}
    for name, value in scope["headers"]:
        if name in _READ:
            if name in found:
                raise Problem(400, f"there are two headers {name.decode()}")
            found[name] = value.decode("latin-1")
    return found


def _check_coding(headers: dict[bytes, str]) -> None:
    """Raise Problem 415 for a body that would have to be decoded before it can be read."""
    coding = headers.get(b"content-encoding", "identity").strip()
    if coding.lower() not in ("identity", ""):
        raise Problem(
            415, f"Content-Encoding: {coding[:80]!r} is not taken: send the body uncompressed",
            headers={"Accept-Encoding": "identity"},
        )  # fmt: skip
    charset = _CHARSET.search(headers.get(b"content-type", ""))
    if charset is not None and charset[1].lower() not in ("utf-8", "utf8"):
        raise Problem(415, f"Content-Type: charset {charset[1][:80]!r} is not taken: send UTF-8")


def _is_address(name: str) -> bool:
    """An address is not resolved by anyone's name server."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _log(scope: Scope, error: Exception) -> None:
    """Log a bug, with the endpoint but not what was asked of it."""
    endpoint: Any = scope.get("endpoint")
    fields = {"endpoint": getattr(endpoint, "__qualname__", None), "error": type(error).__name__}
    LOGGER.log(logging.ERROR, Event("service error", fields), exc_info=error)
