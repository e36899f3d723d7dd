"""The demo's live run: a producer and a client; a worker and a window, killed and resumed."""

from __future__ import annotations

import json
import multiprocessing
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import numpy as np

from lpma import Edges, Kind, Neighbors

from ..errors import IngestError
from ..formats.encode import encode_updates
from ..formats.replies import encode_reply
from ..queries.base import Ask
from ..queries.client import Client
from ..sources.sqlite.log import SqliteLog
from ..types import UPDATES, Reply
from . import watch
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


ASK_EVERY_S = 0.1
SHOW_EVERY_S = 1.0
ANSWER_TIMEOUT_S = 3600.0  # also for the uninterrupted run, which answers them again
KINDS = (Kind.EDGE, Kind.SUCCESSORS, Kind.PREDECESSORS, Kind.HOPS, Kind.DEGREE, Kind.VERTEX)


class Asker:
    """Sends one query after another, of each kind in turn, about vertices of the stream's edges."""

    def __init__(
        self, log: Path, stream: DemoStream, seed: int, tell: Callable[[str], None]
    ) -> None:  # fmt: skip
        self.replies: dict[str, Reply] = {}
        self._latency_ms: list[float] = []
        self._log = SqliteLog(log)
        # In the partition of the updates, so that no run reads a query before what was written
        # before it: the replies of two runs are compared.
        self._client = Client(self._log, query_topic=UPDATES, names=True, timeout=ANSWER_TIMEOUT_S)
        self._stream = stream
        self._rng = np.random.default_rng(seed)
        self._tell = tell
        self._shown = Counter[Kind]()
        self._last_shown = 0.0
        self._finish = threading.Event()
        self._failure: IngestError | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self, timeout_s: float) -> None:
        """Send no more queries, and wait for the outstanding reply. Raises IngestError if it
        does not come within `timeout_s`, or a query failed."""
        self._finish.set()
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise IngestError(f"a query was not answered within {timeout_s:.0f} s")
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        self._finish.set()
        self._client.close()
        if self._thread.is_alive():
            self._thread.join()
        self._log.close()

    def latency_ms(self) -> dict[str, float]:
        """Milliseconds from a query to its reply. A query sent while no worker was running waited
        for the next one."""
        values = np.array(self._latency_ms or [0.0])
        return {
            "median": round(float(np.median(values)), 2),
            "slowest": round(float(values.max()), 2),
        }

    def _work(self) -> None:
        due = time.monotonic()
        try:
            while not self._finish.wait(max(0.0, due - time.monotonic())):
                self._ask(KINDS[len(self.replies) % len(KINDS)])
                due += ASK_EVERY_S
        except IngestError as error:
            self._failure = error

    def _ask(self, kind: Kind) -> None:
        row = int(self._rng.integers(len(self._stream)))
        columns = self._stream.columns
        u, v = (self._stream.name(int(ends[row])) for ends in (columns.src, columns.dst))
        if kind is Kind.EDGE:
            query, text = Ask(kind, u, v), f"edge({u}, {v})"
        elif kind is Kind.HOPS:
            query, text = Ask(kind, u, steps=2), f"hops({u}, 2)"
        else:
            query, text = Ask(kind, u), f"{kind.name.lower()}({u})"
        asked_at = time.perf_counter()
        reply = self._client.ask(query)
        self._latency_ms.append(1000 * (time.perf_counter() - asked_at))
        self.replies[reply.id] = reply
        self._show(reply, text)

    def _show(self, reply: Reply, text: str) -> None:
        """Print each kind about equally often, and no faster than people can read."""
        now = time.monotonic()
        rarest = min(self._shown[kind] for kind in KINDS)
        if now - self._last_shown >= SHOW_EVERY_S and self._shown[reply.kind] <= rarest:
            self._last_shown = now
            self._shown[reply.kind] += 1
            self._tell(
                f"  query: {text} = {answer_text(reply)}, as of version {reply.version}, "
                f"in {self._latency_ms[-1]:.0f} ms"
            )


def answer_text(reply: Reply) -> str:
    answer = reply.answer
    if reply.error is not None:
        return f"{reply.error} ({reply.message})"
    if isinstance(answer, Edges):
        if not bool(answer.found[0]):
            return "absent"
        return "present" if answer.weights is None else f"weight {float(answer.weights[0]):g}"
    if isinstance(answer, Neighbors):
        return f"{len(answer.ids):,} vertices"
    assert answer is not None
    value = answer[0].item()
    if isinstance(value, bool):
        return "present" if value else "absent"
    return f"{value:,}"


def same_replies(one: dict[str, Reply], other: dict[str, Reply]) -> bool:
    """Whether both hold equal answers to the same queries. Versions and times, which depend on the
    batches, may differ."""
    return _answers(one) == _answers(other)


def _answers(replies: dict[str, Reply]) -> dict[str, bytes]:
    return {id: encode_reply(replace(reply, version=0, time=0)) for id, reply in replies.items()}
