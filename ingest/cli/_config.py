"""`--config stream.toml`: a command's options from a file; `--write-config` makes one.

    [kafka]
    servers = "broker:9092"
    topics = ["updates", "queries"]

    [kafka.settings]                       # by their names in kafka-python
    sasl_plain_password = "${PASSWORD}"

    [checkpoints]
    directory = "state"

Each option of a command has a key in a table here, and some settings have nothing but that: what is
rarely set needs no option. Several commands read the same file, each the keys that it knows. An
option that is given on the command line wins over the file. Paths are relative to the file's
folder.

Where an option stands is declared beside it (`in_file`); its type, limits and help are those of the
option. A value is converted by msgspec, so that a message names the key and what was expected.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from enum import EnumType, StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec
import typer
from typer.models import ParameterInfo

from ..settings import Settings
from ._typer import Command, sharing, showing

Kind = TypeVar("Kind", bound=type[Any])

CONFIG = "--config"
COMMENT_WIDTH = 90
_GIVEN = ("COMMANDLINE", "ENVIRONMENT")  # sources of a parameter
# Of two tables or keys, the one that the command line names leaves no room for the other.
_EITHER = (("source.path", "kafka"), ("results.topic", "results.file"))

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        CONFIG, metavar="FILE", show_default=False,
        help="Take options from this TOML file; those given here win. See --write-config.",
    ),
]  # fmt: skip
WriteConfig = Annotated[
    bool,
    typer.Option(
        "--write-config", show_default=False,
        help="Print the file that says what this command line says, with all other settings as "
        "comments, and do nothing else.",
    ),
]  # fmt: skip


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Entry:
    """A key of the file."""

    key: str  # "table.name"
    name: str  # of the parameter that takes it
    kind: Any  # its type, as msgspec reads it
    help: str
    default: Any
    check: Callable[[Any], Any] = _as_it_is  # what the option does; raises typer.BadParameter
    is_table: bool = False  # it is a `Table`
    shown: Any = None  # the default that a written file shows


@dataclass(frozen=True)
class Table:
    """A table of the file that somebody else knows how to read."""

    content: dict[str, Any]
    path: Path  # of the file
    key: str


_DECLARING = "._ingest_options", "._serve_options", ".cluster._options"  # modules with keys
_commands: dict[type[Any], dict[str, str]] = {}  # by class of options: field → key


def in_file(**keys: str) -> Callable[[Kind], Kind]:
    """Declare where the fields of a dataclass of options stand in the file. A field without a key
    is for the command line alone."""

    def declare(kind: Kind) -> Kind:
        inherited = {field: key for base in kind.__mro__[1:] if base in _commands
                     for field, key in _commands[base].items()}  # fmt: skip
        unknown = set(keys) - {field.name for field in fields(kind)}
        assert not unknown, f"{kind.__name__} has no {unknown}"
        _commands[kind] = inherited | keys
        return kind

    return declare


def configured(*kinds: type[Any], **keys: str) -> Callable[[Command], Command]:
    """A command that shares the options of these dataclasses (`sharing`), and takes them from a
    file, too. keys: where its own parameters stand there."""

    def share(command: Command) -> Command:
        for kind in reversed(kinds):
            command = sharing(kind)(command)
        own = inspect.signature(command)

        @functools.wraps(command)
        def wrapped(
            context: typer.Context, config: Path | None = None, write_config: bool = False,
            **given: Any,
        ) -> None:  # fmt: skip
            if config is None and not write_config:
                command(**given)
                return
            known = entries(kinds, keys, own)
            said = {name for name in given if _source(context, name) in _GIVEN}
            if config is not None:
                given |= _from_file(config, known, said)
            if write_config:
                typer.echo(_written(known, given), nl=False)
                return
            command(**given)

        ours = [
            inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
            inspect.Parameter("config", inspect.Parameter.KEYWORD_ONLY, default=None,
                              annotation=ConfigFile),
            inspect.Parameter("write_config", inspect.Parameter.KEYWORD_ONLY, default=False,
                              annotation=WriteConfig),
        ]  # fmt: skip
        return showing(wrapped, [*own.parameters.values(), *ours])

    return share


def _source(context: typer.Context, parameter: str) -> str:
    """Where a parameter's value is from."""
    return getattr(context.get_parameter_source(parameter), "name", "")


def entries(
    kinds: Sequence[type[Any]], keys: Mapping[str, str], command: inspect.Signature
) -> dict[str, Entry]:
    """The keys that a command knows, by key."""
    found = {}
    for name, key in keys.items():
        parameter = command.parameters[name]
        found[key] = _entry(key, name, parameter.annotation, parameter.default)
    for kind in kinds:
        hints = get_type_hints(kind, include_extras=True)
        for field in fields(kind):
            if (key := _commands[kind].get(field.name, "")) == "":
                continue
            found[key] = _entry(key, field.name, hints[field.name], field.default, field.metadata)
    return found


def _entry(
    key: str, name: str, hint: Any, default: Any, about: Mapping[str, Any] = MappingProxyType({})
) -> Entry:
    """What an option's annotation says of its key. A field without option is a setting of the
    pipeline, with a type that says its limits, or a table."""
    kind, *more = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    option: Any = next((m for m in more if isinstance(m, ParameterInfo)), None)
    if option is None:
        if Table in get_args(kind):
            check = about["check"]
            return Entry(key, name, dict[str, Any], about["help"], default, check, is_table=True)
        limits = next(part for part in get_args(kind) if part is not type(None)).__metadata__[0]
        shown = getattr(Settings, name)
        return Entry(key, name, kind, limits.description, default, shown=shown)
    if option.min is not None:
        number = next(part for part in (kind, *get_args(kind)) if part in (int, float))
        kind = Annotated[number, msgspec.Meta(ge=option.min)]
    check = option.parser or getattr(option, "callback", None) or _as_it_is
    return Entry(key, name, kind, option.help or "", default, check, shown=default)


def _from_file(path: Path, known: Mapping[str, Entry], said: set[str]) -> dict[str, Any]:
    """The parameters that a file gives a command, but for those that the command line gave. Raises
    typer.BadParameter."""
    by_key = {entry.key for entry in known.values() if entry.name in said}
    values = {}
    for key, value in read_config(path).items():
        if key not in known:  # it is another command's
            continue
        found = _value(path, known[key], value)
        if known[key].name not in said and not _is_excluded(key, by_key):
            values[known[key].name] = found
    return values


def _is_excluded(key: str, said: set[str]) -> bool:
    """Whether the command line names what leaves no room for this key."""
    for pair in _EITHER:
        for one, other in (pair, pair[::-1]):
            if _is_of(key, one) and any(_is_of(each, other) for each in said):
                return True
    return False


def _is_of(key: str, place: str) -> bool:
    return key == place or key.startswith(f"{place}.")


def read_config(path: Path) -> dict[str, Any]:
    """What a file says, by key. Raises typer.BadParameter if it cannot be read, or has a key that
    no command knows."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _bad(f"{path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _bad(f"{path}: not TOML: {error}") from None
    known = all_keys()
    return dict(_flat(path, content, "", known))


def _flat(
    path: Path, content: Mapping[str, Any], table: str, known: Sequence[str]
) -> Iterator[tuple[str, Any]]:
    for name, value in content.items():
        key = f"{table}.{name}" if table else name
        if key in known:
            yield key, value
        elif isinstance(value, dict) and any(_is_of(each, key) for each in known):
            yield from _flat(path, value, key, known)
        else:
            raise _bad(f"{path}: {key}: no such setting{_nearest(key, known)}")


def _nearest(key: str, known: Sequence[str]) -> str:
    """A hint at the key that was probably meant: one spelled alike, or of the same name."""
    tables = sorted({each.rpartition(".")[0] for each in known})
    near = get_close_matches(key, known, 1, 0.75)
    near = near or [each for each in known if each.rpartition(".")[2] == key.rpartition(".")[2]]
    if near and key not in tables:
        return f": did you mean {near[0]}?"
    table = key.partition(".")[0]
    if table in tables:
        names = ", ".join(each.rpartition(".")[2] for each in known if _is_of(each, table))
        return f": {table} has {names}"
    return f": the tables are {', '.join(tables)}"


def _value(path: Path, entry: Entry, value: Any) -> Any:
    """The value of a key as its option has it. Raises typer.BadParameter."""
    takes_text = str in (entry.kind, *get_args(entry.kind))
    if takes_text and isinstance(value, list) and all(isinstance(part, str) for part in value):
        value = ",".join(value)  # of an option that takes A,B,…
    elif takes_text and type(value) is int:
        value = str(value)  # a port, a width, a column's number
    try:
        found = msgspec.convert(value, entry.kind, dec_hook=functools.partial(_path, path.parent))
        return entry.check(Table(found, path, entry.key) if entry.is_table else found)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        what = what[:1].lower() + what[1:].replace(" | null", "")
        if what.startswith("invalid enum value"):
            what += f": expected one of {', '.join(_words(entry.kind))}"
        raise _bad(f"{path}: {entry.key}{place.rstrip('`')}: {what}") from None
    except typer.BadParameter as error:
        raise _bad(f"{path}: {entry.key}: {error.message}") from None


def _words(kind: Any) -> list[str]:
    """What an option of a few words takes."""
    choices: list[Any] = [each for each in (kind, *get_args(kind)) if isinstance(each, EnumType)]
    return [word.value for each in choices for word in each]


def _path(folder: Path, kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str) and value:
        return folder / value
    raise ValueError("Expected the name of a file")


def _bad(text: str) -> typer.BadParameter:
    return typer.BadParameter(text, param_hint=CONFIG)


def all_keys() -> list[str]:
    """Every key that some command knows, table by table."""
    for module in _DECLARING:
        importlib.import_module(module, __package__)
    keys = {"source.path", "cluster.shards", *(k for of in _commands.values() for k in of.values())}
    return sorted(keys)


# -- writing a file ------------------------------------------------------------------------------


def _written(known: Mapping[str, Entry], given: Mapping[str, Any]) -> str:
    """The file that gives a command these parameters."""
    lines: list[str] = []
    tables: dict[str, list[Entry]] = {}
    for entry in known.values():
        tables.setdefault(entry.key.rpartition(".")[0], []).append(entry)
    for table in sorted(tables):
        lines += ["", f"[{table}]"] if lines else [f"[{table}]"]
        for entry in tables[table]:
            lines += _described(entry.help)
            value = given.get(entry.name, entry.default)
            name = entry.key.rpartition(".")[2]
            if value is None or value == entry.default:
                lines.append(f"# {name} = {_toml(entry.shown)}".rstrip())
            else:
                lines.append(f"{name} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def _described(help: str) -> list[str]:
    """A help text as lines of comments."""
    lines, line = [], "#"
    for word in help.split():
        if len(line) + len(word) > COMMENT_WIDTH:
            lines.append(line)
            line = "#"
        line += f" {word}"
    return [*lines, line] if help else []


def _toml(value: Any) -> str:
    """A value as TOML has it; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, StrEnum):
        value = value.value
    if isinstance(value, Table):
        value = value.content
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # as TOML writes it, and JSON does not
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return json.dumps(str(value), ensure_ascii=False)
