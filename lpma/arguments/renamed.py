"""Names that changed before 1.0: whoever uses an old one is told the new one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

from ..errors import BatchError

Function = TypeVar("Function", bound=Callable[..., Any])


def no_attribute(owner: str, name: str, renamed: Mapping[str, str]) -> AttributeError:
    """The error for an attribute that `owner` has not. renamed: new names by old ones."""
    now = renamed.get(name)
    hint = "" if now is None else f": it is called {now!r} now"
    return AttributeError(f"{owner} has no attribute {name!r}{hint}")


def keywords_renamed(**renamed: str) -> Callable[[Function], Function]:
    """A decorator: a call with an old keyword raises BatchError. renamed: new names by old ones."""

    def decorate(function: Function) -> Function:
        @wraps(function)
        def call(*args: Any, **named: Any) -> Any:
            for old in renamed.keys() & named.keys():
                raise BatchError(f"{old}: this argument is called {renamed[old]!r} now")
            return function(*args, **named)

        return cast(Function, call)

    return decorate
