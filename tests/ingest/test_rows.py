"""Streams of rows: whatever lies among them and wherever they are cut, reading them together leaves
the same graph, names, dead letters, replies and places as reading each by itself."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingest
from ingest import Fields, Pipeline, SqliteLog
from ingest.pipeline import intake
from ingest.sources.sqlite.log import SqliteLog as Log
from ingest.types import Values
from lpma import Kind
from tests.conftest import soak
from tests.support.stream_model import SavedModel

from .formats.test_row_reader import FLAT, WIDE, objects, others, packed

BY_TOPIC = {"updates": WIDE, "more": FLAT}
RACES = [
    {"records": WIDE, "names": True},
    {"records": FLAT, "names": False},
    {"records": BY_TOPIC, "names": True, "late": "dead-letter", "max_lateness": 5},
    {"records": FLAT, "names": True, "late": "reject", "max_lateness": 3},
    {"names": False, "late": "dead-letter", "window": 20},
]


@st.composite
def plain(draw: st.DrawFn, names: bool) -> bytes:
    """A good row of either form, from few vertices, times and producers."""
    u, v, time, seq = (draw(st.integers(0, n)) for n in (5, 5, 40, 9))
    ends: list[Any] = [f"v{u}" if names and u % 2 else u, f"v{v}" if names and v % 2 else v]
    at = time if draw(st.booleans()) else None
    who = draw(st.sampled_from([None, "s", "t"]))
    form = draw(st.integers(0, 3))
    if form == 0:
        sent: dict[str, Any] = {"producer": who, "seq": seq} if who is not None else {}
        kind = draw(st.sampled_from([Kind.INSERT, Kind.INSERT, Kind.DELETE, Kind.SET]))
        weight = draw(st.sampled_from([1.5, 1.5, 0.5, None, -1.0]))
        return ingest.encode_row(ends[0], ends[1], weight, at, kind, names=names, **sent)
    if form == 1:
        edge = draw(st.booleans())
        kind, dst = (Kind.EDGE, ends[1]) if edge else (Kind.DEGREE, None)
        return ingest.encode_query(f"q{u}{v}{time}", kind, ends[0], dst, names=names)
    row = {"user": ends[0], "item": ends[1], "to": {"item": ends[1]}, "at": at, "score": 2}
    row |= draw(st.sampled_from([{}, {}, {"op": "set"}, {"op": "set", "score": 0}]))
    return json.dumps(row | ({"who": who, "n": seq} if who else {})).encode()


def streamed(values: list[list[bytes]], apart: bool, given: dict[str, Any]) -> tuple[Any, ...]:
    """What a stream of these records, by topic, leaves. apart: each is read by itself."""
    letters: list[Any] = []
    replies: list[Any] = []
    with pytest.MonkeyPatch.context() as patch, SqliteLog(":memory:", ("updates", "more")) as log:
        if apart:
            patch.setattr(intake, "in_runs", iter)
            patch.setattr(Log, "poll_many", Log.poll)
        for topic, of_topic in zip(("updates", "more"), values, strict=True):
            log.create_topic(topic)
            for start in range(0, len(of_topic), 17):
                log.produce_many(topic, of_topic[start : start + 17])
        pipeline = Pipeline(
            log, SavedModel(), dead_letters=letters.append, replies=replies.append,
            clock=lambda: 30, batch_interval=10.0, **given,
        )  # fmt: skip
        pipeline.run("end")
        state = replace(pipeline._stream.state, fingerprints={}, identity=None)  # type: ignore[arg-type]
        assert isinstance(pipeline.graph, SavedModel)
        names = pipeline.vertices
        named = None if names is None else names.of(np.arange(len(names))).tolist()
        return (
            pipeline.graph.state, named,
            letters, [(reply.id, repr(reply.answer), reply.version) for reply in replies],
            state, pipeline.decoder.reader.duplicates,
            {place: one.offset for place, one in pipeline.intake.fingerprints.items()},
        )  # fmt: skip


@pytest.mark.soak
@pytest.mark.parametrize("race", range(len(RACES)))
def test_reading_rows_together_changes_nothing(race: int) -> None:
    reading = RACES[race]
    fields = reading.get("records", Fields())
    found = fields if isinstance(fields, Fields) else WIDE
    good = plain(bool(reading["names"]))
    one = st.one_of(good, good, good, objects(found), packed(), others)

    @given(
        st.lists(one, max_size=40), st.lists(one, max_size=10),
        st.sampled_from([1, 2, 7, 500]), st.sampled_from([1, 3, 100]),
    )  # fmt: skip
    @settings(max_examples=soak(25, 3_000), deadline=None)
    def streams(updates: list[bytes], more: list[bytes], polled: int, batch: int) -> None:
        given = {**reading, "poll_records": polled, "batch_size": batch}
        together, apart = (streamed([updates, more], each, given) for each in (False, True))
        for ours, theirs in zip(together, apart, strict=True):
            assert repr(ours) == repr(theirs)

    streams()


def test_a_log_is_read_together_around_what_is_large_and_what_lies_between() -> None:
    rows = [ingest.encode_row(i, i + 1) for i in range(30)]
    large = ingest.encode_updates(range(2000), range(1, 2001))
    with SqliteLog(":memory:", ("updates",)) as log:
        log.create_topic("updates")
        log.create_topic("other")
        given = [*rows[:10], large, large, *rows[10:], b"", b""]
        for value in given:
            log.produce("updates", value)
            log.produce("other", b"x")
        polls = []
        while found := log.poll_many(20, 0.0):
            polls.append([(one.offset, one.records) for one in found])
            for one in found:
                here = list(one.value) if isinstance(one.value, Values) else [one.value]
                assert here == given[one.offset : one.last + 1]
    assert polls[0] == [(0, 10)], "up to the first that is large"
    assert polls[1] == [(offset, 1) for offset in range(10, 30)], "one by one, as it is large"
    assert polls[2:] == [[(30, 4)]]
