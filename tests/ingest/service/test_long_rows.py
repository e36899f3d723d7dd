"""A vertex may have more neighbours than an answer has rows: they are read in pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import msgpack
import numpy as np
import pytest

import lpma
from ingest.service import answering
from ingest.service.context import Limits

from .conftest import Served
from .http import ARROW, MSGPACK, post, request
from .test_queries import read_arrow

Serve = Callable[..., Served]

# Pages of two rows, answers of three.
SMALL = Limits(max_answer_rows=3, page_rows=2)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "PART_ROWS", 3)


def pages(url: str, **asked: Any) -> list[dict[str, Any]]:
    """All pages of an answer."""
    found = [post(url, **asked).json]
    while found[-1]["cursor"] is not None:
        answer = post(url, cursor=found[-1]["cursor"])
        assert answer.status == 200, answer.body
        assert post(url, cursor=found[-1]["cursor"]).json["ids"] == answer.json["ids"], "again"
        found.append(answer.json)
    return found


@pytest.mark.parametrize("degree", range(14))
@pytest.mark.parametrize(
    "kind, sent", [("successors", {}), ("predecessors", {}), ("hops", {"k": 1})]
)
def test_all_neighbours_of_a_vertex_come_in_pages(
    serve_store: Serve, kind: str, sent: dict[str, Any], degree: int
) -> None:
    graph = lpma.Graph(device="cpu", predecessors=True)
    ids, hub = np.arange(10, 10 + degree), np.full(degree, 9)
    src, dst = (ids, hub) if kind == "predecessors" else (hub, ids)
    graph.insert(src, dst, weight=ids)
    graph.insert(8, 9)
    graph.delete(8, 9)
    served = serve_store(graph, limits=SMALL)
    name = "v" if kind == "predecessors" else "u"
    found = pages(f"{served.url}/v1/{kind}", **{name: [9]}, **sent)
    assert [id for page in found for id in page["ids"]] == ids.tolist()
    assert {page["version"] for page in found} == {graph.version}
    assert all(len(page["ids"]) <= 2 for page in found)
    if kind != "hops":
        assert [w for page in found for w in page["weight"]] == ids.tolist()
    one = request(f"{served.url}/v1/{kind}/9" + ("?k=1" if sent else ""))
    assert one.json["ids"] == found[0]["ids"]


@pytest.mark.parametrize("after", [9, 10, 15, 17, 18, 30])
def test_what_is_left_out_counts_for_nothing(serve_store: Serve, after: int) -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert([9] * 10, range(10, 20))
    served = serve_store(graph, limits=SMALL)
    found = pages(f"{served.url}/v1/successors", u=[9], after=[after])
    left = [id for id in range(10, 20) if id > after]
    assert [id for page in found for id in page["ids"]] == left
    several = post(f"{served.url}/v1/successors", u=[9, 8, 9], after=[after, None, 18])
    if len(left) > 2:
        assert (several.status, several.json["type"]) == (413, "urn:lpma:too-large")
    else:
        rows = several.json["ids"]
        if several.json["cursor"] is not None:
            rows += post(f"{served.url}/v1/successors", cursor=several.json["cursor"]).json["ids"]
        assert rows == [*left, 19]


@pytest.mark.parametrize("of_stream", [False, True])
def test_rows_of_names_come_in_pages(
    serve_stream: Serve, serve_store: Serve, of_stream: bool
) -> None:
    names = ["a", 7, "c/d", "7", "é", "f", -1, "h"]
    if of_stream:
        served = serve_stream(names=False, settings={"names": True}, limits=SMALL)
        served.produce(["hub"] * 8, names, names=True)
        served.settle()
    else:
        graph = lpma.Graph(device="cpu", names=True)
        graph.insert(["hub"] * 8, names)
        served = serve_store(graph, limits=SMALL)
    url = f"{served.url}/v1/successors"
    found = pages(url, u=["hub"])
    assert [name for page in found for name in page["ids"]] == names
    behind = pages(url, u=["hub"], after=["c/d"])
    assert [name for page in behind for name in page["ids"]] == names[3:]
    all_of_them = pages(url, u=["hub"], after=["nobody"])
    assert [name for page in all_of_them for name in page["ids"]] == names
    one = request(f"{url}/hub?after={quote(chr(34) + '7' + chr(34))}")
    assert one.json["ids"] == ["é", "f"]


def test_pages_of_a_long_row_are_of_one_version(serve_stream: Serve) -> None:
    served = serve_stream(limits=SMALL)
    served.produce([9] * 8, range(10, 18))
    served.settle()
    url = f"{served.url}/v1/successors"
    first = post(url, u=[9]).json
    second = post(url, cursor=first["cursor"]).json
    assert first["ids"] + second["ids"] == [10, 11, 12]
    body = {"src": [9], "dst": [14]}
    assert post(f"{served.url}/v1/updates?wait=applied", **body).status == 200
    assert post(url, cursor=first["cursor"]).json == second, "what is kept stays as it was"
    gone = post(url, cursor=second["cursor"])
    assert (gone.status, "`after`" in gone.json["detail"]) == (410, True)
    rest = pages(url, u=[9], after=second["ids"][-1:])
    assert [id for page in rest for id in page["ids"]] == [13, 14, 15, 16, 17]


@pytest.mark.parametrize("form", [MSGPACK, ARROW])
def test_a_long_row_comes_in_every_form(serve_store: Serve, form: str) -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert([9] * 7, range(10, 17))
    url = f"{serve_store(graph, limits=SMALL).url}/v1/successors"
    found, answer = [], request(f"{url}/9", accept=form)
    while True:
        if form == MSGPACK:
            fields = msgpack.unpackb(answer.body)
            found += np.frombuffer(fields["ids"], np.uint32).tolist()
            cursor = fields["cursor"]
        else:
            table = read_arrow(answer.body)
            found += table["id"].to_pylist()
            cursor = (table.schema.metadata.get(b"lpma.cursor") or b"").decode() or None
        if cursor is None:
            break
        answer = request(f"{url}/9?cursor={cursor}", accept=form)
        assert answer.status == 200, answer.body
    assert found == list(range(10, 17))
