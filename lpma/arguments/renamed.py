"""Names that changed before 1.0: whoever uses an old one is told the new one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import BatchError


def no_attribute(owner: str, name: str, renamed: Mapping[str, str]) -> AttributeError:
    """The error for an attribute that `owner` has not. renamed: new names by old ones."""
    now = renamed.get(name)
    hint = "" if now is None else f": it is called {now!r} now"
    return AttributeError(f"{owner} has no attribute {name!r}{hint}")


def refuse_keywords(given: Mapping[str, Any], renamed: Mapping[str, str], function: str) -> None:
    """Raise for keywords that `function` does not take: BatchError for an old name, TypeError for
    any other. renamed: new names by old ones."""
    for name in given:
        if name in renamed:
            raise BatchError(f"{name}: this argument of {function} is called {renamed[name]!r} now")
        raise TypeError(f"{function} got an unexpected keyword argument {name!r}")
