"""POST /v1/updates: every form says the same; what is wrong is refused before anything is written;
what is taken is in the log, and never becomes a dead letter."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pyarrow
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import ingest
import lpma
from ingest import Pipeline, SqliteLog
from ingest.errors import RecordError
from ingest.formats.kinds import UPDATE_KINDS
from ingest.pipeline import record_reader
from ingest.service import exchange
from ingest.service import updates as endpoint
from ingest.service.app import Service, make_app
from ingest.service.connection import Timeouts
from ingest.service.context import Context, Limits
from ingest.service.update_codecs import Producer, Stream, records_of
from ingest.service.writer import UpdateWriter
from lpma import Kind
from lpma.batch.columns import UPDATES, edge_rows, weighted_rows
from tests.ingest.service.conftest import Standstill
from tests.support.asgi import Answered, call
from tests.support.stream_model import weighted
from tests.support.waiting import HANGS_S, wait_for

from .conftest import Served
from .http import Answer, ask

JSON, LINES, MSGPACK = "application/json", "application/jsonl", "application/msgpack"
ARROW = "application/vnd.apache.arrow.stream"
Serve = Callable[..., Served]


def arrow(table: Any, **options: Any) -> bytes:
    sink = pyarrow.BufferOutputStream()
    chosen = pyarrow.ipc.IpcWriteOptions(**options)
    with pyarrow.ipc.new_stream(sink, table.schema, options=chosen) as stream:
        stream.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def post(served: Served, body: Any, content_type: str = JSON, query: str = "") -> Answer:
    return ask(served.url, "POST", f"/v1/updates{query}", body, {"Content-Type": content_type})


def in_log(served: Served) -> list[bytes]:
    assert served.log is not None
    with SqliteLog(served.log.path, ["updates"]) as log:
        return [bytes(r.value) for r in log.poll(10**6)]  # type: ignore[arg-type]


# What is taken ---------------------------------------------------------------------------------

COLUMNS = {"src": [1, 2, 1], "dst": [2, 3, 2], "weight": [0.5, 2.0, 1.0], "time": [7, 8, 9],
           "kind": ["append", "append", "delete"]}  # fmt: skip
ROWS = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
FORMS = {
    "columns": (JSON, json.dumps(COLUMNS).encode()),
    "numbered kinds": (JSON, json.dumps(COLUMNS | {"kind": [0, 0, 1]}).encode()),
    "lines": (LINES, b"\r\n".join(json.dumps(row).encode() for row in ROWS) + b"\n\n"),
    "a list of rows": (JSON, json.dumps(ROWS, indent=1).encode()),
    "the log's own": (MSGPACK, ingest.encode_updates([1, 2, 1], [2, 3, 2], [0.5, 2, 1], [7, 8, 9],
                                                     [0, 0, 1])),
    "arrow": (ARROW, arrow(pyarrow.table(COLUMNS))),
    "arrow of small types": (ARROW, arrow(pyarrow.table({
        "src": pyarrow.array(COLUMNS["src"], "uint8"),
        "dst": pyarrow.array(COLUMNS["dst"], "int16"),
        "weight": pyarrow.array(COLUMNS["weight"], "float32"),
        "time": pyarrow.array(COLUMNS["time"], pyarrow.timestamp("ms")),
        "kind": pyarrow.array(COLUMNS["kind"]).dictionary_encode(),
    }))),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_the_same(serve_stream: Serve, form: str) -> None:
    served = serve_stream()
    content_type, body = FORMS[form]
    answer = post(served, body, content_type, "?wait=applied")
    assert answer.status == 200, answer.body
    place = {"topic": "updates", "partition": 0, "offset": 0, "last": 0, "operations": 3}
    version = served.context.graph.version
    assert answer.json == {**place, "version": version, "repeated": False}
    found = served.context.graph.edges([2, 1], [3, 2])
    assert found.found.tolist() == [True, False]
    assert (found.weights[0], found.times[0]) == (2.0, 8)  # type: ignore[index]
    (record,) = in_log(served)
    assert ingest.decode(record).kind.tolist() == [Kind.INSERT, Kind.INSERT, Kind.DELETE]


def test_one_row_of_each_kind(serve_stream: Serve) -> None:
    served = serve_stream()
    for row in (
        {"src": 1, "dst": 2, "weight": 0.5},
        {"src": 5, "kind": "add_vertex"},
        {"src": 7, "kind": "add_vertex", "dst": None},
        {"src": 7, "kind": "remove_vertex"},
    ):
        assert post(served, row).status == 202
    assert post(served, ROWS[0], query="?wait=applied").status == 200
    graph = served.context.graph
    assert graph.has_vertices([1, 2, 5, 7]).tolist() == [True, True, True, False]


SETS = {
    "a row": (JSON, b'{"src": 1, "dst": 2, "weight": 0.25, "kind": "set", "time": 9}'),
    "a line": (LINES, b'{"src": 1, "dst": 2, "weight": 0.25, "kind": "set", "time": 9}\n'),
    "words": (JSON, b'{"src": [1], "dst": [2], "weight": [0.25], "time": [9], "kind": ["set"]}'),
    "numbers": (JSON, b'{"src": [1], "dst": [2], "weight": [0.25], "time": [9], "kind": [11]}'),
    "the log's own": (MSGPACK, ingest.encode_updates([1], [2], [0.25], [9], [Kind.SET])),
    "a row of the log": (MSGPACK, ingest.encode_row(1, 2, 0.25, 9, Kind.SET)),
    "arrow": (ARROW, arrow(pyarrow.table(
        {"src": [1], "dst": [2], "weight": [0.25], "time": [9], "kind": ["set"]}))),
    "arrow of numbers": (ARROW, arrow(pyarrow.table(
        {"src": [1], "dst": [2], "weight": [0.25], "time": [9], "kind": [11]}))),
}  # fmt: skip


@pytest.mark.parametrize("records", ["msgpack", "JSON"])
@pytest.mark.parametrize("form", SETS)
def test_a_set_of_every_form(serve_stream: Serve, form: str, records: str) -> None:
    served = serve_stream(settings={} if records == "msgpack" else {"records": FIELDS})
    given = {"src": [1, 1], "dst": [2, 3], "weight": [5.0, 5.0], "time": [7, 8]}
    assert post(served, given).status == 202
    content_type, body = SETS[form]
    assert post(served, body, content_type, "?wait=applied").status == 200
    found = served.context.graph.edges([1, 1], [2, 3])
    assert (found.weights.tolist(), found.times.tolist()) == ([0.25, 5.0], [9, 8])  # type: ignore[union-attr]
    gone = {"src": 1, "dst": 3, "weight": 0, "kind": "set"}
    assert post(served, gone, query="?wait=applied").status == 200
    assert served.context.graph.edges([1, 1], [2, 3]).found.tolist() == [True, False]


EXPIRIES = {
    "a row": (JSON, b'{"kind": "expire", "time": 8}'),
    "a line": (LINES, b'{"src": 5, "dst": 6, "time": 9}\n{"kind": "expire", "time": 8}'),
    "columns": (JSON, b'{"src": [5, 0], "dst": [6, null], "time": [9, 8], "kind": [0, 4]}'),
    "the log's own": (MSGPACK, ingest.encode_expire(8)),
    "arrow": (ARROW, arrow(pyarrow.table(
        {"src": [0], "dst": [0], "time": [8], "kind": ["expire"]}))),
}  # fmt: skip


@pytest.mark.parametrize("form", EXPIRIES)
def test_an_expiry_of_every_form(serve_stream: Serve, form: str) -> None:
    served = serve_stream()
    assert post(served, {"src": [1, 2], "dst": [2, 3], "time": [7, 8]}).status == 202
    content_type, body = EXPIRIES[form]
    assert post(served, body, content_type, "?wait=applied").status == 200
    assert served.context.graph.edges([1, 2], [2, 3]).found.tolist() == [False, True]


def test_an_expiry_is_refused_where_no_times_are_kept(serve_stream: Serve) -> None:
    served = serve_stream(times=False)
    for content_type, body in EXPIRIES.values():
        answer = post(served, body, content_type)
        assert (answer.status, "times=True" in answer.json["detail"]) == (422, True)
    assert in_log(served) == []


def test_names_go_in_as_they_are(serve_stream: Serve) -> None:
    served = serve_stream(names=True)
    text = pyarrow.array(["ann", "5"]).dictionary_encode()
    assert post(served, {"src": ["ann", 5], "dst": ["bob", "5"]}).status == 202
    assert post(served, arrow(pyarrow.table({"src": text, "dst": [-3, 4]})), ARROW).status == 202
    lines = b'{"src": "ann", "dst": 18446744073709551615}\n{"src": "eve", "kind": "add_vertex"}'
    assert post(served, lines, LINES, "?wait=applied").status == 200
    s = served.context.graph.snapshot()
    assert s.names is not None
    src = s.names.of(np.repeat(np.arange(s.num_rows), np.diff(s.indptr))).tolist()
    assert set(zip(src, s.names.of(s.indices).tolist(), strict=True)) == {
        ("ann", "bob"), (5, "5"), ("ann", -3), ("5", 4), ("ann", 18446744073709551615),
    }  # fmt: skip
    assert served.context.graph.has_vertices(["eve"]).tolist() == [True]


def test_many_rows_become_many_records(serve_stream: Serve, monkeypatch: Any) -> None:
    monkeypatch.setattr("ingest.service.update_codecs.RECORD_ROWS", 100)
    served = serve_stream()
    src, dst = list(range(1050)), list(range(1, 1051))
    answer = post(served, {"src": src, "dst": dst}, query="?wait=applied")
    assert (answer.json["offset"], answer.json["last"], answer.json["operations"]) == (0, 10, 1050)
    assert served.context.graph.num_edges == 1050
    assert len(in_log(served)) == 11


def test_what_has_a_seq_stays_one_record_and_is_applied_once(
    serve_stream: Serve, monkeypatch: Any
) -> None:
    monkeypatch.setattr("ingest.service.update_codecs.RECORD_ROWS", 1)
    served = serve_stream()
    body = {"src": [1, 2], "dst": [2, 3], "source": "shop", "seq": 1}
    for _ in range(3):
        assert post(served, body, query="?wait=applied").status == 200
    del body["source"], body["seq"]
    again = post(served, body, query="?wait=applied&source=shop&seq=1")
    assert (again.status, again.json["repeated"]) == (200, True)
    assert len(in_log(served)) == 4
    assert weighted(served.context.graph) == {(1, 2): 1.0, (2, 3): 1.0}
    assert post(served, body, query="?wait=applied&source=shop&seq=2").status == 200
    assert weighted(served.context.graph) == {(1, 2): 2.0, (2, 3): 2.0}


def test_nothing_that_is_taken_becomes_a_dead_letter(serve_stream: Serve) -> None:
    """Bodies with one thing changed: each is refused, or applied."""
    served = serve_stream()
    assert served.pipeline is not None
    rng = np.random.default_rng(4)
    taken = 0
    for _ in range(300):
        content_type, body = list(FORMS.values())[int(rng.integers(len(FORMS)))]
        changed = bytearray(body)
        for at in rng.integers(0, len(changed), int(rng.integers(1, 4))):
            changed[at] = int(rng.integers(256))
        answer = post(served, bytes(changed), content_type)
        assert answer.status in (202, 400, 413, 422), answer.body
        taken += answer.status == 202
    assert post(served, ROWS[0], query="?wait=applied").status == 200
    assert 20 < taken < 280, "both are drawn"
    assert len(in_log(served)) == taken + 1
    assert served.pipeline.outputs.rejected == 0


# What is refused -------------------------------------------------------------------------------

TABLE = pyarrow.table({"src": [1], "dst": [2]})
WRONG: dict[str, tuple[int, str, Any]] = {
    "no JSON": (400, JSON, b"{"),
    "no object": (400, JSON, b"[1]"),
    "no UTF-8": (400, JSON, b'{"src": "\xff"}'),
    "nested": (400, JSON, b"[" * 100_000),
    "many digits": (422, JSON, b'{"src": 1' + b"0" * 9000 + b', "dst": 1}'),
    "NaN": (400, JSON, b'{"src": [1], "dst": [2], "weight": [NaN]}'),
    "infinite": (422, JSON, b'{"src": [1], "dst": [2], "weight": [1e999]}'),
    "nothing": (422, JSON, {}),
    "no row": (422, JSON, {"src": [], "dst": []}),
    "no dst": (422, JSON, {"src": [1]}),
    "lengths": (422, JSON, {"src": [1, 2], "dst": [1]}),
    "one for many": (422, JSON, {"src": [1, 2], "dst": 1}),
    "a name": (422, JSON, {"src": ["ann"], "dst": [1]}),
    "a boolean": (422, JSON, {"src": [1, True], "dst": [1, 1]}),
    "a fraction": (422, JSON, {"src": [1.0], "dst": [1]}),
    "negative": (422, JSON, {"src": [-1], "dst": [1]}),
    "too large an id": (422, JSON, {"src": [2**32 - 1], "dst": [1]}),
    "too large a time": (422, JSON, {"src": [1], "dst": [1], "time": [2**63]}),
    "a weight that is null": (422, JSON, {"src": [1], "dst": [1], "weight": [None]}),
    "too heavy": (422, JSON, {"src": [1], "dst": [1], "weight": [1e31]}),
    "an unknown kind": (422, JSON, {"src": [1], "dst": [1], "kind": ["drop"]}),
    "a kind past the last": (422, JSON, {"src": [1], "dst": [1], "kind": [12]}),
    "a set of one vertex": (422, JSON, {"src": [1], "dst": [None], "kind": ["set"]}),
    "a query's kind": (422, JSON, {"src": [1], "dst": [1], "kind": [int(Kind.EDGE)]}),
    "an unknown field": (422, JSON, {"src": [1], "dst": [1], "color": [1]}),
    "a field twice": (422, JSON, b'{"src": [1], "src": [1], "dst": [1]}'),
    "source alone": (422, JSON, {"src": [1], "dst": [1], "source": "a"}),
    "a seq below 0": (422, JSON, {"src": [1], "dst": [1], "source": "a", "seq": -1}),
    "a long source": (422, JSON, {"src": [1], "dst": [1], "source": "a" * 65, "seq": 1}),
    "an edge of one vertex": (422, JSON, {"src": [1], "dst": [None], "kind": ["append"]}),
    "edges of one vertex": (422, JSON, {"src": [1], "kind": ["append"]}),
    "a vertex too many": (422, JSON, {"src": 1, "dst": 2, "kind": "add_vertex"}),
    "an expiry without a time": (422, JSON, {"kind": "expire"}),
    "an expiry of a vertex": (422, JSON, {"src": 1, "kind": "expire", "time": 3}),
    "a column of expiries without times": (422, JSON, {"src": [0], "dst": [0], "kind": [4]}),
    "a vertex too few": (422, LINES, b'{"src": 1, "dst": 2, "kind": "append"}\n{"src": 1}'),
    "a line that is none": (400, LINES, b'{"src": 1, "dst": 2}\n5'),
    "a line of msgpack": (400, LINES, b'{"src": 1, "dst": 2}\n\x92\1\2'),
    "a list without rows": (422, JSON, []),
    "an unknown field of a row": (422, JSON, [{"src": 1, "dst": 2, "wieght": 3}]),
    "an unknown field that is no text": (400, LINES, b'{"src": 1, "dst": 2, "\xff": 3}'),
    "sources of rows": (422, JSON, [{"src": 1, "dst": 2, "source": "a", "seq": 1}] * 2),
    "a row's source without a seq": (422, JSON, {"src": 1, "dst": 2, "source": "a"}),
    "some with times": (422, LINES, b'{"src": 1, "dst": 2, "time": 3}\n{"src": 1, "dst": 2}'),
    "no msgpack": (400, MSGPACK, b"\xc1"),
    "more behind it": (400, MSGPACK, ingest.encode_row(1, 2) + b"\0"),
    "a query": (422, MSGPACK, ingest.encode_query("q", Kind.DEGREE, 1)),
    "a record of names": (422, MSGPACK, ingest.encode_row("ann", 2, names=True)),
    "a record without rows": (422, MSGPACK, ingest.encode_updates([], [])),
    "no stream": (400, ARROW, b"ARROW1"),
    "half a stream": (400, ARROW, arrow(TABLE)[:-40]),
    "compressed": (422, ARROW, arrow(TABLE, compression="zstd")),
    "a compressed dictionary": (422, ARROW, arrow(pyarrow.table(
        {"src": pyarrow.array(["a"]).dictionary_encode(), "dst": [1]}), compression="lz4")),
    "nulls": (422, ARROW, arrow(pyarrow.table({"src": [1, None], "dst": [1, 2]}))),
    "no type": (422, ARROW, arrow(pyarrow.table({"src": pyarrow.nulls(3), "dst": [1, 2, 3]}))),
    "lists": (422, ARROW, arrow(pyarrow.table({"src": [[1]], "dst": [1]}))),
    "an unknown column": (422, ARROW, arrow(pyarrow.table({"src": [1], "dst": [1], "x": [1]}))),
    "a column twice": (422, ARROW, arrow(pyarrow.table([[1], [2], [3]], ["src", "dst", "src"]))),
    "names in ids": (422, ARROW, arrow(pyarrow.table({"src": ["a"], "dst": [1]}))),
    "text": (415, "text/csv", b"1,2"),
    "no type of content": (415, "", b"1,2"),
}  # fmt: skip


def test_what_is_wrong_is_refused_before_anything_is_written(serve_stream: Serve) -> None:
    served = serve_stream()
    for what, (status, content_type, body) in WRONG.items():
        answer = post(served, body, content_type)
        assert answer.status == status, (what, answer.body)
        assert answer.headers["Content-Type"] == "application/problem+json", what
        assert answer.json["detail"], what
    assert in_log(served) == []


@pytest.mark.parametrize(
    "query",
    ["?wait=now", "?seq=1", "?source=a", "?source=a&seq=-1", "?source=a&seq=1.5", "?source=&seq=1",
     "?source=a&seq=99999999999999999999", "?color=red"],
)  # fmt: skip
def test_a_query_that_makes_no_sense_is_refused(serve_stream: Serve, query: str) -> None:
    served = serve_stream()
    assert post(served, {"src": [1], "dst": [2]}, query=query).status == 422
    twice = {"src": [1], "dst": [2], "source": "a", "seq": 1}
    assert post(served, twice, query="?source=a&seq=1").status == 422
    assert post(served, ingest.encode_row(1, 2), MSGPACK, "?source=a&seq=1").status == 422
    assert in_log(served) == []


def test_what_is_wrong_with_a_source_or_a_list_is_said(serve_stream: Serve) -> None:
    served = serve_stream()
    long = post(served, {"src": [1], "dst": [2]}, query=f"?source={'a' * 65}&seq=1")
    assert (long.status, "at most 64 bytes" in long.json["detail"]) == (422, True)
    for rows in (1, 20, 5000):
        lists = post(served, msgpack.packb({"src": [1] * rows, "dst": [2] * rows}), MSGPACK)
        assert (lists.status, "bin columns" in lists.json["detail"]) == (400, True)
    assert in_log(served) == []


def test_what_is_too_large_is_refused(serve_stream: Serve, monkeypatch: Any) -> None:
    served = serve_stream(limits=Limits(max_body_bytes=1000))
    assert post(served, b" " * 1001).status == 413
    assert post(served, b" " * 1000).status == 400
    monkeypatch.setattr("ingest.service.update_codecs.MAX_ROWS", 3)
    four = {"src": [1] * 4, "dst": [2] * 4}
    assert post(served, four).status == 413
    assert post(served, b'{"src": 1, "dst": 2}\n' * 4, LINES).status == 413
    assert post(served, arrow(pyarrow.table(four)), ARROW).status == 413
    monkeypatch.setattr("ingest.service.update_codecs.MAX_ENCODED_BYTES", 30)
    assert post(served, {"src": [1], "dst": [2], "weight": [2.0]}).status == 413
    monkeypatch.setattr("ingest.formats.records.MAX_COLUMNAR_BYTES", 30)
    answer = post(served, {"src": [1] * 3, "dst": [2] * 3, "source": "a", "seq": 1})
    assert (answer.status, "seq of its own" in answer.json["detail"]) == (413, True)
    assert in_log(served) == []


def test_long_names_are_cut_into_records_that_fit(serve_stream: Serve, monkeypatch: Any) -> None:
    monkeypatch.setattr("ingest.formats.records.MAX_COLUMNAR_BYTES", 20_000)
    served = serve_stream(names=True)
    names = [f"{i}".rjust(1000, "x") for i in range(50)]
    answer = post(served, {"src": names, "dst": names}, query="?wait=applied")
    assert (answer.status, served.context.graph.num_edges) == (200, 50)
    assert len(in_log(served)) == 8


def test_a_stream_that_nobody_writes_to_says_so(serve_store: Serve, tmp_path: Any) -> None:
    stored = serve_store(lpma.Graph(device="cpu"))
    answer = post(stored, {"src": [1], "dst": [2]})
    assert (answer.status, "saved store" in answer.json["detail"]) == (409, True)


def answered(pipeline: Pipeline, topic: str | None = None) -> Answered:
    """The answer to an update, of a pipeline that does not run."""
    graph: Any = pipeline.graph
    context = Context(pipeline.requests, graph, pipeline, update_topic=topic)
    with context:
        body = ingest.encode_row(1, 2)
        return asyncio.run(call(make_app(context), "POST", "/v1/updates", body, MSGPACK))


def test_a_stream_from_a_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_text("1 2\n")
    with Pipeline(ingest.FileSource(tmp_path / "e.txt"), lpma.Graph(device="cpu")) as pipeline:
        answer = answered(pipeline)
    assert (answer.status, b"comes from a file" in answer.body) == (409, True)


@pytest.mark.parametrize(
    "read, named, written",
    [(["queries", "updates", "a"], None, "updates"), (["queries", "b"], None, "b"),
     (["queries", "updates", "a"], "a", "a"), (["queries", "b", "a"], "b", "b")],
)  # fmt: skip
def test_updates_go_to_a_topic_that_is_read(
    tmp_path: Path, read: list[str], named: str | None, written: str
) -> None:
    with SqliteLog(tmp_path / "log", read) as log:
        log.create_topic(read[0])
        with Pipeline(log, lpma.Graph(device="cpu")) as pipeline:
            answer = answered(pipeline, named)
            assert (answer.status, json.loads(answer.body)["topic"]) == (202, written)
            assert pipeline.run("end") == 1
            with pytest.raises(ingest.SourceError, match="not read"):
                answered(pipeline, "elsewhere")


@pytest.mark.parametrize(
    "read, said", [(["queries", "b", "a"], "the topics a, b:"), (["queries"], "no topic of")]
)
def test_updates_go_nowhere_while_it_is_not_said_which_topic_takes_them(
    tmp_path: Path, read: list[str], said: str
) -> None:
    with SqliteLog(tmp_path / "log", read) as log:
        for name in read:
            log.create_topic(name)
        with Pipeline(log, lpma.Graph(device="cpu")) as pipeline:
            answer = answered(pipeline)
            assert (answer.status, said in json.loads(answer.body)["detail"]) == (409, True)
            assert len(read) == 1 or "serve.updates_topic" in json.loads(answer.body)["detail"]
            assert pipeline.run("end") == 0, "nothing was written"
            if len(read) > 1:
                with pytest.raises(ingest.SourceError, match="name one of a, b"):
                    answered(pipeline, "queries")


# A stream of JSON ------------------------------------------------------------------------------

FIELDS = ingest.Fields("user", "item", weight="stars", time="at", kind="op")


@pytest.mark.parametrize("form", FORMS)
def test_a_stream_of_json_gets_json(serve_stream: Serve, form: str) -> None:
    served = serve_stream(settings={"records": FIELDS})
    content_type, body = FORMS[form]
    answer = post(served, body, content_type, "?wait=applied")
    assert (answer.status, answer.json["operations"], answer.json["last"]) == (200, 3, 2)
    assert [json.loads(value) for value in in_log(served)] == [
        {"user": 1, "item": 2, "stars": 0.5, "at": 7},
        {"user": 2, "item": 3, "stars": 2.0, "at": 8},
        {"user": 1, "item": 2, "at": 9, "op": "delete"},
    ]
    found = served.context.graph.edges([2, 1], [3, 2])
    assert (found.found.tolist(), found.weights[0]) == ([True, False], 2.0)  # type: ignore[index]


def test_an_expiry_a_vertex_and_names_in_a_stream_of_json(serve_stream: Serve) -> None:
    served = serve_stream(settings={"records": FIELDS}, names=True)
    rows = [
        {"src": "ann", "dst": 18446744073709551615, "time": 3},
        {"src": "bo\u00e9", "kind": "add_vertex", "time": 4},
        {"kind": "expire", "time": 2},
    ]
    lines = b"\n".join(json.dumps(row).encode() for row in rows)
    assert post(served, lines, LINES, "?wait=applied").status == 200
    assert [json.loads(value) for value in in_log(served)] == [
        {"user": "ann", "item": 18446744073709551615, "at": 3},
        {"user": "bo\u00e9", "at": 4, "op": "add_vertex"},
        {"at": 2, "op": "expire"},
    ]
    assert served.pipeline is not None
    assert served.pipeline.outputs.rejected == 0


NO_FIELDS: dict[str, tuple[Any, str]] = {
    "a weight": ({"src": 1, "dst": 2, "weight": 0.5}, "weight: row 0 has 0.5"),
    "a time": ({"src": [1], "dst": [2], "time": [7]}, "time: row 0 has 7"),
    "a kind": ({"src": [1, 1], "dst": [2, 2], "kind": [0, 1]}, "kind: row 1 has 'delete'"),
    "a seq": ({"src": 1, "dst": 2, "source": "shop", "seq": 1}, "source and seq"),
}


@pytest.mark.parametrize("what", NO_FIELDS)
def test_what_a_stream_of_json_has_no_field_for_is_refused(serve_stream: Serve, what: str) -> None:
    served = serve_stream(settings={"records": ingest.Fields("user", "item")})
    body, said = NO_FIELDS[what]
    answer = post(served, body)
    assert (answer.status, said in answer.json["detail"]) == (422, True)
    assert in_log(served) == []
    assert post(served, {"src": [1], "dst": [2], "weight": [1.0], "kind": [0]}).status == 202
    assert in_log(served) == [b'{"user":1,"item":2}']


def judged(body: bytes, stream: Stream, content_type: str = JSON) -> list[bytes] | str:
    """The records of a body, or why it is refused."""
    try:
        return records_of(content_type, body, Producer(), stream).values
    except RecordError as error:
        return str(error)


VERTEX = (
    st.integers(0, 5)
    | st.integers(-1, 9)
    | st.sampled_from([1.0, 0.5, None, "ann", "", 2**32, 2**64, True])
)
TIME = st.integers(0, 9) | st.sampled_from([3.0, None, "2026-01-01", "soon", 2**63])
ROW = st.fixed_dictionaries(
    {"src": VERTEX, "dst": VERTEX},
    optional={
        "weight": st.sampled_from([1, 0.5, -1e30, 1e31, None, "1"]),
        "time": TIME,
        "kind": st.sampled_from([*UPDATE_KINDS, None, "drop", 1]),
    },
) | st.sampled_from([{"src": 1}, {"kind": "expire", "time": 4}, {"src": 1, "kind": "add_vertex"}])


@settings(max_examples=200, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=6), st.booleans(), st.booleans())
def test_rows_are_read_as_those_of_a_topic(rows: list[Any], names: bool, as_lines: bool) -> None:
    """One by one: what a pipeline would refuse is refused, by its number; the rest is the same."""
    fields = ingest.Fields(weight="weight", time="time", kind="kind").of_topic()
    values = [json.dumps(row).encode() for row in rows]
    content_type, body = (
        (LINES, b"\n".join(values)) if as_lines else (JSON, b"[%s]" % b",".join(values))
    )
    expected, bad = [], None
    for at, value in enumerate(values):
        try:
            expected.append(ingest.decode_record(value, names=names, fields=fields))
        except RecordError as error:
            bad = f"line {at + 1}: {error}" if as_lines else f"row {at}: {error}"
            break
    found = judged(body, Stream(names), content_type)
    if isinstance(found, str):
        timed = [one.batch.time is not None for one in expected]
        if len(set(timed)) > 1:  # the first row that differs is named
            at = timed.index(not timed[0])
            place = f"line {at + 1}" if as_lines else f"row {at}"
            this = "has a" if timed[at] else "has no"
            assert found.startswith(f"{place}: time: this row {this} time")
        else:
            assert found == bad
        return
    assert bad is None
    record = ingest.decode_record(found[0], names=names)
    batches = [one.batch for one in expected]
    assert record.batch.kind.tolist() == [int(batch.kind[0]) for batch in batches]
    assert weights(record.batch) == [weight for batch in batches for weight in weights(batch)]
    times = [None if batch.time is None else int(batch.time[0]) for batch in batches]
    assert times == (
        [None] * len(rows) if record.batch.time is None else record.batch.time.tolist()
    )
    for end in ("src", "dst"):
        ends = [getattr(one.names or one.batch, end).tolist()[0] for one in expected]
        assert getattr(record.names or record.batch, end).tolist() == ends


def weights(batch: lpma.Columns) -> list[float]:
    return [1.0] * len(batch) if batch.weight is None else batch.weight.tolist()


KINDS = ["append", "delete", "set"]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_json_says_what_msgpack_says(data: Any) -> None:
    """Or it says for what it has no field, whatever a stream takes a record without it for."""
    rows = data.draw(st.integers(1, 5))

    def column(value: Any) -> Any:
        return st.lists(value, min_size=rows, max_size=rows)

    ends, weights = column(st.integers(0, 9)), column(st.sampled_from([0.0, 1.0, 2.5, -1e30]))
    times, kinds = column(st.integers(-(2**63), 2**63 - 1)), column(st.sampled_from(UPDATES))
    body = {
        "src": data.draw(ends),
        "dst": data.draw(ends),
        "weight": data.draw(weights | st.none()),
    }
    body |= {"kind": data.draw(kinds | st.none()), "time": data.draw(times | st.none())}
    weight, time, kind = (data.draw(st.none() | st.just(name)) for name in ("w", "t", "k"))
    default_weight, default_kind = st.sampled_from([1.0, 2.5]), st.sampled_from(KINDS)
    fields = ingest.Fields(
        "u", "v", weight, time, kind,
        default_weight=data.draw(default_weight), default_kind=data.draw(default_kind),
    ).of_topic()  # fmt: skip
    plain, as_json = (
        judged(json.dumps(body).encode(), Stream(fields=each)) for each in (None, fields)
    )
    if isinstance(plain, str):
        reject()  # an expiry without a time
    if isinstance(as_json, str):
        assert "have no field" in as_json
        assert None in (fields.weight, fields.time, fields.kind)
        return
    batch = ingest.decode(plain[0])
    found = [ingest.decode_record(value, fields=fields).batch for value in as_json]
    expires = batch.kind == Kind.EXPIRE
    assert np.concatenate([one.kind for one in found]).tolist() == batch.kind.tolist()
    src = np.concatenate([one.src for one in found])
    assert src.tolist() == np.where(expires, 0, batch.src).tolist()
    edges = edge_rows(batch.kind)
    dst = np.concatenate([one.dst for one in found])
    assert dst.tolist() == np.where(edges, batch.dst, 0).tolist()
    for row in np.flatnonzero(weighted_rows(batch.kind)):
        one = found[row]
        wanted = 1.0 if batch.weight is None else batch.weight[row]
        assert (1.0 if one.weight is None else one.weight[0]) == wanted
        assert (one.time is None) == (batch.time is None)
        assert one.time is None or batch.time is None or one.time[0] == batch.time[row]


def test_one_source_more_than_are_remembered_is_refused(
    serve_stream: Serve, monkeypatch: Any
) -> None:
    monkeypatch.setattr(record_reader, "MAX_PRODUCERS", 2)
    served = serve_stream()
    assert served.pipeline is not None
    for seq in (1, 2):
        for source in "ab":
            body = {"src": [1], "dst": [2], "source": source, "seq": seq}
            assert post(served, body).status == 202
    third = {"src": [1], "dst": [2], "source": "c", "seq": 1}
    assert post(served, third).status == 409
    assert post(served, third | {"source": "a", "seq": 3}, query="?wait=applied").status == 200
    assert post(served, third).status == 409
    assert served.pipeline.outputs.rejected == 0


# Waiting, and many at once -----------------------------------------------------------------------


def test_a_graph_that_takes_too_long_leaves_a_202(
    serve_stream: Serve, standstill: Standstill
) -> None:
    served = serve_stream(limits=Limits(deadline_s=0.3))
    standstill.begins(served)
    answer = post(served, {"src": [1], "dst": [2]}, query="?wait=applied")
    assert (answer.status, "version" in answer.json) == (202, False)
    standstill.ends()
    again = {"src": [1], "dst": [3]}  # which may miss the deadline, too
    wait_for(lambda: post(served, again, query="?wait=applied").status == 200)
    assert served.context.graph.num_edges == 2


def test_too_many_bodies_at_once_are_put_off(serve_stream: Serve, monkeypatch: Any) -> None:
    served = serve_stream()
    monkeypatch.setattr(exchange, "_BODIES_BYTES", 10)
    answer = post(served, {"src": [1], "dst": [2]})
    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    monkeypatch.undo()
    assert post(served, {"src": [1], "dst": [2]}).status == 202, "what was read is given back"


def test_clients_share_syncs_and_each_has_its_own_place(serve_stream: Serve) -> None:
    served = serve_stream()
    assert served.log is not None
    found: list[list[int]] = [[] for _ in range(8)]

    def send(number: int) -> None:
        for i in range(20):
            body = {"src": [number], "dst": [i], "weight": [1.0]}
            found[number].append(post(served, body).json["offset"])

    threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    records = [ingest.decode(value) for value in in_log(served)]
    assert sorted(offset for one in found for offset in one) == list(range(160))
    for number, offsets in enumerate(found):
        assert offsets == sorted(offsets), "in the order sent"
        assert [(int(records[o].src[0]), int(records[o].dst[0])) for o in offsets] == [
            (number, i) for i in range(20)
        ]
    wait_for(lambda: served.context.graph.num_edges == 160)


# What a client may conclude ----------------------------------------------------------------------

NOT_WRITTEN = "about:blank"


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Set when a write begins, and by the test to let it go on."""
    begun, let_go = threading.Event(), threading.Event()
    append = SqliteLog.append

    def slow(self: SqliteLog, *given: Any) -> Any:
        begun.set()
        assert let_go.wait(60)
        return append(self, *given)

    monkeypatch.setattr(SqliteLog, "append", slow)
    yield begun, let_go
    let_go.set()


def in_thread(call: Callable[[], Answer]) -> Callable[[], Answer]:
    """Begins a call; what is returned waits for its answer."""
    found: list[Answer] = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()

    def answer() -> Answer:
        thread.join(HANGS_S)
        return found[0]

    return answer


def test_a_log_that_does_not_answer_is_told_by_the_deadline(serve_stream: Serve, held: Any) -> None:
    """However long it takes: what is being written then may be written, and is; what waits behind
    it was taken back."""
    begun, let_go = held
    served = serve_stream(limits=Limits(deadline_s=0.3))
    first = in_thread(lambda: post(served, {"src": [1], "dst": [2]}))
    assert begun.wait(HANGS_S)
    second = post(served, {"src": [3], "dst": [4]})
    assert (second.status, second.json["type"]) == (503, NOT_WRITTEN)
    assert "nothing was written" in second.json["detail"]
    answer = first()
    assert (answer.status, answer.json["type"]) == (503, endpoint.MAYBE_WRITTEN)
    assert "applied once" in answer.json["detail"]
    let_go.set()
    third = {"src": [5], "dst": [6]}  # which may miss the deadline, too
    wait_for(lambda: post(served, third).status in (200, 202))
    sources = [ingest.decode(r).src.tolist() for r in in_log(served)]
    assert sources == [[1], *[[5]] * (len(sources) - 1)]


def test_a_log_that_fails_may_have_written(serve_stream: Serve, monkeypatch: Any) -> None:
    append = SqliteLog.append

    def failing(self: SqliteLog, *given: Any) -> Any:
        append(self, *given)
        raise ingest.SourceError("no answer")

    served = serve_stream()
    with monkeypatch.context() as patch:
        patch.setattr(SqliteLog, "append", failing)
        answer = post(served, {"src": [1], "dst": [2], "source": "a", "seq": 1})
    assert (answer.status, answer.json["type"]) == (503, endpoint.MAYBE_WRITTEN)
    again = post(served, {"src": [1], "dst": [2], "source": "a", "seq": 1}, query="?wait=applied")
    assert (again.status, again.json["repeated"]) == (200, True)
    assert weighted(served.context.graph) == {(1, 2): 1.0}


def test_a_service_that_closes_says_what_may_be_written(
    tmp_path: Path, held: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is being written, one waits behind it, one waits for the graph."""
    begun, let_go = held
    queued, append = threading.Semaphore(0), UpdateWriter.append

    def noted(self: UpdateWriter, values: Any) -> Any:
        found = append(self, values)
        queued.release()
        return found

    monkeypatch.setattr(UpdateWriter, "append", noted)
    with SqliteLog(tmp_path / "log", ["updates"]) as log:
        log.create_topic("updates")
        with Pipeline(log, lpma.Graph(device="cpu")) as pipeline:  # it does not run
            graph: Any = pipeline.graph
            context = Context(pipeline.requests, graph, pipeline)
            service = Service(context, 0, timeouts=Timeouts(grace_s=0.1))

            def send(src: int, query: str = "") -> Callable[[], Answer]:
                body, kind = {"src": [src], "dst": [0]}, {"Content-Type": JSON}
                return in_thread(
                    lambda: ask(service.url, "POST", f"/v1/updates{query}", body, kind)
                )

            let_go.set()
            applied = send(1, "?wait=applied")
            assert begun.wait(HANGS_S)
            partition = ingest.Partition("updates", 0)
            wait_for(lambda: log.end_offsets()[partition], "the first is written")
            let_go.clear()
            begun.clear()
            writing = send(2)
            assert begun.wait(HANGS_S)
            waiting = send(3)
            assert all(queued.acquire(timeout=HANGS_S) for _ in range(3))
            closing = threading.Thread(target=service.close)
            closing.start()
            answers = [each() for each in (applied, writing, waiting)]
            let_go.set()
            closing.join(HANGS_S)
    assert [answer.status for answer in answers] == [202, 503, 503]
    assert answers[1].json["type"] == endpoint.MAYBE_WRITTEN
    assert answers[2].json["type"] == NOT_WRITTEN
    with SqliteLog(tmp_path / "log", ["updates"]) as log:
        found = [ingest.decode(bytes(r.value)).src.tolist() for r in log.poll(10)]  # type: ignore[arg-type]
    assert found == [[1], [2]]
