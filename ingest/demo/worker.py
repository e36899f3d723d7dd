"""The demo's worker, a process that ingests: it starts or resumes, and runs until all is produced.
What its batches change leaves as an edge feed, in the same log.

It can be killed at any moment: a second one finds what it needs in the directory.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lpma
from lpma.cpu.jit import telling
from lpma.file.atomic import atomic_write

from ..errors import IngestError
from ..pipeline.pipeline import Pipeline
from ..settings import BatchStats
from ..sources.sqlite.log import SqliteLog
from ..state.directory import has_checkpoint

SCRATCH = "scratch"  # a directory, which a demo that succeeds removes
NAMES = {
    "scratch": SCRATCH,
    "log": f"{SCRATCH}/stream.log",
    "checkpoint": f"{SCRATCH}/checkpoint",  # a directory
    "progress": f"{SCRATCH}/worker.progress",  # how many operations are applied
    "resumed": f"{SCRATCH}/resumed.json",  # what a worker that resumed found
    "finished": f"{SCRATCH}/produced",  # made when nothing more will be produced
    "window": f"{SCRATCH}/window",  # the checkpoint directory of the window
    "watched": f"{SCRATCH}/watched.json",  # what its process noted at the end
    "results_again": f"{SCRATCH}/results.jsonl",  # of a replay that nobody kills
    "graph": "graph.lpma",  # the final state
    "results": "results.jsonl",  # of the window: core numbers, alerts
    "run": "run.jsonl",  # of the uninterrupted run
    "sample": "messages.csv",
    "latency": "latency.png",
    "circles": "circles.png",
    "summary": "summary.json",
}
SETTINGS: dict[str, Any] = {
    "batch_size": 10_000,
    "batch_interval": 0.05,
    "checkpoint_operations": 100_000,
}


class DemoError(IngestError):
    """The demo's own checks failed: a bug, or a machine that cannot run it."""


@dataclass(frozen=True)
class Files:
    directory: Path

    def __getattr__(self, name: str) -> Path:
        """files.log, files.graph …: see NAMES."""
        if name not in NAMES:
            raise AttributeError(name)
        return self.directory / NAMES[name]

    @property
    def kept(self) -> list[Path]:
        """What a demo that succeeds leaves."""
        return [self.directory / name for name in NAMES.values() if not name.startswith(SCRATCH)]

    def operations(self) -> int | None:
        """How many operations the worker has applied; None before it is ready."""
        try:
            return int(self.progress.read_text())
        except FileNotFoundError:
            return None

    def note_operations(self, operations: int) -> None:
        """Publish the number by a rename, so that no reader sees half of it."""
        beside = self.scratch / "worker.progress.new"
        beside.write_text(str(operations))
        os.replace(beside, self.progress)

    def clear(self) -> None:
        """Make the directory, and remove from it only what an earlier demo left.
        Raises DemoError if that fails."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            if self.scratch.is_dir():
                shutil.rmtree(self.scratch)
            for path in self.kept:
                path.unlink(missing_ok=True)
            self.scratch.mkdir()
        except OSError as error:
            raise DemoError(
                f"{self.directory} cannot be used ({error}): choose another with --out"
            ) from error


def new_graph(device: str) -> lpma.Graph:
    """The demo's graph; the same for every run, so that states can be compared."""
    return lpma.Graph(predecessors=True, names=True, device=device)


def main(directory: str, device: str = "auto") -> None:
    """Ingest the log in `directory` until all is produced and applied."""
    # Ctrl-C goes to the whole process group; the process that started this one ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    telling.silent = True  # the process that started this one says that it compiles
    files = Files(Path(directory))
    with SqliteLog(files.log) as log:
        if has_checkpoint(files.checkpoint):
            pipeline = Pipeline.resume(
                files.checkpoint, log, device=device, changes=log, **SETTINGS
            )  # fmt: skip
            found = {"operations": pipeline.stats.operations, "replayed": pipeline.stats.replayed}
            with atomic_write(files.resumed) as file:
                file.write(json.dumps(found).encode())
        else:
            graph = new_graph(device)
            pipeline = Pipeline(log, graph, files.checkpoint, changes=log, **SETTINGS)
        with pipeline:

            def on_batch(batch: BatchStats) -> None:
                files.note_operations(batch.total_operations)

            files.note_operations(pipeline.stats.operations)
            pipeline.run(lambda p: files.finished.exists() and p.source.at_end(), on_batch)
            pipeline.run("end", on_batch)
        assert isinstance(pipeline.graph, lpma.Graph)
        pipeline.graph.save(files.graph)
