"""One HTTP request, for tests."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any, NamedTuple

JSON = "application/json"
MSGPACK = "application/msgpack"
ARROW = "application/vnd.apache.arrow.stream"


class Response(NamedTuple):
    status: int
    headers: Any
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def request(
    url: str, body: bytes | None = None, form: str = JSON, accept: str = JSON, **headers: str
) -> Response:
    """GET, or with a body POST."""
    sent = {"Accept": accept, **headers}
    if body is not None:
        sent["Content-Type"] = form
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, sent), timeout=60) as found:
            return Response(found.status, found.headers, found.read())
    except urllib.error.HTTPError as error:
        return Response(error.code, error.headers, error.read())


def post(url: str, **fields: Any) -> Response:
    """POST of a JSON object."""
    return request(url, json.dumps(fields).encode())
