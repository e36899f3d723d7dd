"""`lpma cluster`: a graph in shards, run until it is stopped, and asked by other processes of the
same host through the socket beside its checkpoints (`ingest/cluster/control.py`)."""

from __future__ import annotations

from .._typer import App, lazily
from ._ask import epoch, make_run_algorithm, snapshot, status
from ._run import run

_ALGORITHM = "Run an algorithm on all shards, as of a new epoch. One whose shard dies begins again."

app = App(
    cls=lazily({"run-algorithm": (_ALGORITHM, make_run_algorithm)}), no_args_is_help=True,
    help="Run a graph in shards, on this machine or on Ray, and query it.",
)  # fmt: skip
for _call in (run, status, epoch, snapshot):
    app.command(_call.__name__)(_call)
