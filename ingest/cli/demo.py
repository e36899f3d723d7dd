"""`lpma demo`: everything from a stream to an analysis, in half a minute."""

from __future__ import annotations

import shlex
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from ..state.vertex_names import word_of
from . import _options
from ._console import JsonOption, Screen, emit, failing_in_one_line, show


@failing_in_one_line
def demo(
    out: Annotated[Path, typer.Option(help="The directory for its files.")] = Path("demo-output"),
    operations: Annotated[
        int | None, typer.Option(min=1000, help="Use, or make, only this many interactions.")
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0.0, help="Seconds over which the stream is produced.")
    ] = 10.0,
    seed: Annotated[
        int, typer.Option(min=0, help="The seed of the town, the deletions and the queries.")
    ] = 1,
    device: _options.Device = "auto",
    as_json: JsonOption = False,
) -> None:
    """Stream a graph through the log into the store, kill and resume it, and analyse it.

    Takes half a minute; a little more after an installation, whose first run compiles."""
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
    for title, lines in (
        ("found", summary["found"]),
        ("what is there now", _kept(summary["files"])),
        ("next", _next_steps(summary, lpma_here())),
    ):
        print(f"\n{title}", *(f"  {line}" for line in lines), sep="\n")


def _demo_rows(summary: dict[str, Any]) -> dict[str, Any]:
    latency, asked = summary["batch_latency_ms"], summary["query_latency_ms"]
    return {
        "stream": summary["stream"],
        "device": summary["device"],
        "operations": f"{summary['operations']:,}, {summary['deletions']:,} of them deletions",
        "killed, resumed": f"after {summary['killed_at']:,} operations, "
        f"{summary['replayed']:,} replayed",
        "same state and replies": summary["same_state"] and summary["same_replies"],
        "a copy by the edge feed": f"the same after {summary['versions']:,} versions",
        "queries answered": f"{summary['queries']:,} while it ran, median {asked['median']:.0f} ms",
        "graph": f"{summary['vertices']:,} vertices, {summary['edges']:,} edges",
        "window": f"of {summary['window']}: {summary['window_edges']:,} edges, "
        f"{summary['window_let_go']:,} let go",
        "alerts": f"{summary['alerts']:,} of {summary['alert']}, each once; "
        f"{summary['repeats']:,} results made again after the kill",
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
        "structural diversity": f"largest {summary['most_contexts']:,} "
        f"({summary['diversity_ms']:.0f} ms)",
    }


def _kept(files: dict[str, str]) -> list[str]:
    """A line for each file that the demo leaves."""
    what = {
        "graph": "the graph, which any command reads",
        "circles": "the vertex with the most contexts, and these",
        "results": "what the window's core numbers did, and the alerts",
        "latency": "how long each batch took, and the density after it",
        "run": "the same in figures",
        "sample": "the beginning of the stream, as a file of your own might look",
        "summary": "all of the above, as JSON",
    }
    width = max(map(len, files.values()))
    return [f"{path:{width}}  {what[name]}" for name, path in files.items()]


def _next_steps(summary: dict[str, Any], lpma: str) -> list[str]:
    """Commands to paste, and where `lpma` is if the shell does not know."""
    directory, files = Path(summary["directory"]), summary["files"]
    store, results = shlex.quote(files["graph"]), shlex.quote(files["results"])
    picture, cores, own = (
        shlex.quote(str(directory / name)) for name in ("top.svg", "cores.png", "messages.lpma")
    )
    steps = [
        f"{lpma} query successors {store} {shlex.quote(word_of(summary['most_diverse']))}",
        f"{lpma} run diversity {store} --top 3 --plot {picture}",
        f"{lpma} plot results {results} {cores}    # the window's largest core",
        f"{lpma} load {shlex.quote(files['sample'])} {own} --names    # or a file of your own",
    ]
    if lpma != "lpma":
        folder = shlex.quote(str(Path(shlex.split(lpma)[0]).parent))
        steps.append(f"source {folder}/activate    # from then on it is `lpma` alone")
    return steps


def lpma_here() -> str:
    """How the shell calls this very program: `lpma` if that finds it, else its path."""
    program = Path(sys.argv[0])
    found = shutil.which("lpma")
    if program.name != "lpma" or (found and Path(found).resolve() == program.resolve()):
        return "lpma"
    with suppress(ValueError):
        program = program.absolute().relative_to(Path.cwd())
    return shlex.quote(str(program))
