"""The application: all endpoints, and errors as problem documents."""

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
from .routes import routes_of

# Each module has `handlers(context)`.
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
    found = {name: call for module in _ENDPOINTS for name, call in module.handlers(context).items()}
    routes = [*routes_of(found), *page.FILES]
    handlers = dict.fromkeys((HTTPException, LpmaError, Exception), on_error)
    counting = [Middleware(Counted, figures=context.figures)]
    return Starlette(routes=routes, middleware=counting, exception_handlers=handlers)
