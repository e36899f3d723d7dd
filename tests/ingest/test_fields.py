"""The mapping of fields: what it refuses, what a topic makes of it, and what checkpoints keep."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest import Debezium, Fields, PipelineError, RecordError, Settings, decode_record
from ingest.cli._options import UpdateKind
from ingest.formats.json import write_json
from ingest.formats.kinds import UPDATE_KINDS
from ingest.formats.row_reader import overlap
from ingest.service.messages import Kinds, Words
from ingest.settings import RecordSettings
from lpma import Kind

OLD = {"src": "user", "dst": "item", "weight": None, "time": "at", "kind": None,
       "default_weight": 2.0, "default_kind": "append"}  # fmt: skip


@pytest.mark.parametrize(
    "fields",
    [{"source": ""}, {"source": "a", "target": "a"}, {"weight": 1.5}, {"default_kind": "edge"},
     {"default_weight": float("nan")}, {"default_weight": True}, {"producer": "p"}, {"seq": "n"},
     {"time_unit": "h"}, {"kinds": {"follow": "query"}}, {"source": True}],
)  # fmt: skip
def test_fields_must_make_sense(fields: dict[str, Any]) -> None:
    with pytest.raises(PipelineError):
        Fields(**fields)


@pytest.mark.parametrize(
    "fields", [{"source": 1}, {"time_unit": "auto"}, {"weight": "src"}, {"weight": "a", "time": 2}]
)
def test_what_only_a_file_has_is_refused_for_a_topic(fields: dict[str, Any]) -> None:
    with pytest.raises(PipelineError):
        Settings(records=Fields(**fields))


def test_none_is_what_a_topic_takes_it_for() -> None:
    settings = Settings(records=Fields(weight="none", kinds={"follow": "insert"}))
    assert settings.records == Fields("src", "dst", time_unit="ms", kinds={"follow": "append"})
    kept = settings.record_settings()
    assert kept.kept({"records": Fields(kinds={"follow": "append"})}) == kept.kept({})
    with pytest.raises(PipelineError, match="records"):
        kept.kept({"records": Fields("user")})


def test_every_place_that_names_kinds_knows_all_of_them() -> None:
    """What is typed must be spelled out, so it is compared with what the kinds are."""
    assert get_args(UpdateKind) == get_args(Words) == (*UPDATE_KINDS,)
    assert {*get_args(Kinds)} == {*UPDATE_KINDS, *map(int, UPDATE_KINDS.values())}
    numbers = {str(int(kind)): word for word, kind in UPDATE_KINDS.items()}
    assert Fields(kinds={n: n for n in numbers}).kinds == numbers
    for number in ("5", "10", "12"):
        with pytest.raises(PipelineError, match="expected one of append"):
            Fields(default_kind=number)


def test_checkpoints_keep_it_and_old_ones_open() -> None:
    old = {"records": OLD, "ids": "dense", "late": "apply", "max_lateness": 0}
    fields = Fields("user", "item", time="at", default_weight=2.0)
    assert RecordSettings.from_json(old) == RecordSettings(records=fields)
    assert fields.to_json() == OLD
    by_topic = {
        "a": Fields("x", "y", producer="who", seq="n", time_unit="s", kinds={"+": "append"}),
        "b": fields, "c": "msgpack",
    }  # fmt: skip
    kept = RecordSettings(records=by_topic)  # type: ignore[arg-type]
    assert RecordSettings.from_json(kept.to_json()) == kept
    assert (kept.fields_of("b"), kept.fields_of("c"), kept.fields_of("d")) == (
        fields.of_topic(), None, None,
    )  # fmt: skip


def test_what_a_resume_cannot_change_is_said_by_what_differs() -> None:
    table = Debezium(Fields("user", "item"), on_repeat="sum")
    kept = Settings(records=table).record_settings()
    wrong = Debezium(Fields("user", "item", weight="n"))
    said = "records weight was None, now 'n'; on_repeat was 'sum', now None, which a resume"
    with pytest.raises(PipelineError, match=said):
        kept.kept({"records": wrong})
    kept = Settings(records={"a": Fields("x", "y"), "b": "msgpack"}).record_settings()
    with pytest.raises(PipelineError, match="records a: target was 'y', now 'z', which"):
        kept.kept({"records": {"a": Fields("x", "z"), "b": "msgpack"}})
    with pytest.raises(PipelineError, match="records is 'msgpack', but the checkpoint was taken"):
        kept.kept({"records": "msgpack"})


@given(data=st.data())
def test_what_is_written_for_a_mapping_is_read_by_it(data: st.DataObject) -> None:
    """With paths, words of its own, and words of ours that it gives another meaning."""
    paths = ["user", "user.id", "to.item", "to.item.id", "to", "x", "x.y.z", "append"]
    source, target, weight, time, kind = data.draw(st.permutations(paths))[:5]
    words = st.sampled_from(["append", "delete", "set", "follow", "insert", "0", "1"])
    kinds = data.draw(st.dictionaries(words, st.sampled_from(["append", "delete", "set"])))
    default = data.draw(st.sampled_from(["append", "delete"]))
    fields = Fields(source, target, weight, time, kind, kinds=kinds, default_kind=default)
    code = data.draw(st.sampled_from([Kind.INSERT, Kind.DELETE, Kind.SET]))
    try:
        (value,) = write_json(fields.of_topic(), [code], [7], [9], [2.5], [11])
    except RecordError:  # every word of ours for it has another meaning
        assert (
            {"append", "insert", "0"} <= kinds.keys()
            or {"delete", "1"} <= kinds.keys()
            or (code == Kind.SET and "set" in kinds)
        )
        return
    row = decode_record(value, fields=fields).batch
    assert (row.kind.tolist(), row.src.tolist(), row.dst.tolist()) == ([code], [7], [9])
    assert row.time is not None
    assert row.time.tolist() == [11]
    assert code == Kind.DELETE or (row.weight is not None and row.weight.tolist() == [2.5])
    assert not any("." in name for name in json.loads(value)) or overlap(fields.of_topic())


def test_a_stream_with_words_of_its_own_is_written_in_these() -> None:
    fields = Fields("user.id", "item", kind="action", kinds={"follow": "append"}).of_topic()
    assert [*write_json(fields, [Kind.INSERT, Kind.DELETE], [1, 1], [2, 2], None, None)] == [
        b'{"user":{"id":1},"item":2,"action":"follow"}',
        b'{"user":{"id":1},"item":2,"action":"delete"}',
    ]
