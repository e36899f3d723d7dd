"""GET /v1/run: the figures of `lpma run`, on a copy of the graph, one at a time."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

import algorithms
import lpma
from ingest import analyses
from ingest.service import runs
from ingest.service.context import Limits
from ingest.service.jobs import Job, Stopped
from ingest.service.problems import Problem
from ingest.state.vertex_names import VertexNames, Vertices
from lpma.errors import BatchError
from tests.support.command_line import document
from tests.support.waiting import HANGS_S, wait_for

from .conftest import Served
from .http import Answer, ask

Serve = Callable[..., Served]


def get(served: Served, what: str) -> Answer:
    return ask(served.url, "GET", f"/v1/run/{what}")


# What is computed --------------------------------------------------------------------------------

COMMANDS = {
    "core": [], "core?top=0": ["--top", 0], "truss?top=3": ["--top", 3], "triangles": [],
    "clustering": [], "components": [], "strong-components": [], "pagerank": [],
    "pagerank?damping=0.5&tol=0.001&max_iter=7&weighted=true":
        ["--damping", 0.5, "--tol", 0.001, "--max-iter", 7, "--weighted"],
    "bfs?source=1": ["--source", 1],
    "shortest-paths?source=1&top=3": ["--source", 1, "--top", 3],
    "similar?vertex=1&top=3&unlinked=true": ["--vertex", 1, "--top", 3, "--unlinked"],
    "similar?vertex=1": ["--vertex", 1],
    "diversity?model=component&k=1&top=2": ["--model", "component", "-k", 1, "--top", 2],
    "diversity": [],
}  # fmt: skip


@pytest.mark.parametrize("what", COMMANDS)
def test_it_is_what_the_command_says(serve_store: Serve, tmp_path: Path, what: str) -> None:
    rng = np.random.default_rng(2)
    graph = lpma.Graph(device="cpu")
    src, dst = rng.integers(0, 60, (2, 400))
    graph.insert(src, dst, rng.integers(1, 9, 400) / 4)
    graph.add_vertices([100])
    graph.save(tmp_path / "g.lpma")
    algorithm = what.partition("?")[0]
    options = [str(option).replace("-k", "--k") for option in COMMANDS[what]]
    expected = document("run", algorithm, tmp_path / "g.lpma", *options)
    answer = get(serve_store(graph), what)
    assert answer.status == 200, answer.body
    found = answer.json
    assert found["top"] == expected["top"]
    assert found["summary"] == {name: expected[name] for name in found["summary"]}
    assert [found[name] for name in ("algorithm", "version", "vertices", "edges")] == [
        expected[name] for name in ("algorithm", "version", "vertices", "edges")
    ]
    assert found["seconds"] >= 0
    assert found["top"] == [] or set(found["columns"]) <= set(found["top"][0])


def test_bicliques_are_counted_and_listed(serve_store: Serve, tmp_path: Path) -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert([0, 0, 1, 1, 1], [7, 8, 7, 8, 9])
    graph.save(tmp_path / "g.lpma")
    expected = document("run", "bicliques", tmp_path / "g.lpma", "--p", 2, "--q", 2, "--list", 5)
    served = serve_store(graph)
    found = get(served, "bicliques?p=2&q=2&list=5").json
    assert found["summary"] == {"bicliques": expected["bicliques"]} == {"bicliques": 1}
    assert found["top"] == expected["list"] == [{"left": [0, 1], "right": [7, 8]}]
    assert get(served, "bicliques?p=1&q=1&left=7").json["summary"] == {"bicliques": 5}
    assert get(served, "bicliques?p=1&q=1&left=8").status == 422, "no such side"


def test_vertices_go_by_their_names(serve_stream: Serve) -> None:
    served = serve_stream(names=True)
    rows = {"src": ["ann", "bob", 5], "dst": ["bob", 5, "ann"]}
    assert ask(served.url, "POST", "/v1/updates?wait=applied", rows).status == 200
    found = get(served, "core").json
    assert [row["vertex"] for row in found["top"]] == ["ann", "bob", 5]
    found = get(served, "bfs?source=5").json
    assert found["top"][0] == {"vertex": "bob", "hops": 2}
    assert get(served, 'bfs?source="5"').status == 422
    assert get(served, "bicliques?p=1&q=1&left=3").status == 422


@pytest.mark.parametrize(
    "what, status",
    [("cores", 404), ("core?colour=1", 422), ("core?top=-1", 422), ("core?top=1001", 422),
     ("core?top=1e9", 422), ("bfs", 422), ("bfs?source=77", 422), ("bfs?source=ann", 422),
     ("bfs?source=", 422), ("pagerank?damping=2", 422), ("pagerank?tol=nan", 422),
     ("pagerank?weighted=1", 422), ("diversity?model=clique", 422), ("diversity?k=0", 422),
     ("bicliques?p=1", 422), ("bicliques?p=2&q=2&method=closed", 422),
     ("bicliques?p=1000&q=1", 422), ("bicliques?p=1&q=1", 422)],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(serve_store: Serve, what: str, status: int) -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert([1, 2, 3], [2, 3, 1])
    answer = get(serve_store(graph), what)
    assert answer.status == status, answer.body
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_every_analysis_can_be_asked_for() -> None:
    assert runs.OPTIONS.keys() == analyses.ANALYSES.keys() | {"bicliques"}


@pytest.mark.parametrize(
    "algorithm, given, says",
    [("core", {"top": "1001"}, "top: expected an integer from 0 to 1000"),
     ("core", {"colour": "1"}, "unknown option 'colour': core takes top"),
     ("bfs", {}, "source: bfs needs it"),
     ("bfs", {"source": ""}, "source: '': a vertex goes by"),
     ("pagerank", {"damping": "half"}, "damping: expected a number from 0 to 1"),
     ("pagerank", {"max_iter": "10001"}, "max_iter: expected an integer from 0 to 10000"),
     ("pagerank", {"weighted": "yes"}, "weighted: expected true or false"),
     ("diversity", {"model": "clique"}, "model: expected one of component, core, truss"),
     ("bicliques", {"p": "2", "q": "2", "method": "closed"},
      r"method: closed is for p or q = 1, not \(2, 2\)"),
     ("bicliques", {"p": "2", "q": "2", "left": "null"}, "left: expected an integer from 0")],
)  # fmt: skip
def test_what_is_refused_is_named(algorithm: str, given: dict[str, str], says: str) -> None:
    with pytest.raises((Problem, BatchError)) as refused:
        runs.options_of(algorithm, given)
    assert re.match(says, getattr(refused.value, "detail", str(refused.value)))


@pytest.mark.parametrize("query, asked", [
    ("since=20", {"since": 20}), ("until=30&half_life=10", {"until": 30, "half_life": 10}),
    ("half_life=5&now=100", {"half_life": 5, "now": 100}),
])  # fmt: skip
def test_a_run_reads_a_view_in_time(serve_store: Serve, query: str, asked: dict[str, int]) -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert([1, 2, 3, 1], [2, 3, 1, 3], [1, 2, 3, 4], [10, 20, 25, 40])
    s = graph.snapshot(compact=True, **asked)
    answer = get(serve_store(graph), f"pagerank?{query}")
    assert answer.status == 200, answer.body
    told = answer.json
    ranks = algorithms.pagerank(s, weighted="half_life" in asked)
    assert s.ids is not None
    assert told["edges"] == s.num_edges
    assert {row["vertex"]: row["rank"] for row in told["top"]} == pytest.approx(
        dict(zip(s.ids.tolist(), ranks.tolist(), strict=True))
    )


@pytest.mark.parametrize("query, said", [
    ("core?half_life=2d", "half_life: core reads no weights"),
    ("core?since=soon", "expected a date or time of ISO 8601"),
    ("core?since=2&until=1", "since, until: 2 is after 1"),
])  # fmt: skip
def test_views_that_are_refused(serve_store: Serve, query: str, said: str) -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert(1, 2)
    answer = get(serve_store(graph), query)
    assert (answer.status, said in answer.body.decode()) == (422, True), answer.body


def test_options_are_those_that_algorithms_declare() -> None:
    given = {"damping": ".5", "max_iter": "007", "weighted": "true", "top": "0"}
    found = runs.options_of("pagerank", given)
    assert found == {"damping": 0.5, "tol": 1e-6, "max_iter": 7, "weighted": True, "top": 0}
    told = {each["name"]: each for each in runs.parameters()}
    assert told["algorithm"]["schema"]["enum"] == list(runs.OPTIONS)
    for algorithm, options in analyses.OPTIONS.items():
        for name, option in options.items():
            said, schema = told[name]["description"], told[name]["schema"]
            assert said.startswith("Of ")
            assert algorithm in said
            assert said.endswith(f": {option.description}.")
            assert option.description
            if option.kind in (int, float):
                assert schema["minimum"] == option.limits.ge
            assert set(schema.get("enum", ())) in (set(option.limits.choices), {"true", "false"})
    assert told["damping"]["schema"]["default"] == 0.85
    assert told["max_iter"]["schema"]["maximum"] == 10_000


def test_too_large_a_graph_is_left_to_the_command(serve_store: Serve, monkeypatch: Any) -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert([1, 2], [2, 3])
    monkeypatch.setattr(runs, "MAX_EDGES_OF", {"truss": 1})
    served = serve_store(graph)
    assert get(served, "truss").status == 409
    assert get(served, "core").status == 200


# One at a time -----------------------------------------------------------------------------------


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    held = Held()
    monkeypatch.setitem(analyses.ANALYSES, "core", held.core)
    yield held
    held.let_go.set()


class Held:
    """An analysis that ends when it is told to."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.begun = threading.Semaphore(0)
        self.runs = 0

    def core(self, s: Any, v: Any) -> Any:
        self.runs += 1
        self.begun.release()
        assert self.let_go.wait(HANGS_S)
        return analyses.triangles(s, v)


def sent(served: Served) -> socket.socket:
    """A connection over which a run was asked for."""
    address = urlsplit(served.url)
    connection = socket.create_connection((address.hostname, address.port))
    connection.sendall(b"GET /v1/run/core HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    return connection


def read(connection: socket.socket) -> bytes:
    data = b""
    while more := connection.recv(1 << 16):
        data += more
    connection.close()
    return data


def status_of(connection: socket.socket) -> int | None:
    """The status of the answer, None if there is none within moments; the client goes."""
    connection.settimeout(0.1)
    try:
        return int(connection.recv(1 << 16).split()[1])
    except TimeoutError:
        return None
    finally:
        connection.close()


def until_refused(served: Served) -> None:
    """Return when what was sent before has taken all places: what is tried to find that out gives
    its own back."""
    wait_for(lambda: status_of(sent(served)) == 429, "all places are taken")


def test_one_more_than_may_wait_is_told_when_to_come_back(serve_stream: Serve, held: Held) -> None:
    served = serve_stream(limits=Limits(max_runs=2))
    connections = [sent(served)]
    assert held.begun.acquire(timeout=HANGS_S)
    connections += [sent(served), sent(served)]
    until_refused(served)
    answer = get(served, "core")
    assert answer.status == 429
    assert int(answer.headers["Retry-After"]) >= 1
    served.produce([1], [2])
    served.settle()  # the stream goes on meanwhile
    held.let_go.set()
    assert all(b" 200 OK" in read(connection) for connection in connections)
    assert get(served, "core").status == 200
    assert held.runs == 4


def test_what_waits_is_forgotten_with_its_client(serve_stream: Serve, held: Held) -> None:
    served = serve_stream(limits=Limits(max_runs=1))
    first = sent(served)
    assert held.begun.acquire(timeout=HANGS_S)
    for _ in range(3):
        waiting = sent(served)
        until_refused(served)
        waiting.close()
    for _ in range(10):  # the service sees that they went before it sees these
        assert ask(served.url, "GET", "/healthz").status == 200
    held.let_go.set()
    assert b" 200 OK" in read(first)
    assert get(served, "triangles").status == 200
    assert held.runs == 1, "those whose clients went are not run"


def test_a_count_of_bicliques_ends_when_nobody_waits_for_it() -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert(*(axis.ravel() for axis in np.meshgrid(np.arange(30), np.arange(30, 60))))
    s = graph.snapshot(compact=True)
    vertices = Vertices(s, VertexNames())
    options = runs.options_of("bicliques", {"p": "3", "q": "3", "method": "pivot"})
    job: Job[Any] = Job(lambda job: None)
    assert runs._computed("bicliques", options, s, vertices, job.check)["summary"]
    job.stop()
    with pytest.raises(Stopped):
        runs._computed("bicliques", options, s, vertices, job.check)


def test_nobody_waits_longer_than_that(
    serve_store: Serve, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "MAX_SECONDS", 0.1)
    graph = lpma.Graph(device="cpu")
    graph.insert([1, 2], [2, 3])
    answer = get(serve_store(graph), "core")
    assert (answer.status, "not done within" in answer.json["detail"]) == (503, True)
