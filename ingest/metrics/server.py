"""An HTTP server for figures, whose cost no client can drive up: one thread, few connections.

Idea: a client costs one descriptor and a few kilobytes, never a thread, so the most that clients
can take is known beforehand. One thread waits for all of them at once, reads each request until it
is whole, and hands it to an ordinary `BaseHTTPRequestHandler`, from memory and into memory.

    what a client may do                      what happens
    connect when `MAX_CONNECTIONS` are open   the oldest connection is closed to make room
    say nothing, or half a request            closed after `PATIENCE_S`
    say more than `MAX_REQUEST_BYTES`         closed
    read its answer slowly, or not at all     closed after `PATIENCE_S`
    ask for something that raises             answered with status 500

The oldest goes first: a client that asks as soon as it is let in is answered, however many others
hang. Requests are answered one after another, so that scrapes never compete with each other.
If the process has no descriptor left, the oldest connection gives up its own.
"""

from __future__ import annotations

import io
import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any

from ..types import Closing

MAX_CONNECTIONS = 32
MAX_REQUEST_BYTES = 16 << 10
PATIENCE_S = 3.0
_BACKLOG = 128  # connections that the system holds until they are accepted
_PAUSE_S = 0.1  # before another look for a descriptor

Handler = Callable[..., BaseHTTPRequestHandler]


class _Connection:
    """One client: what has arrived of its request, then what is left of its answer."""

    def __init__(self, client: socket.socket, address: Any) -> None:
        self.socket = client
        self.address = address
        self.request = bytearray()
        self.answer = memoryview(b"")
        self.deadline = time.monotonic() + PATIENCE_S


class _InMemory:
    """Stands in for a request handler's socket: `request` is read, `answer` is written."""

    def __init__(self, request: bytes) -> None:
        self.request = request
        self.answer = bytearray()

    def makefile(self, *_: Any) -> io.BytesIO:
        return io.BytesIO(self.request)

    def sendall(self, data: bytes) -> None:
        self.answer += data


class BoundedServer(Closing):
    """Answers requests without a body on `host` and `port`, 0 for a free one, until closed.

    handler: makes one answer to one request; it is called in the server's thread.
    Raises OSError if the address cannot be bound."""

    def __init__(self, host: str, port: int, handler: Handler) -> None:
        self._handler = handler
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        self._listener = socket.create_server(address, family=family, backlog=_BACKLOG)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._connections: dict[_Connection, None] = {}  # oldest first
        self._closing, self._closed = socket.socketpair()  # a byte on it ends the thread
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._closed, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="lpma-metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close all connections, and return when the thread has ended."""
        self._closing.close()  # which makes the other end readable
        self._thread.join()

    def _serve(self) -> None:
        try:
            while self._closed not in self._ready():
                pass
        finally:
            for connection in list(self._connections):
                self._drop(connection)
            for mine in (self._selector, self._listener, self._closed):
                mine.close()

    def _ready(self) -> list[Any]:
        """Wait for something to happen, do what it asks for; what was ready."""
        first = next(iter(self._connections), None)
        timeout = None if first is None else max(0.0, first.deadline - time.monotonic())
        events = self._selector.select(timeout)
        # Read before answering, so that no client times out while another one is served.
        now = time.monotonic()
        for key, _ in events:
            if key.data is not None:
                self._attend(key.data)
            elif key.fileobj is self._listener:
                self._accept()
        for connection in [c for c in self._connections if c.deadline <= now]:
            self._drop(connection)
        return [key.fileobj for key, _ in events]

    def _accept(self) -> None:
        """Accept a client, in place of the oldest if there are too many."""
        if len(self._connections) >= MAX_CONNECTIONS:
            self._drop(next(iter(self._connections)))
        try:
            client, address = self._listener.accept()
        except BlockingIOError:
            return  # it has already left
        except OSError:
            # No descriptor is left: free that of the oldest, or wait until others free theirs.
            if self._connections:
                self._drop(next(iter(self._connections)))
            else:
                time.sleep(_PAUSE_S)
            return
        client.setblocking(False)
        connection = _Connection(client, address)
        self._connections[connection] = None
        self._selector.register(client, selectors.EVENT_READ, connection)

    def _attend(self, connection: _Connection) -> None:
        """Read or write what there is. REQUIRES: it is ready for that."""
        if connection not in self._connections:
            return  # dropped since it was reported ready
        try:
            done = self._write(connection) if connection.answer else self._read(connection)
        except BlockingIOError:
            return
        except OSError:
            done = True  # the client has left
        if done:
            self._drop(connection)

    def _read(self, connection: _Connection) -> bool:
        """Read, and answer once the request is whole; whether the connection is finished."""
        data = connection.socket.recv(MAX_REQUEST_BYTES)
        connection.request += data
        if not data or len(connection.request) > MAX_REQUEST_BYTES:
            return True
        if b"\r\n\r\n" not in connection.request:
            return False
        connection.answer = memoryview(self._answer(connection))
        connection.deadline = time.monotonic() + PATIENCE_S
        # Connections stay in the order of their deadlines.
        self._connections[connection] = self._connections.pop(connection)
        self._selector.modify(connection.socket, selectors.EVENT_WRITE, connection)
        return not connection.answer

    def _write(self, connection: _Connection) -> bool:
        sent = connection.socket.send(connection.answer)
        connection.answer = connection.answer[sent:]
        return not connection.answer

    def _answer(self, connection: _Connection) -> bytes:
        exchange = _InMemory(bytes(connection.request))
        try:
            self._handler(exchange, connection.address, self)
        except Exception as error:  # noqa: BLE001 - no request may end the server
            text = f"{type(error).__name__}: {error}\n".encode(errors="replace")
            head = "HTTP/1.0 500 Internal Server Error\r\nContent-Type: text/plain; charset=utf-8"
            return f"{head}\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text
        return bytes(exchange.answer)

    def _drop(self, connection: _Connection) -> None:
        del self._connections[connection]
        self._selector.unregister(connection.socket)
        with suppress(OSError):
            connection.socket.close()
