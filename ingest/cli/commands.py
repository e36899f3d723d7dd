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
from collections.abc import Callable
from typing import Annotated, Any

import typer

from ._typer import App, lazily

COMMANDS = {  # in the order of `lpma --help`, with the first lines of their own
    "demo": "Stream a graph through the log into the store, kill and resume it, and analyse it.",
    "load": "Load a file of edges, a dataset or a generated graph into a saved store.",
    "ingest": "Ingest a stream in batches, answering its queries, with checkpoints and resume.",
    "replica": "Run a read replica: a copy of a graph that follows its edge feed.",
    "serve": "Serve a saved store over HTTP, with the live page, until Ctrl-C or SIGTERM.",
    "repartition": "Write a stream to the partitions of its vertices' owners, as a cluster reads "
    "it.",
    "export": "Export a snapshot: a table of its edges, its matrix, or a graph to be drawn.",
    "info": "Describe a store, a checkpoint or a dataset.",
    "compile": "Compile all kernels now, on all cores, so that nothing waits for a compiler later.",
    "doctor": "Say what this machine can do: libraries, threads, GPU, Kafka, memory, directories.",
    "query": "Ask a saved store, a checkpoint or a running pipeline for edges, neighbours, "
    "degrees.",
    "checkpoint": "List, verify and prune the checkpoints of a directory.",
    "run": "Run an algorithm on a graph.",
    "cluster": "Run a graph in shards, on this machine or on Ray, and query it.",
    "plot": "Draw a run's latency and density, figures over time, or a graph's degrees.",
}


def _made(name: str) -> Callable[[], Any]:
    def make() -> Any:
        module = importlib.import_module(f".{name}", __package__)
        return getattr(module, "app", None) or getattr(module, name)

    return make


app = App(
    name="lpma",
    cls=lazily({name: (help, _made(name)) for name, help in COMMANDS.items()}),
    help="A streaming graph store: ingest edge streams, answer queries, export snapshots.",
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
    """A streaming graph store: ingest edge streams, answer queries, export snapshots."""
