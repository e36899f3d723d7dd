"""What we add to Typer: options shared by several commands, options that algorithms declare,
commands that are made when they are first used, and plain usage lines.

    @app.command("core")
    @sharing(Running)
    def core(target: Target, running: Running) -> None: ...

Typer reads a command's signature. `sharing` shows it one in which the parameter of a dataclass type
is replaced by an option for each field: the field's annotation is the option's.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Annotated, Any, Literal, get_type_hints

import typer
from typer.core import TyperCommand

from algorithms.options import REQUIRED, Option, Vertex

from ..state.vertex_names import name_of

Command = Callable[..., None]


def sharing(kind: type[Any]) -> Callable[[Command], Command]:
    """Replace a command's parameter of the dataclass `kind`, or of its base, by an option for each
    field, listed after the command's own.

    REQUIRES: every field has a default."""
    hints = get_type_hints(kind, include_extras=True)
    assert all(field.default is not MISSING for field in fields(kind))
    options = [
        inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default,
                          annotation=hints[field.name])
        for field in fields(kind)
    ]  # fmt: skip

    def share(command: Command) -> Command:
        own = get_type_hints(command, include_extras=True)
        name = next(
            name for name, hint in own.items() if isinstance(hint, type) and issubclass(kind, hint)
        )
        parameters = [
            p.replace(annotation=own[p.name])
            for p in inspect.signature(command).parameters.values()
            if p.name != name
        ]

        @functools.wraps(command)
        def wrapped(**given: Any) -> None:
            gathered = kind(**{option.name: given.pop(option.name) for option in options})
            command(**given, **{name: gathered})

        return _showing(wrapped, [*parameters, *options])

    return share


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

        return _showing(wrapped, [*options, *others])

    return take


def _showing(command: Command, parameters: list[inspect.Parameter]) -> Command:
    """The command, of which Typer sees these parameters."""
    parameters.sort(key=lambda p: p.kind)
    shown = inspect.Signature(parameters, return_annotation=None)
    command.__signature__ = shown  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


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


class App(typer.Typer):
    """An application whose usage lines are written as in manuals, whatever Typer's release: NAME
    for a required argument, [NAME] for an optional one. Newer releases print {name}, which reads
    like a placeholder that nobody filled in."""

    def command(self, name: str | None = None, **given: Any) -> Any:
        return super().command(name, cls=given.pop("cls", _Command), **given)

    def late_command(self, name: str, help: str, make: Callable[[], Command]) -> None:
        """Add a command that `make` makes when it is first used, so that what declares its options
        is imported only then."""

        class LateCommand(_Command):
            made = False

            def get_params(self, ctx: Any) -> Any:
                if not self.made:
                    single = App(add_completion=False)
                    single.command()(make())
                    whole = typer.main.get_command(single)
                    self.params, self.callback, self.made = whole.params, whole.callback, True
                return super().get_params(ctx)

        self.command(name, help=help, cls=LateCommand)(lambda: None)


class _Command(TyperCommand):
    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces = super().collect_usage_pieces(ctx)
        return [piece.replace("{", "").replace("}", "").upper() for piece in pieces]
