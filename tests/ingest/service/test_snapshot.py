"""GET /v1/snapshot: one version, whole, in both forms; bounded in number, and freed."""

from __future__ import annotations

import gc
import socket
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow
import pytest

import lpma
from ingest.errors import RecordError
from ingest.service import snapshot as endpoint
from ingest.service import snapshot_forms as forms
from ingest.service.context import Limits
from ingest.service.messages import SnapshotQuery, parameters
from tests.support.waiting import HANGS_S, wait_for

from .conftest import Served
from .http import Answer, ask

Serve = Callable[..., Served]


def get(served: Served, query: str = "", accept: str | None = None) -> Answer:
    headers = {} if accept is None else {"Accept": accept}
    return ask(served.url, "GET", f"/v1/snapshot{query}", headers=headers)


def table_of(answer: Answer) -> Any:
    assert answer.status == 200, answer.body
    assert len(answer.body) == int(answer.headers["Content-Length"])
    return pyarrow.ipc.open_stream(answer.body).read_all()


def random_graph(edges: int = 3000, **options: Any) -> lpma.Graph:
    rng = np.random.default_rng(edges)
    graph = lpma.Graph(**{"device": "cpu", **options})
    src, dst = rng.integers(0, max(1, edges), (2, edges))
    weight: Any = 1.0 if graph.weight_dtype is None else rng.integers(1, 9, edges) / 4
    graph.insert(src, dst, weight)
    return graph


def check_arrow(answer: Answer, s: lpma.Snapshot) -> None:
    """That a reader has the arrays of the snapshot, as it finds them."""
    table = table_of(answer)
    out = table["out"].combine_chunks()
    assert out.is_valid().to_numpy(zero_copy_only=False).tolist() == s.present.tolist()
    assert np.array_equal(out.offsets.to_numpy(), s.indptr)
    entries = out.values
    for name, expected in (("dst", s.indices), ("weight", s.weights), ("time", s.times)):
        if expected is None:
            assert name not in [field.name for field in entries.type]
        else:
            found = entries.field(name).to_numpy()
            assert found.dtype == expected.dtype
            assert np.array_equal(found, expected)
    facts = table.schema.metadata
    assert (
        facts[b"lpma.version"] == str(s.version).encode() == answer.headers["Lpma-Version"].encode()
    )
    assert facts[b"lpma.edges"] == str(s.num_edges).encode()
    assert facts[b"lpma.directed"] == str(s.directed).lower().encode()


OPTIONS: list[dict[str, Any]] = [
    {}, {"directed": False}, {"weight_dtype": "float64", "times": False}, {"weight_dtype": None},
    {"weight_dtype": None, "times": False},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_both_forms_are_the_snapshot(
    serve_store: Serve, tmp_path: Path, monkeypatch: Any, options: dict[str, Any]
) -> None:
    monkeypatch.setattr(forms, "BATCH_ENTRIES", 100)
    graph = random_graph(**options)
    graph.add_vertices([5000])
    served, s = serve_store(graph), graph.snapshot()
    check_arrow(get(served), s)
    check_arrow(get(served, accept="application/vnd.apache.arrow.stream"), s)
    compact = graph.snapshot(compact=True)
    renumbered = get(served, "?compact=true")
    check_arrow(renumbered, compact)
    assert table_of(renumbered)["vertex"].to_pylist() == compact.ids.tolist()  # type: ignore[union-attr]
    for answer in (get(served, "?format=npz"), get(served, accept="application/octet-stream")):
        (tmp_path / "s.npz").write_bytes(answer.body)
        read = lpma.Snapshot.read_npz(tmp_path / "s.npz")
        assert sorted(read.to_numpy()) == sorted(s.to_numpy())
        assert all(np.array_equal(read.to_numpy()[name], a) for name, a in s.to_numpy().items())
        assert np.array_equal(read.added, s.added)  # type: ignore[arg-type]
        assert (read.version, read.num_edges, read.directed) == (s.version, s.num_edges, s.directed)


@pytest.mark.parametrize("options", OPTIONS[:2] + OPTIONS[3:4], ids=str)
@pytest.mark.parametrize("query, asked", [
    ("since=1970-01-01T00:00:01", {"since": 1000}),
    ("since=1000&until=2500", {"since": 1000, "until": 2500}),
    ("half_life=1s", {"half_life": 1000}),
    ("until=2500&half_life=300&now=4000", {"until": 2500, "half_life": 300, "now": 4000}),
    ("since=7d", {"since": 10**6}),
])  # fmt: skip
def test_views_in_time(
    serve_store: Serve, tmp_path: Path, query: str, asked: dict[str, Any], options: dict[str, Any]
) -> None:
    rng = np.random.default_rng(5)
    graph = lpma.Graph(device="cpu", **options)
    src, dst = rng.integers(0, 300, (2, 900))
    graph.insert(src, dst, time=rng.integers(0, 4000, 900))
    served = serve_store(graph)
    check_arrow(get(served, f"?{query}"), graph.snapshot(**asked))
    compact = graph.snapshot(compact=True, **asked)
    check_arrow(get(served, f"?compact=true&{query}"), compact)
    (tmp_path / "s.npz").write_bytes(get(served, f"?format=npz&{query}").body)
    assert lpma.Snapshot.read_npz(tmp_path / "s.npz").num_edges == compact.num_edges
    check_arrow(get(served), graph.snapshot())  # the whole is another one


@pytest.mark.parametrize("query, said", [
    ("since=soon", "expected a date or time of ISO 8601"), ("half_life=0", "a span above 0"),
    ("since=2&until=1", "since, until: 2 is after 1"), ("now=5", "give half_life, too"),
    ("since=9223372036854775808", "a time is an integer of 64 bits"), ("since=", "expected a date"),
])  # fmt: skip
def test_views_that_are_refused(serve_store: Serve, query: str, said: str) -> None:
    answer = get(serve_store(random_graph(9)), f"?{query}")
    assert (answer.status, said in answer.body.decode()) == (422, True), answer.body


def test_a_graph_without_times_has_no_views(serve_store: Serve) -> None:
    answer = get(serve_store(random_graph(9, times=False)), "?since=1")
    assert answer.status == 422
    assert "since: the edges have no times" in answer.body.decode()


@pytest.mark.parametrize("edges", [0, 1])
def test_the_smallest_graphs(serve_store: Serve, edges: int) -> None:
    graph = random_graph(edges)
    check_arrow(get(serve_store(graph)), graph.snapshot())


@pytest.mark.parametrize("compact", ["true", "false"])
def test_the_left_side_comes_along(serve_store: Serve, tmp_path: Path, compact: str) -> None:
    graph = lpma.Graph(device="cpu", left=2)
    graph.insert([0, 1], [5, 6])
    served = serve_store(graph)
    assert table_of(get(served, f"?compact={compact}")).schema.metadata[b"lpma.left"] == b"2"
    (tmp_path / "s.npz").write_bytes(get(served, f"?format=npz&compact={compact}").body)
    assert lpma.Snapshot.read_npz(tmp_path / "s.npz").left == 2
    assert b"lpma.left" not in table_of(get(serve_store(random_graph(1)))).schema.metadata


@pytest.mark.parametrize("names", [["ann", "bob", "eve"], [5, -7, 2**40], ["ann", 5, "5"]])
def test_names_come_along(serve_store: Serve, tmp_path: Path, names: list[Any]) -> None:
    graph = lpma.Graph(device="cpu", names=True)
    graph.insert(names[:2], names[1:])
    served, s = serve_store(graph), graph.snapshot()
    assert s.names is not None
    table = table_of(get(served))
    check_arrow(get(served), s)
    found = table["vertex"].to_pylist()
    if "vertex_number" in table.column_names:
        numbers = table["vertex_number"].to_pylist()
        found = [int(n) if is_number else n for n, is_number in zip(found, numbers, strict=True)]
    assert found == s.names.of(range(3)).tolist()
    (tmp_path / "s.npz").write_bytes(get(served, "?format=npz").body)
    read = lpma.Snapshot.read_npz(tmp_path / "s.npz")
    assert read.names is not None
    assert read.names.of(range(3)).tolist() == found


def test_it_is_of_the_version_when_it_was_asked_for(serve_stream: Serve) -> None:
    served = serve_stream()
    for version in (1, 2, 3):
        served.produce([version], [version + 1])
        served.settle()
        answer = get(served)
        assert table_of(answer)["out"].combine_chunks().values.field("dst").to_pylist() == [
            *range(2, version + 2)
        ]
        assert answer.headers["Lpma-Version"] == str(served.context.graph.version)


@pytest.mark.parametrize(
    "query, accept, status",
    [("?format=csv", None, 422), ("?color=red", None, 422), ("?compact=1", None, 422),
     ("", "text/html", 406)],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(
    serve_store: Serve, query: str, accept: str | None, status: int
) -> None:
    assert get(serve_store(random_graph()), query, accept).status == status


def test_a_word_that_is_none_is_told_with_those_that_are() -> None:
    with pytest.raises(RecordError) as raised:
        parameters(b"format=csv", SnapshotQuery)
    assert str(raised.value) == "format: invalid enum value 'csv': expected arrow or npz"


def test_sparse_ids_are_asked_for_without_gaps(serve_store: Serve) -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert(1, 4_000_000_000)
    served = serve_store(graph)
    answer = get(served)
    assert (answer.status, "compact=true" in answer.json["detail"]) == (422, True)
    assert table_of(get(served, "?compact=true"))["vertex"].to_pylist() == [1, 4_000_000_000]


class Reader:
    """A client that has asked for a snapshot, and reads as it is told."""

    def __init__(self, served: Served) -> None:
        address = urlsplit(served.url)
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(HANGS_S)
        self.socket.connect((address.hostname, address.port))
        self.socket.sendall(b"GET /v1/snapshot HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.head = self.socket.recv(4096)

    def rest(self) -> int:
        """How many bytes come until the end of the connection."""
        total = 0
        while data := self.socket.recv(1 << 20):
            total += len(data)
        return total


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[weakref.ref[Any]]:
    """The snapshots that are taken. Their rows may be kept for the next one to follow."""
    refs: list[weakref.ref[Any]] = []

    def noted(s: lpma.Snapshot) -> lpma.Snapshot:
        refs.append(weakref.ref(s))
        return forms.on_host(s)

    monkeypatch.setattr(endpoint, "on_host", noted)
    return refs


def until_freed(ref: weakref.ref[Any]) -> None:
    def is_freed() -> bool:
        gc.collect()
        return ref() is None

    wait_for(is_freed, "the snapshot is freed")


def test_one_is_sent_at_a_time_and_shared_at_its_version(
    serve_stream: Serve, taken: list[weakref.ref[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "GRACE_S", HANGS_S)
    served = serve_stream()
    rng = np.random.default_rng(1)
    served.produce(*rng.integers(0, 2000, (2, 1_000_000)))
    served.settle()
    slow = Reader(served)
    assert slow.head.startswith(b"HTTP/1.1 200")
    check_arrow(get(served), served.context.graph.snapshot())
    assert len(taken) == 1, "the same version is shared"
    assert get(served, "?format=npz").status == 429, "another form is another snapshot"
    served.produce([1], [2])
    wait_for(lambda: served.context.graph.version > 1, "another version")
    refused = get(served)
    assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
    slow.socket.close()
    answer = refused

    def has_room() -> bool:
        nonlocal answer
        answer = get(served)
        return answer.status != 429

    wait_for(has_room, "the first has left")
    check_arrow(answer, served.context.graph.snapshot())
    for ref in taken:
        until_freed(ref)


def test_whoever_asks_while_it_is_taken_shares_it(
    serve_stream: Serve, taken: list[weakref.ref[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    served = serve_stream()
    served.produce([1, 2], [2, 3])
    served.settle()
    pieces_of, serves, shared = forms.pieces_of, endpoint._Kept.serves, []

    def noted(self: Any, *given: Any) -> bool:
        found = serves(self, *given)
        shared.append(found)
        return found

    def slowly(*arguments: Any) -> Any:
        wait_for(lambda: len(shared) == 3, "three more ask for it")
        return pieces_of(*arguments)

    monkeypatch.setattr(endpoint._Kept, "serves", noted)
    monkeypatch.setattr(endpoint, "pieces_of", slowly)
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda _: get(served).status, range(4))) == [200] * 4
    assert shared == [True] * 3
    assert len(taken) == 1


def test_a_slow_reader_is_dropped(
    serve_store: Serve, taken: list[weakref.ref[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    served = serve_store(random_graph(1_000_000), limits=Limits(max_snapshots=2))
    size = int(get(served).headers["Content-Length"])
    with monkeypatch.context() as patch:
        patch.setattr(endpoint, "GRACE_S", 0.2)
        patch.setattr(endpoint, "LEAST_RATE", 1 << 30)
        reader = Reader(served)
        for ref in taken:
            until_freed(ref)
    assert reader.rest() < size, "the connection ended before the snapshot did"
    assert len(get(served).body) == size
