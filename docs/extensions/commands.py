"""Pages of the reference that are made of declarations, before Sphinx reads the others:

generated/commands/*.md   a page a command of the Typer application, as its `--help` has it
generated/commands.md     their list
generated/settings.md     every setting that a file for `--config` may hold
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from sphinx.application import Sphinx
from typer.testing import CliRunner

# A setting as a written file has it: what it means, then its key and its default.
_SETTING = re.compile(r"((?:^# .*\n)+?)^# (\w+) =(.*)\n", re.MULTILINE)
_DEFAULT = re.compile(r" ?\(default: ([^()]+)\)$")  # of the command line, where a file has none


def walk(command: Any, context: typer.Context) -> Iterator[typer.Context]:
    """A context for each command that does something, in the order of the application."""
    if hasattr(command, "list_commands"):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            yield from walk(below, type(context)(below, parent=context, info_name=name))
    else:
        yield context


def markdown(context: typer.Context) -> Iterator[str]:
    command = context.command
    usage = command.get_usage(context).removeprefix("Usage: ").strip()
    yield f"# {context.command_path}\n"
    yield "```text\n" + " ".join(usage.split()) + "\n```\n"
    yield (command.help or "") + "\n"
    for parameter in command.get_params(context):
        if parameter.name == "help":
            continue
        record = parameter.get_help_record(context)  # None: hidden
        if record is not None:
            what, said = record
            yield f"`{what}`\n: {escaped(' '.join(said.split())) or '–'}\n"


def escaped(text: str) -> str:
    """Help is plain text: what Markdown would read as markup is marked as text."""
    for character in "\\*_[]<$":
        text = text.replace(character, "\\" + character)
    return text


def write_commands(root: typer.Context, folder: Path) -> None:
    """A page a command; those of one subject, as `lpma query`, share one."""
    (folder / "commands").mkdir(parents=True, exist_ok=True)
    rows, entries = [], []
    for name in root.command.list_commands(root):  # type: ignore[attr-defined]
        command = root.command.get_command(root, name)  # type: ignore[attr-defined]
        context = typer.Context(command, parent=root, info_name=name)
        pages = ["\n".join(markdown(each)) for each in walk(command, context)]
        about = (command.help or "").split("\n\n")[0]
        if hasattr(command, "list_commands"):
            below = [re.sub("^# ", "## ", page) for page in pages]
            pages = [f"# lpma {name}\n\n{escaped(about)}\n", *below]
        write(folder / "commands" / f"{name}.md", "\n".join(pages))
        place = f"generated/commands/{name}"
        entries.append(place)
        rows.append(f"| {{doc}}`lpma {name} <{place}>` | {escaped(' '.join(about.split()))} |")
    toctree = ["```{toctree}", ":hidden:", "", *entries, "```"]
    write(folder / "commands.md", "\n".join(["| | |", "| --- | --- |", *rows, "", *toctree]))


def settings_of(root: typer.Context) -> dict[str, dict[str, tuple[str, str, list[str]]]]:
    """table → key → (default, meaning, the commands that read it)."""
    found: dict[str, dict[str, tuple[str, str, list[str]]]] = {}
    for context in walk(root.command, root):
        if not any(p.name == "write_config" for p in context.command.get_params(context)):
            continue
        words = context.command_path.split()[1:]
        given = [*words, "--write-config"]
        text = CliRunner().invoke(_app(), given, catch_exceptions=False).stdout
        for table, content in re.findall(r"^\[(\S+)\]\n(.*?)(?=^\[|\Z)", text, re.S | re.M):
            keys = found.setdefault(table, {})
            for about, key, default in _SETTING.findall(content):
                meaning = " ".join(about.replace("\n# ", " ").removeprefix("# ").split())
                keys.setdefault(key, (default.strip(), meaning, []))[2].append(" ".join(words))
    return found


def write_settings(root: typer.Context, folder: Path) -> None:
    lines = []
    for table, keys in settings_of(root).items():
        lines += [f"## {table}", "", "| key | default | meaning | read by |"]
        lines.append("| --- | --- | --- | --- |")
        for key, (default, meaning, commands) in keys.items():
            said = escaped(_DEFAULT.sub("", meaning)).replace("|", "\\|")
            found = _DEFAULT.search(meaning)
            shown = f"`{default}`" if default else escaped(found[1]) if found else ""
            lines.append(f"| `{key}` | {shown} | {said} | {', '.join(commands)} |")
        lines.append("")
    write(folder / "settings.md", "\n".join(lines))


def write(path: Path, text: str) -> None:
    """Write a page, unless it says the same already: then Sphinx need not read it again."""
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


def _app() -> Any:
    from ingest.cli import app

    return app


def write_pages(app: Sphinx) -> None:
    folder = Path(app.srcdir) / "reference" / "generated"
    root = typer.Context(typer.main.get_command(_app()), info_name="lpma")
    write_commands(root, folder)
    write_settings(root, folder)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write_pages, priority=100)  # before the pages are listed
    return {"parallel_read_safe": True}
