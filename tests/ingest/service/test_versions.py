"""No answer is behind what the service has said before: of any endpoint, to any client."""

from __future__ import annotations

import http.client
import json
import random
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from ingest.service import distributions, health

from .conftest import Served
from .http import ask

Serve = Callable[..., Served]


def acknowledged(served: Served) -> int:
    """The version by which one more edge is in the graph."""
    body = {"src": [1], "dst": [2]}
    answer = ask(served.url, "POST", "/v1/updates?wait=applied", body)
    assert answer.status == 200, answer.body
    return int(answer.json["version"])


def in_body(path: str) -> Callable[[Served], int]:
    def version(served: Served) -> int:
        answer = ask(served.url, "GET", path)
        assert answer.status == 200, answer.body
        return int(answer.json["version"])

    return version


def in_header(served: Served) -> int:
    answer = ask(served.url, "GET", "/v1/snapshot")
    assert answer.status == 200, answer.body
    return int(answer.headers["Lpma-Version"])


def in_metrics(served: Served) -> int:
    lines = ask(served.url, "GET", "/metrics").body.decode().splitlines()
    return int(float(next(line.split()[1] for line in lines if line.startswith("lpma_version "))))


def in_an_event(served: Served) -> int:
    """Of the next event of batches, over a connection that is opened for it."""
    connection = http.client.HTTPConnection(urlsplit(served.url).netloc, timeout=60)
    connection.request("GET", "/v1/events")
    response, kind = connection.getresponse(), b""
    while line := response.readline():
        if line.startswith(b"event: "):
            kind = line[7:].strip()
        elif line.startswith(b"data: ") and kind == b"batch":
            connection.close()
            return int(json.loads(line[6:])["version"])
    raise AssertionError("the events ended")


SAID = {
    "applied": acknowledged,
    "degree": in_body("/v1/degree/1"),
    "graph": in_body("/v1/graph"),
    "run": in_body("/v1/run/core"),
    "neighborhood": in_body("/v1/page/neighborhood/1"),
    "distributions": in_body("/v1/page/distributions"),
    "snapshot": in_header,
    "metrics": in_metrics,
    "event": in_an_event,
}


@pytest.mark.parametrize("seed", range(3))
def test_versions_never_fall_from_answer_to_answer(
    serve_stream: Serve, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Whoever told the version."""
    monkeypatch.setattr(distributions, "LEAST_S", 0.0)
    monkeypatch.setattr(distributions, "SHARE", 0)
    served, rng = serve_stream(), random.Random(seed)
    newest, told_by = acknowledged(served), "applied"
    for round in range(40):
        if round % 3 == 0:
            served.produce([round], [round + 1])  # which nobody is told of
        name = rng.choice([*SAID])
        version = SAID[name](served)
        assert version >= newest, f"{name}, after {told_by}"
        newest, told_by = version, name


def test_a_scrape_that_is_under_way_is_not_shared_by_whoever_knows_more(
    serve_stream: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = serve_stream()
    acknowledged(served)
    begun, let_go = threading.Event(), threading.Event()
    real = health._Health._figures

    def slow(self: Any) -> Any:
        found = real(self)
        begun.set()
        assert let_go.wait(60)
        return found

    monkeypatch.setattr(health._Health, "_figures", slow)
    found: list[int] = []
    first = threading.Thread(target=in_metrics, args=(served,))
    second = threading.Thread(target=lambda: found.append(in_metrics(served)))
    first.start()
    assert begun.wait(60)
    newest = acknowledged(served)
    second.start()
    while served.context.figures.in_progress < 2:
        assert second.is_alive()
    let_go.set()
    first.join()
    second.join()
    assert found[0] >= newest


def test_distributions_that_are_behind_are_read_again_when_that_is_due(
    serve_stream: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distributions, "LEAST_S", 1e9)
    served = serve_stream()
    version = acknowledged(served)
    read = SAID["distributions"]
    assert read(served) == version
    served.produce([3], [4])
    served.settle()
    assert read(served) == version, "nobody was told of a newer one"
    acknowledged(served)
    refused = ask(served.url, "GET", "/v1/page/distributions")
    assert (refused.status, int(refused.headers["Retry-After"]) > 1) == (503, True)
