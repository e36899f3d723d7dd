"""A stream that is served over HTTP in a process of its own, to be killed at places of its code."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path
from typing import Any, NamedTuple, Self

from ingest import Pipeline, SqliteLog, has_checkpoint
from ingest.service.context import Context
from tests.ingest.service.conftest import start_server
from tests.support.kills import Place, Started
from tests.support.powercut.mutants import acknowledge_at_once
from tests.support.stream_model import SavedModel
from tests.support.waiting import HANGS_S

POINTS = (
    "ingest.service.updates:_Updates._records",
    "ingest.service.writer:UpdateWriter.append",
    "ingest.service.writer:UpdateWriter._write",
    "ingest:SqliteLog.produce_parts",
    "ingest.sources.sqlite.log:bounds_of",  # within the transaction
    "ingest.service.writer:_known",  # synced
    "ingest.service.updates:JSONResponse",  # acknowledged
    "ingest:SqliteLog.poll_many",
    "ingest.state.journal:Journal.append",
    "ingest.pipeline.graph_requests:GraphRequests.moved",
    "tests.support.stream_model:SavedModel.apply",
    "ingest.state.checkpointer:Checkpointer.begin",
    "ingest.state.directory:CheckpointDirectory.commit",
    "os:fsync",
)


class Origin(NamedTuple):
    """What is read: an embedded log, or a topic of a Kafka."""

    log: str
    topic: str = "updates"
    bootstrap: str = ""

    def open(self) -> Any:
        if not self.bootstrap:
            return SqliteLog(self.log)
        from ingest.sources.kafka.source import KafkaSource

        return KafkaSource(self.bootstrap, [self.topic])


def serve(origin: Origin, checkpoint: Path, mutant: bool, pipe: Any) -> None:
    """Start or go on with a stream, serve it, send the URL, and end when the pipe says so."""
    if mutant:
        acknowledge_at_once()
    source = origin.open()
    options: dict[str, Any] = {"batch_interval": 0.005, "checkpoint_operations": 40}
    if has_checkpoint(checkpoint):
        pipeline = Pipeline.resume(checkpoint, source, load=SavedModel.load, **options)
    else:
        graph: Any = SavedModel(predecessors=True)
        pipeline = Pipeline(source, graph, checkpoint, **options)
    context = Context(pipeline.requests, pipeline.graph, pipeline)  # type: ignore[arg-type]
    url, stop = start_server(context)
    pipe.send(url)
    threading.Thread(target=_end_when_told, args=(pipe, pipeline), daemon=True).start()
    pipeline.run()
    stop()
    context.close()
    pipeline.close()
    source.close()


def _end_when_told(pipe: Any, pipeline: Pipeline) -> None:
    pipe.recv()
    pipeline.stop()


class Service:
    """A service in a process of its own, which dies at a place, if one is given."""

    def __init__(
        self, origin: Origin, checkpoint: Path, place: Place | None, mutant: bool = False
    ) -> None:
        self._pipe, other = multiprocessing.Pipe()
        self._process = Started(
            serve, origin, checkpoint, mutant, other, points=POINTS, place=place
        )  # fmt: skip
        other.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.__exit__(*exception)
        self._pipe.close()

    def url(self) -> str | None:
        """Where it serves; None if it died before."""
        assert self._pipe.poll(HANGS_S), "it hangs"
        try:
            found: str = self._pipe.recv()
        except (EOFError, ConnectionResetError):
            return None
        return found

    def died(self) -> bool:
        """Wait until it has ended; whether by being killed."""
        return self._process.wait().killed

    def end(self) -> None:
        self._pipe.send("end")
        assert not self.died()
