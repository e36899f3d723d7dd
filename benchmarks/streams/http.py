"""What the HTTP service takes and costs: point queries on an idle stream, beside one at half its
rate and beside one at full rate; a request of a thousand; a snapshot; connections that hang.

The service is a process of its own, as `lpma ingest --serve` has it: a pipeline with checkpoints
on an embedded log, and uvicorn in a thread. The clients are one loop in this process, over raw
sockets that stay open: each sends its next query when it has its answer, so the requests a second
are what the service gives. (A client that parsed HTTP would take more of a core than the service
does.) Queries are of edges, successors, degrees and vertices, in turn.

A stream at half its rate is the same log, read no faster than half of what it was read at alone;
*stream* is what it kept of the rate that it was to have. A snapshot is compared with one copy of as
many bytes in memory. Degrees and the snapshot's edges are compared with the stream's.
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import select
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import lpma
from ingest import Pipeline, SqliteLog
from ingest.datasets import generators
from ingest.types import Polled
from lpma import Graph

from ..report import Report, Setting
from ..stopwatch import NAN, WrongAnswer, median
from ..workloads import SEED
from .flood import filled
from .memory_source import RECORD
from .processes import PATIENCE_S, running, wait_for

MANY = 1000  # vertices of one request, and connections that hang
ALL = float("inf")


@dataclass(frozen=True)
class Size:
    scale: int
    load: int  # records that the graph is made of
    records: int  # in the log
    seconds: float  # of each measurement
    rounds: int


def service(setting: Setting) -> Report:
    size = Size(14, 200, 6000, 0.3, 1) if setting.quick else Size(20, 2400, 24_000, 3.0, 3)
    report = Report("http", "requests a second; milliseconds; what the stream kept of its rate")
    ends = generators.rmat(size.scale, RECORD * size.load, seed=SEED)
    lpma.compile("cpu")
    with tempfile.TemporaryDirectory() as name:
        log, _ = filled(Path(name) / "log", ends, size.records)
        for turn in range(size.rounds):
            with _serving(log, size.records, turn) as served:
                for row in _measured(served, ends, size):
                    report.add({"round": turn, **row})
    _note(report)
    return report


def _row(what: str, rate: float, ms: list[float], stream: float = NAN, times: float = NAN) -> Any:
    return {
        "what": what,
        "requests/s": round(rate) if rate == rate else NAN,
        "median": median(ms),
        "99 %": float(np.quantile(ms, 0.99)) if len(ms) > 100 else NAN,
        "stream %": stream,
        "memcpy": times,
    }


def _note(report: Report) -> None:
    """The medians of all rounds."""
    for what in dict.fromkeys(row["what"] for row in report.rows):
        rows = [row for row in report.rows if row["what"] == what]
        said = ", ".join(
            f"{name} {median(row[name] for row in rows):.3g}"
            for name in ("requests/s", "median", "99 %", "stream %", "memcpy")
            if rows[0][name] == rows[0][name]
        )
        report.notes.append(f"{what}: {said}")


def _measured(served: _Served, ends: Any, size: Size) -> Iterator[dict[str, Any]]:
    src, dst = ends
    served.let(ALL, size.load)
    served.wait_until(lambda: served.applied.value >= size.load)
    queries = point_queries(src, dst, 4096)
    _verify(served.port, src, dst)

    def asked(what: str, count: int, stream: float = NAN) -> dict[str, Any]:
        rate, ms = Clients(served.port, queries, count).run(size.seconds)
        return _row(what, rate, ms, stream)

    yield asked("idle, 50 clients", 50)
    with half_open(served.port, MANY) as held:
        yield asked(f"idle, 50 clients, {MANY} half-open", 50)
        if not any(map(is_open, held)):
            raise WrongAnswer("no connection hung: nothing was measured")
    yield asked("idle, 200 clients", 200)
    yield _row("1,000 degrees in one request", NAN, _thousand(served.port, src))
    yield _snapshot(served.port, src, dst)
    full, _ = served.during(size.seconds, ALL, lambda: time.sleep(size.seconds))
    for what, rate in (("half", full / 2), ("full", ALL)):
        for count in (50, 200):
            said = f"{what} stream, {count} clients"
            kept, row = served.during(size.seconds, rate, partial(asked, said, count))
            yield row | {"stream %": 100 * kept / min(rate, full)}


def _thousand(port: int, src: Any) -> list[float]:
    """Milliseconds of a POST that asks for the degrees of a thousand vertices."""
    body = json.dumps({"u": src[:MANY].tolist()}).encode()
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    ms = []
    for _ in range(200):
        started = time.perf_counter()
        client.request("POST", "/v1/degree", body, {"Content-Type": "application/json"})
        answer = client.getresponse().read()
        ms.append((time.perf_counter() - started) * 1e3)
    if len(json.loads(answer)["degree"]) != MANY:
        raise WrongAnswer("degrees are missing")
    return ms[20:]


def _snapshot(port: int, src: Any, dst: Any) -> dict[str, Any]:
    """The whole graph as Arrow, beside a copy of as many bytes."""
    ask = (
        b"GET /v1/snapshot HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        b"Accept: application/vnd.apache.arrow.stream\r\n\r\n"
    )
    room, ms, length = bytearray(1 << 30), [], 0
    for _ in range(6):
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as client:
            started = time.perf_counter()
            client.sendall(ask)
            length, view = 0, memoryview(room)
            while got := client.recv_into(view[length:]):
                length += got
            ms.append((time.perf_counter() - started) * 1e3)
    if not bytes(room[:15]).startswith(b"HTTP/1.1 200"):
        raise WrongAnswer(bytes(room[:1000]).decode("latin-1"))
    given, copied, copies = np.zeros(length, np.uint8), np.zeros(length, np.uint8), []
    for _ in range(6):
        started = time.perf_counter()
        np.copyto(copied, given)
        copies.append((time.perf_counter() - started) * 1e3)
    times = median(ms[1:]) / median(copies[1:])
    return _row(f"snapshot of {length / 1e6:.0f} MB", NAN, ms[1:], times=times)


def _verify(port: int, src: Any, dst: Any) -> None:
    """Degrees are those of the stream."""
    distinct = np.unique(src.astype(np.uint64) << np.uint64(32) | dst.astype(np.uint64))
    degrees = np.bincount((distinct >> np.uint64(32)).astype(np.int64))
    asked = np.unique(src[:MANY])
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    body = json.dumps({"u": asked.tolist()})
    client.request("POST", "/v1/degree", body, {"Content-Type": "application/json"})
    found = json.loads(client.getresponse().read())["degree"]
    if found != degrees[asked].tolist():
        raise WrongAnswer("degrees differ from the stream's")


# The service's process -------------------------------------------------------------------------


class _Served:
    """One service, and what its process tells of itself."""

    def __init__(self, path: Path, records: int, number: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.path = str(path)
        self.checkpoint = f"{path}-{number}"
        self.records = records  # of the log
        self.port_found = context.Value("i", 0)
        self.applied = context.Value("q", 0)  # records
        self.rate = context.Value("d", 0.0)  # records a second that may be read
        self.until = context.Value("q", 0)  # records that may be read at all
        self.stop = context.Event()
        self.process = context.Process(target=_serve, args=(self,))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "process"}

    @property
    def port(self) -> int:
        return int(self.port_found.value)

    def let(self, rate: float, records: int) -> None:
        """Let so many more records be read, at this rate."""
        self.until.value, self.rate.value = self.applied.value + records, rate

    def wait_until(self, condition: Callable[[], bool]) -> None:
        wait_for(condition, self.process, self.applied)

    def during(self, seconds: float, rate: float, act: Callable[[], Any]) -> tuple[float, Any]:
        """Records a second that were applied while `act` ran, for `seconds`, and what it gave."""
        self.let(rate, 1 << 40)
        time.sleep(seconds / 5)  # until it flows
        before, started = self.applied.value, time.perf_counter()
        found = act()
        kept = (self.applied.value - before) / (time.perf_counter() - started)
        self.let(0.0, 0)
        if self.applied.value >= self.records:
            raise WrongAnswer("the log ended: it has to have more records")
        return kept, found


@contextmanager
def _serving(log: Path, records: int, number: int) -> Iterator[_Served]:
    served = _Served(log, records, number)
    with running(served.process, served.stop):
        served.wait_until(lambda: served.port > 0)
        yield served
    shutil.rmtree(served.checkpoint)


class _Paced(SqliteLog):
    """A log that gives no more than it is let to."""

    def __init__(self, served: _Served) -> None:
        super().__init__(served.path, ("updates",))
        self._served = served
        self._given = 0
        self._at = time.monotonic()
        self._may = 0.0

    def poll_many(self, max_records: int, timeout: float) -> list[Polled]:
        now, served = time.monotonic(), self._served
        rate, left = served.rate.value, served.until.value - self._given
        self._may = max_records if rate == ALL else min(self._may + rate * (now - self._at), 500.0)
        self._at = now
        most = int(min(max_records, self._may, left))
        if most <= 0:
            time.sleep(min(timeout, 0.001))
            return []
        polled = super().poll_many(most, 0.0)
        records = sum(one.records for one in polled)
        self._given += records
        self._may -= records
        return polled


def _serve(served: _Served) -> None:
    from ingest.process import short_pauses
    from ingest.service.app import Service
    from ingest.service.context import Context

    with (
        _Paced(served) as source,
        Pipeline(source, Graph(device="cpu"), served.checkpoint) as pipeline,
        short_pauses(),
        Service(Context(pipeline.requests, pipeline.graph, pipeline)) as service,  # type: ignore[arg-type]
    ):
        served.port_found.value = service.port

        def after(_: Pipeline) -> bool:
            served.applied.value = pipeline.stats.operations // RECORD
            return bool(served.stop.is_set())

        pipeline.run(after)


_STATUS = b"HTTP/1.1 200"
_LENGTH = b"content-length: "
_END = b"\r\n\r\n"


def point_queries(src: Any, dst: Any, count: int) -> list[bytes]:
    """Requests for edges that were drawn, and for successors, degrees and presence of vertices."""
    rng = np.random.default_rng(SEED)
    drawn = rng.integers(len(src), size=count)
    vertices = rng.permutation(np.unique(src))
    found = []
    for number, place in enumerate(drawn.tolist()):
        v = int(vertices[number % len(vertices)])
        path = (
            f"edges/{src[place]}/{dst[place]}", f"successors/{v}", f"degree/{v}", f"vertices/{v}",
        )[number % 4]  # fmt: skip
        found.append(f"GET /v1/{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return found


class Clients:
    """So many connections to a service on this machine, each with one query under way."""

    def __init__(self, port: int, queries: list[bytes], count: int) -> None:
        self._port = port
        self._queries = queries
        self._count = count

    def run(self, seconds: float) -> tuple[float, list[float]]:
        """Ask for so long. Returns the requests a second, and the milliseconds of each."""
        loop = select.epoll()
        clients = [_connected(self._port) for _ in range(self._count)]
        by_number = {client.fileno(): client for client in clients}
        answers = dict.fromkeys(by_number, b"")
        sent: dict[int, float] = {}
        ms: list[float] = []
        queries, turn = self._queries, 0
        now = time.perf_counter
        started = now()
        for number, client in by_number.items():
            loop.register(number, select.EPOLLIN)
            sent[number] = now()
            client.send(queries[turn % len(queries)])
            turn += 1
        end = started + seconds
        while now() < end:
            for number, _ in loop.poll(0.1):
                client = by_number[number]
                part = client.recv(1 << 18)
                if not part:
                    raise WrongAnswer("the service closed a connection that was in use")
                answer = answers[number] = answers[number] + part
                if not _is_whole(answer):
                    continue
                answers[number] = b""
                at = now()
                ms.append((at - sent[number]) * 1e3)
                sent[number] = at
                client.send(queries[turn % len(queries)])
                turn += 1
        took = now() - started
        for client in clients:
            client.close()
        loop.close()
        return len(ms) / took, ms


def _is_whole(answer: bytes) -> bool:
    head = answer.find(_END)
    if head < 0:
        return False
    if not answer.startswith(_STATUS):
        raise WrongAnswer(answer[:1000].decode("latin-1"))
    at = answer.find(_LENGTH, 0, head) + len(_LENGTH)
    return len(answer) - head - len(_END) >= int(answer[at : answer.find(b"\r", at)])


def _connected(port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), 60)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


@contextmanager
def half_open(port: int, count: int) -> Iterator[list[socket.socket]]:
    """So many connections that have said half a request."""
    held = []
    for _ in range(count):
        held.append(_connected(port))
        held[-1].sendall(b"GET /v1/graph HTTP/1.1\r\n")
    try:
        yield held
    finally:
        for client in held:
            client.close()


def is_open(client: socket.socket) -> bool:
    """Whether the service has not closed it."""
    client.setblocking(False)
    try:
        return client.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False
