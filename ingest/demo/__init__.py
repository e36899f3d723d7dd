"""A stream from its producer to analyses, on one machine: what `lpma demo` and `make demo` run.

    1. a producer writes a stream of edges, deletions among them, into an embedded log, at a pace
    2. a worker, in a process of its own, ingests it with checkpoints (`worker.py`)
    3. a client asks queries through the same log and waits for the replies
    4. the worker is killed with SIGKILL half-way; a second one resumes where it died
    5. the same log is ingested once more without interruption: state and replies must be equal
    6. a snapshot is exported and analysed (`figures.py`), latency is plotted

The stream is sx-mathoverflow if LPMA_DATA or the cache has it, else a generated one. Neither
deletes anything, so deletions of earlier edges, drawn from a seed, are mixed in, as the output
says. Raises DemoError if a result is wrong: a demo that fails must not look like a success.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import lpma
from lpma.batch import Columns
from lpma.files import atomic_write

from .. import datasets, plots, run_log
from ..datasets import generators
from ..pipeline import Pipeline
from ..sources.sqlite.log import SqliteLog
from ..types import Reply
from ..warm_up import warm_up
from .client import same_replies
from .figures import figures
from .live import live_run
from .worker import DemoError, Files, new_graph

STREAM = "sx-mathoverflow"
DELETIONS = 0.05  # share of the operations
PRODUCE_S = 12.0  # how long the stream takes to be written
PLOT_BATCH = 2000  # operations a batch of the uninterrupted run, whose latency is plotted

Tell = Callable[[str], None]
Progress = Callable[[str, int, int | None], None]


def choose_stream(
    tell: Tell, progress: Progress | None = None, operations: int | None = None, seed: int = 1
) -> tuple[str, Columns]:
    """The demo's stream and its name: its first `operations`, or all if None, and deletions."""
    if datasets.find(STREAM) is not None:
        name = STREAM
        stream = datasets.load(STREAM, download=False, progress=progress).columns()
        tell(f"stream: {name}, {len(stream):,} interactions between users (SNAP)")
    else:
        name = "generated power-law interactions"
        stream = generators.interactions(25_000, 500_000, deletions=0.0, seed=seed)
        tell(f"stream: {STREAM} is not in LPMA_DATA, so {len(stream):,} {name} instead")
    if operations is not None:
        stream = stream.rows(0, min(operations, len(stream)))
    mixed = generators.with_deletions(stream, DELETIONS, seed=seed)
    tell(
        f"        it deletes nothing: {len(mixed) - len(stream):,} deletions of earlier edges are "
        f"mixed in (seed {seed})"
    )
    return name, mixed


def run(
    out: Path,
    tell: Tell,
    progress: Progress,
    *,
    operations: int | None = None,
    produce_s: float = PRODUCE_S,
    seed: int = 1,
    device: str = "auto",
) -> dict[str, Any]:
    """Run the demo, with its files in `out`. Returns the summary that summary.json holds.

    tell: prints a line. progress: called with (what, done, total). operations: use only this many
    of the stream. produce_s: seconds over which it is produced. device: where the graphs live.
    Raises DemoError."""
    started = time.perf_counter()
    files = Files(out)
    files.clear()
    warm_up(progress, device)  # so that no latency shown is the compiler's
    name, stream = choose_stream(tell, progress, operations, seed)
    facts, live = live_run(files, stream, tell, progress, produce_s, seed, device)
    summary = {"stream": name, "generated": name != STREAM, **facts}
    graph, replies = _uninterrupted_run(files, len(stream) + len(live), tell, progress, device)
    summary |= _compare(files, graph, replies, live, tell)
    title = f"{name}, in batches of {PLOT_BATCH:,} operations"
    summary |= _analyse(files, graph, title, tell)
    summary["seconds"] = round(time.perf_counter() - started, 2)
    summary["directory"] = str(out)
    with atomic_write(files.summary) as file:
        file.write(json.dumps(summary, indent=2).encode() + b"\n")
    return summary


# The uninterrupted run, and whether it agrees --------------------------------------------------


def _uninterrupted_run(
    files: Files, operations: int, tell: Tell, progress: Progress, device: str
) -> tuple[lpma.Graph, dict[str, Reply]]:
    tell(f"again: the same log without interruption, in batches of {PLOT_BATCH:,}")
    replies: dict[str, Reply] = {}
    graph = new_graph(device)
    with SqliteLog(files.log) as log:
        pipeline = Pipeline(
            log,
            graph,
            batch_size=PLOT_BATCH,
            replies=lambda reply: replies.setdefault(reply.id, reply),
        )
        with pipeline, run_log.RunLog(files.run, graph) as written:

            def on_batch(batch: Any) -> None:
                written(batch)
                progress("ingest again", batch.total_operations, operations)

            pipeline.run(until="end", progress=on_batch)
        if pipeline.outputs.rejected:
            raise DemoError(f"{pipeline.outputs.rejected} records were refused")
    return graph, replies


def digest(s: lpma.Snapshot) -> str:
    """SHA-256 over the names, dtypes and bytes of a snapshot's arrays."""
    result = hashlib.sha256()
    for name, array in s.to_numpy().items():
        result.update(f"{name} {array.dtype.str} {len(array)}\n".encode())
        result.update(np.ascontiguousarray(array).data)
    return result.hexdigest()


def _compare(
    files: Files,
    graph: lpma.Graph,
    replies: dict[str, Reply],
    live: dict[str, Reply],
    tell: Tell,
) -> dict[str, Any]:
    interrupted = lpma.Graph.load(files.graph, graph.device)
    interrupted.check()
    graph.check()
    once, twice = digest(graph.snapshot()), digest(interrupted.snapshot())
    if once != twice:
        raise DemoError(f"the states differ: {once[:16]} uninterrupted, {twice[:16]} interrupted")
    if not same_replies(live, replies):
        raise DemoError("a reply of the live run differs from the uninterrupted run's")
    tell(f"equal: the state (SHA-256 {once[:16]}…) and all {len(live):,} replies")
    return {"same_state": True, "same_replies": True, "digest": once}


# What is done with it --------------------------------------------------------------------------


def _analyse(files: Files, graph: lpma.Graph, title: str, tell: Tell) -> dict[str, Any]:
    tell("snapshot: exported; computing cores, trusses, triangles and diversity, drawing")
    started = time.perf_counter()
    s = graph.snapshot()
    taken = time.perf_counter()
    s.write_npz(files.snapshot)
    written = time.perf_counter()
    batches = run_log.read_run(files.run)
    plots.plot_latency(batches, files.plot, title)
    latency = 1000 * batches["seconds"]
    return {
        "device": graph.device,
        "vertices": s.num_present,
        "rows": s.num_rows,
        "edges": s.num_edges,
        "snapshot_ms": round(1000 * (taken - started), 2),
        "export_ms": round(1000 * (written - taken), 2),
        **figures(s),
        "batches": len(latency),
        "batch_operations": PLOT_BATCH,
        "batch_latency_ms": {
            "median": round(float(np.median(latency)), 3),
            "slowest": round(float(latency.max()), 3),
        },
        "operations_per_second": round(float(batches["operations"].sum() / latency.sum() * 1000)),
        "expansions": len(plots.expansions(batches["levels"])),
        "density": round(graph.density, 4),
        "files": {
            "snapshot": str(files.snapshot),
            "plot": str(files.plot),
            "run": str(files.run),
            "graph": str(files.graph),
            "checkpoint": str(files.checkpoint),
            "log": str(files.log),
        },
    }
