"""`lpma demo`: everything from a stream to an analysis, in half a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import _options
from ._console import JsonOption, Screen, emit, failing_in_one_line, show


@failing_in_one_line
def demo(
    out: Annotated[Path, typer.Option(help="The directory for its files.")] = Path("demo-output"),
    operations: Annotated[
        int | None, typer.Option(min=1000, help="Use only this many interactions of the stream.")
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0.0, help="Seconds over which the stream is produced.")
    ] = 12.0,
    seed: Annotated[
        int, typer.Option(min=0, help="The seed of the deletions and the queries.")
    ] = 1,
    device: _options.Device = "auto",
    as_json: JsonOption = False,
) -> None:
    """Stream a graph through the log into the store, kill and resume it, and analyse it.

    Takes half a minute, and up to a minute more after an installation, for compiling."""
    from .. import demo as story

    with Screen() as screen:
        summary = story.run(
            out, screen.say, screen.progress, operations=operations, produce_s=seconds, seed=seed,
            device=device,
        )  # fmt: skip
    if as_json:
        emit(summary)
        return
    show(f"the demo, in {summary['seconds']:.0f} s", _demo_rows(summary))


def _demo_rows(summary: dict[str, Any]) -> dict[str, Any]:
    latency, asked = summary["batch_latency_ms"], summary["query_latency_ms"]
    files = summary["files"]
    contexts = "context" if summary["most_contexts"] == 1 else "contexts"
    return {
        "stream": summary["stream"],
        "device": summary["device"],
        "operations": f"{summary['operations']:,}, {summary['deletions']:,} of them deletions",
        "killed, resumed": f"after {summary['killed_at']:,} operations, "
        f"{summary['replayed']:,} replayed",
        "same state and replies": summary["same_state"] and summary["same_replies"],
        "queries answered": f"{summary['queries']:,} while it ran, median {asked['median']:.0f} ms",
        "graph": f"{summary['vertices']:,} vertices, {summary['edges']:,} edges",
        "batches": f"{summary['batches']:,} of {summary['batch_operations']:,}: median "
        f"{latency['median']:.1f} ms, slowest {latency['slowest']:.1f} ms, "
        f"{summary['expansions']} expansions",
        "throughput": f"{summary['operations_per_second']:,} operations a second",
        "snapshot": f"{summary['snapshot_ms']:.1f} ms",
        "core numbers": f"largest {summary['max_core']:,}, of {summary['max_core_vertices']:,} "
        f"vertices ({summary['core_ms']:.0f} ms)",
        "trusses": f"largest {summary['max_truss']:,}, of {summary['max_truss_edges']:,} "
        f"edges ({summary['truss_ms']:.0f} ms)",
        "triangles": f"{summary['triangles']:,} ({summary['triangles_ms']:.0f} ms)",
        "structural diversity": f"vertex {summary['most_diverse']}: {summary['most_contexts']:,} "
        f"social {contexts} around it ({summary['diversity_ms']:.0f} ms)",
        "plot": files["plot"],
        "snapshot file": files["snapshot"],
        "store": f"{files['graph']} (lpma query successors {files['graph']} 0)",
    }
