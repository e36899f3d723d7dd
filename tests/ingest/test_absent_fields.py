"""A mapping names a field that no record has: a new stream stops, one that has begun says so."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ingest
import lpma
from ingest.events import LOGGER
from ingest.pipeline import mapped_fields


@pytest.fixture
def log(tmp_path: Path) -> Iterator[ingest.SqliteLog]:
    with ingest.SqliteLog(tmp_path / "stream.log") as log:
        log.create_topic("updates")
        yield log


def event(**more: Any) -> bytes:
    return json.dumps({"user": {"id": 1}, "item": 2, "action": "append", **more}).encode()


def pipeline(log: Any, state: Path | None, limit: int = 1000, **fields: Any) -> ingest.Pipeline:
    mapping = ingest.Fields("user.id", "item", **fields)
    graph = lpma.Graph(device="cpu")
    return ingest.Pipeline(log, graph, state, stop_if_first_bad=limit, records=mapping)


@pytest.mark.parametrize("role", ["kind", "time", "weight"])
def test_a_new_stream_stops_before_anything_is_applied(
    log: ingest.SqliteLog, tmp_path: Path, role: str
) -> None:
    log.produce_many("updates", [event(), b"bad", event()])
    named: Any = {role: "actoin"}
    stream = pipeline(log, tmp_path / "state", **named)
    with pytest.raises(ingest.errors.AllRecordsBad) as raised:
        stream.run("end")
    said = f"none of the first 2 records has the field 'actoin' ({role})"
    assert f"{said}: updates has user.id, item, action" in str(raised.value)
    stream.close()
    assert stream.graph.version == 0
    assert not (tmp_path / "state").exists()
    with ingest.SqliteLog(log.path, topics=["dead-letters"]) as letters:
        assert sum(letters.end_offsets().values()) == 0
    with pipeline(log, tmp_path / "state", kind="action") as stream:
        assert stream.run("end") == 2
        assert stream.outputs.rejected == 1


@given(has=st.lists(st.booleans(), min_size=1, max_size=9), limit=st.integers(0, 6),
       batch_size=st.integers(1, 4), null=st.booleans(), follow=st.booleans())  # fmt: skip
def test_a_field_that_some_record_has_is_none_of_these(
    has: list[bool], limit: int, batch_size: int, null: bool, follow: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    """The oracle looks at what the first batch may see. All is there at once, in one poll."""
    absent = event(stars=None) if null else event()
    with ingest.SqliteLog(tmp_path_factory.mktemp("stream") / "stream.log") as log:
        log.create_topic("updates")
        log.produce_many("updates", [event(stars=2) if each else absent for each in has])
        stops = limit > 0 and not any(has) and (len(has) >= limit or not follow)
        mapping = ingest.Fields("user.id", "item", weight="stars")
        with ingest.Pipeline(log, lpma.Graph(device="cpu"), stop_if_first_bad=limit,
                             records=mapping, batch_size=batch_size) as stream:  # fmt: skip
            if stops:
                with pytest.raises(ingest.errors.AllRecordsBad, match="'stars'"):
                    stream.step(drain=not follow)
                assert stream.graph.version == 0
            else:
                stream.step(drain=not follow)
                assert stream.graph.version > 0


def test_a_stream_that_has_begun_says_it_once_and_counts(
    log: ingest.SqliteLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(mapped_fields, "JUDGED", 4)
    mapping = ingest.Fields("user.id", "item", kind="actoin", time="at")
    graph = lpma.Graph(device="cpu")
    with caplog.at_level(logging.WARNING, LOGGER.name), ingest.Pipeline(
        log, graph, records=mapping
    ) as stream:  # fmt: skip
        for count in (3, 3, 3):
            log.produce_many("updates", [event(at=5)] * count)
            stream.run("end")
        assert stream.stats.absent_fields == {"updates: actoin": 9}
        log.produce("updates", event(actoin="delete"))
        log.produce_many("updates", [event()] * 5)
        stream.run("end")
        assert stream.stats.absent_fields == {"updates: actoin": 9}
        assert stream.graph.num_edges == 1
    told = [r.msg for r in caplog.records if str(r.msg).startswith("field absent")]
    assert len(told) == 1
    assert "none of the first 4 records has the field 'actoin' (kind)" in str(told[0])


def test_a_slow_stream_says_it_after_a_while(
    log: ingest.SqliteLog, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, of however few records there were, also where no other comes; and counts from then."""
    seconds = [0.0]
    mapping = ingest.Fields("user.id", "item", kind="actoin", time="at")
    with caplog.at_level(logging.WARNING, LOGGER.name), ingest.Pipeline(
        log, lpma.Graph(device="cpu"), records=mapping, batch_interval=0.0
    ) as stream:  # fmt: skip
        stream.decoder.reader.fields._clock = lambda: seconds[0]
        stream.step()
        seconds[0] = 100.0
        log.produce_many("updates", [event(at=5)] * 3)
        stream.run("end")
        seconds[0] += mapped_fields.PATIENCE_S - 1
        stream.step()
        assert not stream.stats.absent_fields
        seconds[0] += 1
        stream.step()
        assert stream.stats.absent_fields == {"updates: actoin": 3}
        log.produce_many("updates", [event()] * 2000)
        stream.run("end")
        assert stream.stats.absent_fields == {"updates: actoin": 2003}
    told = [str(r.msg) for r in caplog.records if str(r.msg).startswith("field absent")]
    assert len(told) == 1
    assert "none of the first 3 records has the field 'actoin' (kind)" in told[0]


def test_records_in_our_own_forms_say_nothing(log: ingest.SqliteLog, tmp_path: Path) -> None:
    log.produce_many("updates", [ingest.encode_row(1, 2)] * 3)
    with pipeline(log, tmp_path / "state", kind="actoin") as stream:
        assert stream.run("end") == 3


# Tables ----------------------------------------------------------------------------------------


def change(form: str, ts_ms: int | None = None, **columns: Any) -> bytes:
    """A row that is read, in one of Debezium's forms. ts_ms: of the event; None: it has none."""
    row = {"a": 1, "b": 2, "amount": 3.5, **columns}
    more = {} if ts_ms is None else {"ts_ms": ts_ms}
    flat = {**row, "__op": "r", **{f"__{name}": value for name, value in more.items()}}
    around = {"before": None, "after": row, "op": "r", "source": {"table": "t"}, **more}
    event = flat if form.startswith("flattened") else around
    schema = {"type": "struct", "fields": []}
    return json.dumps({"schema": schema, "payload": event} if "schema" in form else event).encode()


FORMS = ["envelope", "envelope beside its schema", "flattened", "flattened beside its schema"]
KEY = b'{"a": 1, "b": 2}'


@pytest.mark.parametrize("form", FORMS)
def test_a_new_stream_of_a_table_stops_where_no_event_has_its_time(
    log: ingest.SqliteLog, tmp_path: Path, form: str
) -> None:
    heartbeat = b'{"ts_ms": 5}'  # which says nothing of the others
    for value in (change(form), heartbeat, change(form)):
        log.produce("updates", value, key=KEY)
    table = ingest.Debezium(ingest.Fields("a", "b", weight="amount", time="ts_ms"))
    graph = lpma.Graph(device="cpu")
    with ingest.Pipeline(
        log, graph, tmp_path / "state", stop_if_first_bad=1000, records=table
    ) as stream:
        with pytest.raises(ingest.errors.AllRecordsBad) as raised:
            stream.run("end")
        said = str(raised.value)
    assert "none of the first 2 records has the field 'ts_ms' (time): updates has" in said
    assert "source.table" in said or "__op" in said
    assert "after" not in said
    assert graph.version == 0


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("role", ["weight", "time"])
def test_a_column_that_is_null_in_every_row_stops_a_new_stream(
    log: ingest.SqliteLog, role: str, form: str
) -> None:
    log.produce("updates", change(form, note=None), key=KEY)
    log.produce("updates", change(form, note=None), key=KEY)
    named: Any = {role: "note"}
    table = ingest.Debezium(ingest.Fields("a", "b", **named))
    graph = lpma.Graph(device="cpu")
    with ingest.Pipeline(log, graph, stop_if_first_bad=9, records=table) as stream:
        with pytest.raises(ingest.errors.AllRecordsBad, match=f"'note' [(]{role}[)]") as raised:
            stream.run("end")
        said = str(raised.value)
    assert "updates has a, b, amount, note" in said
    log.produce("updates", change(form, note=7), key=KEY)
    with ingest.Pipeline(log, lpma.Graph(device="cpu"), stop_if_first_bad=9, records=table) as good:
        assert good.run("end") == 3


def test_a_field_that_no_document_of_mongodb_has_is_told(
    log: ingest.SqliteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is read as one in which it is NULL, also where it is an end."""
    monkeypatch.setattr(mapped_fields, "JUDGED", 3)
    source = {"connector": "mongodb"}
    for id in range(3):
        value = {"op": "c", "after": json.dumps({"_id": id, "a": 1, "bee": 2}), "source": source}
        log.produce("updates", json.dumps(value).encode(), key=b'{"id": "%d"}' % id)
    table = ingest.Debezium(ingest.Fields("a", "b"), on_repeat="sum")
    with ingest.Pipeline(log, lpma.Graph(device="cpu"), records=table) as stream:
        stream.run("end")
        assert not stream.outputs.kept
        assert stream.stats.absent_fields == {"updates: b": 3}


@pytest.mark.parametrize("form", FORMS)
def test_a_table_that_has_begun_says_that_no_event_has_its_time(
    log: ingest.SqliteLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    form: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(mapped_fields, "JUDGED", 3)
    table = ingest.Debezium(ingest.Fields("a", "b", time="ts_ms"))
    with caplog.at_level(logging.WARNING, LOGGER.name), ingest.Pipeline(
        log, lpma.Graph(device="cpu"), records=table
    ) as stream:  # fmt: skip
        for ts_ms in (None, None, 5, None):
            for _ in range(2):
                log.produce("updates", change(form, ts_ms), key=KEY)
            stream.run("end")
        assert stream.stats.absent_fields == {"updates: ts_ms": 4}
        assert stream.graph.num_edges == 1
    told = [r.msg for r in caplog.records if str(r.msg).startswith("field absent")]
    assert len(told) == 1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("role", ["weight", "time"])
def test_a_column_that_a_table_has_not_makes_bad_records_that_name_those_it_has(
    log: ingest.SqliteLog, role: str, form: str
) -> None:
    log.produce("updates", change(form), key=KEY)
    named: Any = {role: "amuont"}
    table = ingest.Debezium(ingest.Fields("a", "b", **named))
    with ingest.Pipeline(log, lpma.Graph(device="cpu"), records=table) as stream:
        assert stream.run("end") == 0
        reason = stream.outputs.kept[0].reason
    assert reason == "amuont: the row has no such column: it has a, b, amount"


def test_a_table_of_vertices_has_no_weight(log: ingest.SqliteLog) -> None:
    """In whichever way its records are read: one by one they were refused."""
    table = ingest.Debezium(ingest.Fields("a", weight="amuont", default_kind="add_vertex"))
    for value in (change("envelope"), change("envelope"), b"bad", change("flattened")):
        log.produce("updates", value, key=b'{"a": 1}')
    for polled in (1, 100):
        graph = lpma.Graph(device="cpu")
        with ingest.Pipeline(log, graph, records=table, poll_records=polled) as stream:
            stream.run("end")
            assert [letter.offset for letter in stream.outputs.kept] == [2]
            assert graph.has_vertices(1)
