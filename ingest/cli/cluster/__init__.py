"""`lpma cluster`: a graph in shards, run until it is stopped, and asked by other processes of the
same host through the socket beside its checkpoints (`ingest/cluster/control.py`)."""

from __future__ import annotations

from .._typer import App
from ._ask import epoch, make_run_algorithm, snapshot, status
from ._run import run

app = App(help="Run a graph in shards, on this machine or on Ray, and ask it.",
          no_args_is_help=True)  # fmt: skip
app.command("run")(run)
app.command("status")(status)
app.command("epoch")(epoch)
app.late_command(
    "run-algorithm",
    "Run an algorithm on all shards, as of a new epoch. One whose shard dies begins again.",
    make_run_algorithm,
)
app.command("snapshot")(snapshot)
