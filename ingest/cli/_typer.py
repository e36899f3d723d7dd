"""What we add to Typer: options shared by several commands, commands that are made when they are
first used, and plain usage lines.

    @app.command("core")
    @sharing(Running)
    def core(target: Target, running: Running) -> None: ...

Typer reads a command's signature. `sharing` shows it one in which the parameter of a dataclass type
is replaced by an option for each field that is an `option` or annotated as one. Any other field can
be had from a file of settings alone (_config.py).
"""

from __future__ import annotations

import functools
import inspect
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, field, fields
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import ParameterInfo

Command = Callable[..., None]


def option(
    *names: str, panel: str | None = None, default: Any = None, in_file: Any = None, **more: Any
) -> Any:
    """A field of a dataclass, which is an option called so. A first name without dashes is its key
    in a file of settings, where its type is `in_file`, if that says more. more: as Typer has it."""
    key = names[0] if names and not names[0].startswith("-") else ""
    more = {"show_default": False, **more}
    info = typer.Option(*names[bool(key) :], rich_help_panel=panel, **more)
    return field(default=default, metadata={"option": info, "key": key, "in_file": in_file})


def keyed(key: str, default: Any = None, **about: Any) -> Any:
    """A field that has this place in a file of settings, and no option but that of its annotation.
    about: what _config.py should know of it."""
    return field(default=default, metadata={"key": key, **about})


def hints_of(kind: type[Any]) -> dict[str, Any]:
    """The annotations of a dataclass's fields, each with its option."""
    hints = get_type_hints(kind, include_extras=True)
    for each in fields(kind):
        if (info := each.metadata.get("option")) is not None:
            hints[each.name] = Annotated[hints[each.name], info]
    return hints


def sharing(kind: type[Any], rare: Sequence[str] = ()) -> Callable[[Command], Command]:
    """Replace a command's parameter of the dataclass `kind`, or of its base, by an option for each
    field that is not `rare`, listed after the command's own.

    REQUIRES: every field has a default."""
    hints = hints_of(kind)
    assert all(field.default is not MISSING for field in fields(kind))
    options = [
        inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default,
                          annotation=hints[field.name])
        for field in fields(kind)
        if option_of(hints[field.name]) is not None and field.name not in rare
    ]  # fmt: skip
    names = [field.name for field in fields(kind)]

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
            gathered = kind(**{name: given.pop(name) for name in names if name in given})
            command(**given, **{name: gathered})

        return showing(wrapped, [*parameters, *options])

    return share


def option_of(hint: Any) -> tuple[str, ...] | None:
    """The spellings of the option that an annotation has; None if it has none."""
    parts = getattr(hint, "__metadata__", ())
    info: Any = next((part for part in parts if isinstance(part, ParameterInfo)), None)
    if info is None:
        return None
    first = [info.default] if isinstance(info.default, str) else []  # Typer's place for it
    return (*first, *(info.param_decls or ()))


def showing(command: Command, parameters: list[inspect.Parameter]) -> Command:
    """The command, of which Typer sees these parameters."""
    parameters.sort(key=lambda p: p.kind)
    shown = inspect.Signature(parameters, return_annotation=None)
    command.__signature__ = shown  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


NARROW = 80  # columns, below which options are listed without frames, which would cut them


_ROLE = re.compile("--(src|dst|source|target|weight|time|kind)(?:-field|-column)?")
_ROLES = {"src": "source", "dst": "target"}
_OTHERS = {"--delimiter": "--separator", "--sep": "--separator", "--address": "--serve"}
_LOGS = ("--verbose", "-v", "--debug")


class _Command(TyperCommand):
    def __init__(self, *given: Any, help: str | None = None, **more: Any) -> None:
        """help: in paragraphs, whose lines are as long as the source's."""
        paragraphs = [" ".join(part.split()) for part in (help or "").split("\n\n")]
        super().__init__(*given, help="\n\n".join(paragraphs), **more)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        if shutil.get_terminal_size().columns < NARROW:
            self.rich_markup_mode = None
        super().format_help(ctx, formatter)

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        given = list(args)
        try:
            return super().make_context(info_name, args, parent, **extra)
        except Exception as error:  # that of an unknown option, whose class Typer does not export
            name = getattr(error, "option_name", "")
            self._in_plain_words(error, given)
            if key := getattr(self.callback, "moved", {}).get(name):
                refused: Any = error
                refused.message = f"{name}: a setting that is no option: --set {key}=VALUE, or "
                refused.message += f"{key} in a file for --config"
                refused.possibilities = None
            elif meant := self._meant_by(name):
                refused = error
                refused.message, refused.possibilities = f"No such option: {name}: {meant}", None
            if re.fullmatch(r"-\d", name):
                vertex = next(word for word in given if word.startswith(name))
                error.message += f". A vertex that begins with - comes after --: -- {vertex}"  # type: ignore[attr-defined]
            raise

    def _in_plain_words(self, error: Any, given: Sequence[str]) -> None:
        """Make what Typer says of a value that is no choice, or of options that are missing, of
        which it names the first, read as its other messages do."""
        if isinstance(said := getattr(error, "message", None), str):
            error.message = said.removeprefix("Value error, ")
        if getattr(error, "param", None) is None or type(error).__name__ != "MissingParameter":
            return
        words = {word.partition("=")[0] for word in given}
        missing = [p.opts[0] for p in self.params if p.required and p.param_type_name == "option"
                   and not words & set(p.opts)]  # fmt: skip
        if error.param.param_type_name == "option" and len(missing) > 1:
            error.param_hint = " and ".join(f"'{name}'" for name in missing)

    def _meant_by(self, name: str) -> str:
        """What to say instead of an option that other tools have, or earlier releases had; "" if
        that is not known."""
        spelled = {option for each in self.params for option in each.opts}
        moved = getattr(self.callback, "moved", {})
        if name in _LOGS:
            more = ["--json has all figures"] if "--json" in spelled else []
            if (key := moved.get("--log-json")) is not None:
                more.append(f"--set {key}=true logs what happens")
            return ", ".join(more)
        match = _ROLE.fullmatch(name)
        option = f"--{_ROLES.get(match[1], match[1])}" if match else _OTHERS.get(name)
        return f"it is {option}" if option in spelled else ""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces = super().collect_usage_pieces(ctx)
        return [piece.replace("{", "").replace("}", "").upper() for piece in pieces]


class App(typer.Typer):
    """An application whose usage lines are written as in manuals, whatever Typer's release: NAME
    for a required argument, [NAME] for an optional one. Newer releases print {name}, which reads
    like a placeholder that nobody filled in."""

    command_class = _Command

    def command(self, name: str | None = None, **given: Any) -> Any:
        return super().command(name, cls=given.pop("cls", _Command), **given)


def lazily(makers: Mapping[str, tuple[str, Callable[[], Command | App]]]) -> type[TyperGroup]:
    """A class of groups with these commands, by name: what a list says of each, and what makes it,
    so that what it needs is imported only when it is called. They follow the group's own."""

    class Lazy(TyperGroup):
        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            for name, (help, _) in makers.items():
                self.commands[name] = _Command(name=name, callback=None, help=help)
            self._listing = False

        def format_help(self, ctx: Any, formatter: Any) -> None:
            self._listing = True
            try:
                super().format_help(ctx, formatter)
            finally:
                self._listing = False

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            if self._listing or cmd_name not in makers:
                return super().get_command(ctx, cmd_name)
            help, make = makers[cmd_name]
            made = make()
            if isinstance(made, App):
                found: Any = typer.main.get_group(made)
            else:
                alone = App(add_completion=False)
                alone.command(cmd_name)(made)
                found = typer.main.get_command(alone)
            found.name, found.help = cmd_name, found.help or help
            return found

    return Lazy
