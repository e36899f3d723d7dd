"""Who may do what, and what every request passes before an endpoint sees it.

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

Two tokens are kept apart: one reads, the other writes and reads. Without any, whoever can connect
may do everything, which is right for loopback alone: `Access.check_public` refuses it elsewhere.
A token comes from a file or the environment, never from the command line, where every user of the
machine would see it, and it is in no repr.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import logging
import re
import secrets
import ssl
import stat
import time
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from ..errors import PipelineError
from ..events import LOGGER, Event
from .exchange import SAFE, Exchange, Load, too_long
from .problems import GONE, Problem, problem_response
from .routes import PUBLIC, QUERIES

if TYPE_CHECKING:
    from .context import Figures, Limits

MIN_TOKEN = 16  # characters
MAX_TOKEN = 1024
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # what a header may carry (RFC 6750)
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

_PUBLIC_FOLDER = "/page/"  # whose files have no data of the graph
_READ = frozenset(
    {b"host", b"authorization", b"content-encoding", b"content-length", b"content-type",
     b"transfer-encoding", b"origin", b"sec-fetch-site"}
)  # fmt: skip
_BAD_PATH = re.compile(r"(?:^|/)\.\.?(?:/|$)|[\x00-\x1f\x7f]")
_CHARSET = re.compile(r';\s*charset\s*=\s*"?([^\s";]*)', re.IGNORECASE)
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[^\s:/@\[\]]+)(?::[0-9]{1,5})?")


class Right(IntEnum):
    """What a token allows. Each includes those before it."""

    NOTHING = 0
    READ = 1
    WRITE = 2


@dataclass(frozen=True)
class Access:
    """Who may do what.

    read_token, write_token: None if there is none. allow_hosts: names, beside loopback's and that
    of the address, that clients may call the service by. certificate, key: files in PEM.
    insecure: allow an address that is not loopback without tokens or TLS."""

    read_token: str | None = field(default=None, repr=False)
    write_token: str | None = field(default=None, repr=False)
    allow_hosts: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None
    insecure: bool = False

    def __post_init__(self) -> None:
        for token in (self.read_token, self.write_token):
            if token is not None:
                check_token(token, "a token")
        if self.read_token is not None and self.read_token == self.write_token:
            raise PipelineError("the tokens to read and to write are the same: make two")
        if (self.certificate is None) != (self.key is None):
            raise PipelineError("TLS needs both serve.tls_cert and serve.tls_key")

    @property
    def is_open(self) -> bool:
        """Whether nobody is asked for a token."""
        return self.read_token is None and self.write_token is None

    def check_public(self, host: str) -> None:
        """Raise PipelineError if this is not enough for an address that is not loopback."""
        lacking = []
        if self.is_open:
            lacking.append("a token (serve.token_file, serve.write_token_file)")
        if self.certificate is None:
            lacking.append("TLS (serve.tls_cert, serve.tls_key)")
        if lacking and not self.insecure:
            raise PipelineError(
                f"{host} can be reached from other machines, which needs {' and '.join(lacking)}; "
                "or serve.insecure, where something else protects it"
            )

    def risks(self, host: str) -> list[str]:
        """What serve.insecure allows, in words, for an address that is not loopback."""
        found = []
        if self.is_open:
            found.append(f"whoever can reach {host} may read and write the graph: no token is set")
        if self.certificate is None:
            found.append(f"what is sent to {host} can be read on the way, tokens too: no TLS")
        return found

    def right_of(self, token: bytes | None) -> Right:
        """What a client may do that gave this token; None if it gave none. Takes as long for a
        wrong token as for a right one."""
        if self.is_open:
            return Right.WRITE
        given, right = _digest(token or b""), Right.NOTHING
        for known, allows in ((self.read_token, Right.READ), (self.write_token, Right.WRITE)):
            is_same = secrets.compare_digest(given, _digest((known or "").encode()))
            right = allows if is_same and known is not None else right
        return right

    def tls_context(self) -> ssl.SSLContext | None:
        """TLS 1.2 or newer with the certificate; None for plain HTTP. Raises PipelineError."""
        if self.certificate is None or self.key is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            # A key with a password would have OpenSSL ask for it on the terminal.
            context.load_cert_chain(self.certificate, self.key, password=lambda: "")
        except OSError as error:  # ssl.SSLError is one
            raise PipelineError(
                f"{self.certificate}, {self.key}: no certificate with its key, in PEM and without "
                f"a password: {error.strerror or error}"
            ) from error
        context.set_alpn_protocols(["http/1.1"])
        return context


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def check_token(token: str, what: str) -> None:
    """Raise PipelineError, without the token, if it is too short or a header cannot carry it."""
    if not MIN_TOKEN <= len(token) <= MAX_TOKEN or not _TOKEN.fullmatch(token):
        raise PipelineError(
            f"{what} has {MIN_TOKEN} to {MAX_TOKEN} letters, digits and - . _ ~ + /: "
            "`openssl rand -hex 32` makes one"
        )


def read_token(path: Path) -> str:
    """The token in a file, whose one line it is. Raises PipelineError, OSError."""
    token = path.read_text("ascii", "replace").strip()
    check_token(token, f"{path}: a token")
    return token


def readable_by_others(path: Path) -> bool:
    """Whether other users of the machine may read a file."""
    return bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))


# Requests ------------------------------------------------------------------------------------


class Guard:
    """An ASGI application that lets through to `app` what is in order.

    host: what the service is bound to. figures: where requests are counted."""

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
        figures, started = self._figures, time.perf_counter()
        figures.in_progress += 1
        try:
            await self._answer(exchange, scope, receive)
        finally:
            figures.in_progress -= 1
            figures.note(scope, exchange.status, time.perf_counter() - started)

    async def _answer(self, exchange: Exchange, scope: Scope, receive: Receive) -> None:
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
        if exchange.status != GONE:
            raise problem  # the connection is closed, or half an answer would look whole
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
            raise Problem(421, f"unknown host {name}: start with --set serve.allow_hosts={name}")

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
            403, "this token only reads: send the one that writes (serve.write_token_file)",
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
