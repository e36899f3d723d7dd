"""Point queries over HTTP: right answers in every form, one version a request, bounds, errors."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np
import pyarrow as pa
import pytest

import ingest
import lpma
from ingest.errors import RecordError
from ingest.formats.names import name_fields, names_of
from ingest.service.arrow_input import read_columns
from ingest.service.context import Limits
from lpma import Kind
from tests.ingest.service.conftest import Standstill
from tests.ingest.service.http import ARROW, JSON, MSGPACK, post, request
from tests.support.waiting import HANGS_S, wait_for

Serve = Callable[..., Any]


def edges_of(rng: np.random.Generator, count: int = 400, vertices: int = 30) -> Any:
    return rng.integers(0, vertices, (2, count))


# Answers -------------------------------------------------------------------------------------


def test_every_query_answers_as_the_graph_does(device: str, serve_stream: Serve) -> None:
    served = serve_stream(device=device, predecessors=True)
    src, dst = edges_of(np.random.default_rng(1))
    served.produce(src, dst)
    served.settle()
    graph, every = lpma.Graph(predecessors=True, device="cpu"), list(range(32))
    graph.insert(src, dst)
    url = f"{served.url}/v1"

    edges = post(f"{url}/edges", src=every, dst=every[::-1]).json
    found = graph.edges(every, every[::-1])
    assert edges["found"] == found.found.tolist()
    assert found.weights is not None
    expected = [w if f else None for w, f in zip(found.weights, found.found, strict=True)]
    assert edges["weight"] == expected
    assert [t is not None for t in edges["times"]] == edges["found"]
    assert post(f"{url}/degree", u=every).json["degree"] == graph.degree(every).tolist()
    assert post(f"{url}/vertices", v=every).json["present"] == graph.has_vertices(every).tolist()
    for name, field, answer in (
        ("successors", {"u": every}, graph.successors(every)),
        ("predecessors", {"v": every}, graph.predecessors(every)),
        ("hops", {"u": every, "k": 2}, graph.hops(every, 2)),
    ):
        told = post(f"{url}/{name}", **field).json
        assert told["indptr"] == answer.indptr.tolist()
        assert told["ids"] == answer.ids.tolist()
        assert told["cursor"] is None
        assert ("weight" in told) == ("times" in told) == (name != "hops")
        one = request(f"{url}/{name}/7{'?k=2' if name == 'hops' else ''}").json
        assert one["ids"] == answer.ids[answer.indptr[7] : answer.indptr[8]].tolist()
    assert request(f"{url}/edges/3/28").json["found"] == [bool(found.found[3])]
    assert request(f"{url}/degree/3").json["degree"] == [graph.degree(3)]
    assert request(f"{url}/vertices/31").json["present"] == [False]


@pytest.mark.parametrize("weight", [None, "float32", "float64"])
def test_forms_agree(serve_store: Serve, weight: str | None) -> None:
    graph = lpma.Graph(device="cpu", weight_dtype=weight, times=weight is not None)
    src, dst = edges_of(np.random.default_rng(2))
    graph.insert(src, dst, *([] if weight is None else [np.linspace(0.1, 9, len(src))]))
    url = f"{serve_store(graph).url}/v1"
    every = np.arange(32, dtype=np.uint32)
    bodies = {
        JSON: json.dumps({"u": every.tolist()}).encode(),
        MSGPACK: msgpack.packb({"rows": 32, "u": every.tobytes()}),
        "application/x-msgpack; v=1": msgpack.packb({"u": every.tolist()}),
        ARROW: arrow_of(u=every),
    }
    answers = {form: request(f"{url}/successors", body, form) for form, body in bodies.items()}
    assert {answer.status for answer in answers.values()} == {200}
    told = {answer.body for answer in answers.values()}
    assert len(told) == 1
    expected, as_json = graph.successors(every), json.loads(told.pop())
    packed = msgpack.unpackb(request(f"{url}/successors", bodies[JSON], accept=MSGPACK).body)
    table = read_arrow(request(f"{url}/successors", bodies[JSON], accept=ARROW).body)
    assert as_json["ids"] == expected.ids.tolist() == table["id"].to_pylist()
    assert packed["ids"] == expected.ids.tobytes()
    assert packed["rows"] == len(expected.ids)
    assert packed["indptr"] == expected.indptr.tobytes()
    assert table["of"].to_pylist() == np.repeat(every, np.diff(expected.indptr)).tolist()
    assert table.schema.metadata[b"lpma.version"] == b"%d" % as_json["version"]
    assert ("weight" in as_json) == ("weight" in packed) == (weight is not None)
    if expected.weights is not None:
        assert packed["weight"] == expected.weights.tobytes()
        assert as_json["weight"] == expected.weights.tolist() == table["weight"].to_pylist()
    edges = {"src": [1, 2], "dst": [2, 99]}
    table = read_arrow(request(f"{url}/edges", json.dumps(edges).encode(), accept=ARROW).body)
    assert table["found"].to_pylist() == graph.edges([1, 2], [2, 99]).found.tolist()
    if weight is not None:
        assert table["weight"].to_pylist()[1] is None


def arrow_of(**columns: Any) -> bytes:
    batch = pa.record_batch({name: pa.array(column) for name, column in columns.items()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def read_arrow(data: bytes) -> Any:
    return pa.ipc.open_stream(data).read_all()


def test_names(serve_stream: Serve) -> None:
    names = ["ann", "bob", "5", 5, -7, 2**63, "a/b c", "ä€"]
    served = serve_stream(names=True, predecessors=True)
    served.produce(["ann"] * 8, names, names=True)
    served.produce(["bob"], ["5"], names=True)
    served.settle()
    url = f"{served.url}/v1"
    assert post(f"{url}/successors", u=["ann"]).json["ids"] == names
    assert post(f"{url}/degree", u=["ann", "bob", 5, "nobody"]).json["degree"] == [8, 1, 0, 0]
    assert post(f"{url}/edges", src=["bob", "bob"], dst=["5", 5]).json["found"] == [True, False]
    assert request(f"{url}/vertices/a%2Fb%20c").json["present"] == [True]
    assert request(f"{url}/vertices/%C3%A4%E2%82%AC").json["present"] == [True]
    assert request(f"{url}/predecessors/%225%22").json["ids"] == ["ann", "bob"]
    assert request(f"{url}/predecessors/5").json["ids"] == ["ann"]
    assert post(f"{url}/hops", u=["ann"], k=2).json["ids"] == names
    after = post(f"{url}/successors", u=["ann", "ann"], after=[-7, None]).json
    assert after["indptr"] == [0, 3, 11]
    assert after["ids"][:3] == names[5:]
    body = msgpack.packb({"rows": 8, **name_fields("v", names_of(names, "v"))})
    assert request(f"{url}/vertices", body, MSGPACK).json["present"] == [True] * 8
    table = read_arrow(request(f"{url}/successors/ann", accept=ARROW).body)
    assert table["id"].to_pylist()[:4] == ["ann", "bob", '"5"', "5"]
    assert post(f"{url}/vertices", v=["ann", 2**64]).status == 422


# One version ---------------------------------------------------------------------------------


def test_a_request_is_answered_at_one_version(serve_stream: Serve) -> None:
    """Each batch moves one edge to the next of 50 vertices: at every version exactly one has it."""
    served = serve_stream(settings={"batch_interval": 0.0})
    served.produce([0], [99])
    served.settle()
    done = threading.Event()

    def stream() -> None:
        with ingest.SqliteLog(served.log.path) as log:
            for i in range(300):
                u = i % 50
                log.produce("updates", ingest.encode_updates(
                    [u, (u + 1) % 50], [99, 99], kind=[Kind.DELETE, Kind.INSERT]))  # fmt: skip
        done.set()

    thread = threading.Thread(target=stream)
    thread.start()
    versions: list[int] = []
    told: set[int] = set()
    while not done.is_set() or len(versions) < 20:
        answer = post(f"{served.url}/v1/degree", u=list(range(50))).json
        assert sum(answer["degree"]) == 1
        versions.append(answer["version"])
        told.add(answer["degree"].index(1))
    thread.join()
    assert versions == sorted(versions)
    assert len(told) > 1


def test_pages_are_of_the_version_of_the_first(serve_stream: Serve) -> None:
    served = serve_stream(limits=Limits(page_rows=7))
    served.produce([1] * 20 + [2] * 5, [*range(20), *range(5)])
    served.settle()
    url = f"{served.url}/v1/successors"
    first = post(url, u=[1, 3, 2]).json
    served.produce([1] * 20, range(20), kind=[Kind.DELETE] * 20)
    served.settle()
    pages = [first]
    while pages[-1]["cursor"] is not None:
        again = [post(url, cursor=pages[-1]["cursor"]).json for _ in range(2)]
        assert again[0] == again[1]
        pages.append(again[0])
    assert {page["version"] for page in pages} == {first["version"]}
    assert [len(page["ids"]) for page in pages] == [7, 7, 7, 4]
    assert [id for page in pages for id in page["ids"]] == [*range(20), *range(5)]
    rows = sum(np.diff(page["indptr"]) for page in pages)
    assert rows.tolist() == [20, 0, 5]
    by_get = request(f"{url}/1?cursor={first['cursor']}").json
    assert by_get == pages[1]
    assert post(url, u=[1], after=[17]).json["ids"] == []
    of_another = post(f"{served.url}/v1/hops", cursor=first["cursor"])
    assert of_another.status == 422


# Bounds --------------------------------------------------------------------------------------


def test_what_is_kept_is_bounded(serve_store: Serve) -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert([0] * 1000, range(1000))
    row = 4 + 4 + 8
    limits = Limits(page_rows=10, max_rows=100, kept_bytes=2500 * row, kept_s=60)
    url = f"{serve_store(graph, limits=limits).url}/v1/successors"
    cursors = [post(url, u=[0]).json["cursor"] for _ in range(4)]
    kept = [post(url, cursor=cursor).status for cursor in cursors]
    assert kept == [410, 410, 200, 200]  # two answers of 1,000 rows fit
    too_long = post(url, u=[0, 0, 0])
    assert too_long.status == 413
    assert too_long.json["type"] == "urn:lpma:too-large"
    assert post(f"{url[:-10]}degree", u=[0]).json["degree"] == [1000]


def test_what_is_kept_expires(serve_store: Serve) -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert([0] * 20, range(20))
    url = f"{serve_store(graph, limits=Limits(page_rows=10, kept_s=0.0)).url}/v1/successors"
    cursor = post(url, u=[0]).json["cursor"]
    gone = post(url, cursor=cursor)
    assert gone.status == 410
    assert "after" in gone.json["detail"]


def test_a_stream_that_stands_still_answers_504(
    serve_stream: Serve, standstill: Standstill
) -> None:
    served = serve_stream(limits=Limits(deadline_s=0.1))
    served.produce([1], [2])
    served.settle()
    standstill.begins(served)
    assert request(f"{served.url}/v1/degree/1").status == 504
    standstill.ends()
    # Any answer may miss such a deadline.
    wait_for(lambda: request(f"{served.url}/v1/degree/1").json.get("degree") == [1])


def test_more_than_may_wait_are_answered_503(serve_stream: Serve, standstill: Standstill) -> None:
    served = serve_stream(limits=Limits(deadline_s=HANGS_S, max_waiting=3))
    served.produce([1], [2])
    served.settle()
    standstill.begins(served)
    found: list[Any] = []
    ask = [
        threading.Thread(target=lambda: found.append(request(f"{served.url}/v1/degree/1")))
        for _ in range(8)
    ]
    for thread in ask:
        thread.start()
    wait_for(lambda: len(found) == 5, "all but those that wait are answered")
    assert {answer.status for answer in found} == {503}
    assert all(answer.headers["Retry-After"] for answer in found)
    standstill.ends()
    for thread in ask:
        thread.join()
    assert [answer.status for answer in found[5:]] == [200] * 3


def test_memory_that_runs_out_harms_nobody(serve_store: Serve) -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert([1, 2], [2, 3])
    served = serve_store(graph)
    real = graph.degree

    def degree(u: Any) -> Any:
        if 666 in list(u):
            raise lpma.OutOfMemory("no room: ask for less")
        return real(u)

    graph.degree = degree  # type: ignore[method-assign]
    answer = post(f"{served.url}/v1/degree", u=[666])
    assert (answer.status, answer.headers["Content-Type"]) == (503, "application/problem+json")
    assert "ask for less" in answer.json["detail"]
    assert post(f"{served.url}/v1/degree", u=[1]).json["degree"] == [1]


# Malformed requests --------------------------------------------------------------------------

BAD = [
    (b"", 400), (b"[", 400), (b"[1]", 400), (b"\xff", 400), (b'{"u":[NaN]}', 400),
    (b'{"u":[1],"u":[2]}', 422), (b"[" * 100_000, 400), (b'{"u":' + b"[" * 3000, 400),
    (b'{"u":[' + b"1" * 5000 + b"]}", 422), (b'{"u":' + b"[[]]" * 9 + b"}", 400), (b"{}", 422),
    (b'{"u":[[1]]}', 422), (b'{"u":1}', 422), (b'{"u":"1"}', 422), (b'{"u":[true]}', 422),
    (b'{"u":[1.0]}', 422), (b'{"u":[null]}', 422), (b'{"u":["a"]}', 422), (b'{"u":[-1]}', 422),
    (b'{"u":[4294967295]}', 422), (b'{"u":[1e999]}', 422), (b'{"v":[1]}', 422),
    (b'{"u":[1],"k":2}', 422), (b'{"\\ud800":1}', 400), (b'{"u":["\\ud800"]}', 400),
    (b'{"u":[' + b"1," * 100 + b"1]}", 413), (b" " * 70_000, 413),
]  # fmt: skip
BAD_MSGPACK = [
    b"", b"\xc1", b"\x81", b"\x90", b"\x81\xa1u\xc0", b"\x81\xa1u\xc3", b"\x81\xa1u\xa11",
    b"\x81\xa1u\xc4\x04abcd", b"\x82\xa4rows\x01\xa1u\xc4\x03abc", b"\x82\xa4rows\xc3\xa1u\x91\x01",
    b"\x82\xa4rows\xff\xa1u\x91\x01", b"\x82\xa4rows\x02\xa1u\x91\x01",
    b"\x81\xa1u\x91\xc7\x01\x01a",
    b"\x81\xa1u" + b"\x91" * 1000, b"\x81\xa1u" + b"\xdd\x00\x01\x86\xa0" * 1000,
    b"\x81\xa1u\xdf\xff\xff\xff\xff", b"\x82\xa1u\x91\x01\xa1u\x91\x02", b"\x81\xa1u\x91\xa1\xff",
    b"\x81\xa1u\x91\xca\x7f\xc0\x00\x00", b"\x81\xc4\x01u\x91\x01", b"\x81\x01\x91\x01",
]  # fmt: skip


def test_malformed_bodies_are_told_what_is_wrong(serve_store: Serve) -> None:
    limits = Limits(max_rows=30, max_body_bytes=64 << 10)
    url = f"{serve_store(lpma.Graph(device='cpu'), limits=limits).url}/v1"
    big = b'{"u":[' + b"[" * 100_000
    for body, status in BAD:
        answer = request(f"{url}/degree", body)
        expected = 413 if len(body) > limits.max_body_bytes else status
        assert answer.status == expected, (body[:40], answer)
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.json.keys() == {"type", "title", "status", "detail"}
        assert len(answer.json["detail"]) > 10
    assert request(f"{url}/degree", big).status == 413
    for body in BAD_MSGPACK:
        answer = request(f"{url}/degree", body, MSGPACK)
        assert answer.status in (400, 413, 422), (body[:40], answer)
        assert answer.json["detail"]


def test_too_many_vertices_are_told_alike_in_every_form(serve_store: Serve) -> None:
    url = f"{serve_store(lpma.Graph(device='cpu'), limits=Limits(max_rows=30)).url}/v1/degree"
    for rows in (31, 77, 200):
        told = [
            request(url, json.dumps({"u": [1] * rows}).encode()),
            request(url, msgpack.packb({"u": [1] * rows}), MSGPACK),
        ]
        assert [answer.status for answer in told] == [413, 413]
        assert told[0].json["detail"] == told[1].json["detail"]
        assert "max_" not in told[0].json["detail"]
    bomb = request(url, b"\x81\xa1u" + b"\x91" * 5000, MSGPACK)
    assert (bomb.status, "nests too deeply" in bomb.json["detail"]) == (400, True)
    longer = request(url, b"\x81\xa1u\xdd\xff\xff\xff\xff", MSGPACK)
    assert (longer.status, "longer than the bytes" in longer.json["detail"]) == (400, True)


def test_a_hub_asked_for_many_times_is_refused_or_read_once(serve_store: Serve) -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert([0] * 50, range(1, 51))
    limits = Limits(max_answer_rows=200, max_walked_edges=100)
    url = f"{serve_store(graph, limits=limits).url}/v1"
    for path, body in (("successors", {}), ("hops", {"k": 1})):
        assert len(post(f"{url}/{path}", u=[0] * 4, **body).json["ids"]) == 200
        refused = post(f"{url}/{path}", u=[0] * 5, **body)
        assert (refused.status, refused.json["type"]) == (413, "urn:lpma:too-large")
        assert "snapshot" in refused.json["detail"]
    assert len(post(f"{url}/hops", u=[0] * 4, k=2).json["ids"]) == 200
    graph.insert([1] * 60, range(100, 160))
    refused = post(f"{url}/hops", u=[0], k=2)
    assert (refused.status, "edges" in refused.json["detail"]) == (413, True)


def test_arrow_whose_first_message_is_no_schema() -> None:
    """PyArrow reads any message as a schema if told to. One of unknown type is not verified, so its
    offsets lead anywhere: read as a schema, it is the end of the process."""
    batch = pa.record_batch({"u": pa.array([1, 2])})
    schema, rows = batch.schema.serialize().to_pybytes(), batch.serialize().to_pybytes()
    unknown = bytearray(schema)
    unknown[20], unknown[37] = 69, 64  # where its type is read, and where its header lies
    assert next(pa.ipc.MessageReader.open_stream(bytes(unknown))).type == "unknown"
    for body in (bytes(unknown) + rows, rows, rows + schema, schema + schema + rows):
        with pytest.raises(RecordError, match="schema"):
            read_columns(body, 50, lambda name, kind: True)


def test_malformed_arrow(serve_store: Serve) -> None:
    url = f"{serve_store(lpma.Graph(device='cpu'), limits=Limits(max_rows=50)).url}/v1"
    good = arrow_of(u=[1, 2])
    assert request(f"{url}/degree", good, ARROW).json["degree"] == [0, 0]
    rng = np.random.default_rng(3)
    for i in range(200):
        broken = bytearray(good[: len(good) if i % 4 else int(rng.integers(len(good)))])
        for at in rng.integers(0, len(broken), 3) if len(broken) else ():
            broken[at] = int(rng.integers(256))
        assert request(f"{url}/degree", bytes(broken), ARROW).status in (200, 400, 413, 422)
    nulls = pa.array([1, None], pa.uint32())
    lists = pa.array([[1], [2]], pa.list_(pa.uint32()))
    words = pa.array(["a", "b"]).dictionary_encode()
    for wrong in (nulls, lists, words, [1.5, 2.0], ["a", "b"]):
        assert request(f"{url}/degree", arrow_of(u=wrong), ARROW).status == 422
    assert request(f"{url}/degree", arrow_of(u=[1] * 51), ARROW).status == 413
    zeros = pa.record_batch({"u": pa.array(np.zeros(40, np.uint32))})
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, zeros.schema, options=options) as writer:
        writer.write_batch(zeros)
    packed = request(f"{url}/degree", sink.getvalue().to_pybytes(), ARROW)
    assert packed.status == 422
    assert "compressed" in packed.json["detail"]


def test_negotiation_and_paths(serve_store: Serve) -> None:
    url = f"{serve_store(lpma.Graph(device='cpu')).url}/v1"
    for accept, form in {
        "": JSON, "*/*": JSON, "application/*": JSON, "text/html, */*;q=0.1": JSON,
        "application/json;q=0.2, application/msgpack": MSGPACK, ARROW: ARROW,
        "application/json;q=0, */*": MSGPACK, "application/vnd.msgpack": MSGPACK,
    }.items():  # fmt: skip
        assert request(f"{url}/degree/1", accept=accept).headers["Content-Type"] == form, accept
    assert request(f"{url}/degree/1", accept="text/html").status == 406
    assert request(f"{url}/degree", b"{}", "text/plain").status == 415
    assert request(f"{url}/degree", b"{}", "application/x-www-form-urlencoded").status == 415
    for path, status in {
        "edges/1": 404, "edges/1/2/3": 404, "degree/1/2": 404, "degree/": 422, "degree/x": 422,
        "degree/%ff": 422, "degree/-1": 422, "degree/01": 422, "hops/1": 422, "hops/1?k=x": 422,
        "hops/1?k=0": 422, "hops/1?k=3": 422, "hops/1?k=2&k=2": 422, "degree/1?k=2": 422,
        "successors/1?cursor=x": 422, "predecessors/1": 422, "nothing": 404,
        "successors/1?cursor=" + "A" * 22 + ".5": 410, "hops/1?%ff=1": 422,
    }.items():  # fmt: skip
        answer = request(f"{url}/{path}")
        assert answer.status == status, (path, answer)
        assert answer.headers["Content-Type"] == "application/problem+json"
    assert request(f"{url}/degree/1", b"{}").status == 405
    for word in ("1.5", "9" * 20, "-1", "4294967295", "ann"):
        told = request(f"{url}/degree/{word}").json["detail"]
        assert told == f"'{word}': vertices of this graph go by numbers: 0 … 4294967294"


def test_figures_of_what_is_served(serve_stream: Serve, serve_store: Serve) -> None:
    served = serve_stream(checkpoint=True)
    served.produce([1, 2], [2, 3])
    served.settle()
    told = request(f"{served.url}/v1/graph").json
    assert (told["live"], told["edges"], told["vertices"], told["rows"]) == (True, 2, 3, 4)
    assert told["operations"] == 2
    assert {"topic": "updates", "partition": 0, "records": 0} in told["lag"]
    assert told["checkpoint"].keys() == {"number", "age_s", "bytes", "seconds"}
    stored = request(f"{serve_store(lpma.Graph(device='cpu', names=True)).url}/v1/graph").json
    assert (stored["live"], stored["names"], "lag" in stored) == (False, True, False)
