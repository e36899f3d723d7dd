"""The commands of `lpma`, put together.

Every command has `--json`: one JSON document on stdout and nothing else there. Progress and
messages go to stderr. Exit status: 0; 1 if it failed, after one line on stderr that says why; 2 on
bad usage; 130, after one line, if Ctrl-C ended it. A command imports the libraries it needs when it
runs.
"""

from __future__ import annotations

from typing import Annotated

import typer

from . import checkpoint, cluster, plot, query, run
from ._typer import App
from .compile import compile
from .demo import demo
from .doctor import doctor
from .export import export
from .info import info
from .ingest import ingest
from .load import load
from .repartition import repartition
from .serve import serve

app = App(
    name="lpma",
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


app.command("demo")(demo)
app.command("load")(load)
app.command("ingest")(ingest)
app.command("serve")(serve)
app.command("repartition")(repartition)
app.add_typer(query.app, name="query")
app.command("export")(export)
app.add_typer(checkpoint.app, name="checkpoint")
app.add_typer(run.app, name="run")
app.add_typer(cluster.app, name="cluster")
app.command("info")(info)
app.command("compile")(compile)
app.add_typer(plot.app, name="plot")
app.command("doctor")(doctor)
