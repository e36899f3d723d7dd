"""A stream that is served over HTTP in a process of its own, and killed at places of its code.

A process is forked from one that has imported everything, so that dozens of them take seconds."""

from __future__ import annotations

import asyncio
import functools
import multiprocessing
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ingest import Pipeline, SqliteLog, has_checkpoint
from ingest.interludes import Interludes
from ingest.service import updates, writer
from ingest.service.context import Context
from ingest.service.writer import UpdateWriter
from ingest.sources.sqlite import topics
from ingest.state.checkpointer import Checkpointer
from ingest.state.directory import CheckpointDirectory
from ingest.state.journal import Journal
from tests.ingest.service.conftest import start_server
from tests.support.compiled import IMPORTED_LATE
from tests.support.powercut.mutants import acknowledge_at_once
from tests.support.stream_model import SavedModel

POINTS: dict[str, tuple[Any, str]] = {
    "receive": (updates._Updates, "_records"),
    "queue": (UpdateWriter, "append"),
    "group": (UpdateWriter, "_write"),
    "append": (SqliteLog, "produce_many"),
    "transaction": (topics, "bounds_of"),
    "synced": (writer, "_known"),
    "acknowledge": (updates, "JSONResponse"),
    "poll": (SqliteLog, "poll"),
    "journal": (Journal, "append"),
    "moved": (Interludes, "moved"),
    "apply": (SavedModel, "apply"),
    "checkpoint": (Checkpointer, "begin"),
    "commit": (CheckpointDirectory, "commit"),
    "fsync": (os, "fsync"),
}


class Place(NamedTuple):
    """Before or after a passage of a point, counted from 0."""

    point: str
    passage: int
    after: bool


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


def _kill_at(place: Place) -> None:
    """Let this process kill itself there."""
    owner, attribute = POINTS[place.point]
    function = getattr(owner, attribute)
    passed: Counter[str] = Counter()

    def meet(after: bool, number: int) -> None:
        if (number, after) == (place.passage, place.after):
            os.kill(os.getpid(), signal.SIGKILL)

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        number = passed[""]
        passed[""] += 1
        meet(False, number)
        result = function(*args, **options)
        if asyncio.iscoroutine(result):
            return _awaited(result, lambda: meet(True, number))
        meet(True, number)
        return result

    setattr(owner, attribute, call)


async def _awaited(result: Any, after: Callable[[], None]) -> Any:
    found = await result
    after()
    return found


def serve(origin: Origin, checkpoint: Path, place: Place | None, mutant: bool, pipe: Any) -> None:
    """Start or go on with a stream, serve it, send the URL, and end when the pipe says so."""
    if mutant:
        acknowledge_at_once()
    if place is not None:
        _kill_at(place)
    source = origin.open()
    options: dict[str, Any] = {"batch_interval": 0.005, "checkpoint_operations": 40}
    if has_checkpoint(checkpoint):
        pipeline = Pipeline.resume(checkpoint, source, load=SavedModel.load, **options)
    else:
        graph: Any = SavedModel(predecessors=True)
        pipeline = Pipeline(source, graph, checkpoint, **options)
    context = Context(pipeline.interludes, pipeline.graph, pipeline)  # type: ignore[arg-type]
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
    """A service in a process, that may die at a place."""

    _context: Any = None

    def __init__(
        self, origin: Origin, checkpoint: Path, place: Place | None, mutant: bool = False
    ) -> None:
        if Service._context is None:
            Service._context = multiprocessing.get_context("forkserver")
            Service._context.set_forkserver_preload([__name__, *IMPORTED_LATE])
        self._pipe, other = Service._context.Pipe()
        arguments = origin, checkpoint, place, mutant, other
        self._process = Service._context.Process(target=serve, args=arguments)
        self._process.start()
        other.close()

    def url(self) -> str | None:
        """Where it serves; None if it died before."""
        try:
            found: str = self._pipe.recv()
        except (EOFError, ConnectionResetError):
            return None
        return found

    def wait(self, seconds: float) -> bool | None:
        """Whether it was killed; None if it still runs then."""
        self._process.join(seconds)
        code = self._process.exitcode
        assert code in (None, 0, -signal.SIGKILL), f"it ended by itself: {code}"
        return None if code is None else code != 0

    def end(self) -> None:
        self._pipe.send("end")
        assert self.wait(30) is False

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
