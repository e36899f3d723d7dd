"""The faults a broker can be told to have: what is sent in place of an answer, or edited in one."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.support.fault_broker import Edit, Send

# In place of sending an answer whole ---------------------------------------------------------


def drop(after_bytes: int = 0) -> Send:
    """Cut the connection after so many bytes of the answer."""

    def send(connection: socket.socket, answer: bytes) -> None:
        connection.sendall(answer[:after_bytes])
        connection.shutdown(socket.SHUT_RDWR)

    return send


def stall(until: threading.Event, limit_s: float = 600.0) -> Send:
    """Answer only once `until` is set."""

    def send(connection: socket.socket, answer: bytes) -> None:
        until.wait(limit_s)
        connection.sendall(answer)

    return send


def trickle(chunk_bytes: int, pause_s: float) -> Send:
    """Answer in small pieces."""

    def send(connection: socket.socket, answer: bytes) -> None:
        for at in range(0, len(answer), chunk_bytes):
            connection.sendall(answer[at : at + chunk_bytes])
            time.sleep(pause_s)

    return send


def garbage(data: bytes) -> Send:
    """Send these bytes instead, as if they were an answer."""

    def send(connection: socket.socket, answer: bytes) -> None:
        connection.sendall(answer[:8] + data[: len(answer) - 8].ljust(len(answer) - 8, b"\xff"))

    return send


# Edits of an answer --------------------------------------------------------------------------


def error(code: int) -> Edit:
    """Every partition, or topic, of the answer has this error, and no data."""

    def edit(response: Any) -> bool:
        if hasattr(response, "responses"):  # of Fetch or Produce
            for topic in response.responses:
                for part in getattr(topic, "partitions", None) or topic.partition_responses:
                    part.error_code = code
                    if hasattr(part, "records"):
                        part.records = b""
        else:
            for topic in response.topics:
                topic.error_code = code
        return True

    return edit


def records(change: Callable[[bytes], bytes]) -> Edit:
    """The records of a Fetch answer are changed, where there are any."""

    def edit(response: Any) -> bool:
        parts = [part for topic in response.responses for part in topic.partitions if part.records]
        for part in parts:
            part.records = change(bytes(part.records))
        return bool(parts)

    return edit


def flip(byte: int) -> Edit:
    """One byte of a Fetch answer's records is another; `byte` counts from the end where < 0."""

    def change(data: bytes) -> bytes:
        at = byte % len(data)
        return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]

    return records(change)


def cut_records(bytes_left: int) -> Edit:
    """A Fetch answer's records end after so many bytes."""
    return records(lambda data: data[:bytes_left])


def no_answer() -> Send:
    """The connection stays open, and nothing comes over it any more."""

    def send(connection: socket.socket, answer: bytes) -> None:
        while connection.recv(1 << 16):
            pass
        raise ConnectionAbortedError

    return send
