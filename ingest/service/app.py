"""The application: the routes of all endpoints, and errors as problem documents."""

from __future__ import annotations

from types import ModuleType

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from lpma.errors import LpmaError

from . import health, openapi, page, queries, runs, snapshot, updates
from .context import Context
from .figures import Counted
from .problems import on_error

# Each module has `routes(context)`.
_ENDPOINTS: tuple[ModuleType, ...] = (
    queries,
    updates,
    snapshot,
    runs,
    health,
    openapi,
    page,
)


def make_app(context: Context) -> Starlette:
    """The ASGI application that serves `context`, which is closed by whoever made it."""
    routes = [route for module in _ENDPOINTS for route in module.routes(context)]
    handlers = dict.fromkeys((HTTPException, LpmaError, Exception), on_error)
    counting = [Middleware(Counted, figures=context.figures)]
    return Starlette(routes=routes, middleware=counting, exception_handlers=handlers)
