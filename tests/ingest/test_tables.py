"""A graph that follows a table through Debezium holds the table's rows, at every offset."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingest
from ingest import DeadLetter
from tests.conftest import soak
from tests.support.cdc.cases import (
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
from tests.support.cdc.expected import after_each, amount_of, ends_of, figures

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
        pipeline = opened(
            log, case, batch_size=3, poll_records=polled, dead_letters=letters.append
        )
        for at in stepped(pipeline, case):
            if stream[at - 1][1]:
                rows, weights = expected[at - 1]
                assert weights_of(pipeline.graph) == weights
                if case.on_repeat is None:
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
@settings(max_examples=soak(20, 1000), deadline=None)
def test_a_window_keeps_the_rows_that_are_within_it(
    case: Case, random: Random, polled: int, steps: int
) -> None:
    """A row that is older than the newest by more than the width is no edge, whenever it was
    written. REQUIRES: each row has a time, and ends of its own."""
    case = case._replace(table=replace(case.table, key=("payer", "payee"), nullable=False),
                         on_repeat=None)  # fmt: skip
    table, given = case.table, topic_of(case, random, 15)
    width = steps * database_of(case, random).step_ms
    expected = after_each((message.change for message in given), table, None)
    with case.log(":memory:") as log:
        produce(log, given)
        letters: list[DeadLetter] = []
        pipeline = opened(
            log, case, window=width, batch_size=3, poll_records=polled, dead_letters=letters.append
        )
        for at in stepped(pipeline, case):
            told = [m.change.after[table.time] for m in given[:at] if m.change.after]
            rows = expected[at - 1][0].values()
            assert weights_of(pipeline.graph) == {
                ends_of(row, table): amount_of(row, table) for row in rows
                if row[table.time] >= max(told) - width and amount_of(row, table) > 0
            }  # fmt: skip
        pipeline.close()
        assert not letters
