"""The directive `{commands}`: every command of the Typer application, as its `--help` has it; and
`{settings}`: the file of settings that `lpma ingest --write-config` prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


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
    yield f"## {context.command_path}\n"
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


class Commands(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        from ingest.cli import app

        command = typer.main.get_command(app)
        context = typer.Context(command, info_name="lpma")
        lines = [line for each in walk(command, context) for line in markdown(each)]
        text = StringList("\n".join(lines).splitlines(), source="ingest/cli")
        holder = nodes.section()
        holder.document = self.state.document
        self.state.nested_parse(text, 0, holder, match_titles=True)
        return holder.children


class Settings(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        from typer.testing import CliRunner

        from ingest.cli import app

        text = CliRunner().invoke(app, ["ingest", "--write-config"], catch_exceptions=False).stdout
        return [nodes.literal_block(text, text, language="toml")]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("commands", Commands)
    app.add_directive("settings", Settings)
    return {"parallel_read_safe": True}
