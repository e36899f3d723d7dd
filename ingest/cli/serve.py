"""`lpma serve`: a saved store over HTTP."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from ._config import configured
from ._console import JsonOption, Screen, emit, failing_in_one_line, telling_outages
from ._options import ReadingDevice
from ._pipeline import on_signals
from ._serve_options import SERVING, TLS_AND_NAMES, ServeOptions, serving
from ._targets import Store, graph_facts, open_store


@failing_in_one_line
@configured(ServeOptions, rare=TLS_AND_NAMES, address="serve.address")
def serve(
    store: Store,
    options: ServeOptions,
    address: Annotated[
        str,
        typer.Option(
            "--address",
            metavar="[HOST:]PORT",
            rich_help_panel=SERVING,
            show_default=False,
            help="Where; a port alone binds to loopback, 0 takes a free one. (default: 8080)",
        ),
    ] = "8080",
    device: ReadingDevice = "cpu",
    as_json: JsonOption = False,
) -> None:
    """Serve a saved store over HTTP, with the live page, until Ctrl-C or SIGTERM.

    Nothing of it can be changed: `lpma ingest --serve` serves a stream."""
    access = options.access(address, "--address")
    opened = open_store(Path(store), device)
    from ..service.context import Context
    from ..service.stored import StoredGraph

    stopped = threading.Event()
    graph, title = opened.graph, Path(store).absolute().name
    with Screen() as screen, StoredGraph(graph) as stored, on_signals(lambda *_: stopped.set()):
        context = Context(stored.requests, graph, title=title)
        with telling_outages(), serving(context, address, access) as service:
            screen.say(f"{title} is served at {service.url} (Ctrl-C stops it)")
            if as_json:
                emit({"url": service.url, "store": str(opened.path), **graph_facts(graph)})
                sys.stdout.flush()  # it is waited for, and more does not come
            stopped.wait()
