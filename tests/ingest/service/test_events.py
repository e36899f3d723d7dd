"""GET /v1/events: what is told, from where on, to whom, and what it costs those who do not read."""

from __future__ import annotations

import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import lpma
from ingest.errors import PipelineError
from ingest.pipeline.graph_requests import GraphRequests
from ingest.service import events
from ingest.service.app import Service
from ingest.service.connection import Timeouts
from ingest.service.context import Context, Limits
from ingest.service.events import Hub
from ingest.service.messages import RING
from ingest.service.sampling import Trend, parse_rule, printable
from tests.support.waiting import HANGS_S, wait_for

from .conftest import Served

Event = tuple[str, str, dict[str, Any]]  # id, kind, data
Serve = Callable[..., Served]


def watch(url: str, query: str = "", headers: dict[str, str] | None = None) -> Iterator[Event]:
    """The events as they come."""
    request = urllib.request.Request(f"{url}/v1/events{query}", headers=headers or {})
    with urllib.request.urlopen(request, timeout=HANGS_S) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        fields: dict[str, str] = {}
        for line in response:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                fields[name] = value
            elif "data" in fields:
                yield fields["id"], fields["event"], json.loads(fields["data"])
                fields = {}


@pytest.fixture
def hubs(monkeypatch: pytest.MonkeyPatch) -> list[Hub]:
    """The hubs of the services that are made."""
    made: list[Hub] = []

    class Known(Hub):
        def __init__(self, context: Context) -> None:
            super().__init__(context)
            made.append(self)

    monkeypatch.setattr(events, "Hub", Known)
    return made


def first(some: Iterator[Event], kind: str, so: Callable[[dict[str, Any]], bool]) -> Event:
    """The first event of a kind that is so."""
    return next(event for event in some if event[1] == kind and so(event[2]))


def test_batches_are_told(serve_stream: Serve) -> None:
    served = serve_stream()
    stream = watch(served.url)
    _, kind, hello = next(stream)
    assert (kind, hello["title"], hello["live"]) == ("hello", "log", True)
    served.produce([1, 2, 3], [2, 3, 4])
    _, _, batch = first(stream, "batch", lambda data: data["operations"] > 0)
    assert (batch["operations"], batch["edges"], batch["batches"]) == (3, 3, 1)
    assert batch["version"] == 1
    assert batch["lag"] in (0, 1)
    assert batch["ms"]["median"] > 0


def test_the_operations_of_all_events_are_those_of_the_stream(serve_stream: Serve) -> None:
    """However many batches are joined, none is told twice and none is left out."""
    served = serve_stream(settings={"batch_size": 7, "batch_interval": 0.001})
    stream = watch(served.url)
    next(stream)
    for i in range(200):
        served.produce(np.arange(10) + i, np.arange(10) + i + 1)
    told = {"operations": 0, "batches": 0}
    for _, kind, data in stream:
        if kind == "batch":
            told = {name: told[name] + data[name] for name in told}
        if told["operations"] >= 2000:
            break
    assert served.pipeline is not None
    assert told == {"operations": 2000, "batches": served.pipeline.stats.batches}


def test_a_dead_letter_and_a_checkpoint_are_told(serve_stream: Serve) -> None:
    served = serve_stream(checkpoint=True, settings={"checkpoint_operations": 1})
    stream = watch(served.url)
    assert served.log is not None
    served.log.produce("updates", b"\xffno record")
    _, _, letter = first(stream, "letter", lambda data: True)
    assert (letter["count"], letter["reasons"]) == (1, {"malformed": 1})
    assert letter["newest"][0]["starts"] == "\\xffno record"
    served.produce([1], [2])
    _, _, told = first(stream, "checkpoint", lambda data: data["operations"] == 1)
    assert told["bytes"] > 0


def test_alerts_and_kept_figures_are_told(serve_stream: Serve) -> None:
    served = serve_stream(settings={"track": ("core", "triangles")})
    rules = (parse_rule("edges > 2"), parse_rule("triangles > 0", ["triangles"]))
    graph, requests = served.context.graph, served.context.requests
    hub = Hub(Context(requests, graph, served.pipeline, alerts=rules))
    try:
        served.produce([1, 2, 1], [2, 3, 3])
        wait_for(lambda: _told(hub, "alert", "triangles > 0"), "the alert")
        assert _told(hub, "alert", "edges > 2")
        assert _told(hub, "figures", '"triangles":1')
    finally:
        hub.close()


def _told(hub: Hub, kind: str, text: str) -> bool:
    return any(f"event: {kind}\n" in each and text in each for each in
               (event.decode() for event in list(hub._ring)))  # fmt: skip


def test_who_comes_back_goes_on_where_it_was(serve_stream: Serve) -> None:
    """By header and by ?after=; no event is missed or repeated."""
    served = serve_stream()
    stream = watch(served.url)
    served.produce([1], [2])
    last, _, _ = first(stream, "batch", lambda data: data["operations"] > 0)
    served.produce([2], [3])
    served.settle()
    boot, number = last.split("-")
    for again in (watch(served.url, headers={"Last-Event-ID": last}),
                  watch(served.url, f"?after={last}")):  # fmt: skip
        assert next(again)[1] == "hello"
        ids = [next(again)[0] for _ in range(3)]
        assert ids == [f"{boot}-{int(number) + i}" for i in (1, 2, 3)]


def test_a_gap_is_said(
    serve_stream: Serve, hubs: list[Hub], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "RING", 5)
    served = serve_stream()
    begin, _, _ = next(watch(served.url))
    for _ in range(30):
        hubs[0].tell("batch", {})
    behind = watch(served.url, f"?after={begin}")
    assert next(behind)[1] == "hello"
    _, kind, gap = next(behind)
    assert (kind, gap["missed"] >= 25) == ("gap", True)
    assert next(behind)[1] == "batch"
    other = watch(served.url, "?after=00000000-3")
    assert [next(other)[1], next(other)[1]] == ["hello", "gap"]


def test_recent_events_come_first(serve_stream: Serve) -> None:
    served = serve_stream()
    served.produce([1], [2])
    served.settle()
    first(watch(served.url), "batch", lambda data: True)
    stream = watch(served.url, "?recent=10000")
    next(stream)
    assert int(next(stream)[0].split("-")[1]) == 1


@pytest.mark.parametrize(
    ("query", "status"),
    [("?after=7", 400), ("?after=xyz-1", 400), ("?recent=-1", 422), ("?recent=many", 422),
     ("?recent=10001", 422), ("?color=red", 422)],
)  # fmt: skip
def test_bad_queries_are_refused(serve_stream: Serve, query: str, status: int) -> None:
    served = serve_stream()
    with pytest.raises(urllib.error.HTTPError) as refused:
        next(watch(served.url, query))
    assert refused.value.code == status
    assert json.load(refused.value)["status"] == status


def test_only_so_many_may_watch(serve_stream: Serve) -> None:
    served = serve_stream(limits=Limits(max_watchers=2))
    some = [watch(served.url), watch(served.url)]
    assert [next(each)[1] for each in some] == ["hello", "hello"]
    with pytest.raises(urllib.error.HTTPError) as refused:
        next(watch(served.url))
    assert refused.value.code == 503
    assert refused.value.headers["retry-after"] == "5"
    some[0].close()  # type: ignore[attr-defined]
    _, kind, _ = wait_for(
        lambda: next(watch(served.url)), "a place is free", despite=urllib.error.HTTPError
    )
    assert kind == "hello"
    some[1].close()  # type: ignore[attr-defined]


def test_who_does_not_read_is_dropped(hubs: list[Hub]) -> None:
    """Its place is free again."""
    context = Context(GraphRequests(), lpma.Graph(device="cpu"), limits=Limits(max_watchers=1))
    with Service(context, timeouts=Timeouts(stalled_s=0.3)) as service, socket.socket() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.connect((service.host, service.port))
        lazy.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert lazy.recv(16) == b"HTTP/1.1 200 OK\r"
        with pytest.raises(urllib.error.HTTPError):
            next(watch(service.url))
        for _ in range(10_000):  # more than the system buffers
            hubs[0].tell("batch", {"filler": "x" * 2000})
        wait_for(lambda: not hubs[0]._watchers, "it is dropped")
        assert next(watch(service.url))[1] == "hello"


def test_a_saved_store_has_nothing_to_tell(serve_store: Serve) -> None:
    served = serve_store(lpma.from_edges([1], [2], device="cpu"))
    _, kind, hello = next(watch(served.url))
    assert (kind, hello["live"], hello["title"]) == ("hello", False, "store")


def test_a_stream_that_ended_is_said(serve_stream: Serve) -> None:
    served = serve_stream()
    stream = watch(served.url)
    next(stream)
    assert served.pipeline is not None
    served.pipeline.requests.close("the disk is full")
    assert first(stream, "batch", lambda data: data["ended"] is not None)[2]["ended"] == (
        "the disk is full"
    )


def test_closing_the_hub_ends_every_connection(serve_stream: Serve) -> None:
    served = serve_stream()
    stream = watch(served.url)
    next(stream)
    closing = threading.Thread(target=served.context.close)
    closing.start()
    assert len(list(stream)) < 1000  # it ends
    closing.join(HANGS_S)
    assert not closing.is_alive()


def test_the_ring_is_bounded(serve_store: Serve) -> None:
    served = serve_store(lpma.from_edges([1], [2], device="cpu"))
    hub = Hub(served.context)
    for _ in range(RING + 10):
        hub.tell("batch", {})
    assert len(hub._ring) == RING


def _trend(values: list[float]) -> Trend:
    trend = Trend()
    for second, value in enumerate(values):
        trend.add(float(second), value)
    return trend


def test_what_grows() -> None:
    rng = np.random.default_rng(1)
    rising = (100.0 * np.arange(30) + rng.integers(0, 300, 30)).tolist()
    assert _trend(rising).grows
    assert _trend(rising).per_s == pytest.approx(100, rel=0.1)
    assert not _trend(rising[::-1]).grows
    assert not _trend([500.0] * 30).grows
    assert not _trend([0.0, 0.0, 1.0]).grows  # too few


@pytest.mark.parametrize("seed", range(20))
def test_what_comes_and_goes_does_not_grow(seed: int) -> None:
    """Batches in flight: noise about a level, as an honest lag of a stream that keeps up."""
    values = np.random.default_rng(seed).integers(0, 500, 30).astype(float).tolist()
    trend = _trend(values)
    assert not trend.grows


def test_bytes_are_shown_safely() -> None:
    assert printable(b"ok \x00\x1b[31m\xff\n") == "ok \\x00\\x1b[31m\\xff\\n"
    assert printable("Zoë \u202e".encode()) == "Zoë \\u202e"


def test_an_alert_that_is_no_rule() -> None:
    with pytest.raises(PipelineError):
        parse_rule("; drop")
