"""Clients of the HTTP service that cost little: one loop over raw sockets, requests made before.

A client that parsed HTTP would take more of a core than the service does. This one looks for the
status and for `Content-Length`, and reads as many bytes."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..stopwatch import WrongAnswer
from ..workloads import SEED

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
