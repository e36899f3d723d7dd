"""Requests of the tests of updates, snapshots and runs, over one connection or many."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.support.waiting import HANGS_S


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    url: str,
    method: str,
    path: str,
    body: bytes | Any = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = HANGS_S,
) -> Answer:
    """One request on a connection of its own. body: bytes as they are, anything else as JSON."""
    sent = dict(headers or {})
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
        sent.setdefault("Content-Type", "application/json")
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=timeout)
    try:
        connection.request(method, path, body, sent)
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())  # type: ignore[arg-type]
    finally:
        connection.close()


JSON = "application/json"
MSGPACK = "application/msgpack"
ARROW = "application/vnd.apache.arrow.stream"


def request(url: str, body: bytes | None = None, form: str = JSON, accept: str = JSON) -> Answer:
    """GET, or with a body POST."""
    headers = {"Accept": accept}
    if body is not None:
        headers["Content-Type"] = form
    at = urlsplit(url)
    path = f"{at.path}?{at.query}" if at.query else at.path
    return ask(url, "GET" if body is None else "POST", path, body, headers)


def post(url: str, **fields: Any) -> Answer:
    """POST of a JSON object."""
    return request(url, json.dumps(fields).encode())
