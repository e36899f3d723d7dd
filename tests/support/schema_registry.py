"""A schema registry of the tests' own, that speaks Confluent's HTTP interface, with faults.

What it answers:

    POST /subjects/NAME/versions        registers a schema: its id; the same one has the same id
    POST /subjects/NAME                 looks one up
    GET  /subjects                      names
    GET  /subjects/NAME/versions/N      a schema of a subject, N from 1 on, or "latest"
    GET  /schemas/ids/ID                a schema
"""

from __future__ import annotations

import io
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


def _none(path: str) -> None:
    """No fault."""


class Answer(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, code: int | None, text: str) -> None:
        self.status, self.code, self.text = status, code, text


class Registry:
    """What it holds, and how it behaves. fault: called with the path before an answer; what it
    returns is (status, body) instead of the answer, None for the answer."""

    def __init__(self) -> None:
        self.schemas: dict[int, dict[str, Any]] = {}
        self.subjects: dict[str, list[int]] = {}
        self.asked: list[str] = []  # paths
        self.authorization: str | None = None  # that is wanted
        self.fault: Callable[[str], tuple[int, bytes] | None] = _none
        self.headers: dict[str, str] = {}  # of an answer that a fault makes
        self.url = ""
        self.next = 1  # id

    def add(
        self, schema: Any, kind: str = "AVRO", subject: str = "updates-value",
        references: list[dict[str, Any]] | None = None, id: int | None = None,
    ) -> int:  # fmt: skip
        """Register a schema, given as text or as what JSON makes of it; its id."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        content: dict[str, Any] = {"schema": text}
        if kind != "AVRO":
            content["schemaType"] = kind
        if references:
            content["references"] = references
        found = next((i for i, each in self.schemas.items() if each == content), None)
        if found is None or id is not None:
            found = self.next if id is None else id
            self.next = max(self.next, found) + 1
            self.schemas[found] = content
        versions = self.subjects.setdefault(subject, [])
        if found not in versions:
            versions.append(found)
        return found

    # HTTP ------------------------------------------------------------------------------------

    def answer(self, method: str, path: str, body: Any) -> Any:
        parts = [unquote(part) for part in urlsplit(path).path.strip("/").split("/")]
        if method == "POST" and parts[0] == "subjects":
            kind, refs = body.get("schemaType", "AVRO"), body.get("references")
            id = self.add(body["schema"], kind, parts[1], refs)
            return self._version(parts[1], id) if len(parts) == 2 else {"id": id}
        if parts == ["subjects"]:
            return sorted(self.subjects)
        if parts[:2] == ["schemas", "ids"]:
            if int(parts[2]) not in self.schemas:
                raise Answer(404, 40403, "Schema not found")
            return self.schemas[int(parts[2])]
        if parts[0] == "subjects" and parts[2:3] == ["versions"]:
            if parts[1] not in self.subjects:
                raise Answer(404, 40401, "Subject not found")
            versions = self.subjects[parts[1]]
            number = len(versions) if parts[3] == "latest" else int(parts[3])
            if not 1 <= number <= len(versions):
                raise Answer(404, 40402, "Version not found")
            return self._version(parts[1], versions[number - 1])
        raise Answer(404, None, "Not Found")

    def _version(self, subject: str, id: int) -> dict[str, Any]:
        version = self.subjects[subject].index(id) + 1
        return {"subject": subject, "version": version, "id": id, **self.schemas[id]}


def _handler(registry: Registry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._serve("GET", None)

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            self._serve("POST", json.loads(self.rfile.read(length)))

        def _serve(self, method: str, body: Any) -> None:
            registry.asked.append(self.path)
            fault = registry.fault(self.path)
            if fault is not None:
                self._send(*fault, headers=registry.headers)
                return
            try:
                if registry.authorization not in (None, self.headers.get("Authorization")):
                    raise Answer(401, 401, "Unauthorized")
                status, content = 200, registry.answer(method, self.path, body)
            except Answer as error:
                status, content = error.status, {"error_code": error.code, "message": error.text}
                if error.code is None:
                    self._send(status, b"<h1>Not Found</h1>")
                    return
            self._send(status, json.dumps(content).encode())

        def _send(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


@contextmanager
def served(
    registry: Registry | None = None, tls: ssl.SSLContext | None = None, port: int = 0
) -> Iterator[Registry]:
    """A registry that answers at `url` within; port: the one to take, 0 for any."""
    found = registry or Registry()
    server = ThreadingHTTPServer(("127.0.0.1", port), _handler(found))
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    found.url = f"{'http' if tls is None else 'https'}://localhost:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def enveloped(id: int, body: bytes) -> bytes:
    """A record in Confluent's envelope."""
    return b"\0" + id.to_bytes(4, "big") + body


def avro(schema: Any, row: Any) -> bytes:
    """A record of Avro, as fastavro writes it."""
    import fastavro

    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
    return out.getvalue()
