"""Past views of a stream with a window: what was, at every version and time, expiries included."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingest
import lpma
from ingest import Pipeline, SqliteLog
from ingest.past import view
from ingest.pipeline.windows import bound_of
from ingest.state.journal import Chunk, Cut, segment_numbers
from ingest.state.journal_reader import read_journal
from tests.conftest import soak
from tests.support.topics import Ticking
from tests.support.window_model import Op, WindowModel, record_of, records, small_times

SPAN = 5  # vertices of the model's streams


def edges_of(graph: lpma.Graph) -> dict[tuple[int, int], tuple[float, int]]:
    """(u, v) → (weight, time), as `WindowModel.edges` has them."""
    src, dst = np.divmod(np.arange(SPAN * SPAN), SPAN)
    found = graph.edges(src, dst)
    assert found.weights is not None
    assert found.times is not None
    columns = (src, dst, found.weights, found.times, found.found)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    held = {(u, v): (w, t) for u, v, w, t, here in rows if here}
    assert len(held) == graph.num_edges
    return held


class History:
    """What a pipeline's journal says that was buffered and when, and where batches ended."""

    def __init__(self, state: Path, stream: list[list[Op]]) -> None:
        self.ops: list[tuple[Op, int]] = []  # with stamps
        self.sizes: list[int] = []
        for entry in read_journal(state, segment_numbers(state)[0]).entries:
            if isinstance(entry, Chunk):
                read = stream[entry.first : entry.last + 1]
                self.ops += [(op, entry.stamp) for ops in read for op in ops]
            elif isinstance(entry, Cut):
                self.sizes.append(entry.operations)

    def model_at(self, model: WindowModel, time: int) -> WindowModel:
        """At this time; what lies behind the last whole batch is a batch of its own."""
        then = [(op, stamp) for op, stamp in self.ops if stamp <= time]
        ends = [end for end in np.cumsum([0, *self.sizes]).tolist() if end <= len(then)]
        for start, end in pairwise([*ends, len(then)]):
            if end > start:
                model.stamped(then[start:end])
        return model

    def model_after(self, model: WindowModel, batches: int) -> WindowModel:
        ends = np.cumsum([0, *self.sizes]).tolist()
        for start, end in pairwise(ends[: batches + 1]):
            model.stamped(self.ops[start:end])
        return model


@pytest.mark.soak
@given(st.data())
@settings(max_examples=soak(25, 600), deadline=None)
def test_every_version_and_time_is_what_the_window_left(device: str, data: st.DataObject) -> None:
    """Any cuts, polls, checkpoints and stops, with queries among the operations: each version as it
    was noted live and as the dictionary has it; each time as the dictionary has it, also within
    a batch, a ms before and after what expired."""
    stream = data.draw(records(when=small_times, most=14))
    width, arrival = data.draw(st.integers(0, 40)), data.draw(st.booleans())
    reading: dict[str, Any] = {"window": width, "window_time": "arrival" if arrival else "event"}
    clock, live = Ticking(), {}
    with tempfile.TemporaryDirectory() as name:
        path, state = Path(name) / "log", Path(name) / "state"
        with SqliteLog(path) as log:
            log.produce_many("updates", [record_of(ops, f"q{i}") for i, ops in enumerate(stream)])
        pipeline = Pipeline(
            SqliteLog(path), lpma.Graph(device=device, segment_size=2), state, clock=clock,
            batch_size=data.draw(st.integers(1, 9)), poll_records=data.draw(st.integers(1, 5)),
            batch_interval=10.0, query_interval=10.0, keep_checkpoints="1s=1000", **reading,
            replies=lambda reply: None,
        )  # fmt: skip
        graph: Any = pipeline.graph
        while pipeline.step(drain=True) or not pipeline.source.at_end():
            stats = pipeline.stats
            live[graph.version] = edges_of(graph), stats.expired, stats.expired_before
            if data.draw(st.integers(0, 4)) == 0:
                pipeline.checkpoint_now()
        pipeline.close(checkpoint=data.draw(st.booleans()))
        pipeline.source.close()  # type: ignore[attr-defined]
        history = History(state, stream)
        assert sum(history.sizes) == len(history.ops)
        with SqliteLog(path) as source:
            for version, expected in live.items():
                found = view(state, source, version=version, device=device)
                bound = bound_of(found.state.window_newest, width)
                assert (edges_of(found.graph), found.state.expired, bound) == expected
            assert len(live) == len(history.sizes)
            for batches, expected in enumerate(live.values(), 1):
                model = history.model_after(WindowModel(width, arrival), batches)
                assert (model.edges, model.expired, model.bound) == expected
            stamps = {stamp for _, stamp in history.ops}
            for time in sorted(stamps | {stamp - 1 for stamp in stamps}):
                found = view(state, source, time=time, device=device)
                model = history.model_at(WindowModel(width, arrival), time)
                assert (edges_of(found.graph), found.state.expired) == (model.edges, model.expired)


def test_a_query_in_a_batch_hides_no_expiry(device: str, tmp_path: Path) -> None:
    """The version before an expiry, the one with it, and times on both sides within its batch."""
    path, state = tmp_path / "log", tmp_path / "state"
    with SqliteLog(path) as log:
        log.produce("updates", ingest.encode_updates([0, 1], [1, 2], time=[10, 20]))
        log.produce("updates", ingest.encode_query("q", lpma.Kind.DEGREE, 0))
        log.produce("updates", ingest.encode_row(2, 3, time=35))
        log.produce("updates", ingest.encode_row(3, 4, time=45))
        with Pipeline(
            log, lpma.Graph(device=device), state, window=20, batch_size=2, clock=Ticking(),
            poll_records=1, keep_checkpoints="1s=9",
        ) as pipeline:  # fmt: skip
            pipeline.run(until="end")
    history = read_journal(state, segment_numbers(state)[0]).entries
    stamps = [entry.stamp for entry in history if isinstance(entry, Chunk)]
    with SqliteLog(path) as source:

        def held(**when: int) -> list[tuple[int, int]]:
            return [*edges_of(ingest.as_of(state, source, device=device, **when))]

        assert held(version=1) == [(0, 1), (1, 2)]
        assert held(version=2) == [(1, 2), (2, 3)]
        assert held(version=3) == [(2, 3), (3, 4)]
        assert held(time=stamps[1]) == [(0, 1), (1, 2)]
        assert held(time=stamps[2]) == [(1, 2), (2, 3)]
