"""What we add to Typer: options shared by several commands, and plain usage lines.

    @app.command("core")
    @sharing(Running)
    def core(target: Target, running: Running) -> None: ...

Typer reads a command's signature. `sharing` shows it one in which the parameter of a dataclass type
is replaced by an option for each field: the field's annotation is the option's. A field whose
annotation has none can be had from a file of settings alone (_config.py).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand
from typer.models import ParameterInfo

Command = Callable[..., None]


def sharing(kind: type[Any]) -> Callable[[Command], Command]:
    """Replace a command's parameter of the dataclass `kind` by an option for each field, listed
    after the command's own.

    REQUIRES: every field has a default."""
    hints = get_type_hints(kind, include_extras=True)
    assert all(field.default is not MISSING for field in fields(kind))
    options = [
        inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default,
                          annotation=hints[field.name])
        for field in fields(kind) if is_option(hints[field.name])
    ]  # fmt: skip
    names = [field.name for field in fields(kind)]

    def share(command: Command) -> Command:
        own = get_type_hints(command, include_extras=True)
        name = next(name for name, hint in own.items() if hint is kind)
        parameters = [
            p.replace(annotation=own[p.name])
            for p in inspect.signature(command).parameters.values()
            if p.name != name
        ]

        @functools.wraps(command)
        def wrapped(**given: Any) -> None:
            gathered = kind(**{name: given.pop(name) for name in names if name in given})
            command(**given, **{name: gathered})

        shown = inspect.Signature([*parameters, *options], return_annotation=None)
        wrapped.__signature__ = shown  # type: ignore[attr-defined]
        wrapped.__annotations__ = {p.name: p.annotation for p in shown.parameters.values()}
        return wrapped

    return share


def is_option(hint: Any) -> bool:
    """Whether an annotation has an option of Typer's."""
    return any(isinstance(part, ParameterInfo) for part in getattr(hint, "__metadata__", ()))


class App(typer.Typer):
    """An application whose usage lines are written as in manuals, whatever Typer's release: NAME
    for a required argument, [NAME] for an optional one. Newer releases print {name}, which reads
    like a placeholder that nobody filled in."""

    def command(self, name: str | None = None, **given: Any) -> Any:
        return super().command(name, cls=_Command, **given)


class _Command(TyperCommand):
    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces = super().collect_usage_pieces(ctx)
        return [piece.replace("{", "").replace("}", "").upper() for piece in pieces]
