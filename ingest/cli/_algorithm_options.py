"""The options that an algorithm declares (`algorithms/options.py`), as options of Typer's."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import typer

from algorithms.options import REQUIRED, Option, Vertex

from ..state.vertex_names import name_of
from ._typer import Command, showing


def taking(declared: Mapping[str, Option]) -> Callable[[Command], Command]:
    """Replace a command's `**given` by the options that an algorithm declares, listed after the
    command's own. It is given the names of vertices, not the words that mean them."""

    def take(command: Command) -> Command:
        own = list(inspect.signature(command).parameters.values())
        options = [
            inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=option.default,
                              annotation=_annotation(option))
            for option in declared.values()
        ]  # fmt: skip
        others = [p for p in own if p.kind is not inspect.Parameter.VAR_KEYWORD]

        @functools.wraps(command)
        def wrapped(**given: Any) -> None:
            for name, option in declared.items():
                if option.kind is Vertex and given[name] is not None:
                    given[name] = name_of(given[name])
            command(**given)

        return showing(wrapped, [*options, *others])

    return take


def _annotation(option: Option) -> Any:
    """An option as Typer reads it."""
    kind, limits, help = option.kind, option.limits, option.description
    if limits.choices:
        kind = Literal[limits.choices]
    elif kind is Vertex:
        kind = str
        help += ": its id, or its name; '\"5\"' is text"
    is_number = kind in (int, float)
    return Annotated[
        kind | None if option.default is None else kind,
        typer.Option(
            f"--{option.name.replace('_', '-')}",  # of a truth there is no --no-
            min=limits.ge if is_number else None,
            max=limits.le if is_number else None,
            help=f"{help[:1].upper()}{help[1:]}.",
            show_default=option.default not in (None, REQUIRED, False),
        ),
    ]
