"""The demo's live run: a producer and a client, and a worker that is killed and resumed."""

from __future__ import annotations

import json
import multiprocessing
import threading
import time
from collections.abc import Callable
from multiprocessing.context import SpawnProcess
from typing import Any

import numpy as np

from lpma.batch import Kind

from ..formats.encode import encode_updates
from ..sources.sqlite.log import SqliteLog
from ..types import UPDATES, Reply
from .client import Asker
from .stream import DemoStream, Progress, Tell
from .worker import DemoError, Files
from .worker import main as run_worker

ROWS_PER_RECORD = 4096
WORKER_TIMEOUT_S = 90.0  # without an operation


def live_run(
    files: Files,
    stream: DemoStream,
    tell: Tell,
    progress: Progress,
    seconds: float,
    seed: int,
    device: str,
) -> tuple[dict[str, Any], dict[str, Reply]]:
    """Produce `stream` over `seconds` while a worker ingests it; kill the worker half-way and
    resume. Returns what happened, and the client's replies by query id. Raises DemoError."""
    with SqliteLog(files.log) as log:
        log.create_topic(UPDATES)  # before its readers open the log
        worker = _Worker(files, len(stream), progress, device)
        client = Asker(files.log, stream, seed, tell)
        stop = threading.Event()
        producer = threading.Thread(target=_produce, args=(log, stream, seconds, stop), daemon=True)
        try:
            worker.start()
            worker.wait(lambda: files.operations() is not None)
            tell("worker: ready, ingesting as the producer writes; a client asks queries")
            producer.start()
            client.start()
            worker.wait(lambda: worker.applied() >= len(stream) // 2)
            killed_at = worker.kill()
            tell(f"worker: killed (SIGKILL) after {killed_at:,} operations")
            started = time.perf_counter()
            worker.start()
            worker.wait(files.resumed.exists)
            outage = time.perf_counter() - started
            resumed = json.loads(files.resumed.read_text())
            tell(
                f"worker: a second one resumed at {resumed['operations']:,} operations, "
                f"{resumed['replayed']:,} of them replayed from the journal, in {outage:.1f} s"
            )
            worker.wait(lambda: not producer.is_alive() and worker.applied() >= len(stream))
            client.finish(WORKER_TIMEOUT_S)
            files.finished.touch()
            worker.join()
        finally:
            stop.set()
            client.stop()
            worker.kill()
    facts = {
        "operations": len(stream),
        "deletions": int(np.count_nonzero(stream.columns.kind == Kind.DELETE)),
        "queries": len(client.replies),
        "query_latency_ms": client.latency_ms(),
        "killed_at": killed_at,
        "resumed_at": resumed["operations"],
        "replayed": resumed["replayed"],
        "outage_seconds": round(outage, 2),
    }
    return facts, client.replies


def _produce(log: SqliteLog, stream: DemoStream, seconds: float, stop: threading.Event) -> None:
    """Write the stream as columnar records, evenly over `seconds`."""
    started = time.monotonic()
    for first in range(0, len(stream), ROWS_PER_RECORD):
        part = stream.columns.rows(first, first + ROWS_PER_RECORD)
        due = started + seconds * first / len(stream)
        if stop.wait(max(0.0, due - time.monotonic())):
            return
        src, dst = stream.names[part.src], stream.names[part.dst]
        record = encode_updates(src, dst, part.weight, part.time, part.kind, names=True)
        log.produce(UPDATES, record)


class _Worker:
    """The process that ingests, restarted after a kill."""

    def __init__(self, files: Files, expected: int, progress: Progress, device: str) -> None:
        self._files = files
        self._device = device
        self._expected = expected
        self._progress = progress
        self._process: SpawnProcess | None = None

    def start(self) -> None:
        # Spawned, not forked: it must behave like a process started by hand.
        self._process = multiprocessing.get_context("spawn").Process(
            target=run_worker,
            args=(str(self._files.directory), self._device),
            daemon=True,
        )
        self._process.start()

    def applied(self) -> int:
        return self._files.operations() or 0

    def kill(self) -> int:
        """Kill the process if it is running. Returns how many operations it had applied."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        return self.applied()

    def wait(self, reached: Callable[[], bool]) -> None:
        """Wait until `reached`. Raises DemoError if the worker dies or makes no progress."""
        assert self._process is not None
        moved, seen = time.monotonic(), self.applied()
        while not reached():
            if self._process.exitcode is not None:
                raise DemoError(f"the worker died by itself (status {self._process.exitcode})")
            now = self.applied()
            self._progress("ingest", min(now, self._expected), self._expected)
            if now != seen:
                moved, seen = time.monotonic(), now
            if time.monotonic() - moved > WORKER_TIMEOUT_S:
                raise DemoError(f"the worker did nothing for {WORKER_TIMEOUT_S:.0f} s")
            time.sleep(0.02)
        self._progress("ingest", min(self.applied(), self._expected), self._expected)

    def join(self) -> None:
        """Wait for the process to end. Raises DemoError if it fails."""
        assert self._process is not None
        self._process.join(WORKER_TIMEOUT_S)
        if self._process.exitcode != 0:
            raise DemoError(f"the worker did not end well (status {self._process.exitcode})")
