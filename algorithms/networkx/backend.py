"""What NetworkX calls: its functions under its names, and the four that every backend has.

NetworkX imports this module when this backend first runs a function. If a function cannot serve a
call, `can_run` says so, or it raises NotImplementedError; NetworkX then runs its own, if its
configuration allows that.

    >>> import networkx as nx
    >>> nx.core_number(nx.cycle_graph(4), backend="lpma")
    {0: 2, 1: 2, 2: 2, 3: 2}
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from .converted import convert_from_nx, convert_to_nx
from .info import SERVED
from .refusals import why_better_not, why_not

__all__ = ["can_run", "convert_from_nx", "convert_to_nx", "should_run", *SERVED]


def __getattr__(name: str) -> Any:
    """A function that is served, imported on first use."""
    if name not in SERVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function = getattr(import_module(f".{SERVED[name].module}", __package__), name)
    setattr(sys.modules[__name__], name, function)
    return function


def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """True if a function can take these arguments; else why not."""
    return why_not(name, getattr(sys.modules[__name__], name), args, kwargs) or True


def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """True if a function is likely to be faster than NetworkX's own; else why not. Called only if
    NetworkX chooses the backend, by `nx.config.backend_priority`."""
    return why_better_not(name, getattr(sys.modules[__name__], name), args, kwargs) or True
