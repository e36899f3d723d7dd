"""The commands of `lpma`, put together.

Every command has `--json`: one JSON document on stdout and nothing else there. Progress and
messages go to stderr. Exit status: 0; 1 if it failed, after one line on stderr that says why; 2 on
bad usage; 130, after one line, if Ctrl-C ended it.

A command's module is imported when the command is called, and a command imports the libraries it
needs when it runs: so the list of commands is there at once. A module has a function named after
it, or the application `app` of several commands.
"""

from __future__ import annotations

import importlib
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ._typer import App

COMMANDS = {  # in the order of `lpma --help`, with the first lines of their own
    "demo": "Stream a graph through the log into the store, kill and resume it, and analyse it.",
    "load": "Load a file of edges, a dataset or a generated graph into a saved store.",
    "ingest": "Ingest a stream in batches, answering its queries, with checkpoints and resume.",
    "serve": "Serve a saved store over HTTP, with the live page, until Ctrl-C or SIGTERM.",
    "repartition": "Write a stream to the partitions of its vertices' owners, as a cluster reads "
    "it.",
    "export": "Export a snapshot: a table of its edges, its matrix, or a graph to be drawn.",
    "info": "Say what a store, a checkpoint or a dataset is.",
    "compile": "Compile all kernels now, on all cores, so that nothing waits for a compiler later.",
    "doctor": "Say what this machine can do: libraries, threads, GPU, Kafka, memory, directories.",
    "query": "Ask a saved store, a checkpoint or a running pipeline for edges, neighbours, "
    "degrees.",
    "checkpoint": "List, verify and prune the checkpoints of a directory.",
    "run": "Run an algorithm on a graph.",
    "cluster": "Run a graph in shards, on this machine or on Ray, and ask it.",
    "plot": "Draw a run's latency and density, figures over time, or a graph's degrees.",
}


class _Commands(TyperGroup):
    """Lists COMMANDS, and imports one when it is called."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = {
            name: App.command_class(name=name, callback=None, help=help)
            for name, help in COMMANDS.items()
        }
        self._listing = False

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if self._listing or cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        module = importlib.import_module(f".{cmd_name}", __package__)
        if hasattr(module, "app"):
            found: Any = typer.main.get_group(module.app)
        else:
            alone = App()
            alone.command(cmd_name)(getattr(module, cmd_name))
            found = typer.main.get_command(alone)
        found.name = cmd_name
        return found


app = App(
    name="lpma",
    cls=_Commands,
    help="A streaming graph store: ingest edge streams, ask queries, export snapshots.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        import lpma

        typer.echo(f"lpma {lpma.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """A streaming graph store: ingest edge streams, ask queries, export snapshots."""
