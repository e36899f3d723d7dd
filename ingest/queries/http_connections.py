"""Connections to an HTTP service that are kept and used again, by one thread at a time.

A thread that finds none free opens another, so any number of threads may use them. What is sent
here changes nothing, so a request whose kept connection broke is simply sent again.
"""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ..arguments import of_socket
from ..errors import QueryError, SourceError
from ..types import Closing

MAX_IDLE = 32  # connections that are kept


class _Address(NamedTuple):
    """Where the service is."""

    is_tls: bool
    host: str
    port: int | None
    path: str


class Connections(Closing):
    """Connections to the service at `url`. tls: None: by the certificates that this machine trusts.
    Raises QueryError if it is no such URL."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        self._url = url
        self._address = _address(url)
        if tls is not None and not self._address.is_tls:
            raise QueryError(f"{url}: tls is for https://")
        self._tls = tls or (ssl.create_default_context() if self._address.is_tls else None)
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._closed = False

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def sent(
        self, path: str, body: bytes, headers: dict[str, str], until: float
    ) -> tuple[int, Any, bytes]:
        """(status, headers, body) of the response. A kept connection may have been closed by the
        service meanwhile: then another is used. Raises TimeoutError, SourceError and, once closed,
        QueryError."""
        while True:
            connection, is_new = self._connection(until)
            try:
                found = _exchange(connection, self._address.path + path, body, headers, until)
            except TimeoutError:
                connection.close()
                raise
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if is_new:
                    said = str(error) or type(error).__name__
                    raise SourceError(
                        f"{self._url}: {said}: does the service run there, and is it http or https?"
                    ) from error
                continue
            except BaseException:
                connection.close()
                raise
            self._give_back(connection)
            return found

    def _connection(self, until: float) -> tuple[http.client.HTTPConnection, bool]:
        """A connection that no other thread uses, and whether it is new."""
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        with self._lock:
            if self._closed:
                raise QueryError("the client was closed")
            if self._idle:
                return self._idle.pop(), False
        at = self._address  # `_exchange` says how long it may take
        if at.is_tls:
            return http.client.HTTPSConnection(at.host, at.port, context=self._tls), True
        return http.client.HTTPConnection(at.host, at.port), True

    def _give_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if connection.sock is not None and not self._closed and len(self._idle) < MAX_IDLE:
                self._idle.append(connection)
                return
        connection.close()


def _exchange(
    connection: http.client.HTTPConnection, path: str, body: bytes, headers: dict[str, str],
    until: float,
) -> tuple[int, Any, bytes]:  # fmt: skip
    connection.timeout = of_socket(max(0.001, until - time.monotonic()))
    if connection.sock is not None:
        connection.sock.settimeout(connection.timeout)
    connection.request("POST", path, body, headers)
    socket = connection.sock
    response = connection.getresponse()
    parts = []
    while part := response.read1(1 << 20):
        parts.append(part)
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        with suppress(OSError):  # it may be closed already, with the rest of the answer buffered
            socket.settimeout(of_socket(left))
    return response.status, response.headers, b"".join(parts)


def _address(url: str) -> _Address:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise QueryError(f"{url}: expected http://HOST:PORT or https://HOST:PORT")
    if parts.query or parts.fragment:
        raise QueryError(f"{url}: leave out what follows the path")
    return _Address(parts.scheme == "https", parts.hostname, port, parts.path.rstrip("/"))
