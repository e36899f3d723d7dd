"""A stream from its producer to analyses, on one machine: what `lpma demo` and `make demo` run.

    1. a producer writes a stream of edges, deletions among them, into an embedded log, at a pace
    2. a worker, in a process of its own, ingests it with checkpoints (`worker.py`)
    3. a client asks queries through the same log and waits for the replies
    4. a second process keeps a sliding window of the stream, and tells alerts of it (`watch.py`)
    5. both are killed with SIGKILL half-way; others resume where they died
    6. the same log is ingested once more without interruption: state, replies and results must be
       equal; and so must be a copy that follows the edge feed which the workers published
    7. the graph is analysed (`figures.py`): who is in its core, and who connects it; with pictures

The stream is sx-mathoverflow if LPMA_DATA or the cache has it, else a made-up town's (`town.py`).
Neither deletes anything, so deletions of earlier edges, drawn from a seed, are mixed in, as the
output says. Raises DemoError if a result is wrong: a demo that fails must not look like a success.

What is compiled is compiled while 1 to 5 go on, and before anything is measured, in 6 and 7.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import lpma
from algorithms.diversity.network import ego_network
from lpma.file.atomic import atomic_write

from .. import plots
from ..feed.follower import follow
from ..pipeline.pipeline import Pipeline
from ..plots import run_log
from ..plots.ego import plot_ego
from ..sources.sqlite.log import SqliteLog
from ..types import Reply
from . import watch
from .figures import Figures, called, figures, who
from .live import live_run, same_replies
from .stream import DemoStream, Progress, Tell, choose_stream
from .warm_up import WarmUp
from .worker import DemoError, Files, new_graph

PRODUCE_S = 10.0  # how long the stream takes to be written
PLOT_BATCH = 2000  # operations a batch of the uninterrupted run, whose latency is plotted
SAMPLE = 20_000  # interactions written as csv, to try `lpma load` on


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
    kernels = WarmUp(progress, tell, device)
    kernels.begin()
    try:
        stream = choose_stream(tell, progress, operations, seed)
        facts, live = live_run(files, stream, tell, progress, produce_s, seed, device)
        kernels.wait()
    finally:
        kernels.stop()
    summary = {"stream": stream.called, "generated": stream.generated, **facts}
    again = _Uninterrupted(files, device)
    again.run(len(stream) + len(live), tell, progress)
    summary |= _compare(files, again, live, tell)
    watched = watch.verify(files, again.graph, stream, device)
    tell(
        f"equal: the window, and {watched['results']:,} results ({watched['repeats']:,} of them "
        f"made again after the kill, told once)"
        + "; the first alert agrees with a past view"
        * bool(watched["alerts"])
    )
    summary |= watched
    analysed = _analyse(files, again, stream, tell)
    summary |= {**analysed, "found": [*analysed["found"], *watched["found"]]}
    _write_sample(files.sample, stream)
    shutil.rmtree(files.scratch)
    summary["seconds"] = round(time.perf_counter() - started, 2)
    summary["directory"] = str(out)
    with atomic_write(files.summary) as file:
        file.write(json.dumps(summary, indent=2).encode() + b"\n")
    return summary


# The uninterrupted run, and whether it agrees --------------------------------------------------


class _Uninterrupted:
    """The run that nobody kills: its graph and its replies."""

    def __init__(self, files: Files, device: str) -> None:
        self.files = files
        self.graph = new_graph(device)
        self.replies: dict[str, Reply] = {}

    def run(self, operations: int, tell: Tell, progress: Progress) -> None:
        """Raises DemoError if a record is refused."""
        tell(f"again: the same log without interruption, in batches of {PLOT_BATCH:,}")
        with SqliteLog(self.files.log) as log:
            pipeline = Pipeline(
                log, self.graph, batch_size=PLOT_BATCH,
                replies=lambda reply: self.replies.setdefault(reply.id, reply),
            )  # fmt: skip
            with pipeline, run_log.RunLog(self.files.run, self.graph) as written:

                def on_batch(batch: Any) -> None:
                    written(batch)
                    progress("ingest again", batch.total_operations, operations)

                pipeline.run(until="end", progress=on_batch)
            if pipeline.outputs.rejected:
                raise DemoError(f"{pipeline.outputs.rejected} records were refused")


def digest(s: lpma.Snapshot) -> str:
    """SHA-256 over the names, dtypes and bytes of a snapshot's arrays, and what its rows go by."""
    result = hashlib.sha256()
    for name, array in s.to_numpy().items():
        result.update(f"{name} {array.dtype.str} {len(array)}\n".encode())
        result.update(np.ascontiguousarray(array).data)
    result.update(json.dumps(names_of(s).tolist()).encode())
    return result.hexdigest()


def names_of(s: lpma.Snapshot) -> Any:
    rows = np.arange(s.num_rows)
    return rows if s.names is None else s.names.of(rows)


def _compare(
    files: Files, again: _Uninterrupted, live: dict[str, Reply], tell: Tell
) -> dict[str, Any]:
    interrupted = lpma.Graph.load(files.graph, again.graph.device)
    interrupted.check()
    again.graph.check()
    once, twice = digest(again.graph.snapshot()), digest(interrupted.snapshot())
    if once != twice:
        raise DemoError(f"the states differ: {once[:16]} uninterrupted, {twice[:16]} interrupted")
    if not same_replies(live, again.replies):
        raise DemoError("a reply of the live run differs from the uninterrupted run's")
    tell(f"equal: the state (SHA-256 {once[:16]}…) and all {len(live):,} replies")
    with SqliteLog(files.log, ["changes"]) as feed, follow(feed, device=again.graph.device) as copy:
        copy.run("end")
    graph = copy.graph
    assert isinstance(graph, lpma.Graph)
    if (graph.version, digest(graph.snapshot())) != (interrupted.version, twice):
        raise DemoError("a copy that follows the workers' edge feed has come to another state")
    tell(f"equal: a copy that followed their edge feed through {graph.version:,} versions")
    return {
        "same_state": True, "same_replies": True, "same_copy": True, "digest": once,
        "versions": graph.version,
    }  # fmt: skip


# What is done with it --------------------------------------------------------------------------


def _analyse(
    files: Files, again: _Uninterrupted, stream: DemoStream, tell: Tell
) -> dict[str, Any]:  # fmt: skip
    tell("snapshot: cores, trusses, triangles and diversity; pictures")
    graph = again.graph
    found = figures(graph)
    about = who(found, stream.circles, stream.names)
    batches = run_log.read_run(files.run)
    title = f"{stream.called}, in batches of {PLOT_BATCH:,} operations"
    plots.plot_latency(batches, files.latency, title)
    _draw_circles(files.circles, found, about["context_names"])
    latency = 1000 * batches["seconds"]
    kept = ("graph", "circles", "results", "latency", "run", "sample", "summary")
    return {
        "device": graph.device,
        "vertices": found.s.num_vertices,
        "edges": found.s.num_edges,
        **found.summary,
        **about,
        "batches": len(latency),
        "batch_operations": PLOT_BATCH,
        "batch_latency_ms": {
            "median": round(float(np.median(latency)), 3),
            "slowest": round(float(latency.max()), 3),
        },
        "operations_per_second": round(float(batches["operations"].sum() / latency.sum() * 1000)),
        "expansions": len(plots.expansions(batches["levels"])),
        "density": round(graph.density, 4),
        "files": {name: str(getattr(files, name)) for name in kept},
    }


def _draw_circles(path: Path, found: Figures, labels: list[str]) -> None:
    owner, number = found.v.row(found.owner), len(found.contexts)
    contexts = [np.array([found.v.row(name) for name in names]) for names in found.contexts]
    title = f"{called(found.owner)}: {number} context{'' if number == 1 else 's'}"
    plot_ego(ego_network(found.s, owner), owner, contexts, found.v[:], path, title, labels)


def _write_sample(path: Path, stream: DemoStream) -> None:
    """The first interactions as csv with a header, as a user's own file might be."""
    rows = stream.columns.rows(0, SAMPLE)
    kept = rows.kind == lpma.Kind.INSERT
    ends = stream.names[rows.src[kept]].tolist(), stream.names[rows.dst[kept]].tolist()
    with atomic_write(path) as file:
        file.write(b"src,dst\n")
        for u, v in islice(zip(*ends, strict=True), SAMPLE):
            file.write(f"{u},{v}\n".encode())
