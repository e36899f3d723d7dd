"""`--config stream.toml`: a command's options from a file; `--write-config` makes one, and `--set
KEY=VALUE` says one key of it.

    [kafka]
    servers = "broker:9092"
    topics = ["updates", "queries"]

    [kafka.settings]                       # by their names in kafka-python
    sasl_plain_password = "${PASSWORD}"

    [checkpoints]
    directory = "state"

Each option of a command has a key in a table here, and what is rarely set has nothing but that.
Several commands read the same file, each the keys that it knows. An option wins over `--set`, and
that over the file. Paths are relative to the file's folder.

Where an option stands is declared with it (`key`); its type, limits and help are those of the
option, or of the setting in ingest/settings.py. A value is converted by msgspec, so that a message
names the key and what was expected.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import math
import re
import shlex
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from textwrap import wrap
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import typer
from typer.models import ParameterInfo

from lpma.file.atomic import atomic_write

from ..errors import PipelineError
from ..fields import FieldsError, kinds_of_text
from ..settings import Settings
from ..types import QUERIES, UPDATES
from ._targets import STDIN
from ._typer import Command, hints_of, option_of, sharing, showing

MEMORY = "stream.toml"  # in the directory of checkpoints: how its stream was last read
# What it keeps: tables and keys, but for what begins a stream. The rest is for one run alone.
REMEMBERED = (
    "source.path", "kafka", "registry", "file", "records", "fields", "graph", "batches", "results",
    "changes", "checkpoints.interval", "checkpoints.operations", "checkpoints.keep",
    "outputs.reply_topics", "outputs.dead_letter_topic",
)  # fmt: skip
BEGINS = "graph.from_store"
SOURCE, SERVERS, TOPICS = "source.path", "kafka.servers", "kafka.topics"
CONFIG, SET = "--config", "--set"
COMMENT_WIDTH = 90
NAMES = "records.names"  # what --ids said, until the next release
_NUMBERED = re.compile(r"\[(\d+)\](.*)")
_UNKNOWN = re.compile("Object contains unknown field `(.*)`")
_GIVEN = ("COMMANDLINE", "ENVIRONMENT")  # sources of a parameter
# Of two tables or keys, the one that the command line names leaves no room for the other.
_EITHER = (
    ("source.path", "kafka"), ("results.topic", "results.file"), ("changes.topic", "changes.file"),
)  # fmt: skip

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        CONFIG, metavar="FILE", show_default=False,
        help="Take options from this TOML file; those given here win. See --write-config.",
    ),
]  # fmt: skip
# Of which `--set` gives as its example the first that a command knows.
EXAMPLES = "records.late=reject", "checkpoints.interval=300", "serve.insecure=true"
WriteConfig = Annotated[
    bool,
    typer.Option(
        "--write-config", show_default=False,
        help="Print the file that says what this command line says, with all other settings as "
        "comments, and do nothing else.",
    ),
]  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A key of the file."""

    key: str  # "table.name"
    name: str  # of the parameter that takes it
    kind: Any  # its type, as msgspec reads it
    help: str
    default: Any
    check: Callable[[Any], Any] | None = None  # what the option does; raises typer.BadParameter
    is_table: bool = False  # it is a `Table`
    shown: Any = None  # the default that a written file shows
    options: tuple[str, ...] = ()  # spellings of the option that says the same


@dataclass(frozen=True)
class Table:
    """A table of the file that somebody else knows how to read."""

    content: dict[str, Any]
    path: Path  # of the file
    key: str


# Modules with keys.
_DECLARING = "._options", "._ingest_options", "._serve_options", ".cluster._options"


def keys_of(kind: type[Any]) -> dict[str, str]:
    """Where the fields of a dataclass of options stand in the file. One without a key is for the
    command line alone."""
    return {f.name: f.metadata["key"] for f in fields(kind) if f.metadata.get("key")}


def configured(
    *kinds: type[Any], rare: Sequence[str] = (), **keys: str
) -> Callable[[Command], Command]:
    """A command that shares the options of these dataclasses (`sharing`), and takes them from a
    file, too. rare: fields that are no options of this command. keys: where its own parameters
    stand in the file. A command with a parameter `remember` is given a function to call once its
    checkpoints are there; a later one that is given their directory, and no other source, goes on
    alike."""

    def share(command: Command) -> Command:
        for kind in reversed(kinds):
            command = sharing(kind, rare)(command)
        own = inspect.signature(command)
        remembers = "remember" in own.parameters
        known_keys = {*keys.values(), *(key for kind in kinds for key in keys_of(kind).values())}

        @functools.wraps(command)
        def wrapped(
            context: typer.Context, config: Path | None = None, said: list[str] | None = None,
            write_config: bool = False, **given: Any,
        ) -> None:  # fmt: skip
            if config is None and not write_config and not said and not remembers:
                command(**given)
                return
            known = entries(kinds, keys, own)
            wins = {name for name in given if _source(context, name) in _GIVEN}
            found = {} if config is None else _from_file(config, known, wins)
            found |= _set_here(said or (), known, found)
            given |= {name: value for name, value in found.items() if name not in wins}
            if remembers:
                known_here = {key: entry for key, entry in known.items() if _is_remembered(key)}
                given = _recalled(
                    known_here, given, wins | found.keys(), begins=write_config,
                    in_file=config is not None,
                )  # fmt: skip
                given["remember"] = functools.partial(_remember, known_here, dict(given))
            if write_config:
                typer.echo(_written(known, given), nl=False)
                return
            with _naming_keys(config, known, found.keys() - wins):
                command(**given)

        ours = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
            )
            for name, default, kind in (
                ("context", inspect.Parameter.empty, typer.Context), ("config", None, ConfigFile),
                ("said", None, _said(known_keys)), ("write_config", False, WriteConfig),
            )
        ]  # fmt: skip
        wrapped.moved = _moved(kinds, rare)  # type: ignore[attr-defined]
        shown = [p for name, p in own.parameters.items() if name != "remember"]
        return showing(wrapped, [*shown, *ours])

    return share


def _said(known: Collection[str]) -> Any:
    """The annotation of `--set` of a command that knows these keys."""
    example = next(each for each in EXAMPLES if each.partition("=")[0] in known)
    return Annotated[
        list[str] | None,
        typer.Option(
            SET, metavar="KEY=VALUE", show_default=False,
            help=f"One setting of such a file, as {example}; may be repeated.",
        ),
    ]  # fmt: skip


@contextmanager
def _naming_keys(
    config: Path | None, known: Mapping[str, Entry], found: Collection[str]
) -> Iterator[None]:
    """Within, what is wrong with the option of a parameter that was `found` in a file is said of
    its key."""
    try:
        yield
    except typer.BadParameter as error:
        for entry in known.values():
            if config is not None and entry.name in found and error.param_hint in entry.options:
                raise _wrong(config, f"{entry.key}: {error.message}") from None
        raise


def _moved(kinds: Sequence[type[Any]], rare: Sequence[str]) -> dict[str, str]:
    """The options that a command lacks, and the key of each."""
    found: dict[str, str] = {}
    for kind in kinds:
        for name, hint in hints_of(kind).items():
            options = option_of(hint)
            if name in rare or options is None:
                for option in options or (f"--{name.replace('_', '-')}",):
                    found |= dict.fromkeys(option.split("/"), keys_of(kind).get(name, NAMES))
    return found


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
        hints = hints_of(kind)
        places = keys_of(kind)
        for f in fields(kind):
            if f.name in places:
                entry = _entry(places[f.name], f.name, hints[f.name], f.default, f.metadata)
                found[entry.key] = entry
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
    if (in_file := about.get("in_file")) is not None:
        kind = in_file
    if option.min is not None:
        number = next(part for part in (kind, *get_args(kind)) if part in (int, float))
        kind = Annotated[number, msgspec.Meta(ge=option.min)]
    check = option.parser or getattr(option, "callback", None)
    options = option_of(hint) or ()
    shown = default or getattr(Settings, name, None) or default
    return Entry(key, name, kind, option.help or "", default, check, False, shown, options)


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


def _set_here(
    said: Sequence[str], known: Mapping[str, Entry], given: Mapping[str, Any]
) -> dict[str, Any]:
    """The parameters that KEY=VALUE give; a key of a `Table` is added to the one that is given. A
    value is TOML, or else text. Raises typer.BadParameter."""
    found: dict[str, Any] = {}
    for text in said:
        key, equals, raw = (part.strip() for part in text.partition("="))
        table, _, last = key.rpartition(".")
        entry = known.get(key) or known.get(table)
        if not equals:
            raise _bad(f"{text}: expected KEY=VALUE", SET)
        if entry is None or (entry.key != key and not entry.is_table):
            raise _bad(f"{text}: no such setting{_nearest(key, list(known))}", SET)
        try:
            value = tomllib.loads(f"value = {raw}")["value"]
        except tomllib.TOMLDecodeError:
            value = raw
        kinds = (entry.kind, *get_args(entry.kind))
        if entry.key != key:
            before = found.get(entry.name) or given.get(entry.name) or Table({}, Path(), entry.key)
            found[entry.name] = replace(before, content={**before.content, last: value})
            continue
        if str in kinds and not isinstance(value, str | list | dict):
            value = raw
        elif isinstance(value, str) and any(get_origin(kind) is list for kind in kinds):
            value = [value]
        found[entry.name] = _value(Path(), entry, value)
    return found


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
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
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
    return f": the {'tables are' if len(tables) > 1 else 'table is'} {', '.join(tables)}"


def _value(path: Path, entry: Entry, value: Any) -> Any:
    """The value of a key as its option has it. Raises typer.BadParameter."""
    takes_text = str in (entry.kind, *get_args(entry.kind))
    if takes_text and isinstance(value, list) and all(isinstance(part, str) for part in value):
        value = ",".join(value)  # of an option that takes A,B,…
    elif takes_text and type(value) is int:
        value = str(value)  # a port, a width, a column's number
    is_list = any(get_origin(kind) is list for kind in (entry.kind, *get_args(entry.kind)))
    if is_list and value == []:
        raise _wrong(path, f"{entry.key}: names nothing: give one at least, or leave it out")
    value = _with_kinds(path, entry.key, value)
    try:
        found = msgspec.convert(value, entry.kind, dec_hook=functools.partial(_path, path.parent))
        found = Table(found, path, entry.key) if entry.is_table else found
        return found if entry.check is None else entry.check(found)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        key = entry.key + _by_name(value, place.rstrip("`"))
        if isinstance(error.__cause__, FieldsError) and error.__cause__.field:
            key += f".{error.__cause__.field}"
        if unknown := _UNKNOWN.fullmatch(what):
            known = [name for kind in _structs(entry.kind) for name in kind.__struct_fields__]
            hint = _nearest(unknown[1], known)
            raise _wrong(path, f"{key}.{unknown[1]}: no such setting{hint}") from None
        what = what[:1].lower() + what[1:].replace(" | null", "")
        if what.startswith("invalid enum value"):
            of = {n: hint for s in _structs(entry.kind) for n, hint in get_type_hints(s).items()}
            words = _words(of.get(key.rpartition(".")[2], entry.kind))
            what += f": expected one of {', '.join(words)}"
        raise _wrong(path, f"{key}: {what}") from None
    except PipelineError as error:
        raise _wrong(path, f"{entry.key}: {error}") from None
    except typer.BadParameter as error:
        raise _wrong(path, f"{entry.key}: {error.message}") from None


def _by_name(value: Any, place: str) -> str:
    """A place within a value, where the number of a table in a list, from 0, gives way to the name
    that the table has; that of anything else counts from 1."""
    found = _NUMBERED.fullmatch(place)
    if found is None or not isinstance(value, list) or int(found[1]) >= len(value):
        return place
    part = value[int(found[1])]
    name = part.get("name") if isinstance(part, dict) else None
    if not (isinstance(name, str) and name):
        name = f"number {int(found[1]) + 1}"
    return f"[{name}]{found[2]}"


def _with_kinds(path: Path, place: str, value: Any) -> Any:
    """A value, in which `kinds` of mappings of fields, where they are written as an option has
    them, are tables. Raises typer.BadParameter."""
    if isinstance(value, list):
        return [
            _with_kinds(path, place + _by_name(value, f"[{at}]"), part)
            for at, part in enumerate(value)
        ]
    if isinstance(value, dict):
        return {key: _with_kinds(path, f"{place}.{key}", its) for key, its in value.items()}
    if not (isinstance(value, str) and place.endswith(".kinds")):
        return value
    try:
        return kinds_of_text(value)
    except FieldsError as error:
        raise _wrong(path, f"{place}: {error}") from None


def _structs(kind: Any) -> Iterator[type[msgspec.Struct]]:
    """The structs in a type, and in their fields."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind
    parts = get_type_hints(kind).values() if hasattr(kind, "__struct_fields__") else get_args(kind)
    for part in parts:
        yield from _structs(part)


def _words(kind: Any) -> list[str]:
    """What an option of a few words takes."""
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    parts = get_args(kind)[:1] if get_origin(kind) is Annotated else get_args(kind)
    return [word for part in parts for word in _words(part)]


def _path(folder: Path, kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str) and value:
        return Path(value) if value == STDIN else folder / value
    raise ValueError("Expected the name of a file")


def _wrong(path: Path, text: str) -> typer.BadParameter:
    """path: of the file; that of no file for what `--set` says."""
    return _bad(f"{path}: {text}") if path.name else _bad(text, SET)


def _bad(text: str, option: str = CONFIG) -> typer.BadParameter:
    return typer.BadParameter(text, param_hint=option)


def all_keys() -> list[str]:
    """Every key that some command knows, table by table."""
    keys = {"source.path", "cluster.shards"}
    for name in _DECLARING:
        module = importlib.import_module(name, __package__)
        for kind in filter(is_dataclass, vars(module).values()):
            keys |= set(keys_of(kind).values())  # type: ignore[arg-type]
    return sorted(keys)


# -- what a stream was last run with ---------------------------------------------------------------


def _is_remembered(key: str) -> bool:
    return key != BEGINS and any(_is_of(key, place) for place in REMEMBERED)


def _recalled(
    known: Mapping[str, Entry], given: dict[str, Any], said: Collection[str],
    *, begins: bool, in_file: bool,
) -> dict[str, Any]:  # fmt: skip
    """The parameters of a command that names the directory of its checkpoints, and no source or
    that of last time: what is not `said` is as it was then. What is said, and differs, is told;
    where the source is named, so is what is taken from last time, for nobody may know of it.

    A command that names another source says everything itself, and so does one with a file of
    settings that names a source (`in_file`: there is a file). begins: there need be no last time.
    Raises typer.BadParameter."""
    directory = given.get("checkpoint")
    named = any(given.get(known[key].name) is not None for key in (SOURCE, SERVERS))
    if directory is None or (named and in_file):
        return given
    path = directory / MEMORY
    if not path.is_file():
        if begins or named:
            return given
        what = "does not say how its stream is read" if directory.exists() else "does not exist"
        hint = "give what is read, a SOURCE or --kafka"
        raise _bad(f"the directory {directory} {what}: {hint}", "--checkpoint")
    before = _from_file(path, known, set())
    if named:
        if not _is_same_source(known, given, before):
            return given
        said = set(said) - {known[SOURCE].name, known[SERVERS].name}
        if all(isinstance(topic, str) for topic in given.get(known[TOPICS].name) or ()):
            said -= {known[TOPICS].name}  # the same ones; how each is read was said last time
    said_keys = {e.key for e in known.values() if e.name in said and not _is_of(e.key, "kafka")}
    taken = {
        entry.name: before[entry.name]
        for entry in known.values()
        if entry.name in before
        and entry.name not in said
        and not _is_excluded(entry.key, said_keys)
    }
    if not given.get("log_json"):
        _tell_differences(known, before, given | taken, {*said, *before})
        if named:
            _tell_taken(known, taken, given)
    return given | taken


def _is_same_source(
    known: Mapping[str, Entry], given: Mapping[str, Any], before: Mapping[str, Any]
) -> bool:
    """Whether two commands read the same file, or the same topics of the same log or brokers.
    Topics that are not given are those of before."""

    def read(values: Mapping[str, Any]) -> tuple[Any, ...]:
        path, servers = values.get(known[SOURCE].name), values.get(known[SERVERS].name)
        if path is not None and str(path) != STDIN:
            path = path.resolve()
        topics = values.get(known[TOPICS].name) or before.get(known[TOPICS].name)
        return (
            path and str(path),
            servers and {server.strip() for server in servers.split(",")},
            {getattr(topic, "name", topic) for topic in topics or (UPDATES, QUERIES)},
        )

    return read(given) == read(before)


def _tell_differences(
    known: Mapping[str, Entry], before: Mapping[str, Any], now: Mapping[str, Any],
    names: Collection[str],
) -> None:  # fmt: skip
    """Say which of the parameters called `names` are not as they were."""
    for key, entry in known.items():
        was, then = (values.get(entry.name, entry.default) for values in (before, now))
        if entry.name in names and _absolute(was) != _absolute(then):
            is_now, was_before = _toml(then) or "not said", _toml(was) or "not said"
            typer.echo(f"lpma: {key} is {is_now}, it was {was_before}", err=True)


def _tell_taken(
    known: Mapping[str, Entry], taken: Mapping[str, Any], given: Collection[str]
) -> None:
    """Say in one line what is as last time, by its option where the command has one (`given`: its
    parameters)."""
    said = []
    for key, entry in known.items():
        if entry.name not in taken or key in (SOURCE, SERVERS):
            continue
        value = taken[entry.name]
        values = value if isinstance(value, list) else [value]
        if isinstance(value, Table):
            said.append(key)
        elif entry.name in given and entry.options and all(map(_is_plain, values)):
            said += [f"{max(entry.options, key=len)} {shlex.quote(str(each))}" for each in values]
        else:
            said.append(f"{key} = {_toml(value)}")
    if said:
        typer.echo(f"lpma: as last time: {', '.join(said)}", err=True)


def _is_plain(value: Any) -> bool:
    """Whether an option has it as it is: no flag, and no table."""
    return isinstance(value, str | int | float | Path) and not isinstance(value, bool)


def _remember(known: Mapping[str, Entry], given: Mapping[str, Any]) -> None:
    """Write down how a stream is read. Secrets are only referred to, as in any such file."""
    said = {name: _absolute(value) for name, value in given.items()}
    lines = [line for line in _written(known, said).splitlines() if not line.startswith("#")]
    text = "# How this stream was last run: `lpma ingest -c` with this folder goes on alike.\n"
    with atomic_write(given["checkpoint"] / MEMORY) as file:
        file.write((text + "\n".join(lines) + "\n").encode())


def _absolute(value: Any) -> Any:
    """With paths that mean the same from every folder."""
    if isinstance(value, Path):
        return value if str(value) == STDIN else value.absolute()
    if isinstance(value, Table):
        folder = value.path.parent.absolute()
        paths = {key: str(folder / path) for key, path in value.content.items()
                 if key.endswith("_file") and "${" not in str(path)}  # fmt: skip
        return replace(value, content=value.content | paths)
    return value


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
            lines += wrap(
                entry.help, COMMENT_WIDTH, initial_indent="# ", subsequent_indent="# ",
                break_long_words=False, break_on_hyphens=False,
            )  # fmt: skip
            value = given.get(entry.name, entry.default)
            name = entry.key.rpartition(".")[2]
            if value is None or value == entry.default:
                lines.append(f"# {name} = {_toml(entry.shown)}".rstrip())
            else:
                lines.append(f"{name} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """A value as TOML has it; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, Table):
        value = value.content
    if isinstance(value, msgspec.Struct):
        of = [(each, getattr(value, each.name)) for each in msgspec.structs.fields(type(value))]
        value = {each.name: its for each, its in of if its != each.default and its != {}}
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # as TOML writes it, and JSON does not
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return json.dumps(str(value), ensure_ascii=False)
