"""The service: the application of all endpoints behind its guard, and the server that it runs in.

    with Service(context, "8080") as service:      # http://127.0.0.1:8080
        pipeline.run()

Requires the extra [serve].
"""

from __future__ import annotations

import ipaddress
from types import ModuleType

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from lpma.errors import LpmaError

from ..arguments import parse_address
from ..types import Closing
from . import health, live_page, openapi, queries, runs, snapshot, updates
from .connection import Timeouts
from .context import Context
from .problems import on_error
from .routes import routes_of
from .security import Access, Guard
from .server import AsgiServer, bind, resolved

# Each module has `handlers(context)`.
_ENDPOINTS: tuple[ModuleType, ...] = (
    queries,
    updates,
    snapshot,
    runs,
    health,
    openapi,
    live_page,
)


def make_app(context: Context) -> Starlette:
    """The ASGI application that serves `context`, which is closed by whoever made it."""
    found = {name: call for module in _ENDPOINTS for name, call in module.handlers(context).items()}
    routes = [*routes_of(found), *live_page.FILES]
    handlers = dict.fromkeys((HTTPException, LpmaError, ClientDisconnect, Exception), on_error)
    return Starlette(routes=routes, exception_handlers=handlers)


class Service(Closing):
    """Serves `context` over HTTP until closed, from one thread of its own. Closes it, too.

    address: a port, which is bound to loopback only, or "host:port"; port 0 takes a free one.
    access: who may do what, and TLS. timeouts: how long clients may take.
    Raises PipelineError on a bad address, or one that is not loopback and is open to all; OSError
    if it cannot be bound."""

    def __init__(
        self,
        context: Context,
        address: str | int = 0,
        access: Access | None = None,
        timeouts: Timeouts | None = None,
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
        self._server = AsgiServer(app, listener, tls, context.limits.max_connections, timeouts)
        context.figures.connections = self._server.connections
        self.port: int = self._server.port
        host = f"[{self.host}]" if ":" in self.host else self.host
        self.url = f"{'http' if tls is None else 'https'}://{host}:{self.port}"

    def close(self) -> None:
        """End the service, and return when its thread has ended."""
        self._server.close()
        self._context.close()


def check_address(address: str | int, access: Access) -> bool:
    """Whether an address can be reached from other machines. Raises PipelineError if it can, and
    `access` is not enough for that, or if its certificate cannot be read."""
    host, port = parse_address(address)
    _, found = resolved(host, port)
    is_public = not ipaddress.ip_address(found[0]).is_loopback
    if is_public:
        access.check_public(host)
    access.tls_context()
    return is_public
