"""A question that takes long: kept while its client waits, dropped when it has left."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator

import pytest

import lpma
from ingest.interludes import Interludes, Moment
from ingest.service.asking import LOOK_S
from ingest.service.context import Context
from ingest.service.server import Service
from tests.support.raw_http import connect, read_answer, request, until

ASKED = [
    request("/v1/degree/1"),
    request("/v1/degree", "POST", b'{"u": [1]}', Content_Type="application/json"),
]


@pytest.fixture
def context() -> Context:
    """Of a stream that takes no step by itself."""
    graph = lpma.Graph(device="cpu")
    graph.insert([1, 1], [2, 3])
    return Context(Interludes(), graph)


@pytest.fixture
def service(context: Context) -> Iterator[Service]:
    with Service(context) as service:
        yield service


def step(context: Context) -> None:
    graph = context.graph
    context.interludes.hold(Moment(graph, None, graph.version, 0), 0, lambda: None)


@pytest.mark.parametrize("asked", ASKED, ids=["GET", "POST"])
def test_a_client_that_waits_is_answered(context: Context, service: Service, asked: bytes) -> None:
    with connect(service.port) as client:
        client.sendall(asked)
        client.settimeout(4 * LOOK_S)
        with pytest.raises(TimeoutError):
            client.recv(1)
        step(context)
        answer = read_answer(client)
        assert answer.status == 200
        assert json.loads(answer.body)["degree"] == [2]


@pytest.mark.parametrize("asked", ASKED, ids=["GET", "POST"])
def test_a_client_that_left_is_dropped(context: Context, service: Service, asked: bytes) -> None:
    """Before the deadline of its question, and with nobody to answer it."""
    with connect(service.port) as client:
        client.sendall(asked)
        until(lambda: context.figures.in_progress == 1)
    until(lambda: context.figures.in_progress == 0)
    step(context)
    with connect(service.port) as other:
        other.sendall(asked)
        until(lambda: context.interludes.due(False) is not None)  # it is asked
        step(context)
        assert read_answer(other).status == 200


def test_who_leaves_between_two_answers_is_no_error(
    context: Context, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    """Requests that were sent together, of which one is answered and the next under way."""
    for _ in range(5):
        with connect(service.port) as client:
            client.sendall(3 * ASKED[0])
            until(lambda: context.interludes.due(False) is not None)
            step(context)
            assert read_answer(client).status == 200
            until(lambda: context.interludes.due(False) is not None)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        until(lambda: context.figures.in_progress == 0)
        step(context)
    assert not [record for record in caplog.records if "service error" in record.getMessage()]
