"""An HTTP server of ASGI applications: uvicorn's connections in a thread and an event loop of their
own.

The address is bound beforehand (`bind`), so that a client may connect at once, and an error is
raised where it can be told. `close` ends it: streams that have no end are cut, what is being
answered has `Timeouts.grace_s`, and nothing is accepted meanwhile. Signals stay the caller's.
"""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from email.utils import formatdate
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

from uvicorn import Config
from uvicorn.server import ServerState

from ..types import Closing
from .connection import Connection, ParseScheduler, Timeouts

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_BACKLOG = 1024  # connections that the system holds until they are accepted
_SWEEP_S = 0.25  # between two looks for connections that are overdue
_LOOK_S = 0.01  # between two looks whether all is answered, at the end
_LAST_S = 1.0  # to refuse what was not answered in time
_SPARE_DESCRIPTORS = 256  # for the pipeline and its source
_AT_ONCE = 16  # connections accepted, before the others have their turn
_PAUSE_S = 0.1  # before another look for a descriptor


class AsgiServer(Closing):
    """Serves an ASGI application in a thread, until closed.

    listener: what `bind` gave; the server's from now on. tls: None for plain HTTP.
    max_connections: fewer if the process may not have as many descriptors."""

    def __init__(
        self,
        app: ASGIApp,
        listener: socket.socket,
        tls: ssl.SSLContext | None = None,
        max_connections: int = 1024,
        timeouts: Timeouts | None = None,
    ) -> None:
        self.port: int = listener.getsockname()[1]
        self._config = Config(
            app, http=Connection, ws="none", lifespan="off", interface="asgi3", workers=1,
            log_config=None, proxy_headers=False, server_header=False,
        )  # fmt: skip
        self._config.load()
        self._config.loaded_app = app  # and nothing around it that logs requests
        self._listener = listener
        self._tls = tls
        self._limit = _allowed(max_connections)
        self._timeouts = timeouts or Timeouts()
        self._state = ServerState()
        self._open: set[Connection] = self._state.connections  # type: ignore[assignment]
        self._ending = asyncio.Event()
        self._is_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lpma-service", daemon=True)
        self._thread.start()
        self._is_up.wait()

    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._open)

    def close(self) -> None:
        """Finish what is being answered, within `Timeouts.grace_s`; returns when all is closed."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join()

    # The thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=self._config.get_loop_factory()) as runner:
                runner.run(self._serve())
        finally:
            self._is_up.set()  # it is not, but nobody should wait for it

    async def _serve(self) -> None:
        self._loop = loop = asyncio.get_running_loop()
        scheduler, timeouts = ParseScheduler(loop), self._timeouts
        limiter = ConnectionLimiter(
            loop, self._listener,
            lambda: Connection(self._config, self._state, timeouts, scheduler, loop),
            self._open, self._limit, self._tls, timeouts.head_s,
        )  # fmt: skip
        self._is_up.set()
        while not self._ending.is_set():
            self._sweep()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), _SWEEP_S)
        limiter.close()
        await self._finish()
        await limiter.wait_closed()

    def _sweep(self) -> None:
        """Tell answers what time it is, and close the connections that are overdue."""
        self._state.default_headers = [(b"date", formatdate(usegmt=True).encode())]
        now = self._timeouts.clock()
        for connection in list(self._open):
            connection.sweep(now)

    async def _finish(self) -> None:
        for connection in list(self._open):
            connection.shutdown()
        tasks = self._state.tasks
        with suppress(TimeoutError):
            async with asyncio.timeout(self._timeouts.grace_s):
                while self._open or tasks:
                    await asyncio.sleep(_LOOK_S)
        for task in list(tasks):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_LAST_S)
        for connection in list(self._open):
            connection.transport.abort()


class ConnectionLimiter:
    """Accepts what `listener` brings, in the loop's thread, until closed.

    Idea: a flood evicts itself. Connections that have never made a whole request, and those in a
    TLS handshake, go first, the oldest of them; whoever asks as soon as it is let in is served,
    however many others hang. If there are none, the one that was idle longest goes. If all are
    being answered, the newcomer is turned away.

    uvicorn and the event loop neither count connections whose handshake is not over, nor bound
    them, nor free one when the process has no descriptor left.

    make: makes the protocol of a connection. connections: those that are open, which the protocols
    keep. limit: how many there may be, with those in a handshake. tls: None for plain HTTP.
    handshake_s: how long a handshake may take."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listener: socket.socket,
        make: Callable[[], Connection],
        connections: set[Connection],
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
        self._arriving: dict[asyncio.Task[None], Connection] = {}
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

    async def _let_in(self, client: socket.socket, protocol: Connection) -> None:
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
        since = attrgetter("since")
        new = [c for c in self._connections if c.requests == 0 and c.is_waiting]
        if self._tls is not None and self._arriving and len(self._arriving) >= len(new):
            task = next(iter(self._arriving))
            del self._arriving[task]
            return task.cancel()
        if new:
            # Several at once: the list is long if they are many.
            gone = sorted(new, key=since)[: 1 + len(new) // 16]
        else:
            gone = sorted((c for c in self._connections if c.is_waiting), key=since)[:1]
        for connection in gone:
            self._connections.discard(connection)
            connection.transport.abort()
        return bool(gone)


def resolved(host: str, port: int) -> tuple[socket.AddressFamily, Any]:
    """The address that a host and a port stand for, and its family. Raises OSError."""
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise OSError(error.errno, f"{host}: {error.strerror}") from error
    return family, address


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there. Raises OSError, which says where."""
    family, address = resolved(host, port)
    try:
        listener = socket.create_server(address, family=family, backlog=_BACKLOG)
    except OSError as error:
        raise type(error)(
            error.errno, f"{host} port {port} cannot be served: {os.strerror(error.errno or 0)}"
        ) from error
    listener.setblocking(False)
    return listener


def _allowed(limit: int) -> int:
    """How many connections there may be: `limit`, or fewer if the process may not have as many
    descriptors."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return limit
    return min(limit, max(allowed - _SPARE_DESCRIPTORS, allowed // 2))
