"""Debezium's change events, read as plain rows by mistake: a new stream stops, one that has begun
says so."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

import ingest
import lpma
from ingest import Fields
from ingest.errors import AllRecordsBad
from ingest.events import LOGGER
from ingest.formats.debezium.recognition import is_change_event
from tests.support.schema_registry import avro, enveloped, served

ROW = {"src": 1, "dst": 2, "w": 0.5}
SOURCE = {"connector": "postgresql", "ts_ms": 5}
FLAT = Fields("src", "dst")
AFTER = Fields("after.src", "after.dst")
ADVICE = "look like Debezium's change events: read them with records=Debezium"
OPERATIONS = {"c": "append", "u": "append", "r": "append"}


def event(op: str = "c", **more: Any) -> dict[str, Any]:
    return {"op": op, "before": None, "after": ROW, "source": SOURCE, **more}


def bytes_of(value: object) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value).encode()


EVENTS = {
    "envelope": event(),
    "deletion": event("d", before=ROW, after=None),
    "truncation": {"op": "t", "before": None, "source": SOURCE},
    "MongoDB": event(after=json.dumps({"_id": 1})),
    "beside its schema": {"schema": {"type": "struct"}, "payload": event("r")},
    "flattened": {**ROW, "__op": "u"},
    "flattened, deleted": {**ROW, "__deleted": "false"},
    "flattened beside its schema": {"schema": None, "payload": {**ROW, "__deleted": True}},
}
OTHERS = {
    "a row": ROW,
    "with an op": {**ROW, "op": "c"},
    "with an op, and more": {**ROW, "op": "c", "after": 5},
    "with another op": {**event(), "op": "create"},
    "whose op is an object": {**event(), "op": {"op": "c"}},
    "sent by a source": {**event(), "source": "web"},
    "another __op": {**ROW, "__op": "sum"},
    "beside its schema": {"schema": None, "payload": ROW},
    "a list": ["op", "source", "after"],
    "no JSON": b'{"op": "c", ',
    "not UTF-8": b'{"op": "c\xff", "source": {}, "after": {}}',
    "nothing": b"",
    "msgpack": ingest.encode_row(1, 2),
}


@pytest.mark.parametrize("value", EVENTS.values(), ids=EVENTS)
def test_events_are_recognised(value: object) -> None:
    assert is_change_event(bytes_of(value))


@pytest.mark.parametrize("value", OTHERS.values(), ids=OTHERS)
def test_other_records_are_not(value: object) -> None:
    assert not is_change_event(bytes_of(value))


def log_of(path: Path, values: list[object]) -> ingest.SqliteLog:
    log = ingest.SqliteLog(path / "stream.log", ["t"])
    log.produce_many("t", [bytes_of(value) for value in values])
    return log


def pipeline(log: Any, state: Path | None, records: Any, limit: int = 1000, **more: Any) -> Any:
    graph = lpma.Graph(device="cpu")
    return ingest.Pipeline(log, graph, state, records=records, stop_if_first_bad=limit, **more)


@pytest.mark.parametrize(
    ("records", "values"),
    [
        (AFTER, [event(), event("u"), event("d", after=None)]),
        (AFTER, [{"after": ROW}, event()]),  # whoever writes plain rows writes no events
        (FLAT, [event(), event("u")]),  # which are all bad
        ("msgpack", [event()]),
        (FLAT, [{**ROW, "__op": "c"}]),
        (Fields("src", "dst", weight="missing"), [{**ROW, "__op": "c"}]),
        ({"t": AFTER}, [event()]),
    ],
)
def test_a_new_stream_stops_before_anything_is_applied(
    tmp_path: Path, records: Any, values: list[object]
) -> None:
    with log_of(tmp_path, values) as log:
        stream = pipeline(log, tmp_path / "state", records)
        with pytest.raises(AllRecordsBad, match=f"the records of t {ADVICE}"):
            stream.run("end")
        stream.close()
    assert stream.graph.version == 0
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("records", "values"),
    [
        (FLAT, [ROW, {**ROW, "op": "c"}]),
        (Fields("after.src", "after.dst", kind="op", kinds=OPERATIONS), [event()]),
        (Fields("src", "dst", kind="__op", kinds=OPERATIONS), [{**ROW, "__op": "c"}]),
        (ingest.Debezium(FLAT, on_repeat="last"), [event()]),
    ],
)
def test_others_go_on(
    tmp_path: Path, records: Any, values: list[object], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, LOGGER.name)
    with log_of(tmp_path, values) as log, pipeline(log, None, records) as stream:
        assert stream.run("end") == len(values)
    assert not [r for r in caplog.records if str(r.msg).startswith("changes unread")]


def test_a_stream_that_is_not_to_stop_says_it_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, LOGGER.name)
    with log_of(tmp_path, [event()] * 5) as log:
        with pipeline(log, tmp_path / "state", AFTER, limit=0, batch_size=2) as stream:
            assert stream.run("end") == 5
        told: list[Any] = [r.msg for r in caplog.records if str(r.msg).startswith("changes unread")]
        assert [each.fields["topics"] for each in told] == [["t"]]
        assert ADVICE in told[0].fields["advice"]


@pytest.mark.parametrize("is_flat", [False, True])
def test_events_in_avro_are_recognised_by_their_schema(tmp_path: Path, is_flat: bool) -> None:
    pytest.importorskip("fastavro", reason="pip install 'lpma-graph[registry]'")
    ends = [{"name": name, "type": "long"} for name in ("src", "dst")]
    row = {"type": "record", "name": "Value", "fields": ends}
    schema = {"type": "record", "name": "Envelope", "fields": [
        {"name": "before", "type": ["null", row]}, {"name": "after", "type": ["null", "Value"]},
        {"name": "source", "type": {"type": "record", "name": "Source", "fields": []}},
        {"name": "op", "type": "string"}]}  # fmt: skip
    value: dict[str, Any] = {"before": None, "after": {"src": 1, "dst": 2}, "source": {}, "op": "c"}
    if is_flat:
        schema = {**row, "fields": [*ends, {"name": "__op", "type": ["null", "string"]}]}
        value = {"src": 1, "dst": 2, "__op": "c"}
    with served() as registry:
        id = registry.add(schema)
        with log_of(tmp_path, [enveloped(id, avro(schema, value))]) as log:
            records = FLAT if is_flat else AFTER
            stream = pipeline(log, None, records, schema_registry=registry.url)
            with pytest.raises(AllRecordsBad, match=ADVICE):
                stream.run("end")
            stream.close()
