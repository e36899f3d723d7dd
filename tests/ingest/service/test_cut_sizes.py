"""The HTTP service with every size at which it cuts set to 3: bodies into records, questions into
calls of the graph, answers into pages, snapshots into batches and writes. Then more rows
than each takes at once as users have it. The graph itself is the oracle."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest

import ingest
import lpma
from ingest.service import answering, queries, snapshot, snapshot_forms, update_codecs
from ingest.service.context import Limits
from tests.support.oracles import assert_same

from .conftest import Served
from .http import JSON, MSGPACK, ask, post

Serve = Callable[..., Served]

CUT = 3
SIZES = [
    (update_codecs, "RECORD_ROWS"), (answering, "PART_ROWS"),
    (answering, "PART_EDGES"), (answering, "PART_DEGREES"), (queries, "LONG"),
    (snapshot, "CHUNK_BYTES"), (snapshot_forms, "BATCH_ENTRIES"),
]  # fmt: skip
LINES = "application/jsonl"

forms = pytest.mark.parametrize("named", [False, True], ids=["ids", "names"])


@pytest.fixture
def at_three(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in SIZES:
        monkeypatch.setattr(module, name, CUT)


def rows_of(named: bool, count: int = 50) -> dict[str, list[Any]]:
    rng = np.random.default_rng(count)
    called: list[Any] = [f"v{v}" if v % 3 else v - 3 for v in range(9)]
    src, dst = rng.integers(0, 9, (2, count)).tolist()
    if named:
        src, dst = [called[u] for u in src], [called[v] for v in dst]
    weight, time = (rng.integers(1, 9, count) / 4).tolist(), list(range(1000, 1000 + count))
    return {"src": src, "dst": dst, "weight": weight, "time": time}


def graph_of(columns: dict[str, list[Any]], named: bool) -> lpma.Graph:
    graph = lpma.Graph(device="cpu", names=named, predecessors=True)
    for row in zip(*columns.values(), strict=True):
        graph.insert(*row)
    return graph


def bodies(columns: dict[str, list[Any]], named: bool) -> dict[str, tuple[str, bytes]]:
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return {
        "columns": (JSON, json.dumps(columns).encode()),
        "lines": (LINES, "\n".join(map(json.dumps, rows)).encode()),
        "msgpack": (MSGPACK, ingest.encode_updates(*columns.values(), names=named)),
    }


def assert_same_edges(graph: lpma.Graph, expected: lpma.Graph) -> None:
    graph.check()
    assert (graph.num_edges, sorted(map(str, graph))) == (
        expected.num_edges, sorted(map(str, expected)),
    )  # fmt: skip
    for u in expected:
        for name in ("ids", "weights", "times"):
            found, wanted = (
                dict(zip(map(str, n.ids.tolist()), getattr(n, name).tolist(), strict=True))
                for n in (graph.successors(u), expected.successors(u))
            )
            assert found == wanted


@forms
@pytest.mark.parametrize("form", ["columns", "lines", "msgpack"])
def test_updates_are_whole_wherever_they_are_cut(
    serve_stream: Serve, at_three: None, named: bool, form: str
) -> None:
    columns = rows_of(named)
    served = serve_stream(names=named, settings={"batch_size": CUT, "poll_records": CUT})
    content_type, body = bodies(columns, named)[form]
    headers = {"Content-Type": content_type}
    answer = ask(served.url, "POST", "/v1/updates?wait=applied", body, headers)
    assert answer.status == 200, answer.body
    served.settle()
    graph: Any = served.context.graph
    assert_same_edges(graph, graph_of(columns, named))


def paged(url: str, **fields: Any) -> tuple[list[int], list[list[Any]]]:
    """(the rows of each page, the columns of all pages together)."""
    pages = [post(url, **fields)]
    while True:
        assert pages[-1].status == 200, pages[-1].body
        cursor = pages[-1].json["cursor"]
        if cursor is None:
            break
        pages.append(post(url, cursor=cursor))
    found = [page.json for page in pages]
    together = [[x for page in found for x in page[n]] for n in ("ids", "weight", "times")
                if all(page.get(n) is not None for page in found)]  # fmt: skip
    counts = sum(np.diff(page["indptr"]) for page in found)
    return [len(page["ids"]) for page in found], [counts.tolist(), *together]


@forms
@pytest.mark.parametrize("kind", ["successors", "predecessors", "hops"])
def test_answers_are_whole_wherever_they_are_cut(
    serve_store: Serve, at_three: None, named: bool, kind: str
) -> None:
    graph = graph_of(rows_of(named), named)
    served = serve_store(graph, limits=Limits(page_rows=CUT))
    vertices = list(graph)
    if kind == "hops":
        expected, asked = graph.hops(vertices, 2), {"u": vertices, "k": 2}
    else:
        end = "v" if kind == "predecessors" else "u"
        expected, asked = getattr(graph, kind)(vertices), {end: vertices}
    sizes, (counts, *columns) = paged(f"{served.url}/v1/{kind}", **asked)
    assert counts == np.diff(expected.indptr).tolist()
    assert sizes == [CUT] * (len(expected.ids) // CUT) + [len(expected.ids) % CUT] * (
        len(expected.ids) % CUT > 0
    )
    for found, name in zip(columns, ("ids", "weights", "times"), strict=False):
        assert found == getattr(expected, name).tolist(), name
    assert (len(columns) == 3) == (kind != "hops")
    with ingest.Client.http(served.url) as client:
        for i, u in enumerate(vertices):
            query = ingest.Ask(lpma.Kind[kind.upper()], u, steps=2 if kind == "hops" else None)
            ids = [v for page in client.pages(query) for v in page.answer.ids.tolist()]  # type: ignore[union-attr]
            lo, hi = expected.indptr[i : i + 2].tolist()
            assert ids == expected.ids[lo:hi].tolist()


@forms
def test_single_answers_are_whole_wherever_they_are_cut(
    serve_store: Serve, at_three: None, named: bool
) -> None:
    graph = graph_of(rows_of(named), named)
    served = serve_store(graph, limits=Limits(page_rows=CUT))
    vertices = list(graph)
    found = post(f"{served.url}/v1/degree", u=vertices).json["degree"]
    assert found == graph.degree(vertices).tolist()
    edges = [(u, v) for u in vertices for v in vertices]
    u, v = (list(end) for end in zip(*edges, strict=True))
    answer, expected = post(f"{served.url}/v1/edges", src=u, dst=v).json, graph.edges(u, v)
    assert answer["found"] == expected.found.tolist()


@forms
@pytest.mark.parametrize("compact", [False, True])
def test_a_snapshot_is_whole_wherever_it_is_cut(
    serve_store: Serve, at_three: None, tmp_path: Path, named: bool, compact: bool
) -> None:
    graph = graph_of(rows_of(named), named)
    served, s = serve_store(graph), graph.snapshot(compact=compact)
    path = f"/v1/snapshot?compact={str(compact).lower()}"
    (tmp_path / "s.npz").write_bytes(ask(served.url, "GET", f"{path}&format=npz").body)
    read = lpma.Snapshot.read_npz(tmp_path / "s.npz")
    for name, column in s.to_numpy().items():
        assert_same(read.to_numpy()[name], column, name)
    if s.names is not None:
        assert read.names is not None
        every = range(s.num_rows)
        assert read.names.of(every).tolist() == s.names.of(every).tolist()
    table = pyarrow.ipc.open_stream(ask(served.url, "GET", path).body).read_all()
    assert table["out"].num_chunks > 2
    assert np.array_equal(table["out"].combine_chunks().offsets.to_numpy(), s.indptr)
    entries = table["out"].combine_chunks().values
    assert np.array_equal(entries.field("dst").to_numpy(), s.indices)
    assert entries.field("weight").to_pylist() == s.to_numpy()["weights"].tolist()


MANY = 40_000  # more than a record of updates, a part of an answer or a piece of one has rows


def star(named: bool) -> tuple[list[Any], dict[str, list[Any]]]:
    """(the vertices, edges from the first to each of the others)."""
    called: list[Any] = [f"v{v}" if named else v for v in range(MANY + 1)]
    return called, {"src": [called[0]] * MANY, "dst": called[1:], "time": list(range(MANY))}


@forms
def test_updates_of_more_rows_than_a_record(serve_stream: Serve, named: bool) -> None:
    called, columns = star(named)
    served = serve_stream(names=named)
    answer = ask(served.url, "POST", "/v1/updates?wait=applied", columns)
    assert answer.status == 200, answer.body
    served.settle()
    graph: Any = served.context.graph
    graph.check()
    found = graph.successors(called[0])
    assert dict(zip(found.ids.tolist(), found.times.tolist(), strict=True)) == dict(
        zip(columns["dst"], columns["time"], strict=True)
    )


@forms
def test_answers_of_more_rows_than_any_part(serve_store: Serve, named: bool) -> None:
    """Of a store, where no stream waits for the answer."""
    called, columns = star(named)
    graph = lpma.Graph(device="cpu", names=named)
    graph.insert(columns["src"], columns["dst"], time=columns["time"])
    served = serve_store(graph, limits=Limits(page_rows=30_000))
    sizes, (counts, ids, weight, time) = paged(f"{served.url}/v1/successors", u=[called[0]])
    assert sizes == [30_000, 10_000]
    assert counts == [MANY]
    assert (ids, time) == (called[1:], columns["time"])
    assert weight == [1.0] * MANY
    answer = post(f"{served.url}/v1/degree", u=called)
    assert answer.status == 200, answer.body
    assert answer.json["degree"] == [MANY] + [0] * MANY
