"""The demo's live run: a producer and a client; a worker and a window, killed and resumed."""

from __future__ import annotations

import json
import multiprocessing
import threading
import time
from collections.abc import Callable
from multiprocessing.context import SpawnProcess
from typing import Any

import numpy as np

from lpma.batch.columns import Kind

from ..formats.encode import encode_updates
from ..sources.sqlite.log import SqliteLog
from ..types import UPDATES, Reply
from . import watch
from .client import Asker
from .stream import DemoStream, Progress, Tell
from .worker import DemoError, Files
from .worker import main as run_worker

ROWS_PER_RECORD = 4096
WORKER_TIMEOUT_S = 300.0  # without an operation; a slow machine may be compiling meanwhile


def live_run(
    files: Files,
    stream: DemoStream,
    tell: Tell,
    progress: Progress,
    seconds: float,
    seed: int,
    device: str,
) -> tuple[dict[str, Any], dict[str, Reply]]:
    """Produce `stream` over `seconds` while a worker ingests it and another process keeps its
    window; kill both half-way and resume. Returns what happened, and the client's replies by query
    id. Raises DemoError."""
    with SqliteLog(files.log) as log:
        log.create_topic(UPDATES)  # before its readers open the log
        worker = _Worker(files, stream, progress, device)
        listener = watch.Listener(files.results, stream, tell)
        client = Asker(files.log, stream, seed, tell)
        stop = threading.Event()
        producer = threading.Thread(target=_produce, args=(log, stream, seconds, stop), daemon=True)
        try:
            worker.start()
            worker.wait(lambda: files.operations() is not None)
            tell("worker: ready, ingesting as the producer writes; a client asks queries")
            tell(f"window: another reader keeps the last {stream.watch.called} and watches cores")
            worker.start_window()
            producer.start()
            client.start()
            listener.start()
            worker.wait(lambda: worker.applied() >= len(stream) // 2)
            killed_at = worker.kill()
            tell(f"worker: killed (SIGKILL) after {killed_at:,} operations; the window too")
            started = time.perf_counter()
            worker.start()
            worker.wait(files.resumed.exists)
            outage = time.perf_counter() - started
            worker.start_window()
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
            listener.finish()
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
    """The process that ingests and the one that keeps the window, restarted after a kill."""

    def __init__(
        self, files: Files, stream: DemoStream, progress: Progress, device: str
    ) -> None:  # fmt: skip
        self._files = files
        self._watch = stream.watch
        self._device = device
        self._expected = len(stream)
        self._progress = progress
        self._processes: list[SpawnProcess] = []

    def start(self) -> None:
        """Start the worker. Once it is ready, `start_window`: so neither delays the other."""
        self._processes = []
        self._start(run_worker, str(self._files.directory), self._device)

    def start_window(self) -> None:
        self._start(watch.main, str(self._files.directory), self._watch, self._device)

    def _start(self, target: Callable[..., None], *args: object) -> None:
        # Spawned, not forked: it must behave like a process started by hand.
        spawned = multiprocessing.get_context("spawn").Process
        process = spawned(target=target, args=args, daemon=True)
        process.start()
        self._processes.append(process)

    def applied(self) -> int:
        return self._files.operations() or 0

    def kill(self) -> int:
        """Kill what is running. Returns how many operations the worker had applied."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()
        return self.applied()

    def wait(self, reached: Callable[[], bool]) -> None:
        """Wait until `reached`. Raises DemoError if a process dies or the worker makes no
        progress."""
        moved, seen = time.monotonic(), self.applied()
        while not reached():
            for process in self._processes:
                if process.exitcode is not None:
                    raise DemoError(f"a process died by itself (status {process.exitcode})")
            now = self.applied()
            self._progress("ingest", min(now, self._expected), self._expected)
            if now != seen:
                moved, seen = time.monotonic(), now
            if time.monotonic() - moved > WORKER_TIMEOUT_S:
                raise DemoError(f"the worker did nothing for {WORKER_TIMEOUT_S:.0f} s")
            time.sleep(0.02)
        self._progress("ingest", min(self.applied(), self._expected), self._expected)

    def join(self) -> None:
        """Wait for the processes to end. Raises DemoError if one fails."""
        for process in self._processes:
            process.join(WORKER_TIMEOUT_S)
            if process.exitcode != 0:
                raise DemoError(f"a process did not end well (status {process.exitcode})")
