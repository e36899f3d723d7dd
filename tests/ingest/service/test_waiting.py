"""A question that takes long: kept while its client waits, dropped when it has left."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import lpma
from ingest.pipeline.graph_requests import GraphRequests, GraphView
from ingest.service import query_queue
from ingest.service.app import Service
from ingest.service.context import Context
from tests.support.raw_http import ask, connect, read_answer, request
from tests.support.waiting import HANGS_S, wait_for

ASKED = [
    request("/v1/degree/1"),
    request("/v1/degree", "POST", b'{"u": [1]}', Content_Type="application/json"),
]


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_queue, "LOOK_S", 0.001)


@pytest.fixture
def context() -> Context:
    """Of a stream that takes no step by itself."""
    graph = lpma.Graph(device="cpu")
    graph.insert([1, 1], [2, 3])
    return Context(GraphRequests(), graph)


@pytest.fixture
def service(context: Context) -> Iterator[Service]:
    with Service(context) as service:
        yield service


def step(context: Context) -> None:
    graph = context.graph
    context.requests.answer(GraphView(graph, None, graph.version, 0), 0, lambda: None)


@pytest.mark.parametrize("asked", ASKED, ids=["GET", "POST"])
def test_a_client_that_waits_is_answered(
    context: Context, service: Service, monkeypatch: pytest.MonkeyPatch, asked: bytes
) -> None:
    """However long: it is watched, and not taken for one that left."""
    watched, until_gone = threading.Event(), query_queue.until_gone

    def noted(receive: Any) -> Any:
        watched.set()
        return until_gone(receive)

    monkeypatch.setattr(query_queue, "until_gone", noted)
    with connect(service.port) as client:
        client.sendall(asked)
        assert watched.wait(HANGS_S)
        assert ask(service.port, request("/healthz")).status == 200  # the loop came round
        step(context)
        answer = read_answer(client)
        assert answer.status == 200
        assert json.loads(answer.body)["degree"] == [2]


@pytest.mark.parametrize("asked", ASKED, ids=["GET", "POST"])
def test_a_client_that_left_is_dropped(context: Context, service: Service, asked: bytes) -> None:
    """Before the deadline of its question, and with nobody to answer it."""
    with connect(service.port) as client:
        client.sendall(asked)
        wait_for(lambda: context.figures.in_progress == 1, "the request")
    wait_for(lambda: context.figures.in_progress == 0, "it is dropped")
    step(context)
    with connect(service.port) as other:
        other.sendall(asked)
        wait_for(lambda: context.requests.due(False) is not None, "the question")  # it is asked
        step(context)
        assert read_answer(other).status == 200


def test_who_leaves_between_two_answers_is_no_error(
    context: Context, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    """Requests that were sent together, of which one is answered and the next under way."""
    for _ in range(5):
        with connect(service.port) as client:
            client.sendall(3 * ASKED[0])
            wait_for(lambda: context.requests.due(False) is not None, "the question")
            step(context)
            assert read_answer(client).status == 200
            wait_for(lambda: context.requests.due(False) is not None, "the question")
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        wait_for(lambda: context.figures.in_progress == 0, "it is dropped")
        step(context)
    assert not [record for record in caplog.records if "service error" in record.getMessage()]
