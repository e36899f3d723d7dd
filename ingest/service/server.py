"""The server of the HTTP service: uvicorn in a thread and an event loop of its own.

The address is bound before `Service` returns, so that a client may connect at once, and an error is
raised where it can be told. `close` ends it: streams that have no end are cut, what is being
answered has `Patience.grace_s`, and nothing is accepted meanwhile. Signals stay the caller's.

    with Service(context, "8080") as service:      # http://127.0.0.1:8080
        pipeline.run()

Requires the extra [serve].
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import resource
import socket
import ssl
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp
from uvicorn import Config, Server

from ..addresses import parse_address
from ..closing import Closing
from .access import Access
from .app import make_app
from .doorway import Doorway
from .guard import Guard
from .patience import Patience
from .protocol import BoundedProtocol
from .turns import Turns

if TYPE_CHECKING:
    from .context import Context

_BACKLOG = 1024  # connections that the system holds until they are accepted
_SWEEP_S = 0.25  # between two looks for connections that are overdue
_LOOK_S = 0.01  # between two looks whether all is answered, at the end
_LAST_S = 1.0  # to refuse what was not answered in time
_SPARE_DESCRIPTORS = 256  # for the pipeline and its source


class Service(Closing):
    """Serves `context` over HTTP until closed, from one thread of its own. Closes it, too.

    address: a port, which is bound to loopback only, or "host:port"; port 0 takes a free one.
    access: who may do what, and TLS. patience: how long clients may take.
    Raises PipelineError on a bad address, or one that is not loopback and is open to all; OSError
    if it cannot be bound."""

    def __init__(
        self,
        context: Context,
        address: str | int = 0,
        access: Access | None = None,
        patience: Patience | None = None,
    ) -> None:
        access = access or Access()
        check_address(address, access)
        self.host, port = parse_address(address)
        tls = access.tls_context()
        listener = bind(self.host, port)
        try:
            app = Guard(make_app(context), access, self.host, context.limits, context.figures)
        except BaseException:
            listener.close()
            raise
        self._context = context
        self._server = AsgiServer(app, listener, tls, context.limits.max_connections, patience)
        context.figures.connections = self._server.connections
        self.port: int = self._server.port
        host = f"[{self.host}]" if ":" in self.host else self.host
        self.url = f"{'http' if tls is None else 'https'}://{host}:{self.port}"

    def close(self) -> None:
        """End the service, and return when its thread has ended."""
        self._server.close()
        self._context.close()


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
        patience: Patience | None = None,
    ) -> None:
        self.port: int = listener.getsockname()[1]
        limit = _allowed(max_connections)
        self._server = _Server(app, listener, tls, limit, patience or Patience())
        self._thread = threading.Thread(target=self._server.run, name="lpma-service", daemon=True)
        self._thread.start()
        self._server.is_up.wait()

    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._server.server_state.connections)

    def close(self) -> None:
        """Finish what is being answered, within `Patience.grace_s`; returns when all is closed."""
        self._server.end()
        self._thread.join()


class _Server(Server):
    """uvicorn's server, which lets connections in by a `Doorway`, and sweeps them."""

    def __init__(
        self,
        app: ASGIApp,
        listener: socket.socket,
        tls: ssl.SSLContext | None,
        limit: int,
        patience: Patience,
    ) -> None:
        config = Config(
            app, http=BoundedProtocol, ws="none", lifespan="off", interface="asgi3", workers=1,
            log_config=None, proxy_headers=False, server_header=False,
        )  # fmt: skip
        config.load()
        config.loaded_app = app  # and nothing around it that logs requests
        super().__init__(config)
        self.is_up = threading.Event()
        self._listener = listener
        self._tls = tls
        self._limit = limit
        self._patience = patience
        self._ending = asyncio.Event()

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            super().run(sockets)
        finally:
            self.is_up.set()  # it is not, but nobody should wait for it

    def end(self) -> None:
        """Have `run` return; from any thread, and more than once."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        self.should_exit = True
        self._ending.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = loop = asyncio.get_running_loop()
        patience, state, turns = self._patience, self.server_state, Turns(loop)
        self._open: set[BoundedProtocol] = state.connections  # type: ignore[assignment]
        self._door = Doorway(
            loop, self._listener,
            lambda: BoundedProtocol(self.config, state, patience, turns, loop),
            self._open, self._limit, self._tls, patience.head_s,
        )  # fmt: skip
        self.servers = []
        self.started = True
        self.is_up.set()

    async def main_loop(self) -> None:
        while not self.should_exit:
            await self.on_tick(0)  # the Date of answers
            now = self._patience.clock()
            for connection in list(self._open):
                connection.sweep(now)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), _SWEEP_S)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._door.close()
        for connection in list(self._open):
            connection.shutdown()
        tasks = self.server_state.tasks
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience.grace_s):
                while self._open or tasks:
                    await asyncio.sleep(_LOOK_S)
        for task in list(tasks):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_LAST_S)
        for connection in list(self._open):
            connection.transport.abort()
        await self._door.wait_closed()


def check_address(address: str | int, access: Access) -> bool:
    """Whether an address can be reached from other machines. Raises PipelineError if it can, and
    `access` is not enough for that, or if its certificate cannot be read."""
    host, port = parse_address(address)
    _, found = _resolved(host, port)
    is_public = not ipaddress.ip_address(found[0]).is_loopback
    if is_public:
        access.check_public(host)
    access.tls_context()
    return is_public


def _resolved(host: str, port: int) -> tuple[socket.AddressFamily, Any]:
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
    family, address = _resolved(host, port)
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
