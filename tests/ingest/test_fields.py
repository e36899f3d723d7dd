"""The mapping of fields: what it refuses, what a topic makes of it, and what checkpoints keep."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from ingest import Fields, PipelineError, Settings
from ingest.cli._options import UpdateKind
from ingest.formats.kinds import UPDATE_KINDS
from ingest.service.messages import Kinds, Words
from ingest.settings import RecordSettings

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
