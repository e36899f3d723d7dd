"""A graph that follows a table through Debezium holds the table's rows, at every offset."""

from __future__ import annotations

import logging
import tempfile
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingest
import lpma
from ingest import DeadLetter, SqliteLog
from ingest.events import LOGGER
from tests.conftest import soak
from tests.support.cdc.cases import (
    BY_ENDS,
    BY_ID,
    Case,
    cases,
    database_of,
    delivered_again,
    opened,
    produce,
    sparse_cases,
    stepped,
    times_in,
    times_of,
    topic_of,
    weights_of,
)
from tests.support.cdc.database import Table
from tests.support.cdc.envelopes import Message
from tests.support.cdc.expected import after_each, figures, sums_of
from tests.support.events import events_named

randoms = st.randoms(use_true_random=False)
polls = st.sampled_from([1, 2, 4, 500])  # records at once


@pytest.mark.soak
@given(cases() | sparse_cases(), randoms, polls)
@settings(max_examples=soak(50, 3000), deadline=None)
def test_the_graph_is_the_table_at_every_offset(case: Case, random: Random, polled: int) -> None:
    """Also where a connector tells things again: once it has told all that it had told before."""
    stream = list(delivered_again(topic_of(case, random, 12), random))
    expected = after_each((message.change for message, _ in stream), case.table, case.on_repeat)
    with tempfile.TemporaryDirectory() as directory, case.log(Path(directory) / "log") as log:
        produce(log, [message for message, _ in stream])
        letters: list[DeadLetter] = []
        pipeline = opened(log, case, batch_size=3, poll_records=polled, dead_letters=letters.append)
        for at in stepped(pipeline, case):
            if stream[at - 1][1]:
                rows, weights = expected[at - 1]
                assert weights_of(pipeline.graph) == weights
                if case.on_repeat != "last":
                    assert times_in(rows, case.table).items() <= times_of(pipeline.graph).items()
        pipeline.close()
        assert not letters


@pytest.mark.soak
@given(cases(), randoms, st.data())
@settings(max_examples=soak(10, 500), deadline=None)
def test_past_views_are_the_table_as_it_was(case: Case, random: Random, data: Any) -> None:
    """Stopped and resumed anywhere, with batches cut anyhow; then every version is asked for."""
    given = topic_of(case, random, 12)
    expected = after_each((message.change for message in given), case.table, case.on_repeat)
    with tempfile.TemporaryDirectory() as directory:
        state, seen, ended = Path(directory) / "state", {}, False
        while not ended:
            with case.log(Path(directory) / "log") as log:
                options: dict[str, Any] = {"poll_records": data.draw(st.integers(1, 6)),
                                           "batch_size": data.draw(st.integers(1, 9))}  # fmt: skip
                if ingest.has_checkpoint(state):
                    pipeline = ingest.Pipeline.resume(state, log, device="cpu", **options)
                else:
                    produce(log, given)
                    pipeline = opened(log, case, state, keep_checkpoints="1s=1000", **options)
                ended = True
                for at in islice(stepped(pipeline, case), data.draw(st.integers(1, 6))):
                    seen[pipeline.graph.version] = at
                    if data.draw(st.integers(0, 3)) == 0:
                        pipeline.checkpoint_now()
                    ended = False
                pipeline.close(checkpoint=data.draw(st.booleans()))
        with case.log(Path(directory) / "log") as log:
            for version, offset in seen.items():
                found = ingest.as_of(state, log, version=version, device="cpu")
                assert weights_of(found) == expected[offset - 1][1]


@pytest.mark.soak
@given(cases(), randoms)
@settings(max_examples=soak(10, 500), deadline=None)
def test_trackers_say_what_the_table_says(case: Case, random: Random) -> None:
    stream = list(delivered_again(topic_of(case, random, 20, vertices=7), random))
    expected = after_each((message.change for message, _ in stream), case.table, case.on_repeat)
    with case.log(":memory:") as log:
        produce(log, [message for message, _ in stream])
        track = ("core", "triangles", "components")
        letters: list[DeadLetter] = []
        options: dict[str, Any] = {"track": track, "dead_letters": letters.append}
        pipeline = opened(log, case, batch_size=4, poll_records=3, **options)
        for at in stepped(pipeline, case):
            if stream[at - 1][1]:
                assert pipeline.tracked is not None
                assert pipeline.tracked.figures() == figures(expected[at - 1][1])
        pipeline.close()
        assert not letters


@pytest.mark.soak
@given(cases(), randoms, polls, st.integers(0, 6))
@settings(max_examples=soak(30, 1500), deadline=None)
def test_a_window_keeps_the_rows_that_are_within_it(
    case: Case, random: Random, polled: int, steps: int
) -> None:
    """An edge whose newest row is older than the newest of all by more than the width is gone,
    whenever it was written; one that is there has all of its rows. REQUIRES: rows have times."""
    table = replace(case.table, nullable=False)
    case = case._replace(table=table, on_repeat=None if table.key == BY_ENDS.key else "sum")
    given = topic_of(case, random, 15)
    width = steps * database_of(case, random).step_ms
    expected = after_each((message.change for message in given), table, case.on_repeat)
    with case.log(":memory:") as log:
        produce(log, given)
        letters: list[DeadLetter] = []
        pipeline = opened(
            log, case, window=width, batch_size=3, poll_records=polled, dead_letters=letters.append
        )
        for at in stepped(pipeline, case):
            told = [m.change.after[table.time] for m in given[:at] if m.change.after]
            newest = max(told, default=0)
            rows, weights = expected[at - 1]
            times = times_in(rows, table)
            kept = {ends: w for ends, w in weights.items() if times[ends] >= newest - width}
            assert weights_of(pipeline.graph) == kept
        pipeline.close()
        assert not letters


@given(randoms, polls, st.sampled_from(["last", "sum"]))
@settings(max_examples=30, deadline=None)
def test_an_undirected_edge_is_of_rows_both_ways(random: Random, polled: int, repeat: Any) -> None:
    """Also an update that turns a row around, and a resume. What `last` says of an edge is what the
    last change of a row of either way left."""
    case = Case(replace(BY_ID, nullable=False), on_repeat=repeat)
    given = topic_of(case, random, 20, vertices=3)
    both = [_ordered(message.change) for message in given]
    expected = after_each(both, case.table, repeat)
    with tempfile.TemporaryDirectory() as directory, case.log(Path(directory) / "log") as log:
        produce(log, given)
        state = Path(directory) / "state"
        more: dict[str, Any] = {"batch_size": 3, "poll_records": polled}
        pipeline = opened(log, case, state, directed=False, **more)
        while pipeline.step(drain=True) or not log.at_end():
            at = pipeline.positions().get(case.place)
            if at and at.offset:
                found = weights_of(pipeline.graph)
                found = {(u, v): weight for (u, v), weight in found.items() if u <= v}
                assert found == expected[at.offset - 1][1]
            if random.random() < 0.3:
                pipeline.checkpoint_now()
                pipeline.close()
                pipeline = ingest.Pipeline.resume(state, log, **more)
        assert not pipeline.outputs.kept
        pipeline.close()


def _ordered(change: Any) -> Any:
    """The same of rows whose ends are in order."""

    def turned(row: Any) -> Any:
        if row is None:
            return None
        payer, payee = sorted((row["payer"], row["payee"]))
        return {**row, "payer": payer, "payee": payee}

    return change._replace(before=turned(change.before), after=turned(change.after))


@pytest.mark.parametrize("key", [("payer", "payee"), ("payer",)])
@pytest.mark.parametrize("polled", [1, 500])
def test_in_an_undirected_graph_rows_may_share_an_edge_whatever_their_key(
    key: tuple[str, ...], polled: int
) -> None:
    case = Case(Table(key=key, nullable=False))
    given = topic_of(case, Random(1), 5)
    with case.log(":memory:") as log:
        produce(log, given)
        with opened(log, case, poll_records=polled, directed=False) as pipeline:
            pipeline.run("end")
            assert pipeline.graph.num_edges == 0
            reasons = [letter.reason for letter in pipeline.outputs.kept]
    assert reasons
    assert all("the graph is undirected" in why and "on_repeat" in why for why in reasons)


# Tables that are told in parts, and beside others ---------------------------------------------


def compacted(given: list[Message]) -> list[Message]:
    """What compaction leaves: the last record of each key."""
    last = {message.key: at for at, message in enumerate(given)}
    return [message for at, message in enumerate(given) if last[message.key] == at]


@pytest.mark.soak
@given(cases() | sparse_cases(), randoms, polls)
@settings(max_examples=soak(20, 1000), deadline=None)
def test_a_compacted_topic_has_the_same_end(case: Case, random: Random, polled: int) -> None:
    """Not with `last`: of rows that shared their ends compaction forgets the last change."""
    by_ends = case.table.key == ("payer", "payee")
    case = case._replace(on_repeat=None if by_ends else "sum", on_tombstone="delete")
    given = topic_of(case, random, 15, truncates=False)
    with case.log(":memory:") as log:
        produce(log, compacted(given))
        letters: list[DeadLetter] = []
        pipeline = opened(log, case, poll_records=polled, dead_letters=letters.append)
        for _ in stepped(pipeline, case):
            pass
        expected = after_each((message.change for message in given), case.table, case.on_repeat)
        assert weights_of(pipeline.graph) == expected[-1][1]
        pipeline.close()
        assert not letters


@pytest.mark.soak
@given(cases(), cases(), randoms, polls)
@settings(max_examples=soak(20, 1000), deadline=None)
def test_tables_that_are_summed_add_up(
    first: Case, second: Case, random: Random, polled: int
) -> None:
    """Also where one of them is truncated: the other's rows stay."""
    parts = [
        each._replace(table=replace(each.table, name=name, text_ends=first.table.text_ends),
                      on_repeat="sum")
        for name, each in (("wired", first), ("paid", second))
    ]  # fmt: skip
    given = [topic_of(each, random, 10) for each in parts]
    expected = [after_each((m.change for m in told), each.table, "sum")
                for told, each in zip(given, parts, strict=True)]  # fmt: skip
    topics = [each.place.topic for each in parts]
    with SqliteLog(":memory:", topics=topics) as log:
        for topic, told in zip(topics, given, strict=True):
            log.create_topic(topic)
            log.produce_many(topic, [m.value for m in told], keys=[m.key for m in told])
        letters: list[DeadLetter] = []
        pipeline = opened(
            log, parts[0], batch_size=3, poll_records=polled, dead_letters=letters.append,
            records={each.place.topic: each.records for each in parts},
        )  # fmt: skip
        while pipeline.step(drain=True) or not log.at_end():
            total: Counter[Any] = Counter()
            for each, states in zip(parts, expected, strict=True):
                at = pipeline.positions().get(each.place)
                if at and at.offset:
                    total.update(sums_of(states[at.offset - 1][0], each.table))
            assert weights_of(pipeline.graph) == {k: w for k, w in total.items() if w > 0}
        pipeline.close()
        assert not letters


def events_of(records: Any, topics: list[str], caplog: pytest.LogCaptureFixture) -> list[Any]:
    """The events of a pipeline that begins, and of one that resumes, with these topics."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        with SqliteLog(path / "log", topics=tuple(topics)) as log:
            for topic in topics:
                log.create_topic(topic)
            with caplog.at_level(logging.WARNING, LOGGER.name):
                ingest.Pipeline(log, lpma.Graph(device="cpu"), path / "c", records=records).close()
                ingest.Pipeline.resume(path / "c", log).close()
    return events_named(caplog, "sums beside others")


def test_a_sum_beside_another_topic_of_edges_is_told(caplog: pytest.LogCaptureFixture) -> None:
    paid = ingest.Debezium(ingest.Fields("a", "b"), on_repeat="sum")
    found = events_of({"paid": paid, "refunds": paid}, ["paid", "refunds", "clicks"], caplog)
    assert len(found) == 2, "at the start, and at each resume"
    assert found[0].fields["summed"] == ["paid", "refunds"]
    assert found[0].fields["others"] == ["clicks"]


@pytest.mark.parametrize(
    "more",
    [
        {"refunds": ingest.Debezium(ingest.Fields("a", "b"), on_repeat="sum")},
        {"users": ingest.Debezium(ingest.Fields("a", default_kind="add_vertex"))},
        {"users": ingest.Fields("a", default_kind="add_vertex")}, {"queries": "msgpack"},
    ],
    ids=str,
)  # fmt: skip
def test_what_takes_part_in_a_sum_or_writes_no_edges_is_not(
    more: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    paid = ingest.Debezium(ingest.Fields("a", "b"), on_repeat="sum")
    assert not events_of({"paid": paid, **more}, ["paid", *more], caplog)
