"""Where connections come in: how many there may be, and which one makes room for a new one.

Idea: a flood evicts itself. Connections that have never made a whole request, and those in a TLS
handshake, go first, the oldest of them; whoever asks as soon as it is let in is served, however
many others hang. If there are none, the one that was idle longest goes. If all are being answered,
the newcomer is turned away.

The service accepts by itself, since uvicorn and the event loop neither count connections whose
handshake is not over, nor bound them, nor free one when the process has no descriptor left.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import cast

from .protocol import BoundedProtocol

_AT_ONCE = 16  # accepted, before the others have their turn
_PAUSE_S = 0.1  # before another look for a descriptor


class Doorway:
    """Accepts what `listener` brings, in the loop's thread, until closed.

    make: makes the protocol of a connection. connections: those that are open, which the protocols
    keep. limit: how many there may be, with those in a handshake. tls: None for plain HTTP.
    handshake_s: how long a handshake may take."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listener: socket.socket,
        make: Callable[[], BoundedProtocol],
        connections: set[BoundedProtocol],
        limit: int,
        tls: ssl.SSLContext | None,
        handshake_s: float,
    ) -> None:
        self._loop = loop
        self._listener = listener
        self._make = make
        self._connections = connections
        self._limit = limit
        self._tls = tls
        self._options = {} if tls is None else {"ssl_handshake_timeout": handshake_s}
        # Accepted, and not done with their handshake when there is one; oldest first.
        self._arriving: dict[asyncio.Task[None], BoundedProtocol] = {}
        loop.add_reader(listener, self._accept)

    def close(self) -> None:
        """Accept nothing more. Connections that are open stay so."""
        if self._listener.fileno() >= 0:
            self._loop.remove_reader(self._listener)
            self._listener.close()
        for task in self._arriving:
            task.cancel()

    async def wait_closed(self) -> None:
        """Return when no handshake is left."""
        if self._arriving:
            await asyncio.wait(self._arriving)

    def _accept(self) -> None:
        if self._tls is None and len(self._arriving) >= _AT_ONCE:
            return  # they are in at the next turn of the loop, and can make room
        for _ in range(_AT_ONCE):
            try:
                client, _ = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError:
                # No descriptor is left: the next look finds one, if somebody made room.
                if not self._make_room():
                    self._loop.remove_reader(self._listener)
                    self._loop.call_later(_PAUSE_S, self._look_again)
                return
            if self._is_full() and not self._make_room():
                client.close()
                continue
            client.setblocking(False)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            protocol = self._make()
            task = self._loop.create_task(self._let_in(client, protocol))
            self._arriving[task] = protocol

    def _is_full(self) -> bool:
        if len(self._connections) + len(self._arriving) < self._limit:
            return False
        # Some that arrive are among the connections already.
        arriving = sum(protocol.transport is None for protocol in self._arriving.values())
        return len(self._connections) + arriving >= self._limit

    def _look_again(self) -> None:
        if self._listener.fileno() >= 0:
            self._loop.add_reader(self._listener, self._accept)

    async def _let_in(self, client: socket.socket, protocol: BoundedProtocol) -> None:
        try:
            await self._loop.connect_accepted_socket(
                lambda: protocol, client, ssl=self._tls, **self._options
            )
        except OSError:  # ssl.SSLError is one: the client left, or speaks no TLS
            client.close()
        finally:
            # Here, since a callback comes a turn of the loop later: until then one that has failed
            # would count, could make no room, and a newcomer would be turned away.
            self._arriving.pop(cast("asyncio.Task[None]", asyncio.current_task()), None)

    def _make_room(self) -> bool:
        """Close connections that wait for their client; whether there were any."""
        new = [c for c in self._connections if c.requests == 0 and c.is_waiting]
        if self._tls is not None and self._arriving and len(self._arriving) >= len(new):
            task = next(iter(self._arriving))
            del self._arriving[task]
            return task.cancel()
        if new:
            # Several at once: the list is long if they are many.
            gone = sorted(new, key=_since)[: 1 + len(new) // 16]
        else:
            gone = sorted((c for c in self._connections if c.is_waiting), key=_since)[:1]
        for connection in gone:
            self._connections.discard(connection)
            connection.transport.abort()
        return bool(gone)


def _since(connection: BoundedProtocol) -> float:
    return connection.since
