"""A stream over the embedded log, to be killed at places of its code: started or resumed, and
ended by a checkpoint."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import ingest
from ingest import Pipeline, SqliteLog
from ingest.state import checkpointer
from ingest.state.checkpoint import State
from ingest.state.checkpointer import Checkpointer
from ingest.state.directory import checkpoint_numbers
from tests.support.kills import Ended, Place, run
from tests.support.stream_model import SavedModel

OPTIONS: dict[str, Any] = {
    "poll_records": 9,
    # Batches close by size and checkpoints are due by it, in every run alike, however slow.
    "batch_interval": 1e6,
    "query_interval": 1e6,
    "checkpoint_interval": 1e6,
    "checkpoint_operations": 40,
}
POINTS = (
    "ingest:SqliteLog.poll_many",
    "ingest.state.journal:Journal.append",
    "ingest.state.journal:Journal.sync",
    "ingest.pipeline.outputs:Outputs.flush",  # dead letters
    "tests.support.stream_model:SavedModel.apply",
    "ingest.pipeline.outputs:Outputs.send",  # replies
    "ingest:SqliteLog.produce_many",
    "ingest.state.checkpointer:Checkpointer.begin",
    "tests.support.stream_model:SavedModel.image",
    "ingest.state.journal:Journal.rotate",
    "ingest.state.directory:CheckpointDirectory.commit",
    "tests.support.stream_model:SavedImage.write",
    "ingest.state.journal:Fence.check",
    "os:write",
    "os:fsync",
    "os:mkdir",
    "os:rename",
    "os:replace",
    "os:unlink",
    "shutil:rmtree",
    "ingest.state.checkpointer:Checkpointer.close",
)


def ingest_all(
    log: Path, checkpoint: Path, batch_size: int, model: type[SavedModel] = SavedModel,
    keep: str = "", **reading: Any,
) -> Pipeline:  # fmt: skip
    """Start, or go on, and end with a checkpoint. Batches of another size each time: those that
    were cut before the crash must not change."""
    source = SqliteLog(log)
    options = {**OPTIONS, "batch_size": batch_size, "keep_checkpoints": keep}
    if ingest.has_checkpoint(checkpoint):
        pipeline = Pipeline.resume(checkpoint, source, load=model.load, **options)
    else:
        pipeline = Pipeline(source, model(predecessors=True), checkpoint, **reading, **options)
    pipeline.run(until="end")
    pipeline.close()
    source.close()
    return pipeline


def in_a_process(log: Path, checkpoint: Path, place: Place | None = None, **reading: Any) -> Ended:
    """The same in a process of its own, in batches of 6."""
    return run(ingest_steadily, log, checkpoint, reading, points=POINTS, place=place)


def ingest_steadily(log: Path, checkpoint: Path, given: dict[str, Any]) -> None:
    make_checkpoints_steady(checkpoint)
    ingest_all(log, checkpoint, 6, **given)


def make_checkpoints_steady(directory: Path) -> None:
    """Have this process take the same checkpoints whenever it runs: each where it is due, after
    waiting for the one under way; and each at a time that follows from its number. They are
    written beside the stream all the same."""
    is_due = Checkpointer.is_due

    def waiting(self: Checkpointer, state: State) -> bool:
        running, self._running = self._running, None
        due = is_due(self, state)
        self._running = running
        if due:
            self.finish()
        return due

    Checkpointer.is_due = waiting  # type: ignore[method-assign]
    taken = max(checkpoint_numbers(directory), default=-1) + 1
    times = count(10**12 + 300 * taken, 300)
    vars(checkpointer)["now_ms"] = times.__next__
