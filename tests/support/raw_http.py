"""HTTP as bytes: what a client may send that no library would, and what comes back."""

from __future__ import annotations

import socket
import ssl
from typing import NamedTuple

from tests.support.waiting import HANGS_S


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


def connect(port: int, tls: ssl.SSLContext | None = None) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), timeout=HANGS_S)
    return client if tls is None else tls.wrap_socket(client, server_hostname="localhost")


def request(
    path: str = "/", method: str = "GET", body: bytes | None = None, **headers: str
) -> bytes:
    """A request as bytes. headers: by their names, with _ for -; Host is added if it lacks."""
    found = {"Host": "localhost", **{name.replace("_", "-"): v for name, v in headers.items()}}
    if body is not None:
        found.setdefault("Content-Length", str(len(body)))
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in found.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")


def read_answer(client: socket.socket) -> Answer:
    """The next answer, of a known length. Raises ConnectionError if it ends before."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += _some(client, 1)  # and nothing of the next answer
    status, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = b""
    while left := int(headers.get("content-length", 0)) - len(body):
        body += _some(client, left)
    return Answer(int(status.split()[1]), headers, body)


def _some(client: socket.socket, most: int) -> bytes:
    data = client.recv(most)
    if not data:
        raise ConnectionError("it was closed")
    return data


def ask(port: int, *sent: bytes) -> Answer:
    """The first answer to what is sent, on a connection of its own."""
    with connect(port) as client:
        for part in sent:
            client.sendall(part)
        return read_answer(client)


def read_all(client: socket.socket) -> bytes:
    """Everything that comes until the connection is closed, or reset."""
    data = b""
    try:
        while part := client.recv(1 << 16):
            data += part
    except ConnectionError:
        pass
    return data
