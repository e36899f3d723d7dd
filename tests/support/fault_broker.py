"""A broker of one node that speaks Kafka's protocol on loopback, and goes wrong as it is told.

Idea: what a client must survive is rare and hard to time at a real broker. Here a fault stands
between an answer of `fault_cluster` and the socket, so many times: it edits the answer, or sends
its bytes in a way of its own. The faults there are stand in `faults.py`.

    broker.order("Fetch", edit=error(NOT_LEADER), times=3)      the next three answers say so
    broker.order("Fetch", send=drop(after_bytes=20))            cut in the middle
    broker.order("Metadata", send=stall(event), times=None)     no answer till event is set

One thread a connection.
"""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

from tests.support.fault_cluster import Cluster

MAX_REQUEST_BYTES = 100 << 20

Edit = Callable[[Any], bool]  # False: there was nothing to edit, and the fault waits for an answer
Send = Callable[[socket.socket, bytes], None]


@dataclass
class Fault:
    """What happens to the next `times` answers to `api`; None: to all until it is lifted."""

    api: str
    times: int | None
    edit: Edit | None
    send: Send | None
    hits: int = 0


class FaultBroker(Cluster):
    """Listens from the start until closed. Errors of its own in a connection's thread are kept in
    `problems`, which `close` raises: a test must not pass because its broker broke."""

    def __init__(self, **partitions: int) -> None:
        """partitions: topic → how many."""
        super().__init__(**partitions)
        self.problems: list[BaseException] = []
        self._faults: list[Fault] = []
        self._connections: set[socket.socket] = set()
        self._server: _Server | None = None
        self.start()

    # What a test does ------------------------------------------------------------------------

    @property
    def bootstrap(self) -> str:
        host, port = self.address
        return f"{host}:{port}"

    def start(self) -> None:
        """Listen, on the same port as before."""
        self._server = _Server(self.address, self)
        self.address = (self.address[0], self._server.socket.getsockname()[1])
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Go away: every connection is cut, new ones are refused, the topics stay."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
        self.cut()

    def cut(self) -> None:
        """Cut every connection."""
        for connection in list(self._connections):
            _cut(connection)

    def close(self) -> None:
        self.stop()
        if self.problems:
            raise self.problems[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def order(
        self, api: str, *, edit: Edit | None = None, send: Send | None = None, times: int | None = 1
    ) -> Fault:
        fault = Fault(api, times, edit, send)
        with self._changed:
            self._faults.append(fault)
        return fault

    def lift(self, fault: Fault) -> None:
        with self._changed:
            if fault in self._faults:
                self._faults.remove(fault)

    # How it answers --------------------------------------------------------------------------

    def serve(self, connection: socket.socket) -> None:
        """Answer one connection's requests until either side ends it."""
        self._connections.add(connection)
        try:
            while (request := _read_request(connection)) is not None:
                self._answer(connection, request)
        except OSError:
            pass  # the client left, or a fault cut the connection
        except BaseException as error:
            self.problems.append(error)
            raise
        finally:
            self._connections.discard(connection)

    def _answer(self, connection: socket.socket, request: bytes) -> None:
        api, response = self.answer(request)
        fault = self._next_fault(api, response)
        answer = response.encode(header=True, framed=True)
        if fault is None or fault.send is None:
            connection.sendall(answer)
        else:
            fault.send(connection, answer)

    def _next_fault(self, api: str, response: Any) -> Fault | None:
        """The fault ordered first that this answer can have, after its edit."""
        with self._changed:
            for fault in self._faults:
                if fault.api == api and (fault.edit is None or fault.edit(response)):
                    fault.hits += 1
                    if fault.hits == fault.times:
                        self._faults.remove(fault)
                    return fault
        return None


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], broker: FaultBroker) -> None:
        self.broker = broker
        super().__init__(address, _Connection)


class _Connection(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, _Server)
        self.server.broker.serve(self.request)


def _read_request(connection: socket.socket) -> bytes | None:
    """None at the end, or where it is no request: a client that speaks TLS is hung up on."""
    head = _read(connection, 4)
    size = -1 if head is None else struct.unpack(">i", head)[0]
    return _read(connection, size) if 0 <= size <= MAX_REQUEST_BYTES else None


def _read(connection: socket.socket, size: int) -> bytes | None:
    """Exactly so many bytes; None where the other side has ended."""
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            return None
        parts += part
    return bytes(parts)


def _cut(connection: socket.socket) -> None:
    with suppress(OSError):  # it may have gone already
        connection.shutdown(socket.SHUT_RDWR)
